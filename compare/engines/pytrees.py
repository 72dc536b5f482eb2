"""JAX's arguments: their leaves and gradients, objects of Flax's nnx, and arrays that are donated.

A step of JAX changes nothing in place but the variables of nnx, which are restored and changed here. A function may
donate its arguments, and an array can be donated only once, so that bound calls own copies of theirs (`Donations`).
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np
import optree

from compare.engines.containers import named_parts, to_containers
from compare.engines.leaves import Leaves
from compare.engines.nudge import changed_values
from compare.engines.state import Piece
from compare.engines.step import (
    Bindable,
    BoundCall,
    Function,
    Rerun,
    StateReader,
    as_it_is,
    bind_call,
    kind_of_loss,
    loss_in,
)
from compare.errors import NoGradientsError
from compare.records.own import RanOp

DRAWS = {"random_bits", "random_seed", "random_split", "random_fold_in", "threefry2x32", "rng_uniform"}
"""The primitives that make random numbers."""


ONLY_FORWARD = "Reverse-mode differentiation does not work"
"""The first words of JAX's error where a loop has no gradient."""


class Pytrees(Leaves):
    """The `Leaves` of JAX: `SpecialisedFunction` takes arguments apart as JAX does."""

    unwraps = True
    remedy = "register its class (jax.tree_util.register_dataclass), or close over it"

    def flatten(self, args: Any) -> tuple[list[Any], Any]:
        """Return the leaves and their structure."""
        import jax

        return jax.tree_util.tree_flatten(args)

    def unflatten(self, structure: Any, leaves: Sequence[Any]) -> Any:
        """Return the structure with other leaves."""
        import jax

        return jax.tree_util.tree_unflatten(structure, leaves)

    def paths(self, args: Any) -> list[str]:
        """Return the path of each leaf, beginning with the argument's number: `0['w']`."""
        import jax

        rows, _ = jax.tree_util.tree_flatten_with_path(args)
        return [f"{path[0].idx}{jax.tree_util.keystr(path[1:])}" for path, _ in rows]

    def is_traced(self, leaf: Any) -> bool:
        """Return whether JAX traces a leaf: an array of JAX or NumPy, or a number."""
        import jax

        return isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex))

    def parted(self, value: Any) -> tuple[Any, Function]:
        """Return the traced leaves of a result, and a function that adds the others, such as functions in a module."""
        leaves, structure = self.flatten(value)
        if all(map(self.is_traced, leaves)):
            return value, as_it_is
        at = [i for i, leaf in enumerate(leaves) if self.is_traced(leaf)]
        rest = [None if self.is_traced(leaf) else leaf for leaf in leaves]

        def again(arrays: Sequence[Any]) -> Any:
            placed = dict(zip(at, arrays, strict=True))
            return self.unflatten(structure, [placed.get(i, leaf) for i, leaf in enumerate(rest)])

        return [leaves[i] for i in at], again

    def decides(self, function: Function, args: Any) -> bool:
        """Return whether the function branches on a Python number, which then is a constant, as by `static_argnums`."""
        import jax

        traced, fill = holes(args, self.is_traced)
        if not any(isinstance(leaf, (bool, int, float, complex)) for leaf in traced):
            return False
        try:
            jax.eval_shape(lambda *values: function(*fill(values)), *traced)
        except Exception:  # noqa: BLE001  (any other error comes again in the call itself)
            return True
        return False


class DifferentiatedStep(Bindable):
    """`step(*args) -> (value, gradients)`: the gradients are in the floats of one argument; its other leaves stay.

    A run raises NoGradientsError where the result has no loss, or contains the argument, changed.
    """

    def __init__(self, loss: Function, argnum: int) -> None:
        self.loss, self.argnum = loss, argnum

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step. Raises NoGradientsError where the argument has no floats."""
        import jax

        loss, before, after = self.loss, args[: self.argnum], args[self.argnum + 1 :]
        argument = args[self.argnum] if args else ()
        floats, fill = holes(argument, _is_inexact)
        rows, structure = jax.tree_util.tree_flatten_with_path(argument)
        if not floats:
            raise NoGradientsError("the first argument holds no floats; give the parameters first")
        alone = False  # whether the last run returned the loss and nothing else

        def loss_of(argument: Any) -> tuple[Any, Any]:
            nonlocal alone
            value = loss(*before, argument, *after)
            scalar = value if alone else _scalar(value, structure)
            alone = scalar is value
            return scalar, value

        if len(floats) < len(rows):
            of_floats = jax.value_and_grad(lambda values: loss_of(fill(values)), has_aux=True)
            differentiated = partial(of_floats, floats)
            names = [jax.tree_util.keystr(path) for path, leaf in rows if _is_inexact(leaf)]
            result = lambda returned: (returned[0][1], dict(zip(names, returned[1], strict=True)))  # noqa: E731
            return BoundCall(differentiated, result, _translate_errors)

        differentiated = partial(jax.value_and_grad(loss_of, has_aux=True), argument)

        def looking() -> tuple[Any, Any]:
            (_, value), gradients = differentiated()
            if alone:  # the call as its author writes it
                run.become(jax.value_and_grad(loss, self.argnum), *args)
            return value, gradients

        run = Rerun(looking)
        return BoundCall(run, within=_translate_errors)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A context that turns JAX's error about a missing gradient into a NoGradientsError."""
    try:
        yield
    except ValueError as error:
        if not (said := str(error)).startswith(ONLY_FORWARD):
            raise
        raise NoGradientsError(f"JAX has no gradient of it: {said.partition('. ')[0]}; use lax.scan") from error


def _is_float(leaf: Any) -> bool:
    import jax.numpy as jnp

    return isinstance(leaf, float) or (hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.floating)))


def _is_inexact(leaf: Any) -> bool:
    """Return whether gradients exist in a leaf: a float or a complex number."""
    import jax.numpy as jnp

    is_inexact = hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))
    return is_inexact or isinstance(leaf, (float, complex))


def _scalar(value: Any, structure: Any) -> Any:
    """Return the loss in a function's result. Raises NoGradientsError where there is none."""
    import jax

    loss = loss_in(value)
    if not hasattr(loss, "dtype") and not isinstance(loss, float):
        kind = kind_of_loss(value)
        raise NoGradientsError(f"it gives {kind}, and no loss; return one float, or (loss, more)")
    if getattr(loss, "shape", ()) != () or not _is_float(loss):
        shape = f"{loss.dtype}{list(loss.shape)}"
        raise NoGradientsError(f"the function gives {shape}; return one float, or (loss, more)")
    more = value if isinstance(value, (tuple, list)) else ()
    if structure.num_nodes > 1 and any(jax.tree_util.tree_structure(part) == structure for part in more[1:]):
        raise NoGradientsError("the function gives its first argument back, changed: it is a whole step")
    return loss


def plain(tree: Any) -> Any:
    """Return a result as NumPy arrays in Python's containers; random keys become their data."""
    import jax

    def numbers(value: Any) -> Any:
        if isinstance(value, jax.Array):
            is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
            return np.asarray(jax.random.key_data(value) if is_key else value)
        if isinstance(value, (list, tuple, dict)) or named_parts(value) is not None or value is None:
            return None
        leaves, structure = jax.tree_util.tree_flatten(value)
        if jax.tree_util.treedef_is_leaf(structure):
            return None
        return {str(i): plain(leaf) for i, leaf in enumerate(leaves)}

    return to_containers(tree, numbers)


def map_arrays(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return the arguments with every array changed, except in objects of nnx, which change in place."""
    import jax

    is_array = (jax.Array, np.ndarray)
    return jax.tree_util.tree_map(
        lambda leaf: change(leaf) if isinstance(leaf, is_array) else leaf, tree, is_leaf=is_nnx_object
    )


def holes(tree: Any, chosen: Callable[[Any], bool]) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Return the chosen leaves of a container, and a function that makes the container with others in their places."""
    import jax

    leaves, structure = jax.tree_util.tree_flatten(tree)
    at = [i for i, leaf in enumerate(leaves) if chosen(leaf)]

    def fill(values: Sequence[Any]) -> Any:
        placed = dict(zip(at, values, strict=True))
        return structure.unflatten([placed.get(i, leaf) for i, leaf in enumerate(leaves)])

    return [leaves[i] for i in at], fill


# What a trace shows ---------------------------------------------------------------------------------------------------


def jaxpr_of(step: Function, call: tuple[Any, ...]) -> Any:
    """Return the jaxpr of a call; its inputs are the call's arrays."""
    import jax

    arrays, fill = holes(call, lambda leaf: isinstance(leaf, jax.Array))
    return jax.make_jaxpr(lambda *values: step(*fill(values)))(*arrays).jaxpr


def nested_jaxprs(jaxpr: Any) -> Iterator[Any]:
    """Yield a jaxpr, and the jaxprs of the calls, branches and loops in it."""
    yield jaxpr
    for equation in jaxpr.eqns:
        params: Any = list(equation.params.values())
        for value in optree.tree_leaves(params):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from nested_jaxprs(inner)


def draws(jaxprs: Iterator[Any]) -> bool:
    """Return whether any of these jaxprs makes random numbers."""
    return any(equation.primitive.name in DRAWS for jaxpr in jaxprs for equation in jaxpr.eqns)


def has_key(call: tuple[Any, ...]) -> bool:
    """Return whether any array of a call is a random key: one of `jax.random.key`, or such as `PRNGKey` makes."""
    import jax

    words = jax.random.key_data(jax.random.key(0)).shape
    return any(
        jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
        or (array.dtype == np.uint32 and array.shape[-1:] == words)
        for array in _arrays(call)
    )


def ran_op(equation: Any) -> RanOp:
    """Return the op of a jaxpr's equation. JAX has no views: an op that only moves elements counts like any other."""
    arrays = [var.aval for var in (*equation.invars, *equation.outvars) if hasattr(var.aval, "size")]
    elements = sum(var.aval.size for var in equation.outvars)
    moved = sum(aval.size * aval.dtype.itemsize for aval in arrays)
    if equation.primitive.name != "dot_general":
        return RanOp("other", elements, moved)
    (contracted, _), _ = equation.params["dimension_numbers"]
    inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    return RanOp("product", elements, moved, 2 * elements * inner)


# Flax's nnx -----------------------------------------------------------------------------------------------------------


def loaded_nnx() -> Any:
    """Return the module `flax.nnx` where the user's file has loaded it; else None."""
    return sys.modules.get("flax.nnx")


def is_nnx_object(value: Any) -> bool:
    """Return whether a value is a variable, module or optimizer of nnx, which stays the same object in all calls."""
    return loaded_nnx() is not None and isinstance(value, (loaded_nnx().Variable, loaded_nnx().Pytree))


def variable_piece(value: Any) -> Piece | None:
    """Return a piece that restores a variable of nnx; None for other values."""
    if loaded_nnx() is None or not isinstance(value, loaded_nnx().Variable):
        return None
    before = value.get_raw_value()
    return Piece(lambda: value.get_raw_value() is before, partial(value.set_raw_value, before), of=value)


def trains_nnx(changed: Iterable[Piece]) -> bool:
    """Return whether a parameter of nnx is among the changed pieces."""
    return loaded_nnx() is not None and any(isinstance(piece.of, loaded_nnx().Param) for piece in changed)


def variable_reader(calls: Sequence[tuple[Any, ...]], changed: Sequence[Piece], plain: Function) -> StateReader:
    """Return a reader of changed variables, named by their places in the arguments; `plain` makes NumPy arrays."""
    import jax

    variables = [piece.of for piece in changed if loaded_nnx() and isinstance(piece.of, loaded_nnx().Variable)]
    if not variables:
        return StateReader()
    rows, _ = jax.tree_util.tree_flatten_with_path(
        list(calls), is_leaf=lambda leaf: isinstance(leaf, loaded_nnx().Variable)
    )
    paths = {id(leaf): jax.tree_util.keystr(path[2:]).lstrip(".") for path, leaf in reversed(rows)}
    names = {f"the variable `{paths.get(id(each), number)}`": each for number, each in enumerate(variables)}

    def read() -> dict[str, Any]:
        return {name: plain(variable.get_raw_value()) for name, variable in names.items()}

    return StateReader(read(), read)


def changed_variables(holders: Sequence[Any], change: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Return a context in which the variables of nnx in `holders` have arrays changed by `change`."""
    variables = [value for value in holders if loaded_nnx() and isinstance(value, loaded_nnx().Variable)]
    return changed_values(
        variables, lambda each: each.get_raw_value(), lambda each, new: each.set_raw_value(new), change
    )


# Donated arrays -------------------------------------------------------------------------------------------------------


class Donations:
    """The bound calls with copied arguments, found by the id of each array that they copied."""

    def __init__(self) -> None:
        self._calls: defaultdict[int, WeakSet[_OwnCall]] = defaultdict(WeakSet)
        self._bound: WeakSet[_OwnCall] = WeakSet()

    def bind(self, built: Callable[..., Any], args: tuple[Any, ...]) -> BoundCall:
        """Bind a call with copies of its arrays; a run whose copies were donated is given new ones by `kept`."""
        call = _OwnCall(built, args)
        self._bound.add(call)
        for leaf in _arrays(args):
            self._calls[id(leaf)].add(call)
        return BoundCall(call.run, call.result, call.now.within)

    def kept(self, array: Any) -> Piece:
        """Return a piece that restores an array: calls that have donated a copy of it get new copies, or go on."""

        def same() -> bool:
            return not any(call.is_spent for call in self._calls.get(id(array), ()))

        def back() -> None:
            for call in self._calls.get(id(array), ()):
                if call.is_spent or call.went_on:
                    call.renew()

        return Piece(same, back, again=self.go_on)

    def go_on(self) -> None:
        """Make every call ready whose copies were donated: it goes on from what came back."""
        for call in self._bound:
            if call.is_spent:
                call.go_on()


class _OwnCall:
    """A call with arguments of its own, which may be donated: it can be given new copies, or go on as a loop does.

    Going on is timed with the call, so that all which is the same each time is found in the first: `moves` has for each
    argument the part of the result that takes its place, `KEPT` or `COPIED`, and `donor` is the first that is donated.
    """

    def __init__(self, built: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.built, self.args = built, args  # which also keeps the ids of the arrays
        self.returned: Any = None
        self.donor: int | None = None
        self.moves: list[int] = []
        self.went_on = False
        self.renew()

    def renew(self) -> None:
        """Make new copies of the arguments and bind the call to them."""
        import jax

        self._take(jax.block_until_ready(copy_arguments(self.args)))  # JAX copies while Python goes on
        self.went_on = False

    def go_on(self) -> None:
        """Give the arguments that were donated what came back in their place, as a loop does; copies if nothing did."""
        if self.returned is None:  # what the first call returned was not kept
            self.renew()
            return
        parts = _parts(self.returned)
        self.moves = self.moves or self._find_moves(parts)
        own = []
        for argument, written, move in zip(self.own, self.args, self.moves, strict=True):
            own.append(argument if move == KEPT else copy_arguments(written) if move == COPIED else parts[move])
        self._take(tuple(own))
        self.went_on = True

    def _find_moves(self, parts: Sequence[Any]) -> list[int]:
        free, moves = dict(enumerate(map(_spec, parts))), []
        for argument in self.own:
            spec = _spec(argument)
            move = next((place for place, each in free.items() if each == spec and not _is_spent(parts[place])), COPIED)
            moves.append(move if _is_spent(argument) else KEPT)
            if moves[-1] >= 0:
                free.pop(move)
        return moves

    def _take(self, own: tuple[Any, ...]) -> None:
        """Bind the call to these arguments."""
        self.own, self.now = own, bind_call(self.built, own)
        self.watched = _arrays(own if self.donor is None else own[self.donor])

    def run(self) -> Any:
        """Run the call with the current arguments."""
        if self.donor is None:
            return self.now.run()
        self.returned = self.now.run()
        return self.returned

    def result(self, returned: Any) -> Any:
        """Return the value and the gradients."""
        return self.now.result(returned)

    @property
    def is_spent(self) -> bool:
        """Return whether a copy has been donated."""
        spent = any(array.is_deleted() for array in self.watched)
        if spent and self.donor is None:
            self.donor = next(place for place, argument in enumerate(self.own) if _is_spent(argument))
        return spent


DEPTH = 2
"""The depth of containers in a result to which parts are found: a step gives its value beside its gradients."""


def _parts(returned: Any) -> list[Any]:
    """Return a result, the items of its tuples and lists, and their items."""
    parts = around = [returned]
    for _ in range(DEPTH):
        around = [item for part in around if isinstance(part, (tuple, list)) for item in part]
        parts = [*parts, *around]
    return parts


KEPT, COPIED = -1, -2
"""The moves of an argument that is not donated, and of one in whose place nothing comes back."""


def _is_spent(tree: Any) -> bool:
    return any(array.is_deleted() for array in _arrays(tree))


def _spec(tree: Any) -> Any:
    """Return the structure of a container, with the shape and dtype of each array and the type of other leaves."""
    import jax

    leaves, structure = jax.tree_util.tree_flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else type(leaf) for leaf in leaves]


class DonatingStep(Bindable):
    """A step whose calls own copies of their arrays."""

    def __init__(self, built: Callable[..., Any], donations: Donations) -> None:
        self.run, self.donations = built, donations

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step to copies of its arrays."""
        return self.donations.bind(self.run, args)


def copy_arguments(args: Any) -> Any:
    """Return the arguments with copies of their arrays."""
    import jax

    return jax.tree_util.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, args)


def _arrays(tree: Any) -> list[Any]:
    import jax

    return [leaf for leaf in jax.tree_util.tree_leaves(tree) if isinstance(leaf, jax.Array)]
