"""The errors of arrays, and the moves that rounding alone causes in them.

The error of an array is its largest difference, scaled:

    error = max|a - b| / scale

where `b` is the expected array. The scale is max|b|, or a part of the largest array that is expected with it (of all
gradients): an array that is zero but for rounding must not be divided by that rounding. Complex numbers differ by the
absolute value of their difference. Integers, bools and text are equal, or infinitely wrong.

The effect of rounding alone on a step is measured: the plain mode runs from inputs and parameters that are nudged by
some units in the last place (`compare.engines.nudge`). The differences that this causes are `Moves`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import optree

SMALL = 1e-2
PLACES = 1024
"""The number of elements, drawn once, at which directions of arrays are compared; smaller arrays are compared whole."""


def tree_error(actual: Any, expected: Any) -> float:
    """Return the largest scaled error over two containers of arrays; infinity where structure or shapes differ."""
    actual_leaves, actual_tree = optree.tree_flatten(actual)
    leaves, tree = optree.tree_flatten(expected)
    if actual_tree != tree:
        return math.inf
    scales = scales_of(leaves)
    return max((scaled_error(*each) for each in zip(actual_leaves, leaves, scales, strict=True)), default=0.0)


def scales_of(leaves: Sequence[Any]) -> list[float]:
    """Return the divisor of each array's differences; arrays of whole numbers have no size in it."""
    sizes = [0.0 if is_exact(leaf) else largest(leaf) for leaf in leaves]
    floor = SMALL * max(sizes, default=0.0)
    return [max(size, floor) for size in sizes]


def scaled_error(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """Return `max|a - b| / max(max|b|, floor)`; infinity where shapes or the places of NaN and infinity differ."""
    scale = 0.0 if is_exact(expected) else max(largest(expected), floor)
    return error_of(actual, expected, scale)


def error_of(actual: Any, expected: Any, scale: float) -> float:
    """Return `max|a - b| / scale`; infinity where shapes or the places of NaN and infinity differ."""
    if is_exact(actual) and is_exact(expected):
        return 0.0 if np.array_equal(actual, expected) else math.inf
    a, b = wide(actual), wide(expected)
    finite = np.isfinite(b)
    if a.shape != b.shape:
        return math.inf
    if not finite.all():
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        a, b = a[finite], b[finite]
    if not np.isfinite(a).all():
        return math.inf
    difference = largest(a - b)
    return difference / scale if scale > 0 else (0.0 if difference == 0 else math.inf)


class Distance(NamedTuple):
    """The distance of an array from another as a whole: in norm, and by a common factor, as parts of its norm."""

    norm: float
    factor: float


def distance(actual: Any, expected: Any) -> Distance:
    """Return the distance of two arrays of one shape, over the elements where both are finite."""
    a, b = np.ravel(wide(actual)), np.ravel(wide(expected))
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    size = float(np.linalg.norm(b))
    if not size:
        return Distance(math.inf, math.inf)
    return Distance(float(np.linalg.norm(a - b)) / size, float(abs(np.vdot(b, a - b))) / size**2)


def is_exact(array: Any) -> bool:
    """Return whether an array holds values without rounding: integers, bools, or no numbers."""
    dtype = np.asarray(array).dtype
    # NumPy does not know bfloat16 and eight-bit floats as floats.
    return dtype.kind not in "fc" and not ("float" in dtype.name and dtype.kind == "V")


def wide(array: Any) -> np.ndarray:
    """Return an array in float64 or complex128."""
    array = np.asarray(array)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)


def largest(array: Any) -> float:
    """Return the largest absolute value among the finite elements."""
    sizes = np.abs(wide(array))
    most = float(np.max(sizes, initial=0.0))
    return most if math.isfinite(most) else float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


class Difference(NamedTuple):
    """A call's result minus the expected one, leaf by leaf.

    If some leaf is off, `arrays` has the scaled differences at some elements of each, `faults` the descriptions of
    leaves with an infinite error, and `whole` the integer arrays that differ. `allowed` is the limit of a leaf that,
    as a whole, is as near to wider numbers as the plain mode's.
    """

    errors: Sequence[float]
    arrays: Sequence[np.ndarray] = ()
    faults: Mapping[int, str] = MappingProxyType({})
    whole: Mapping[int, np.ndarray] = MappingProxyType({})
    allowed: Mapping[int, float] = MappingProxyType({})


def apart(actual: Any, expected: Any, scale: float) -> np.ndarray:
    """Return the scaled difference at some elements; empty for arrays without floats or of another shape."""
    if is_exact(expected) or np.shape(actual) != np.shape(expected):
        return np.empty(0, np.float32)
    a, b = np.ravel(actual), np.ravel(expected)
    if a.size > PLACES:
        places = np.random.default_rng(0).integers(0, a.size, PLACES)
        a, b = a[places], b[places]
    a, b = wide(a), wide(b)
    finite = np.isfinite(a) & np.isfinite(b)
    difference = np.where(finite, np.where(finite, a, 0) - np.where(finite, b, 0), 0) / (scale or 1)
    return np.concatenate([difference.real, difference.imag] if difference.dtype.kind == "c" else [difference]).astype(
        np.float32
    )


def worst(rows: Iterable[Sequence[float]]) -> list[float]:
    """Return the largest error of each leaf."""
    return list(map(max, zip_longest(*rows, fillvalue=0.0)))


class Moves:
    """The moves that rounding causes in a call: scaled differences of several runs, and in `whole` their integers.

    All arrays move together: a ReLU whose input falls on the other side changes the gradients of all layers before it,
    by the same amounts whenever it falls. So an error from rounding is a sum of moves, each times a coefficient that is
    one for all arrays. The rest of an error, without the nearest such sum, is `beside` the moves.

    `sizes` is how far each array moves at most. An array that moves by more than its own size tells nothing, and is
    left out.
    """

    def __init__(self, moves: Sequence[Difference] = ()) -> None:
        self.sizes = worst([[], *(move.errors for move in moves)])
        self.whole = [move.whole for move in moves]
        self._part = [place for place, size in enumerate(self.sizes) if size <= 1]
        self._moves = list(map(self._arrays, moves))

    def beside(self, difference: Difference, tolerance: float) -> list[float]:
        """Return the error of each array beside the moves."""
        left = self._largest(_without(self._moves, self._arrays(difference), tolerance))
        return [min(pair) for pair in zip(left, difference.errors, strict=True)]

    def noise(self, tolerance: float) -> list[float]:
        """Return the error of each array of a move beside the other moves, as the median over moves."""
        each = [
            self._largest(_without([*self._moves[:k], *self._moves[k + 1 :]], move, tolerance))
            for k, move in enumerate(self._moves)
        ]
        noise: list[float] = np.median(each, axis=0).tolist() if each else []
        return noise

    def gives(self, place: int, whole: np.ndarray, expected: np.ndarray) -> bool:
        """Return whether each integer is the expected one, or one that a run gave at that place."""
        seen = [expected, *(integers[place] for integers in self.whole if place in integers)]
        return bool(np.all([np.any([whole == each for each in seen if each.shape == whole.shape], axis=0)]))

    def _arrays(self, difference: Difference) -> list[np.ndarray]:
        """Return the difference's arrays that are not left out."""
        return [difference.arrays[place] for place in self._part]

    def _largest(self, arrays: Sequence[np.ndarray]) -> list[float]:
        """Return the largest element of each array; 0 for an array that is left out."""
        sizes = [0.0] * len(self.sizes)
        for place, array in zip(self._part, arrays, strict=True):
            sizes[place] = largest(array)
        return sizes


def _without(moves: Sequence[Sequence[np.ndarray]], arrays: Sequence[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Return arrays minus the nearest sum of moves, each times a coefficient that is one for all arrays.

    Sums of moves in which no element moves by the tolerance are left out: with a large coefficient they would explain
    any error.
    """
    if not moves or not arrays:
        return list(arrays)
    rows = [np.stack(of_array) for of_array in zip(*moves, strict=True)]
    products: Any = sum(np.asarray(row, np.float64) @ row.T for row in rows)
    against: Any = sum(np.asarray(row, np.float64) @ array for row, array in zip(rows, arrays, strict=True))
    squares, directions = np.linalg.eigh(products)
    seen = np.max([np.abs(directions.T @ row).max(axis=1, initial=0.0) for row in rows], axis=0) > tolerance
    directions, squares = directions[:, seen], squares[seen]
    times = directions @ ((directions.T @ against) / squares)
    return [array - times @ row for row, array in zip(rows, arrays, strict=True)]
