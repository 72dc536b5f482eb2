"""What each arm of a framework took on each workload, over the processes that measured it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from compare.claims.evidence import Evidence
from compare.engines import Engine
from compare.records.framework_cells import FrameworkArm, FrameworkCell
from compare.records.record import Cell, Records, grouped, of
from compare.stats import Interval


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
    own = [record for record in of(records, FrameworkCell) if framework.arms[0] in record.arms]
    for cell, of_cell in grouped(own, lambda record: record.cell).items():
        seen: set[str] = set()
        for group in grouped(of_cell, lambda record: tuple(record.arms)).values():
            for arm in group[0].arms:
                if arm not in seen:
                    seen.add(arm)
                    yield _arm(cell, arm, framework.arms[0], group)


def _arm(cell: Cell, arm: str, eager: str, records: Sequence[FrameworkCell]) -> ArmOfCell:
    rows = [record.arms[arm] for record in records]
    timed = Evidence(*cell, tuple(record.arms for record in records if record.cache == "warm"))
    bad = next((row for row in rows if row.status != "ok" or row.reason), rows[0])
    return ArmOfCell(
        cell,
        arm,
        bad.status if bad.whole else "limit",
        bad.reason or "",
        cold=_first(records, arm, "cold"),
        warm=_first(records, arm, "warm"),
        steady=timed.mean(arm, _blocks),
        ratio=timed.ratio(arm, eager, _blocks) if arm != eager else None,
        compiles=max(row.compiles for row in rows),
        peak=next((row.peak for row in rows if row.peak), None),
        held=next((row.held for row in rows if row.held is not None), None),
    )


def _first(records: Sequence[FrameworkCell], arm: str, cache: str) -> float | None:
    found = [record.arms[arm].first for record in records if record.cache == cache and record.arms[arm].first]
    return median(found) if found else None


def _blocks(row: FrameworkArm) -> Sequence[float]:
    return row.blocks
