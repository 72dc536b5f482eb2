"""What figures and tables share: ratios to dynamic, and what an arm costs from its very first call."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from compare.claims import crossover, evidence
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c4_shapes import length_table
from compare.claims.c5_memory.rule import held
from compare.claims.evidence import DYNAMIC, SIZES, Evidence
from compare.instruments.memory.schema import Memory, MemoryArm
from compare.instruments.time.schema import Call, Time, TimeArm
from compare.records.record import Cell, Records, of
from compare.stats import Interval, geometric_mean, ratio_interval

_SIDES = {"below": "faster", "above": "slower", "tie": "tie", "unclear": "cannot tell"}


@dataclass(frozen=True)
class Ratio:
    """Steady-state seconds a call of `arm` over those of dynamic, with a 95% interval."""

    cell: Cell
    arm: str
    interval: Interval

    @property
    def words(self) -> str:
        """What the interval says of the arm, by the smallest effect of interest of the claims."""
        return _SIDES[self.interval.side(SMALLEST_EFFECT)]


@dataclass(frozen=True)
class Course:
    """What one arm costs from the start: seconds to build, of each early call, of every later call."""

    build: float
    head: tuple[float, ...]
    steady: float

    def total(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds spent when that many calls are done."""
        spent = self.build + np.concatenate([[0.0], np.cumsum(self.head)])
        early = np.minimum(runs, len(self.head)).astype(np.int64)
        return np.asarray(spent[early] + (runs - early) * self.steady)


@dataclass(frozen=True)
class BreakEven:
    """After how many runs a static arm has paid for its build; None where never, or where none can tell."""

    verdict: str
    runs: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """The records of a run with what follows from those whose outputs and gradients were right."""

    records: Records
    memory: dict[tuple[Cell, str], MemoryArm]
    ratios: tuple[Ratio, ...]
    courses: dict[tuple[Cell, str], Course]
    streams: dict[tuple[Cell, str], list[Call]]
    strategies: tuple[Evidence, ...]
    times: tuple[crossover.Point, ...]
    sizes: tuple[crossover.Point, ...]


def summarise(records: Records) -> Summary:
    """Everything that more than one part of the report needs, computed once."""
    agreed = evidence.admitted(records)
    by_arm: dict[tuple[Cell, str], dict[int, TimeArm]] = defaultdict(dict)
    for record in of(records, Time):
        for arm, row in record.arms.items():
            if row.status == "ok" and row.blocks and (record.cell, arm) in agreed:
                by_arm[record.cell, arm][record.process] = row
    arms = ((record.cell, arm, row) for record in of(records, Memory) for arm, row in record.arms.items())
    return Summary(
        records,
        {(cell, arm): row for cell, arm, row in arms if row.status == "ok" and (cell, arm) in agreed},
        _ratios(by_arm),
        courses={key: _course(tuple(of.values())) for key, of in by_arm.items()},
        streams={key: stream for key, of in by_arm.items() if (stream := of[min(of)].stream)},
        strategies=tuple(length_table.tables(records)),
        times=tuple(crossover.times(records)),
        sizes=tuple(crossover.sizes(records, held)),
    )


def largest(cells: Iterable[Cell]) -> list[Cell]:
    """For each workload, in the order met, the largest of its sizes: a figure has room for one."""
    best: dict[str, Cell] = {}
    for cell in cells:
        known = best.setdefault(cell.workload, cell)
        best[cell.workload] = max(known, cell, key=size_order)
    return list(best.values())


def size_order(cell: Cell) -> tuple[str, int, str]:
    """Sorts cells by workload and rising size; sizes of other names come first."""
    return cell.workload, SIZES.index(cell.size) if cell.size in SIZES else -1, cell.size


def break_even(static: Course, dynamic: Course, ratio: Ratio) -> BreakEven:
    """The number of runs from which on `static` has cost less in all than `dynamic`.

    The interval follows from the interval of the steady ratio alone: build and first calls are medians.
    """
    steady = ratio.interval
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
    return BreakEven("after", runs, low, high)


def _ratios(by_arm: dict[tuple[Cell, str], dict[int, TimeArm]]) -> tuple[Ratio, ...]:
    found = []
    for (cell, arm), timings in by_arm.items():
        pairs = _paired(timings, by_arm.get((cell, DYNAMIC), {}))
        if arm != DYNAMIC and pairs:
            tops, bottoms = zip(*pairs, strict=True)
            found.append(Ratio(cell, arm, ratio_interval(tops, bottoms)))
    return tuple(found)


def _paired(own: dict[int, TimeArm], base: dict[int, TimeArm]) -> list[tuple[Sequence[float], Sequence[float]]]:
    """The blocks of the processes that measured both; they pair by index, so both keep the shorter length."""
    both = ((own[process].blocks, base[process].blocks) for process in sorted(own.keys() & base.keys()))
    return [(mine[: len(other)], other[: len(mine)]) for mine, other in both]


def _course(timings: Sequence[TimeArm]) -> Course:
    heads = [[call.seconds for call in t.stream or ()] or [t.first] for t in timings]
    head = tuple(statistics.median(s for s in column if s is not None) for column in zip_longest(*heads))
    build = statistics.median(timing.build for timing in timings)
    return Course(build, head, geometric_mean(block for timing in timings for block in timing.blocks))
