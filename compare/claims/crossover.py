"""The crossover map: where in tensor size and depth one engine overtakes the other, in time and in bytes.

What an arm costs from its very first call, and after how many runs a later start is earned back.

All of a course is read by one clock, that of steady state: a start by the wall would be as much longer as other work
kept the machine busy.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, Read, steady
from compare.records.cells import Crossover, CrossoverMemory, GridPlace, TimeArm
from compare.records.record import DYNAMIC, Records, group_by, records_of
from compare.stats import WIDEST, Interval, geometric_mean
from compare.words import text

STATIC = "static-exact"
G = TypeVar("G", bound=GridPlace)


class MapPlace(NamedTuple):
    """A cell of the map: a chain of `depth` ops over tensors of that many floats."""

    ops: str
    depth: int
    elements: int


@dataclass(frozen=True)
class Point:
    """What was found at a place: static ÷ dynamic, with its interval unless it is an exact count.

    `pays_after` are the runs until static has paid back its later start.
    """

    place: MapPlace
    ratio: float
    interval: Interval | None = None
    pays_after: int | None = None


@dataclass(frozen=True)
class CostPlace:
    """What both engines cost at a place of the map, from the first call on, and the ratio static ÷ dynamic."""

    at: MapPlace
    dynamic: Course
    static: Course
    steady: Interval

    @property
    def pays_after(self) -> int | None:
        """The runs after which static's later start is earned back; None where it is not shown to be faster."""
        runs = break_even(self.static, self.dynamic, self.steady).runs
        return None if runs is None else ceil(runs)


def times(records: Records) -> list[Point]:
    """Seconds a step in steady state; no verdict depends on them, so nothing widens their intervals."""
    return [Point(place.at, place.steady.estimate, place.steady, place.pays_after) for place in places(records)]


def places(records: Records) -> list[CostPlace]:
    """What both engines cost at each place of the map that was timed."""
    processes = sorted(records_of(records, Crossover), key=lambda record: (record.process, repr(record)))
    rows = [row for record in processes for row in record.cells]
    cells = [
        (place, Evidence(place.ops, "", tuple(row.arms for row in of))) for place, of in _group_by_place(rows).items()
    ]
    ratios = ((place, cell, cell.ratio(STATIC, DYNAMIC, steady)) for place, cell in cells)
    return [
        CostPlace(place, course(cell, DYNAMIC), course(cell, STATIC), ratio)
        for place, cell, ratio in ratios
        if ratio is not None
    ]


def sizes(records: Records, held: Read) -> list[Point]:
    """Bytes held for a step: counts, which are exact."""
    points = []
    for place, rows in _group_by_place(
        [row for record in records_of(records, CrossoverMemory) for row in record.cells]
    ).items():
        static, dynamic = (held(rows[-1].arms[arm])[0] for arm in (STATIC, DYNAMIC))
        if static > 0 < dynamic:
            points.append(Point(place, static / dynamic))
    return points


def time_reasons(points: Sequence[Point]) -> Iterator[str]:
    """For each kind of op: how many cells each engine wins, the extremes, and where static's lead ends."""
    for ops, group in _by_ops(points).items():
        sides = [point.interval.side(SMALLEST_EFFECT) for point in group if point.interval]
        yield (
            f"crossover map, {ops}: dynamic is slower than static in {sides.count('below')} of "
            f"{text.count_noun(len(group), 'cell')}, faster in {sides.count('above')}; {_range(group)}; {_line(group)}"
        )


def size_reasons(points: Sequence[Point]) -> Iterator[str]:
    """For each kind of op: in how many cells static holds more, and the extremes."""
    for ops, group in _by_ops(points).items():
        more = sum(point.ratio > 1 + SMALLEST_EFFECT for point in group)
        less = sum(point.ratio < 1 / (1 + SMALLEST_EFFECT) for point in group)
        yield (
            f"crossover map, {ops}: static holds more in {more} of {text.count_noun(len(group), 'cell')}, "
            f"less in {less}; {_range(group)}"
        )


def _line(group: Sequence[Point]) -> str:
    """For each depth the largest tensor at which dynamic is shown to be slower."""
    parts = []
    for depth in sorted({point.place.depth for point in group}):
        row = [point for point in group if point.place.depth == depth]
        led = [p.place.elements for p in row if p.interval and p.interval.side(SMALLEST_EFFECT) == "below"]
        largest = max(point.place.elements for point in row)
        reach = f"up to {max(led):,} floats" if led else "nowhere"
        parts.append(f"at depth {depth:,} {'at every size' if largest in led else reach}")
    return f"static was shown to be faster {', '.join(parts)}"


def _group_by_place(rows: Sequence[G]) -> dict[MapPlace, list[G]]:
    """The rows of each place, over the processes, of the places that no process groups different in the engines."""
    groups = group_by(rows, lambda row: MapPlace(row.ops, row.depth, row.elements))
    return {place: groups[place] for place in sorted(groups) if all(row.status == "ok" for row in groups[place])}


def _by_ops(points: Sequence[Point]) -> dict[str, list[Point]]:
    return group_by(points, lambda point: point.place.ops)


def _range(group: Sequence[Point]) -> str:
    """The extremes, and where they are."""
    ends = (extreme(group, key=lambda point: point.ratio) for extreme in (min, max))
    shown = (f"{text.ratio(p.ratio)} (depth {p.place.depth}, {p.place.elements:,} floats)" for p in ends)
    return f"static ÷ dynamic goes from {' to '.join(shown)}"


@dataclass(frozen=True)
class Course:
    """What one arm costs from the start: seconds to build, of each early call, of every later call."""

    build: float
    head: tuple[float, ...]
    steady: float

    @property
    def early(self) -> NDArray[np.float64]:
        """Seconds spent when no call, one, two and so on of the early calls are done."""
        return np.asarray(self.build + np.concatenate([[0.0], np.cumsum(self.head)]))

    def total(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds spent when that many calls are done."""
        spent = self.early
        early = np.minimum(runs, len(self.head)).astype(np.int64)
        return np.asarray(spent[early] + (runs - early) * self.steady)


@dataclass(frozen=True)
class BreakEven:
    """After how many runs a static arm has paid for its build; None where never, or where none can tell."""

    verdict: str
    runs: float | None = None
    low: float | None = None
    high: float | None = None


def course(cell: Evidence, arm: str) -> Course:
    """That of an arm that has blocks: medians over the processes of its build and of each early call."""
    starts = [_start(timing) for timing in cell.start.of(arm)]
    heads = [head for _, head in starts]
    head = tuple(statistics.median(s for s in column if s is not None) for column in zip_longest(*heads))
    build = statistics.median(build for build, _ in starts)
    return Course(build, head, geometric_mean(block for timing in cell.of(arm) for block in timing.blocks))


def _start(timing: TimeArm) -> tuple[float, list[float]]:
    """Seconds to build and of each early call by the clock of its blocks: each at the share of a core that all had."""
    head = [call.seconds for call in getattr(timing, "stream", None) or ()] or [timing.first]
    processor, wall = getattr(timing, "processor", None), timing.build + sum(head)
    share = min(1.0, processor / wall) if processor and wall else 1.0
    return share * timing.build, [share * seconds for seconds in head]


def break_even(static: Course, dynamic: Course, steady: Interval) -> BreakEven:
    """The number of runs from which on `static` has cost less in all than `dynamic`.

    `steady` is the ratio static ÷ dynamic once warm. The interval follows from its interval alone: build and first
    calls are medians. There is none where its ends would lie more than `WIDEST` apart.
    """
    if steady.high >= 1:
        return BreakEven("never" if steady.low > 1 else "cannot tell")
    start = max(len(static.head), len(dynamic.head))
    early = np.arange(1.0, start + 1)
    gaps = static.total(early) - dynamic.total(early)
    if gaps[-1] <= 0:
        behind = np.flatnonzero(gaps > 0)
        return BreakEven("after", float(behind[-1] + 2)) if behind.size else BreakEven("at once", 1.0)
    gain = [float(dynamic.steady * (1 - r)) for r in (steady.estimate, steady.low, steady.high)]
    runs, low, high = (start + float(gaps[-1]) / saved for saved in gain)
    return BreakEven("after", runs, low, high) if high <= WIDEST * low else BreakEven("after", runs)
