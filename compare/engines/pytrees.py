"""JAX's pytrees: their leaves, gradients in their floats, and whether a jaxpr draws random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from compare.engines import nnx
from compare.engines.containers import named_parts, to_containers
from compare.engines.step import Bindable, BoundCall, Function, Rerun, as_it_is, loss_in
from compare.errors import NoGradientsError

DRAWS = {"random_bits", "random_seed", "random_split", "random_fold_in", "threefry2x32", "rng_uniform"}
"""The primitives that make random numbers."""


ONLY_FORWARD = "Reverse-mode differentiation does not work"
"""The first words of JAX's error where a loop has no gradient."""


class Pytrees:
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

        leaves, structure = self.flatten(args)
        if not any(isinstance(leaf, (bool, int, float, complex)) for leaf in leaves):
            return False
        at = [i for i, leaf in enumerate(leaves) if self.is_traced(leaf)]

        def run(*traced: Any) -> Any:
            placed = dict(zip(at, traced, strict=True))
            return function(*self.unflatten(structure, [placed.get(i, leaf) for i, leaf in enumerate(leaves)]))

        try:
            jax.eval_shape(run, *(leaves[i] for i in at))
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
        leaves, structure = jax.tree_util.tree_flatten(argument)
        at = [i for i, leaf in enumerate(leaves) if _is_inexact(leaf)]
        if not at:
            raise NoGradientsError("the first argument holds no floats; give the parameters first")
        alone = False  # whether the last run returned the loss and nothing else

        def loss_of(argument: Any) -> tuple[Any, Any]:
            nonlocal alone
            value = loss(*before, argument, *after)
            scalar = value if alone else _scalar(value, structure)
            alone = scalar is value
            return scalar, value

        def of_floats(floats: Sequence[Any]) -> tuple[Any, Any]:
            placed = dict(zip(at, floats, strict=True))
            return loss_of(structure.unflatten([placed.get(i, leaf) for i, leaf in enumerate(leaves)]))

        if len(at) < len(leaves):
            differentiated = partial(jax.value_and_grad(of_floats, has_aux=True), [leaves[i] for i in at])
            paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(argument)[0]]
            names = [paths[i] for i in at]
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

    return (
        isinstance(leaf, complex)
        or _is_float(leaf)
        or (hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.complexfloating)))
    )


def _scalar(value: Any, structure: Any) -> Any:
    """Return the loss in a function's result. Raises NoGradientsError where there is none."""
    import jax

    loss = loss_in(value)
    if not hasattr(loss, "dtype") and not isinstance(loss, float):
        raise NoGradientsError(f"the function gives {_kind(loss)} and no loss; return one float, or (loss, more)")
    if getattr(loss, "shape", ()) != () or not _is_float(loss):
        shape = f"{loss.dtype}{list(loss.shape)}"
        raise NoGradientsError(f"the function gives {shape}; return one float, or (loss, more)")
    more = value if isinstance(value, (tuple, list)) else ()
    if structure.num_nodes > 1 and any(jax.tree_util.tree_structure(part) == structure for part in more[1:]):
        raise NoGradientsError("the function gives its first argument back, changed: it is a whole step")
    return loss


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


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
        lambda leaf: change(leaf) if isinstance(leaf, is_array) else leaf, tree, is_leaf=nnx.is_object
    )


def draws(jaxprs: Iterator[Any]) -> bool:
    """Return whether any of these jaxprs makes random numbers."""
    return any(equation.primitive.name in DRAWS for jaxpr in jaxprs for equation in jaxpr.eqns)
