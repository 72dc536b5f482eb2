"""Numbers moved by as much as rounding moves them, so that a gate can tell what rounding alone does to a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ULPS = 8
"""Units in the last place by which a number moves: what a sum of some hundred products is off by."""


def nudging(seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function that moves each float of an array by ULPS, up or down as the seed says; other arrays stay.

    Whole numbers stay too: they are counts, labels and masks, and exact.
    """
    rng = np.random.default_rng(seed)

    def nudged(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        signs = rng.integers(0, 2, array.shape) * 2 - 1
        moved: np.ndarray = (array * (1 + signs * ULPS * np.finfo(array.dtype).eps)).astype(array.dtype)
        return np.where(array == np.rint(array), array, moved)

    return nudged
