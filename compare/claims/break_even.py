"""What an arm costs from its very first call, and after how many runs a later start is earned back.

All of a course is read by one clock, that of steady state: a start by the wall would be as much longer as other work
kept the machine busy.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from compare.claims.evidence import Evidence
from compare.records.cells import TimeArm
from compare.stats import WIDEST, Interval, geometric_mean


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
