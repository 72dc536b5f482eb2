"""How far arrays are off, and what rounding alone does to them.

The error of an array is its largest difference, scaled:

    error = max|a - b| / scale

where `b` is the expected array. The scale is max|b|, or a part of the largest array that is expected with it (of all
gradients): one that is zero but for rounding must not be compared with that rounding. Complex numbers differ by the
absolute value of their difference. Integers, bools and text are equal, or infinitely wrong.

What rounding alone can do to a step is measured: the plain mode runs from inputs and parameters that are nudged by some
units in the last place (`compare.engines.nudge`). What it is then off by are `Moves`.
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
"""The elements of an array, drawn once, at which directions are compared; of a smaller one all are."""


def tree_error(actual: Any, expected: Any) -> float:
    """The largest scaled error over two containers of arrays; infinity where structure or shapes differ."""
    actual_leaves, actual_tree = optree.tree_flatten(actual)
    leaves, tree = optree.tree_flatten(expected)
    if actual_tree != tree:
        return math.inf
    scales = scales_of(leaves)
    return max((scaled_error(*each) for each in zip(actual_leaves, leaves, scales, strict=True)), default=0.0)


def scales_of(leaves: Sequence[Any]) -> list[float]:
    """What the difference from each array is divided by; whole numbers do not count."""
    sizes = [0.0 if is_exact(leaf) else largest(leaf) for leaf in leaves]
    floor = SMALL * max(sizes, default=0.0)
    return [max(size, floor) for size in sizes]


def scaled_error(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """`max|a - b| / max(max|b|, floor)`; infinity where shapes or the places of NaN and infinity differ."""
    scale = 0.0 if is_exact(expected) else max(largest(expected), floor)
    return error_of(actual, expected, scale)


def error_of(actual: Any, expected: Any, scale: float) -> float:
    """`max|a - b| / scale`, as `scaled_error`."""
    if is_exact(actual) and is_exact(expected):
        return 0.0 if np.array_equal(actual, expected) else math.inf
    a, b = wide(actual), wide(expected)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    if not np.all(np.isfinite(a[finite])):
        return math.inf
    difference = largest(a[finite] - b[finite])
    return difference / scale if scale > 0 else (0.0 if difference == 0 else math.inf)


class Distance(NamedTuple):
    """How far an array is from another as a whole: by norm, and by a factor on all of it, as parts of its norm."""

    norm: float
    factor: float


def distance(actual: Any, expected: Any) -> Distance:
    """The distance of two arrays of one shape, where both are finite."""
    a, b = np.ravel(wide(actual)), np.ravel(wide(expected))
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    size = float(np.linalg.norm(b))
    if not size:
        return Distance(math.inf, math.inf)
    return Distance(float(np.linalg.norm(a - b)) / size, float(abs(np.vdot(b, a - b))) / size**2)


def is_exact(array: Any) -> bool:
    """Whether it holds what rounding does not touch: integers, bools, and what is no number."""
    dtype = np.asarray(array).dtype
    return dtype.kind not in "fc" and not _is_narrow(dtype)


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy does not know that it is a float: bfloat16, and those of eight bits."""
    return "float" in dtype.name and dtype.kind == "V"


def wide(array: Any) -> np.ndarray:
    """In float64, or complex128."""
    array = np.asarray(array)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)


def largest(array: Any) -> float:
    """The largest absolute value among those that are finite."""
    sizes = np.abs(wide(array))
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


class Difference(NamedTuple):
    """What a call gives less what was expected, leaf by leaf.

    Where some leaf is off, `arrays` are the scaled differences at some elements of each, `faults` what is said of those
    whose error has no size, and `whole` the integers that are others. `allowed` is how far off a leaf may be that is as
    near as the plain mode as a whole.
    """

    errors: Sequence[float]
    arrays: Sequence[np.ndarray] = ()
    faults: Mapping[int, str] = MappingProxyType({})
    whole: Mapping[int, np.ndarray] = MappingProxyType({})
    allowed: Mapping[int, float] = MappingProxyType({})


def apart(actual: Any, expected: Any, scale: float) -> np.ndarray:
    """The scaled difference at some elements; none of what is no float, or has another shape."""
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
    """The largest error of each leaf."""
    return list(map(max, zip_longest(*rows, fillvalue=0.0)))


class Moves:
    """What rounding alone does to a call: the scaled differences of several runs of it, `whole` the integers they gave.

    All arrays move together: a ReLU whose input falls on the other side changes the gradients of all layers before it,
    by the same amounts whenever it falls. So what rounding puts a result off by is a sum of moves, each times a
    coefficient that is one for all arrays. What is left without the nearest such sum is `beside` the moves.

    `sizes` says how far each array moves at most. An array that moves by more than its own size tells nothing, and has
    no part in that.
    """

    def __init__(self, moves: Sequence[Difference] = ()) -> None:
        self.sizes = worst([[], *(move.errors for move in moves)])
        self.whole = [move.whole for move in moves]
        self._part = [place for place, size in enumerate(self.sizes) if size <= 1]
        self._moves = list(map(self._arrays, moves))

    def beside(self, difference: Difference, tolerance: float) -> list[float]:
        """How far each array is off beside the moves."""
        left = self._largest(_without(self._moves, self._arrays(difference), tolerance))
        return [min(pair) for pair in zip(left, difference.errors, strict=True)]

    def noise(self, tolerance: float) -> list[float]:
        """How far each array of a move is off beside the other moves, in the median."""
        each = [
            self._largest(_without([*self._moves[:k], *self._moves[k + 1 :]], move, tolerance))
            for k, move in enumerate(self._moves)
        ]
        noise: list[float] = np.median(each, axis=0).tolist() if each else []
        return noise

    def gives(self, place: int, whole: np.ndarray, expected: np.ndarray) -> bool:
        """Whether each integer is one that is expected, or that a run gave at that place."""
        seen = [expected, *(integers[place] for integers in self.whole if place in integers)]
        return bool(np.all([np.any([whole == each for each in seen if each.shape == whole.shape], axis=0)]))

    def _arrays(self, difference: Difference) -> list[np.ndarray]:
        """Those that have a part."""
        return [difference.arrays[place] for place in self._part]

    def _largest(self, arrays: Sequence[np.ndarray]) -> list[float]:
        """The largest element of each; 0 of an array that has no part."""
        sizes = [0.0] * len(self.sizes)
        for place, array in zip(self._part, arrays, strict=True):
            sizes[place] = largest(array)
        return sizes


def _without(moves: Sequence[Sequence[np.ndarray]], arrays: Sequence[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Arrays less the nearest sum of moves, each times a coefficient that is one for all arrays.

    Sums of moves in which no element moves by the tolerance have no part: that would explain anything, if it is
    multiplied by enough.
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
