"""The crossover map: where in tensor size and depth one engine overtakes the other, in time and in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, TypeVar

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.break_even import Course, break_even, course
from compare.claims.evidence import Evidence, Read, steady
from compare.records.record import DYNAMIC, Records, grouped, of
from compare.records.sweeps import Crossover, CrossoverMemory, GridPlace
from compare.stats import Interval
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
    processes = sorted(of(records, Crossover), key=lambda record: (record.process, repr(record)))
    rows = [row for record in processes for row in record.cells]
    cells = [(place, Evidence(place.ops, "", tuple(row.arms for row in of))) for place, of in _grouped(rows).items()]
    ratios = ((place, cell, cell.ratio(STATIC, DYNAMIC, steady)) for place, cell in cells)
    return [
        CostPlace(place, course(cell, DYNAMIC), course(cell, STATIC), ratio)
        for place, cell, ratio in ratios
        if ratio is not None
    ]


def sizes(records: Records, held: Read) -> list[Point]:
    """Bytes held for a step: counts, which are exact."""
    points = []
    for place, rows in _grouped([row for record in of(records, CrossoverMemory) for row in record.cells]).items():
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
            f"{text.counted(len(group), 'cell')}, faster in {sides.count('above')}; {_range(group)}; {_line(group)}"
        )


def size_reasons(points: Sequence[Point]) -> Iterator[str]:
    """For each kind of op: in how many cells static holds more, and the extremes."""
    for ops, group in _by_ops(points).items():
        more = sum(point.ratio > 1 + SMALLEST_EFFECT for point in group)
        less = sum(point.ratio < 1 / (1 + SMALLEST_EFFECT) for point in group)
        yield (
            f"crossover map, {ops}: static holds more in {more} of {text.counted(len(group), 'cell')}, "
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


def _grouped(rows: Sequence[G]) -> dict[MapPlace, list[G]]:
    """The rows of each place, over the processes, of the places that no process groups different in the engines."""
    groups = grouped(rows, lambda row: MapPlace(row.ops, row.depth, row.elements))
    return {place: groups[place] for place in sorted(groups) if all(row.status == "ok" for row in groups[place])}


def _by_ops(points: Sequence[Point]) -> dict[str, list[Point]]:
    return grouped(points, lambda point: point.place.ops)


def _range(group: Sequence[Point]) -> str:
    """The extremes, and where they are."""
    ends = (extreme(group, key=lambda point: point.ratio) for extreme in (min, max))
    shown = (f"{text.ratio(p.ratio)} (depth {p.place.depth}, {p.place.elements:,} floats)" for p in ends)
    return f"static ÷ dynamic goes from {' to '.join(shown)}"
