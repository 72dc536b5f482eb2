"""Where each engine wins: regimes of size, depth and kind, the crossover map, and the runs after which compiling pays.

The regimes of claims on costs were fixed before anything was measured: bytes of a step, number of ops, and kind. Exact
counts decide the regime of a cell: the peak bytes of a step of the dynamic engine, and the ops on its tape. So a cell
is in the same regime in every run. A claim is supported or refuted only if each regime of size was measured, and no
headline is taken from steps of a few KiB.

The crossover map has the tensor sizes and depths at which one engine overtakes the other, in time and in bytes.

`Course` has the cost of a mode from its first call on, and `break_even` gives the number of runs after which a
compiled mode has paid for its build. All seconds of a course use the clock of steady state. Wall seconds of a start
would also count the time in which other work kept the machine busy.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil, inf
from typing import NamedTuple, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from compare import text, workloads
from compare.claims.base import SMALLEST_EFFECT, Effect, Label, Regime, Side, judge_ratio
from compare.claims.evidence import Evidence, Read, right_modes, steady
from compare.errors import UnknownNameError
from compare.records.cells import Crossover, CrossoverMemory, GridPlace, Memory, TimeRow
from compare.records.record import DYNAMIC, Cell, Records, group_by, records_of
from compare.stats import WIDEST, Interval, geometric_mean, geometric_mean_interval
from compare.workloads import models
from compare.workloads.base import WorkloadKind

KIB, MIB = 2**10, 2**20
TINY = 64 * KIB
"""The bytes below which a step is nearly all overhead; no headline is taken from such steps."""
REAL: WorkloadKind = "real models"
"""The kind of a model that people train (`compare.workloads.models`), as opposed to a workload of ours."""
MIN_WORKLOADS = 3
"""The fewest workloads from which something can be said about graphs in general."""


class OfOneCell(Protocol):
    """An object that was measured in one cell."""

    @property
    def cell(self) -> Cell: ...  # noqa: D102


T = TypeVar("T", bound=OfOneCell)

SIZES: Mapping[str, tuple[float, float]] = {
    "steps under 64 KiB": (0, TINY),
    "steps of 64 KiB to 1 MiB": (TINY, MIB),
    "steps of 1 MiB and more": (MIB, inf),
}
"""The regimes of size by the bytes that a step reaches: at least the first number, and less than the second."""
REALISTIC = "steps of 1 MiB and more"
"""The regime that the headline of a claim is taken from."""
DEPTHS: Mapping[str, tuple[float, float]] = {"up to 100 ops": (1, 101), "more than 100 ops": (101, inf)}
"""The regimes of depth by the ops on the tape of a step: at least the first number, and less than the second."""
KINDS: tuple[WorkloadKind, ...] = tuple(kind for kind in get_args(WorkloadKind) if kind not in ("control", "own"))
"""The kinds of workload that are judged separately."""


@dataclass(frozen=True)
class StepCounts:
    """The peak bytes of a step of a cell, and the ops on its tape; 0 ops if they were not counted."""

    bytes: int
    ops: int


def places(records: Records) -> dict[Cell, StepCounts]:
    """Return the counts of each cell whose bytes were counted in the base mode; they decide its regimes."""
    right = right_modes(records)
    counts: dict[Cell, StepCounts] = {}
    for record in records_of(records, Memory):
        row = record.modes.get(record.base)
        if row is not None and row.status == "ok" and (record.cell, record.base) in right:
            before = counts.get(record.cell, StepCounts(0, 0))
            counts[record.cell] = StepCounts(max(before.bytes, row.peak), max(before.ops, row.nodes))
    return counts


def by_size(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """Group items by the regime of size of their cells, smallest first; regimes without items are left out."""
    return _values_in_regimes(SIZES, ((item, where[item.cell].bytes) for item in items if item.cell in where))


def by_depth(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """Group items by the regime of depth of their cells; regimes without items are left out."""
    return _values_in_regimes(DEPTHS, ((item, where[item.cell].ops) for item in items if item.cell in where))


def by_kind(items: Iterable[T]) -> dict[str, list[T]]:
    """Group items by the kind of their workloads; kinds without items are left out."""
    groups = group_by(items, lambda item: kind_of(item.cell.workload))
    return {kind: groups[kind] for kind in KINDS if kind in groups}


def kind_of(workload: str) -> WorkloadKind:
    """Return the kind of a workload; "own" for an unknown name, as in the records of a user's function."""
    if models.is_model(workload):
        return REAL
    try:
        return workloads.get(workload).kind
    except UnknownNameError:
        return "own"


def settle_label(label: Label, measured: Iterable[str]) -> tuple[Label, tuple[str, ...]]:
    """Return the label and no reason if each regime of size was measured, else inconclusive with the reason.

    Labels other than supported and refuted stay: that a claim depends is shown by two cells of any size.
    """
    missing = [name for name in SIZES if name not in set(measured)]
    if not missing or label not in ("supported", "refuted"):
        return label, ()
    return "inconclusive", (f"what was measured says {label}, but nothing speaks for {' and '.join(missing)}",)


def cost(
    cell: Evidence, phase: str, read: Read, comparisons: int, mode: str | None = None, side: Side = "above"
) -> Regime:
    """Return the regime of static ÷ dynamic in a phase of a cell, inconclusive if there is no static mode.

    Without `mode`, the static mode that is best there stands for static. `comparisons` is the number of intervals that
    must hold at once.
    """
    mode = mode or cell.least(read)
    ratio = cell.ratio(mode, cell.base, read, comparisons) if mode else None
    return judge_ratio(f"{cell.name}: {phase}", ratio, mode or "", side)


class CellContest(NamedTuple):
    """A cell and its regime: static ÷ dynamic there, for the best static mode."""

    evidence: Evidence
    regime: Regime

    @property
    def cell(self) -> Cell:
        """The workload and its size."""
        return self.evidence.cell

    @property
    def ratio(self) -> float:
        """The ratio static ÷ dynamic; 1 if it is unknown."""
        return self.regime.value or 1.0


def by_threads(contests: Iterable[CellContest]) -> dict[str, list[CellContest]]:
    """Group cells by the number of threads on which they were timed, if these are several."""
    several = [contest for contest in contests if contest.evidence.threads > 1]
    return {f"{number} threads": of for number, of in group_by(several, lambda each: each.evidence.threads).items()}


def too_few(contests: Iterable[CellContest], more: str = "") -> str:
    """Return a sentence if the contests have fewer than `MIN_WORKLOADS` workloads, else an empty string."""
    enough = len({contest.cell.workload for contest in contests}) >= MIN_WORKLOADS
    return "" if enough else f"both engines were measured on fewer than {MIN_WORKLOADS} workloads{more}"


def overall_regime(
    name: str, contests: Sequence[CellContest], label: Callable[[Sequence[CellContest], Interval], Label]
) -> Regime:
    """Return one regime for several cells: the geometric mean over workloads, then sizes, and a common label."""
    if not contests:
        return Regime(name, "inconclusive")
    mean = _mean(contests)
    return Regime(name, label(contests, mean), mean.estimate, mean if mean.bounded else None)


def headline(what: str, contests: Sequence[CellContest]) -> tuple[Effect | None, Interval | None]:
    """Return the one number that stands for a claim, from cells with realistic steps; (None, None) without cells."""
    if not contests:
        return None, None
    mean = _mean(contests)
    name = f"{what}, static ÷ dynamic, geometric mean over workloads, {REALISTIC}"
    return Effect(name, mean.estimate, "ratio"), mean


def _mean(contests: Sequence[CellContest]) -> Interval:
    groups = group_by(contests, lambda contest: contest.cell.workload).values()
    return geometric_mean_interval([[contest.ratio for contest in group] for group in groups])


def _values_in_regimes(named: Mapping[str, tuple[float, float]], valued: Iterable[tuple[T, int]]) -> dict[str, list[T]]:
    held = list(valued)
    groups = {name: [item for item, n in held if low <= n < high] for name, (low, high) in named.items()}
    return {name: group for name, group in groups.items() if group}


# The crossover map ----------------------------------------------------------------------------------------------------


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


def map_times(records: Records) -> list[Point]:
    """Return static ÷ dynamic in seconds of a warm step for each place; its intervals are not widened."""
    return [Point(place.at, place.steady.estimate, place.steady, place.pays_after) for place in cost_places(records)]


def cost_places(records: Records) -> list[CostPlace]:
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


def map_sizes(records: Records, held: Read) -> list[Point]:
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
    for ops, group in group_by(points, lambda point: point.place.ops).items():
        sides = [point.interval.side(SMALLEST_EFFECT) for point in group if point.interval]
        yield (
            f"crossover map, {ops}: dynamic is slower than static in {sides.count('below')} of "
            f"{text.count_noun(len(group), 'cell')}, faster in {sides.count('above')}; {_range(group)}; {_line(group)}"
        )


def size_reasons(points: Sequence[Point]) -> Iterator[str]:
    """Yield a sentence on bytes for each kind of op: in how many cells static holds more or less, and the extremes."""
    for ops, group in group_by(points, lambda point: point.place.ops).items():
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


def _range(group: Sequence[Point]) -> str:
    """Return in words the smallest and the largest ratio, with their places."""
    ends = (extreme(group, key=lambda point: point.ratio) for extreme in (min, max))
    shown = (f"{text.ratio(p.ratio)} (depth {p.place.depth}, {p.place.elements:,} floats)" for p in ends)
    return f"static ÷ dynamic goes from {' to '.join(shown)}"


# Break-even -----------------------------------------------------------------------------------------------------------


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
    return Course(build, head, geometric_mean(block for timing in cell.of(mode) for block in steady(timing)))


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
