"""Numbers moved by as much as rounding moves them, so that a gate can tell what rounding alone does to a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

ULPS = 2
"""Units in the last place by which a number moves: about what other kernels round."""


def nudging(seed: int, unit: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """A function that moves each float of an array by ULPS, up or down as the seed says; other arrays stay.

    Whole numbers stay too: they are counts, labels and masks, and exact. `unit` is the unit in the last place of 1 in
    which a step computes, where that is more than the array's own.
    """
    rng = np.random.default_rng(seed)

    def nudged(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "fc" and array.dtype.name != "bfloat16":
            return array
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        signs = rng.integers(0, 2, array.shape) * 2 - 1
        moved: np.ndarray = (wide * (1 + signs * ULPS * max(unit, unit_of(array.dtype)))).astype(array.dtype)
        return np.where(wide == np.rint(wide), array, moved)

    return nudged


@contextmanager
def nudges_of(arrays: Iterable[np.ndarray], seed: int, unit: float = 0.0) -> Iterator[None]:
    """Inside, arrays that may be written are moved so."""
    nudge, before = nudging(seed, unit), [(array, array.copy()) for array in arrays if array.flags.writeable]
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
