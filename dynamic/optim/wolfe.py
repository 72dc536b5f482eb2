"""A line search for a step that lowers the function enough and flattens its slope: the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LOWER, FLATTER = 1e-4, 0.9  # the shares of the first slope that the two conditions ask for


class LinePoint(NamedTuple):
    """A place along the line: how far, the value there, the gradient, and its slope along the line."""

    at: Any
    value: Any
    gradient: Any
    slope: Any


def search(
    point_at: Callable[[Any], LinePoint], start: LinePoint, length: float, size: float, tolerance: float, most: int
) -> tuple[LinePoint, int]:
    """A point that meets the conditions, or the best that `most` tries find, and how many points were looked at.

    `length` is the first try, `size` the largest element of the direction; a bracket that moves no element by more than
    the tolerance is not divided further. The algorithm is that of Nocedal and Wright, "Numerical Optimization" (2006),
    3.5 and 3.6, with the safeguards of minFunc, as torch.optim.LBFGS has it.
    """
    with np.errstate(all="ignore"):  # an interpolation that fails is bounded
        before, now, tries = start, point_at(length), 0
        while tries < most:
            worse = _rises(start, now) or (tries > 1 and now.value >= before.value)
            if not worse and _is_flat(start, now):
                return now, tries + 1
            if worse or now.slope >= 0:
                return _zoomed(point_at, start, [before, now], (size, tolerance), (tries, most))
            longer = _lowest(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10)
            before, now, tries = now, point_at(longer), tries + 1
        return min(start, now, key=lambda point: point.value), tries + 1


def _rises(start: LinePoint, now: LinePoint) -> bool:
    return bool(now.value > start.value + LOWER * now.at * start.slope)


def _is_flat(start: LinePoint, now: LinePoint) -> bool:
    return bool(abs(now.slope) <= -FLATTER * start.slope)


def _zoomed(
    point_at: Callable[[Any], LinePoint],
    start: LinePoint,
    ends: list[LinePoint],
    widths: tuple[float, float],
    tries: tuple[int, int],
) -> tuple[LinePoint, int]:
    """The same within a bracket, whose lower end is the best point so far."""
    (size, tolerance), (count, most) = widths, tries
    low, near_an_end = _lower(ends), False
    while count < most:
        first, last = sorted(end.at for end in ends)
        if (last - first) * size < tolerance:
            break
        trial = _lowest(ends[0], ends[1], first, last)
        margin = 0.1 * (last - first)
        if min(last - trial, trial - first) >= margin:
            near_an_end = False
        elif near_an_end or trial >= last or trial <= first:
            trial = last - margin if abs(trial - last) < abs(trial - first) else first + margin
            near_an_end = False
        else:
            near_an_end = True
        now, count = point_at(trial), count + 1
        if _rises(start, now) or now.value >= ends[low].value:
            ends[1 - low] = now
            low = _lower(ends)
            continue
        done = _is_flat(start, now)
        if not done and now.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = now
        if done:
            break
    return ends[low], count + 1


def _lower(ends: list[LinePoint]) -> int:
    return 0 if ends[0].value <= ends[1].value else 1


def _lowest(point: LinePoint, other: LinePoint, least: Any, most: Any) -> Any:
    """Where the cubic through two points, with their slopes, is lowest within bounds; their middle if it is nowhere."""
    first, last = (point, other) if point.at <= other.at else (other, point)
    bend = first.slope + last.slope - 3 * (first.value - last.value) / (first.at - last.at)
    square = bend**2 - first.slope * last.slope
    if not square >= 0:
        return (least + most) / 2
    root = np.sqrt(square)
    share = (last.slope + root - bend) / (last.slope - first.slope + 2 * root)
    return min(max(last.at - (last.at - first.at) * share, least), most)
