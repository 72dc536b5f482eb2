"""Support for Flax's nnx, whose objects a step of JAX changes in place: its variables, and steps that train them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compare.engines.state import Piece
from compare.engines.step import Function, StateReader


def loaded_package() -> Any:
    """Return the module `flax.nnx` where the user's file has loaded it; else None."""
    return sys.modules.get("flax.nnx")


def is_object(value: Any) -> bool:
    """Return whether a value is a variable, module or optimizer of nnx, which stays the same object in all calls."""
    return loaded_package() is not None and isinstance(value, (loaded_package().Variable, loaded_package().Pytree))


def snapshot(value: Any) -> Piece | None:
    """Return a piece that restores a variable of nnx; None for other values."""
    if loaded_package() is None or not isinstance(value, loaded_package().Variable):
        return None
    before = value.get_raw_value()
    return Piece(lambda: value.get_raw_value() is before, partial(value.set_raw_value, before), of=value)


def is_trained(changed: Iterable[Piece]) -> bool:
    """Return whether a parameter of nnx is among the changed pieces."""
    return loaded_package() is not None and any(isinstance(piece.of, loaded_package().Param) for piece in changed)


def state_reader(calls: Sequence[tuple[Any, ...]], changed: Sequence[Piece], plain: Function) -> StateReader:
    """Return a reader of changed variables, named by their places in the arguments; `plain` makes NumPy arrays."""
    import jax

    variables = [piece.of for piece in changed if loaded_package() and isinstance(piece.of, loaded_package().Variable)]
    if not variables:
        return StateReader()
    rows, _ = jax.tree_util.tree_flatten_with_path(
        list(calls), is_leaf=lambda leaf: isinstance(leaf, loaded_package().Variable)
    )
    paths = {id(leaf): jax.tree_util.keystr(path[2:]).lstrip(".") for path, leaf in reversed(rows)}
    names = {f"the variable `{paths.get(id(each), number)}`": each for number, each in enumerate(variables)}

    def read() -> dict[str, Any]:
        return {name: plain(variable.get_raw_value()) for name, variable in names.items()}

    return StateReader(read(), read)


@contextmanager
def meanwhile(held: Sequence[Any], change: Callable[[Any], Any]) -> Iterator[None]:
    """A context in which the variables of nnx in `held` have arrays changed by `change`."""
    variables = [value for value in held if loaded_package() and isinstance(value, loaded_package().Variable)]
    before = [(variable, variable.get_raw_value()) for variable in variables]
    try:
        for variable, value in before:
            variable.set_raw_value(change(value))
        yield
    finally:
        for variable, value in before:
            variable.set_raw_value(value)
