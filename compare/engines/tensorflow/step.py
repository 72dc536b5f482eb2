"""A step of TensorFlow: gradients on a tape, and the variables that a call changes.

Layers and optimizers make variables in their first call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import optree

from compare import text
from compare.engines.nudge import FloatChange, changed_values
from compare.engines.process import Switch
from compare.engines.reach import ReachedCode
from compare.engines.state import Piece
from compare.engines.step import Bindable, BoundCall, Function, StateReader, kind_of_loss, loss_in
from compare.errors import NoGradientsError


class TapeStep(Bindable):
    """`step(*args) -> (value, gradients)`; the tape watches only the differentiated tensors.

    These are the trainable variables that the loss reaches by itself (`reached`), if there are any, or else the floats
    of one argument; for a model its variables. The step raises NoGradientsError where there is no loss, or no float.
    """

    def __init__(self, loss: Function, argnum: int, reached: Sequence[Any] = ()) -> None:
        self.loss, self.argnum, self.reached = loss, argnum, reached
        self.gradients_in = ""

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; missing gradients become zeros after the run."""
        import tensorflow as tf

        loss, argument = self.loss, args[self.argnum] if args else ()
        outer = _floats([*{id(each): each for holder in self.reached for each in _trainable(holder)}.values()])
        if outer and not hasattr(argument, "trainable_variables"):
            argument = list(outer.values())
        named = _floats(argument)
        leaves = list(named.values())
        if not leaves:
            raise NoGradientsError("the first argument holds no floats; give the parameters first")
        self.gradients_in = text.count_noun(len(leaves), "trained variable") if outer else ""
        watched = leaves[0] if leaves[0] is argument else leaves

        is_loss = False  # if the first run returned just the loss, later runs skip the search

        def run() -> tuple[Any, Any]:
            nonlocal is_loss
            with tf.GradientTape() as tape:
                tape.watch(watched)
                value = loss(*args)
            of = value if is_loss else _scalar(value)
            is_loss = of is value
            return value, tape.gradient(of, watched)

        def result(returned: tuple[Any, Any]) -> tuple[Any, Any]:
            value, gradients = returned
            gradients = gradients if watched is leaves else [gradients]
            dense = {
                name: tf.zeros_like(leaf) if gradient is None else tf.convert_to_tensor(gradient)
                for (name, leaf), gradient in zip(named.items(), gradients, strict=True)
            }
            tree: Any = argument
            parts, structure = optree.tree_flatten(tree)
            if len(dense) != len(parts) or hasattr(argument, "trainable_variables"):
                return value, dense  # by index for a model, or where only some leaves are floats
            return value, optree.tree_unflatten(structure, list(dense.values()))

        return BoundCall(run, result)


def trainables_in(function: Any) -> list[Any]:
    """Return the trainable objects that a function reaches by itself: variables, and holders of variables."""
    import tensorflow as tf

    keras = sys.modules.get("keras")
    kinds = (tf.Variable, tf.Module, *((keras.Layer, keras.Variable) if keras else ()))
    return [value for value in ReachedCode(function).values if isinstance(value, kinds)]


def _trainable(holder: Any) -> list[Any]:
    """Return the trainable variables of a variable, module or layer."""
    inside = getattr(holder, "trainable_variables", None)
    return list(inside) if inside is not None else [holder] if holder.trainable else []


def _floats(argument: Any) -> dict[int, Any]:
    """Return the floats to differentiate in an argument, by the index of the leaf or of a model's variable."""
    import tensorflow as tf

    model = getattr(argument, "trainable_variables", None)
    leaves = list(model) if model is not None else optree.tree_leaves(argument)
    are = (tf.Tensor, tf.Variable)
    tensors = {
        i: leaf.value if hasattr(leaf, "path") and hasattr(leaf, "value") else leaf for i, leaf in enumerate(leaves)
    }
    return {i: x for i, x in tensors.items() if isinstance(x, are) and (x.dtype.is_floating or x.dtype.is_complex)}


def _scalar(value: Any) -> Any:
    """Return the loss in a function's result. Raises NoGradientsError where the value is no scalar float."""
    import tensorflow as tf

    loss = loss_in(value)
    if not tf.is_tensor(loss):
        raise NoGradientsError(f"it gives {kind_of_loss(value)}, and no loss; return one float")
    if loss.shape.rank not in (0, None) or not loss.dtype.is_floating:
        raise NoGradientsError(f"the function gives {loss.dtype.name}{list(loss.shape)}; return one float")
    return loss


# The state of a call --------------------------------------------------------------------------------------------------


def snapshot(value: Any) -> Piece | None:
    """Return a piece that restores a variable; for a `tf.function`, a piece with its Python function inside."""
    import tensorflow as tf

    if isinstance(value, tf.Variable):
        before = value.numpy()

        def back() -> None:
            value.assign(before)

        return Piece(lambda: value.numpy().tobytes() == before.tobytes(), back)
    behind = getattr(value, "python_function", None) if type(value).__module__.startswith("tensorflow.") else None
    return Piece(parts=[behind]) if behind is not None else None


@contextmanager
def making(add: Callable[[Any], None]) -> Iterator[None]:
    """A context in which `add` gets each variable that is made outside of a graph, with its initial value."""
    import tensorflow as tf

    def make_variable(following: Callable[..., Any], **options: Any) -> Any:
        variable = following(**options)
        if tf.executing_eagerly():
            add(variable)
        return variable

    with tf.variable_creator_scope(make_variable):
        yield


def switches() -> Sequence[Switch]:
    """Return the switches of TensorFlow: the seed, and generators that draw without one."""
    from tensorflow.python.eager import context
    from tensorflow.python.ops import stateful_random_ops

    ours: Any = context.context()

    def write(before: tuple[Any, Any]) -> None:
        seed, state = before
        ours._set_global_seed(seed)
        ours._rng.setstate(state)

    drawn = [Switch(lambda: (context.global_seed(), ours._rng.getstate()), write)] if hasattr(ours, "_rng") else []
    generator = stateful_random_ops.global_generator
    return drawn if generator is None else [*drawn, Switch(generator.state.numpy, generator.state.assign)]


def is_trained(changed: Sequence[Piece]) -> bool:
    """Return whether a call has changed trainable floats."""
    return any(variable.trainable and variable.dtype.is_floating for variable in _variables(changed))


def state_reader(changed: Sequence[Piece]) -> StateReader:
    """Return a reader of the variables that a call has changed."""
    names = dict[str, Any]()
    for variable in _variables(changed):
        path = str(getattr(variable, "path", None) or variable.name).removesuffix(":0")
        name = f"the variable `{path}`"
        alike = sum(other.removesuffix("`").partition(" (")[0] == name.removesuffix("`") for other in names)
        names[f"{name[:-1]} ({alike + 1})`" if alike else name] = variable  # unnamed variables share a default name
    return StateReader(names, lambda: {name: variable.numpy() for name, variable in names.items()})


def nudge_variables(holders: Sequence[Any], change: FloatChange) -> AbstractContextManager[None]:
    """Return a context in which float variables have nudged values; their dtype is fixed, so none becomes float64."""
    import tensorflow as tf

    variables = [value for value in holders if isinstance(value, tf.Variable) and value.dtype.is_floating]
    return changed_values(variables, lambda each: each.numpy(), lambda each, new: each.assign(new), change.function())


def _variables(pieces: Sequence[Piece]) -> list[Any]:
    import tensorflow as tf

    return [piece.of for piece in pieces if isinstance(piece.of, tf.Variable) and not piece.is_argument]
