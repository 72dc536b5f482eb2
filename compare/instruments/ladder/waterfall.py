"""Waterfalls: from the records of a ladder, what each rung changes, as a ratio with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compare.instruments.ladder.rungs import RUNGS, TAPE
from compare.instruments.ladder.schema import Ladder
from compare.records.record import Cell, Records, of
from compare.stats import Interval, geometric_mean, ratio_interval


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

    workload: str
    size: str
    landings: tuple[Landing, ...]
    missing: Mapping[str, str]
    same_graph: bool | None
    unequal: Mapping[str, Mapping[str, int]]

    @property
    def fastest(self) -> Landing:
        """The static rung of the fewest seconds, or the tape where there is none."""
        static = [landing for landing in self.landings if landing.rung not in (TAPE, "pool")]
        return min(static or self.landings, key=lambda landing: landing.seconds)


def waterfalls(records: Records) -> list[Waterfall]:
    """One for each cell among the `ladder` records in which the tape was timed, in their order."""
    groups: dict[Cell, list[Ladder]] = {}
    for record in of(records, Ladder):
        groups.setdefault(record.cell, []).append(record)
    return [_waterfall(*cell, group) for cell, group in groups.items() if any(_blocks(r, TAPE) for r in group)]


def _waterfall(workload: str, size: str, group: Sequence[Ladder]) -> Waterfall:
    names = [name for name in RUNGS if any(_blocks(record, name) for record in group)]
    landings = tuple(_landing(name, group) for name in names)
    rows = [(name, row) for record in group for name, row in record.rungs.items()]
    missing = {name: f"{row.status}: {row.reason}" for name, row in rows if row.status != "ok"}
    unequal = {name: found for record in group for name, found in record.unequal.items()}
    same = [record.same_graph for record in group]
    return Waterfall(workload, size, landings, missing, None if None in same else all(same), unequal)


def _landing(name: str, group: Sequence[Ladder]) -> Landing:
    base = RUNGS[name].base
    seconds = geometric_mean(block for record in group for block in _blocks(record, name))
    step = _ratio(name, base, group) if base else None
    total = _ratio(name, TAPE, group) if base else None
    peak = max(r.rungs[name].peak for r in group if name in r.rungs)
    return Landing(name, base, seconds, step, total, peak)


def _ratio(top: str, bottom: str, group: Sequence[Ladder]) -> Interval | None:
    pairs = [(_blocks(record, top), _blocks(record, bottom)) for record in group]
    paired = [(tops, bottoms) for tops, bottoms in pairs if tops and len(tops) == len(bottoms)]
    return ratio_interval(*map(list, zip(*paired, strict=True))) if paired else None


def _blocks(record: Ladder, name: str) -> Sequence[float]:
    row = record.rungs.get(name)
    return row.blocks if row and row.status == "ok" else ()
