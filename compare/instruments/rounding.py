"""How far arrays are off, and how far they may be: more than a dtype's tolerance where rounding alone moves them.

The error of an array is its largest difference, scaled:

    error = max|a - b| / max(max|b|, SMALL * max|B|)

where `b` is the expected array and `B` all arrays expected with it (all gradients): one that is zero but for
rounding must not be compared with that rounding.

What rounding alone can do to a step is measured: the plain mode runs from inputs and parameters that are nudged by some
units in the last place (`compare.engines.nudge`). An array that this moves is ill-conditioned, such as a gradient
behind a ReLU whose input is 0 but for rounding. Of such an array alone an arm may be MULTIPLE times as far off, as
PyTorch judges its own backends (`torch._dynamo.utils.same`), and only in the directions in which rounding moves it
(`Moves`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
import optree

SMALL = 1e-2
MULTIPLE = 10.0
"""How many times as far off as rounding puts the plain mode another may be: PyTorch allows its backends two to ten."""
NUDGES, MOST = 8, 64
"""How many are made, and how many before an arm is refused that is no further off than they: one may have put so many
ReLUs on their other sides that eight nudges do not tell them apart."""
PLACES = 1024
"""The elements of an array, drawn once, at which directions are compared; of a smaller one all are."""

Result = tuple[Any, Any]
"""The value of a call, and the gradients."""


class Errors(NamedTuple):
    """How far each array of a result is off."""

    value: list[float]
    gradients: list[float]

    @property
    def largest(self) -> tuple[float, float]:
        """Of the arrays of the value, and of those of the gradients."""
        return max(self.value, default=0.0), max(self.gradients, default=0.0)


class Difference(NamedTuple):
    """A result less what was expected: how far each array is off, and the difference itself at some of its elements.

    `scales` are those of the expected arrays. Where no array is off there are errors alone.
    """

    errors: Errors
    arrays: Sequence[np.ndarray] = ()
    scales: Sequence[float] = ()


class Judged(NamedTuple):
    """How far results are off at most, how far they may be, and what to say of it: a `fault`, or else a `warning`."""

    output: float = 0.0
    gradient: float = 0.0
    allowed: float = 0.0
    fault: str | None = None
    warning: str | None = None


def differences(result: Result, references: Sequence[Result], tolerance: float) -> list[Difference]:
    """A result less each of its references."""
    return [_noted(result, reference, tolerance) for reference in references]


def _noted(result: Result, reference: Result, tolerance: float) -> Difference:
    errors = errors_of(result, reference)
    return Difference(errors) if max(errors.largest) <= tolerance else difference(result, reference)


def difference(result: Result, expected: Result) -> Difference:
    """A result less what was expected, with its arrays."""
    errors = errors_of(result, expected)
    parts = zip(result, expected, errors, strict=True)
    arrays = [array for part in parts for array in _apart(*part)]
    return Difference(errors, arrays, [scale for part in expected for scale in _scales(optree.tree_leaves(part))])


def _apart(actual: Any, expected: Any, errors: Sequence[float]) -> Iterator[np.ndarray]:
    """`actual - expected` at some elements of each array; at none of one whose error has no size."""
    for a, b, error in zip(optree.tree_leaves(actual), optree.tree_leaves(expected), errors, strict=False):
        yield _at_some(np.ravel(a), np.ravel(b)) if math.isfinite(error) else np.empty(0, np.float32)


def _at_some(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.size > PLACES:
        places = np.random.default_rng(0).integers(0, a.size, PLACES)
        a, b = a[places], b[places]
    apart = np.zeros(a.size)
    return np.subtract(a, b, out=apart, where=np.isfinite(b), dtype=np.float64).astype(np.float32)


def errors_of(actual: Result, expected: Result) -> Errors:
    """Array by array."""
    return Errors(leaf_errors(actual[0], expected[0]), leaf_errors(actual[1], expected[1]))


def worst(several: Iterable[Errors]) -> Errors:
    """The largest error of each array, of results for the same call."""
    values, gradients = zip(*several, strict=True)
    return Errors(_each_worst(values), _each_worst(gradients))


def _each_worst(rows: Iterable[list[float]]) -> list[float]:
    return list(map(max, zip_longest(*rows, fillvalue=0.0)))


class Moves:
    """What rounding alone does to a call: what it gives from nudged numbers, less what it gives from its own.

    All arrays move together: a ReLU whose input falls on the other side changes the gradients of all layers before it,
    by the same amounts whenever it falls. So what rounding puts a result off by is a sum of moves, each times a
    coefficient that is one for all arrays. What is left without the nearest such sum is `beside` the moves.

    `sizes` says how far each array moves at most. An array that moves by more than its own size tells nothing, and has
    no part in that.
    """

    def __init__(self, moves: Sequence[Difference] = ()) -> None:
        self.sizes = worst([Errors([], []), *(move.errors for move in moves)])
        self._scales = moves[0].scales if moves else ()
        self._part = [place for place, size in enumerate(chain(*self.sizes)) if size <= 1]
        self._moves = list(map(self._arrays, moves))

    def beside(self, difference: Difference, tolerance: float) -> Errors:
        """How far each array is off beside the moves."""
        left = self._largest(_without(self._moves, self._arrays(difference), tolerance))
        return Errors(*(list(map(min, *parts)) for parts in zip(left, difference.errors, strict=True)))

    def noise(self, tolerance: float) -> Errors:
        """How far each array of a move is off beside the other moves, in the median."""
        each = [
            [*chain(*self._largest(_without([*self._moves[:k], *self._moves[k + 1 :]], move, tolerance)))]
            for k, move in enumerate(self._moves)
        ]
        return self._errors(np.median(each, axis=0).tolist() if each else [])

    def _arrays(self, difference: Difference) -> list[np.ndarray]:
        """Those that have a part, scaled."""
        return [difference.arrays[place] / np.float32(self._scales[place] or 1) for place in self._part]

    def _largest(self, arrays: Sequence[np.ndarray]) -> Errors:
        """The largest element of each; 0 of an array that has no part."""
        sizes = [0.0] * sum(map(len, self.sizes))
        for place, array in zip(self._part, arrays, strict=True):
            sizes[place] = _largest(array)
        return self._errors(sizes)

    def _errors(self, sizes: list[float]) -> Errors:
        return Errors(sizes[: len(self.sizes.value)], sizes[len(self.sizes.value) :])


def _without(moves: Sequence[Sequence[np.ndarray]], arrays: Sequence[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Arrays less the nearest sum of moves, each times a coefficient that is one for all arrays.

    Sums of moves in which no element moves by the tolerance have no part: that would explain anything, if it is
    multiplied by enough.
    """
    if not moves:
        return list(arrays)
    rows = [np.stack(of_array) for of_array in zip(*moves, strict=True)]
    products: Any = sum(np.asarray(row, np.float64) @ row.T for row in rows)
    against: Any = sum(np.asarray(row, np.float64) @ array for row, array in zip(rows, arrays, strict=True))
    squares, directions = np.linalg.eigh(products)
    seen = np.max([np.abs(directions.T @ row).max(axis=1, initial=0.0) for row in rows], axis=0) > tolerance
    directions, squares = directions[:, seen], squares[seen]
    times = directions @ ((directions.T @ against) / squares)
    return [array - times @ row for row, array in zip(rows, arrays, strict=True)]


def judged(
    calls: Mapping[int, Sequence[Difference]],
    tolerance: float,
    moves: Callable[[int, int], Moves],
    second: str = "a gradient",
) -> Judged:
    """Calls by their differences; `second` is what stands beside the value.

    Where a call is off, `moves` is asked what so many nudges do to it.
    An array that rounding moves by more than its own size has no more than the tolerance.
    """
    rows = [_call(call, tolerance, partial(moves, index), second) for index, call in calls.items()]
    return Judged(
        max((row.output for row in rows), default=0.0),
        max((row.gradient for row in rows), default=0.0),
        max((row.allowed for row in rows), default=tolerance),
        next((row.fault for row in rows if row.fault), None),
        next((row.warning for row in rows if row.warning), None),
    )


def _call(call: Sequence[Difference], tolerance: float, moves: Callable[[int], Moves], second: str) -> Judged:
    errors, names = worst(difference.errors for difference in call), ("the output", second)
    output, gradient = errors.largest
    if max(output, gradient) <= tolerance:
        return Judged(output, gradient, tolerance)
    rounding = moves(NUDGES)
    allowed = _limits(rounding.sizes, tolerance)
    most = max(*allowed.largest, tolerance)
    if fault := _fault(errors, allowed, tolerance, names):
        return Judged(output, gradient, most, fault)
    noise = _limits(rounding.noise(tolerance), tolerance)
    for several in (NUDGES, MOST):
        beside = worst(moves(several).beside(difference, tolerance) for difference in call if difference.arrays)
        fault = _fault(beside, noise, tolerance, names, " in directions in which rounding does not move it")
        if fault is None:
            return Judged(output, gradient, most, warning=_warning(rounding.sizes, max(*noise.largest), tolerance))
    return Judged(output, gradient, most, fault)


def _limits(moved: Errors, tolerance: float) -> Errors:
    return Errors(*([_limit(by, tolerance) for by in part] for part in moved))


def _limit(moved: float, tolerance: float) -> float:
    return max(tolerance, min(MULTIPLE * moved, 1.0)) if moved <= 1 else tolerance


def _fault(errors: Errors, limits: Errors, tolerance: float, names: Sequence[str], where: str = "") -> str | None:
    for name, off, allowed in zip(names, errors, limits, strict=True):
        error, limit = max(zip_longest(off, allowed, fillvalue=tolerance), key=_excess, default=(0.0, tolerance))
        if error > limit:
            return f"{name} is off by {error:.3g}{where}, allowed {limit:.3g}"
    return None


def _excess(pair: tuple[float, float]) -> float:
    error, limit = pair
    return error / limit if limit > 0 else math.inf


def _warning(moved: Errors, beside: float, tolerance: float) -> str:
    sizes = [*moved.value, *moved.gradients]
    many = sum(size > tolerance for size in sizes)
    return (
        f"ill-conditioned: rounding alone moves its result by up to {max(sizes):.2g} ({many} of {len(sizes)} arrays by "
        f"more than {tolerance:g}), and it may be {MULTIPLE:g} times as far off in these directions, "
        f"and by {beside:.2g} beside them"
    )


def tree_error(actual: Any, expected: Any) -> float:
    """The largest scaled error over two containers of arrays; infinity where structure or shapes differ."""
    return max(leaf_errors(actual, expected), default=0.0)


def leaf_errors(actual: Any, expected: Any) -> list[float]:
    """The scaled error of each array in a container; all are infinite where structures differ."""
    actual_leaves, actual_tree = optree.tree_flatten(actual)
    leaves, tree = optree.tree_flatten(expected)
    if actual_tree != tree:
        return [math.inf] * max(len(leaves), 1)
    return [scaled_error(a, b, scale) for a, b, scale in zip(actual_leaves, leaves, _scales(leaves), strict=True)]


def _scales(leaves: Sequence[Any]) -> list[float]:
    """What the difference from each array is divided by."""
    sizes = [_largest(leaf) for leaf in leaves]
    floor = SMALL * max(sizes, default=0.0)
    return [max(size, floor) for size in sizes]


def scaled_error(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """`max|a - b| / max(max|b|, floor)`; infinity where shapes or the places of NaN and infinity differ."""
    a, b = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    if not np.all(np.isfinite(a[finite])):
        return math.inf
    difference = _largest(a[finite] - b[finite])
    scale = max(_largest(b), floor)
    return difference / scale if scale > 0 else (0.0 if difference == 0 else math.inf)


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), where=np.isfinite(array), initial=0.0))
