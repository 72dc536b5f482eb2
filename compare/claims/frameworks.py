"""Whose records these are, and what each arm of a framework took on each workload, over the processes of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from compare.claims.evidence import Evidence, steady
from compare.engines import Engine
from compare.engines.framework import PADDED
from compare.records.cells import Compilations, CompiledArm, Memory, Time
from compare.records.record import Cell, Failure, OfCell, Record, Records, grouped, of
from compare.stats import Interval


def of_ours(records: Iterable[Record]) -> list[Record]:
    """The records of our own engines, and every job that left no result: the report lists them all."""
    return [record for record in records if record.arm is None or isinstance(record, Failure)]


def of_framework(records: Iterable[Record], framework: Engine) -> list[Record]:
    """Those of a framework, whose eager arm is the base, as `dynamic` is among our own."""
    arms = {*framework.arms}
    return [record for record in records if record.arm is not None and record.arm.removesuffix(PADDED) in arms]


@dataclass(frozen=True)
class ArmOfCell:
    """An arm on a workload; seconds of the first call without and with compiled code of earlier processes, and steady.

    `ratio` is its time ÷ that of the eager arm, once warm. `peak` are the bytes of a step, `held` those between
    steps; None where nobody counts.
    """

    cell: Cell
    arm: str
    status: str
    reason: str
    cold: float | None
    warm: float | None
    steady: float | None
    ratio: Interval | None
    compiles: int
    peak: int | None
    held: int | None


def arms(framework: Engine, records: Records) -> Iterator[ArmOfCell]:
    """Every arm of a framework on every workload; the eager one once, as it was beside the first of the others."""
    own = of_framework(records, framework)
    for cell, of_cell in grouped(of(own, OfCell), lambda record: record.cell).items():
        seen: set[str] = set()
        for group in grouped(of_cell, lambda record: record.arm).values():
            for arm in dict.fromkeys(arm for record in of(group, Time) for arm in record.arms):
                if arm not in seen:
                    seen.add(arm)
                    yield _arm(cell, arm, framework.arms[0], group)


def _arm(cell: Cell, arm: str, eager: str, records: Sequence[Record]) -> ArmOfCell:
    times = [record for record in of(records, Time) if arm in record.arms]
    rows = [record.arms[arm] for record in times]
    timed = Evidence(*cell, tuple(record.arms for record in times if record.cache == "warm"))
    bad = next((row for row in rows if row.status != "ok" or row.reason), rows[0])
    held = [record.arms[arm] for record in of(records, Memory) if arm in record.arms]
    counted = next((row for row in held if row.peak), None)
    return ArmOfCell(
        cell,
        arm,
        bad.status if bad.whole else "limit",
        bad.reason or "",
        cold=_first(times, arm, "cold"),
        warm=_first(times, arm, "warm"),
        steady=timed.mean(arm, steady),
        ratio=timed.ratio(arm, eager, steady) if arm != eager else None,
        compiles=max(row.compiles for row in rows),
        peak=counted.peak if counted else None,
        held=counted.held if counted else None,
    )


def _first(times: Sequence[Time], arm: str, cache: str) -> float | None:
    calls = [record.arms[arm].first for record in times if record.cache == cache and record.arms[arm].first]
    return median(calls) if calls else None


def told(records: Records, cell: Cell, arm: str) -> CompiledArm | None:
    """What a framework said of an arm of a cell as it met no compiled code."""
    said = (record.arms.get(arm) for record in of(records, Compilations) if record.cell == cell)
    return next((row for row in said if row is not None), None)
