"""The state that a call of TensorFlow changes: variables, which layers and optimizers make in their first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compare.engines.nudge import FloatChange
from compare.engines.state import Piece
from compare.engines.step import StateReader
from compare.engines.switches import Switch


def snapshot(value: Any) -> Piece | None:
    """Return a piece that restores a variable; for a `tf.function`, a piece with its Python function inside."""
    import tensorflow as tf

    if isinstance(value, tf.Variable):
        before = value.numpy()
        return Piece(lambda: value.numpy().tobytes() == before.tobytes(), partial(_assign, value, before))
    behind = getattr(value, "python_function", None) if type(value).__module__.startswith("tensorflow.") else None
    return Piece(parts=[behind]) if behind is not None else None


def _assign(variable: Any, before: Any) -> None:
    variable.assign(before)


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
        name = f"the variable `{_name(variable)}`"
        alike = sum(other.removesuffix("`").partition(" (")[0] == name.removesuffix("`") for other in names)
        names[f"{name[:-1]} ({alike + 1})`" if alike else name] = variable  # unnamed variables share a default name
    return StateReader(names, lambda: {name: variable.numpy() for name, variable in names.items()})


@contextmanager
def nudge_variables(holders: Sequence[Any], change: FloatChange) -> Iterator[None]:
    """A context in which float variables have nudged values; their dtype is fixed, so none becomes float64."""
    import tensorflow as tf

    variables = [value for value in holders if isinstance(value, tf.Variable) and value.dtype.is_floating]
    nudge, before = change.function(), [(variable, variable.numpy()) for variable in variables]
    try:
        for variable, numbers in before:
            variable.assign(nudge(numbers))
        yield
    finally:
        for variable, numbers in before:
            variable.assign(numbers)


def _variables(pieces: Sequence[Piece]) -> list[Any]:
    import tensorflow as tf

    return [piece.of for piece in pieces if isinstance(piece.of, tf.Variable) and not piece.is_argument]


def _name(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name).removesuffix(":0")
