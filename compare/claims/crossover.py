"""The crossover map: the tensor sizes and depths at which one engine overtakes the other, in time and in bytes.

The second part is break-even: `Course` has the cost of a mode from its first call on, and `break_even` gives the number
of runs after which a compiled mode has paid for its build.

All seconds of a course use the clock of steady state. Wall seconds of a start would also count the time in which other
work kept the machine busy.
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

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, Read, steady
from compare.records.cells import Crossover, CrossoverMemory, GridPlace, TimeRow
from compare.records.record import DYNAMIC, Records, group_by, records_of
from compare.stats import WIDEST, Interval, geometric_mean

STATIC = "static-exact"
G = TypeVar("G", bound=GridPlace)


class MapPlace(NamedTuple):
    """A cell of the map: a chain of `depth` ops of kind `ops` over tensors of `elements` floats."""

    ops: str
    depth: int
    elements: int


@dataclass(frozen=True)
class Point:
    """The ratio static ÷ dynamic at a place of the map; the interval is None if the ratio is of exact counts.

    `pays_after` is the number of runs after which static has paid for its later start; None if it never does.
    """

    place: MapPlace
    ratio: float
    interval: Interval | None = None
    pays_after: int | None = None


@dataclass(frozen=True)
class CostPlace:
    """The costs of both engines at a place of the map from the first call on, and static ÷ dynamic once warm."""

    at: MapPlace
    dynamic: Course
    static: Course
    steady: Interval

    @property
    def pays_after(self) -> int | None:
        """The number of runs after which static has paid for its later start; None if it is not shown to be faster."""
        runs = break_even(self.static, self.dynamic, self.steady).runs
        return None if runs is None else ceil(runs)


def times(records: Records) -> list[Point]:
    """Return static ÷ dynamic in seconds of a warm step for each place; its intervals are not widened."""
    return [Point(place.at, place.steady.estimate, place.steady, place.pays_after) for place in places(records)]


def places(records: Records) -> list[CostPlace]:
    """Return the costs of both engines at each place of the map that was timed."""
    processes = sorted(records_of(records, Crossover), key=lambda record: (record.process, repr(record)))
    rows = [row for record in processes for row in record.cells]
    cells = [
        (place, Evidence(place.ops, "", tuple(row.modes for row in of))) for place, of in _group_by_place(rows).items()
    ]
    ratios = ((place, cell, cell.ratio(STATIC, DYNAMIC, steady)) for place, cell in cells)
    return [
        CostPlace(place, course(cell, DYNAMIC), course(cell, STATIC), ratio)
        for place, cell, ratio in ratios
        if ratio is not None
    ]


def sizes(records: Records, held: Read) -> list[Point]:
    """Return static ÷ dynamic in bytes held for a step at each place; the counts are exact."""
    points = []
    for place, rows in _group_by_place(
        [row for record in records_of(records, CrossoverMemory) for row in record.cells]
    ).items():
        static, dynamic = (held(rows[-1].modes[mode])[0] for mode in (STATIC, DYNAMIC))
        if static > 0 < dynamic:
            points.append(Point(place, static / dynamic))
    return points


def time_reasons(points: Sequence[Point]) -> Iterator[str]:
    """Yield a sentence on times for each kind of op: cells won by each engine, extremes, and where static leads."""
    for ops, group in _by_ops(points).items():
        sides = [point.interval.side(SMALLEST_EFFECT) for point in group if point.interval]
        yield (
            f"crossover map, {ops}: dynamic is slower than static in {sides.count('below')} of "
            f"{text.count_noun(len(group), 'cell')}, faster in {sides.count('above')}; {_range(group)}; {_line(group)}"
        )


def size_reasons(points: Sequence[Point]) -> Iterator[str]:
    """Yield a sentence on bytes for each kind of op: in how many cells static holds more or less, and the extremes."""
    for ops, group in _by_ops(points).items():
        more = sum(point.ratio > 1 + SMALLEST_EFFECT for point in group)
        less = sum(point.ratio < 1 / (1 + SMALLEST_EFFECT) for point in group)
        yield (
            f"crossover map, {ops}: static holds more in {more} of {text.count_noun(len(group), 'cell')}, "
            f"less in {less}; {_range(group)}"
        )


def _line(group: Sequence[Point]) -> str:
    """Return in words the largest tensor at which static was shown to be faster, for each depth."""
    parts = []
    for depth in sorted({point.place.depth for point in group}):
        row = [point for point in group if point.place.depth == depth]
        led = [p.place.elements for p in row if p.interval and p.interval.side(SMALLEST_EFFECT) == "below"]
        largest = max(point.place.elements for point in row)
        reach = f"up to {max(led):,} floats" if led else "nowhere"
        parts.append(f"at depth {depth:,} {'at every size' if largest in led else reach}")
    return f"static was shown to be faster {', '.join(parts)}"


def _group_by_place(rows: Sequence[G]) -> dict[MapPlace, list[G]]:
    """Group rows of all processes by place, without the places at which some process found the engines to disagree."""
    groups = group_by(rows, lambda row: MapPlace(row.ops, row.depth, row.elements))
    return {place: groups[place] for place in sorted(groups) if all(row.status == "ok" for row in groups[place])}


def _by_ops(points: Sequence[Point]) -> dict[str, list[Point]]:
    return group_by(points, lambda point: point.place.ops)


def _range(group: Sequence[Point]) -> str:
    """Return in words the smallest and the largest ratio, with their places."""
    ends = (extreme(group, key=lambda point: point.ratio) for extreme in (min, max))
    shown = (f"{text.ratio(p.ratio)} (depth {p.place.depth}, {p.place.elements:,} floats)" for p in ends)
    return f"static ÷ dynamic goes from {' to '.join(shown)}"


@dataclass(frozen=True)
class Course:
    """The cost of a mode from the start, in seconds: its build, each early call (`head`), and every later call."""

    build: float
    head: tuple[float, ...]
    steady: float

    @property
    def early(self) -> NDArray[np.float64]:
        """The seconds spent after 0, 1, 2, ... of the early calls, build included."""
        return np.asarray(self.build + np.concatenate([[0.0], np.cumsum(self.head)]))

    def total(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the seconds spent after each number of calls in `runs`."""
        spent = self.early
        early = np.minimum(runs, len(self.head)).astype(np.int64)
        return np.asarray(spent[early] + (runs - early) * self.steady)


@dataclass(frozen=True)
class BreakEven:
    """The number of runs after which a static mode has paid for its build, with its interval.

    `runs` is None if the verdict is `never` or `cannot tell`; the other verdicts are `at once` and `after`.
    """

    verdict: str
    runs: float | None = None
    low: float | None = None
    high: float | None = None


def course(cell: Evidence, mode: str) -> Course:
    """Return the course of a mode that has blocks: medians over processes of its build and of each early call."""
    starts = [_start(timing) for timing in cell.start.of(mode)]
    heads = [head for _, head in starts]
    head = tuple(statistics.median(s for s in column if s is not None) for column in zip_longest(*heads))
    build = statistics.median(build for build, _ in starts)
    return Course(build, head, geometric_mean(block for timing in cell.of(mode) for block in timing.blocks))


def _start(timing: TimeRow) -> tuple[float, list[float]]:
    """Return the seconds of build and of each early call, by the clock of the blocks.

    If only the processor seconds of all of them together are known, each is scaled by their share of the wall time.
    """
    head = [call.seconds for call in getattr(timing, "stream", None) or ()] or [timing.first]
    processor, wall = getattr(timing, "processor", None), timing.build + sum(head)
    share = min(1.0, processor / wall) if processor and wall else 1.0
    return share * timing.build, [share * seconds for seconds in head]


def break_even(static: Course, dynamic: Course, steady: Interval) -> BreakEven:
    """Return the number of runs after which `static` has cost less in all than `dynamic`.

    `steady` is the ratio static ÷ dynamic once warm. The interval of the result follows from the interval of `steady`
    only, as build and first calls are medians. The result has no interval if its ends would differ by more than the
    factor `WIDEST`.
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
