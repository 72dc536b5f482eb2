"""Waterfalls: from the records of a ladder, what each rung changes, as a ratio with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compare.claims.evidence import Evidence, steady
from compare.instruments.ladder.rungs import NATIVE, RUNGS, TAPE
from compare.records.breakdowns import Ladder
from compare.records.record import Cell, Records, grouped, of
from compare.stats import Interval, geometric_mean


class Landing(NamedTuple):
    """A rung of a cell: its seconds, over those of the rung it stands on (`step`), and over the tape's (`total`).

    `peak` is the most bytes of NumPy data in a step. Each interval stands for itself: of twenty, one may miss.
    """

    rung: str
    base: str | None
    seconds: float
    step: Interval | None
    total: Interval | None
    peak: int


class Waterfall(NamedTuple):
    """The rungs of one cell, those that are missing with the reason, and what was found of the graphs.

    `unequal` holds, by rung, the kernels that are called more or less often than the tape calls them.
    """

    cell: Cell
    landings: tuple[Landing, ...]
    missing: Mapping[str, str]
    same_graph: bool | None
    unequal: Mapping[str, Mapping[str, int]]

    @property
    def fastest(self) -> Landing:
        """The static rung of the fewest seconds among those with NumPy's kernels, or the tape where there is none."""
        static = [landing for landing in self.landings if landing.rung not in (TAPE, "pool", NATIVE)]
        return min(static or self.landings, key=lambda landing: landing.seconds)


def waterfalls(records: Records) -> list[Waterfall]:
    """One for each cell among the `ladder` records in which the tape was timed, in their order."""
    groups = grouped(of(records, Ladder), lambda record: record.cell)
    cells = ((_timed(group), group) for group in groups.values())
    return [_waterfall(timed, group) for timed, group in cells if timed.of(TAPE)]


def _timed(group: Sequence[Ladder]) -> Evidence:
    """The rungs of a cell that have times, as the arms of each process."""
    rungs = ({name: row for name, row in r.rungs.items() if row.status == "ok" and row.blocks} for r in group)
    return Evidence(*group[0].cell, tuple(rungs))


def _waterfall(timed: Evidence, group: Sequence[Ladder]) -> Waterfall:
    landings = tuple(_landing(name, timed, group) for name in RUNGS if timed.of(name))
    rows = [(name, row) for record in group for name, row in record.rungs.items()]
    missing = {name: f"{row.status}: {row.reason}" for name, row in rows if row.status != "ok"}
    unequal = {name: counts for record in group for name, counts in record.unequal.items()}
    same = [record.same_graph for record in group]
    return Waterfall(timed.cell, landings, missing, None if None in same else all(same), unequal)


def _landing(name: str, timed: Evidence, group: Sequence[Ladder]) -> Landing:
    base = RUNGS[name].base
    seconds = geometric_mean(block for row in timed.of(name) for block in row.blocks)
    step = timed.ratio(name, base, steady) if base else None
    total = timed.ratio(name, TAPE, steady) if base else None
    peak = max(r.rungs[name].peak for r in group if name in r.rungs)
    return Landing(name, base, seconds, step, total, peak)
