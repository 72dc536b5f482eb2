"""Changed floats for a step: in float64, or moved as rounding moves them, so that a gate can measure rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import optree

from compare.engines.mode import Role
from compare.engines.step import Function
from compare.errors import UnsupportedError

T = TypeVar("T")
ULPS = 2
"""The units in the last place by which a float moves: about as much as kernels differ in rounding."""


@dataclass(frozen=True)
class FloatChange:
    """A change of a step's floats: to float64, or with a `seed` by about a rounding error (`nudging`)."""

    seed: int | None = None
    unit: float = 0.0

    def function(self) -> Callable[[Any], Any]:
        """Return a function that changes an array's floats; its random signs continue from array to array."""
        return double if self.seed is None else nudging(self.seed, self.unit)


DOUBLE = FloatChange()


def double(value: Any) -> Any:
    """Return an array with its floats in float64 or complex128; values without floats unchanged."""
    if not has_floats(value):
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def has_floats(value: Any) -> bool:
    """Return whether a value is an array of floats or complex numbers."""
    return isinstance(value, np.ndarray) and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16")


def nudging(seed: int, unit: float = 0.0) -> Callable[[Any], Any]:
    """Return a function that moves each float of an array by ULPS, up or down by random signs; others stay.

    Whole numbers stay too: they are counts, labels and masks, and exact. `unit` is the unit in the last place of 1 in
    the dtype in which a step computes, where that is more than the array's own.
    """
    rng = np.random.default_rng(seed)

    def nudge_array(array: Any) -> Any:
        if not has_floats(array):
            return array
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        signs = rng.integers(0, 2, array.shape) * 2 - 1
        moved = (wide * (1 + signs * ULPS * max(unit, unit_of(array.dtype)))).astype(array.dtype)
        return np.where(wide == np.rint(wide), array, moved)

    return nudge_array


def rounding_anew(seed: int) -> Callable[[Any, Any, float], Any]:
    """Return a function that rounds the result of an op in another way, up or down by random signs.

    It takes the result, the one that the op gives of the same inputs in float64, and the unit in the last place of 1. A
    float moves by the error of its rounding, and at least by a unit in its own last place. One that is the same in
    float64 stays: every mode computes it alike, and no test or step function may turn on it. What underflows, to zero
    or to a number that is not normal, stays too: it loses more than its last place. For a result in float64 the other
    is None, and its whole numbers stay.
    """
    rng = np.random.default_rng(seed)

    def move_array(result: Any, wide: Any, unit: float) -> Any:
        signs = rng.integers(0, 2, result.shape) * 2 - 1
        numbers = double(result)
        other = np.rint(numbers) if wide is None else wide
        with np.errstate(invalid="ignore"):  # infinity less infinity
            error = np.abs(numbers - other)
        least = np.ldexp(unit, np.frexp(np.abs(numbers))[1] - 1)
        rounded = (error > 0) & (np.abs(numbers) >= np.finfo(result.dtype).tiny)
        by = np.where(rounded, least if wide is None else np.maximum(error, least), 0)
        return np.asarray(numbers + signs * np.where(np.isfinite(by), by, 0), result.dtype)

    return move_array


@contextmanager
def changed_values(
    holders: Iterable[T], read: Callable[[T], Any], write: Callable[[T, Any], object], change: Callable[[Any], Any]
) -> Iterator[None]:
    """A context in which each holder's value is changed in place; all values are written back at its end."""
    before = [(holder, read(holder)) for holder in holders]
    try:
        for holder, value in before:
            write(holder, change(value))
        yield
    finally:
        for holder, value in before:
            write(holder, value)


def unit_of(dtype: np.dtype) -> float:
    """Return the unit in the last place of 1 of a dtype; NumPy does not know that of bfloat16."""
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


DRAWS = "it draws random numbers, which in float64 are others"
"""The reason why a call has no float64 run to compare with."""


class Numbers(Role):
    """The floats and the random numbers of a call, and the means to change them."""

    def draws(self, step: Function, call: tuple[Any, ...]) -> list[np.ndarray]:
        """Return the random numbers that an eager step's call draws, in order, before a scale or other option."""
        return []

    def noting(self, drawn: list[Any]) -> AbstractContextManager[object]:
        """Return a context that appends each draw of a call to `drawn`.

        Raises UnsupportedError where dtypes change draws.
        """
        raise UnsupportedError(DRAWS)

    def giving(self, drawn: Sequence[Any]) -> AbstractContextManager[object]:
        """Return a context in which a call draws the noted numbers in its own dtype.

        Raises UnsupportedError on a mismatch.
        """
        return nullcontext()

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return a copy of the arguments with changed floats."""
        return self.engine.arrays(optree.tree_map(change.function(), self.engine.numpy(tree), none_is_leaf=True))

    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> AbstractContextManager[None]:
        """Return a context in which floats that a function holds are changed in place, where they may be."""
        if change.seed is None:
            return nullcontext()
        arrays = [value for value in holders if isinstance(value, np.ndarray) and value.flags.writeable]
        return changed_values(arrays, np.copy, np.copyto, change.function())

    def round_results(self, seed: int) -> AbstractContextManager[object]:
        """Return a context in which ops of an eager step round their results anew, where the engine can let them.

        Changed inputs do not tell of rounding inside: whole numbers stay, and where a function loses the digits of its
        result, as 1 - tanh(x)**2 does for a large x, its inputs move it less than its own rounding.
        """
        return nullcontext()

    def draws_inside(self, function: Function, call: tuple[Any, ...]) -> bool:
        """Return whether a call draws random numbers from a key or generator in its arguments; float64 draws others."""
        return False

    def repeatable(self) -> AbstractContextManager[None]:
        """Return a context in which a compiled function draws the eager one's random numbers, if the engine can."""
        return nullcontext()
