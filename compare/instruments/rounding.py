"""How far arrays are off, and how far they may be: more than a dtype's tolerance where rounding alone moves them.

The error of an array is its largest difference, scaled:

    error = max|a - b| / max(max|b|, SMALL * max|B|)

where `b` is the expected array and `B` all arrays expected with it (all gradients): one that is zero but for
rounding must not be compared with that rounding.

What rounding alone can do to a step is measured: the plain mode runs from inputs and parameters that are nudged by some
units in the last place (`compare.engines.nudge`). An array that this moves is ill-conditioned, such as a gradient
behind a ReLU whose input is 0 but for rounding. Of such an array alone an arm may be MULTIPLE times as far off, as
PyTorch judges its own backends (`torch._dynamo.utils.same`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import optree

SMALL = 1e-2
MULTIPLE = 10.0
"""How many times as far off as rounding puts the plain mode another may be: PyTorch allows its backends two to ten."""
SEEDS = (1, 2, 3)
"""Those of the nudges."""

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


Spread = Callable[[int], Errors]
"""Measures how far rounding alone moves each array of what a call gives. It is asked only where a call is off."""


class Judged(NamedTuple):
    """How far results are off at most, how far they may be, and what to say of it: a `fault`, or else a `warning`."""

    output: float = 0.0
    gradient: float = 0.0
    allowed: float = 0.0
    fault: str | None = None
    warning: str | None = None


def errors_of(actual: Result, expected: Result) -> Errors:
    """Array by array."""
    return Errors(leaf_errors(actual[0], expected[0]), leaf_errors(actual[1], expected[1]))


def worst(several: Iterable[Errors]) -> Errors:
    """The largest error of each array, of results for the same call."""
    values, gradients = zip(*several, strict=True)
    return Errors(_each_worst(values), _each_worst(gradients))


def _each_worst(rows: Iterable[list[float]]) -> list[float]:
    return list(map(max, zip_longest(*rows, fillvalue=0.0)))


def judged(calls: Mapping[int, Errors], tolerance: float, spread: Spread, second: str = "a gradient") -> Judged:
    """Calls by their errors; `second` is what stands beside the value.

    An array that rounding moves by more than its own size tells nothing, and has no more than the tolerance.
    """
    rows = [_call(errors, tolerance, partial(spread, index), second) for index, errors in calls.items()]
    return Judged(
        max((row.output for row in rows), default=0.0),
        max((row.gradient for row in rows), default=0.0),
        max((row.allowed for row in rows), default=tolerance),
        next((row.fault for row in rows if row.fault), None),
        next((row.warning for row in rows if row.warning), None),
    )


def _call(errors: Errors, tolerance: float, spread: Callable[[], Errors], second: str) -> Judged:
    output, gradient = errors.largest
    if max(output, gradient) <= tolerance:
        return Judged(output, gradient, tolerance)
    moved = spread()
    allowed = [[_allowed(by, tolerance) for by in part] for part in moved]
    most = max((limit for part in allowed for limit in part), default=tolerance)
    for what, off, limits in zip(("the output", second), errors, allowed, strict=True):
        error, limit = max(zip_longest(off, limits, fillvalue=tolerance), key=_excess, default=(0.0, tolerance))
        if error > limit:
            return Judged(output, gradient, most, f"{what} is off by {error:.3g}, allowed {limit:.3g}")
    return Judged(output, gradient, most, warning=_warning(moved, tolerance))


def _allowed(moved: float, tolerance: float) -> float:
    return max(tolerance, min(MULTIPLE * moved, 1.0)) if moved <= 1 else tolerance


def _excess(pair: tuple[float, float]) -> float:
    error, limit = pair
    return error / limit if limit > 0 else math.inf


def _warning(moved: Errors, tolerance: float) -> str:
    sizes = [*moved.value, *moved.gradients]
    many = sum(size > tolerance for size in sizes)
    return (
        f"ill-conditioned: rounding alone moves its result by up to {max(sizes):.2g} ({many} of {len(sizes)} arrays by "
        f"more than {tolerance:g}), and it may be {MULTIPLE:g} times as far off"
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
    floor = SMALL * max((_largest(leaf) for leaf in leaves), default=0.0)
    return [scaled_error(a, b, floor) for a, b in zip(actual_leaves, leaves, strict=True)]


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
