"""Other numbers for a step: in float64, or moved as rounding moves them, so that a gate can tell what that does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

ULPS = 2
"""Units in the last place by which a number moves: about what other kernels round."""


@dataclass(frozen=True)
class FloatChange:
    """What becomes of the floats of a step: float64, or with a `seed` they move as rounding moves them (`nudging`)."""

    seed: int | None = None
    unit: float = 0.0

    def function(self) -> Callable[[Any], Any]:
        """A function of an array, whose random signs go on from array to array; what has no floats stays."""
        return double if self.seed is None else nudging(self.seed, self.unit)


DOUBLE = FloatChange()


def double(value: Any) -> Any:
    """An array with its floats in float64, or complex128; what is no array, or has none, stays."""
    if not _has_floats(value):
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _has_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16")


def nudging(seed: int, unit: float = 0.0) -> Callable[[Any], Any]:
    """A function that moves each float of an array by ULPS, up or down as the seed says; all else stays.

    Whole numbers stay too: they are counts, labels and masks, and exact. `unit` is the unit in the last place of 1 in
    which a step computes, where that is more than the array's own.
    """
    rng = np.random.default_rng(seed)

    def nudge_array(array: Any) -> Any:
        if not _has_floats(array):
            return array
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        signs = rng.integers(0, 2, array.shape) * 2 - 1
        moved = (wide * (1 + signs * ULPS * max(unit, unit_of(array.dtype)))).astype(array.dtype)
        return np.where(wide == np.rint(wide), array, moved)

    return nudge_array


@contextmanager
def nudges_of(arrays: Iterable[np.ndarray], change: FloatChange) -> Iterator[None]:
    """Inside, arrays that may be written are moved so."""
    nudge, before = change.function(), [(array, array.copy()) for array in arrays if array.flags.writeable]
    try:
        for array, numbers in before:
            np.copyto(array, nudge(numbers))
        yield
    finally:
        for array, numbers in before:
            np.copyto(array, numbers)


def unit_of(dtype: np.dtype) -> float:
    """The unit in the last place of 1; NumPy does not know that of bfloat16."""
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)
