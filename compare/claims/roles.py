"""The records of a framework in the words of the claims, for the rules that judge our own engines.

The eager arm is the base, as `dynamic` is among our own; to a rule, each arm beside it is a static one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from compare.engines import Engine
from compare.engines.framework import PADDED
from compare.records.framework_cells import FrameworkArm, FrameworkCell
from compare.records.memory import Memory, MemoryArm
from compare.records.parity import Parity, ParityArm
from compare.records.record import Record
from compare.records.runs import Failure
from compare.records.time import Time, TimeArm

R = TypeVar("R")


def inside(records: Iterable[Record]) -> list[Record]:
    """The records of our own engines, and every job that left no result: the report lists them all."""
    return [record for record in records if record.arm is None or isinstance(record, Failure)]


def of_framework(records: Iterable[Record], framework: Engine) -> list[Record]:
    """Those of a framework, as the claims read them."""
    arms = {*framework.arms}
    own = [record for record in records if record.arm is not None and record.arm.removesuffix(PADDED) in arms]
    return [translated for record in own for translated in _translated(record, framework.arms[0])]


def _translated(record: Record, eager: str) -> Iterator[Record]:
    if not isinstance(record, FrameworkCell):
        yield record
        return
    rows = record.arms
    agree = all(row.status in ("ok", "unsupported") for row in rows.values())
    place = (record.workload, record.size)
    yield Parity(*place, agree=agree, arms=_each(_parity, rows), same_graph=None, kernel_calls={}, eager=eager)
    if record.cache == "warm":
        yield Time(*place, process=record.process, arms=_each(_time, rows), eager=eager)
    elif counted := {arm: row for arm, row in rows.items() if row.peak or row.status != "ok"}:
        yield Memory(*place, arms=_each(_memory, counted), eager=eager)


def _each(one: Callable[[FrameworkArm], R], rows: Mapping[str, FrameworkArm]) -> dict[str, R]:
    return {arm: one(row) for arm, row in rows.items()}


def _parity(row: FrameworkArm) -> ParityArm:
    return ParityArm(row.status, row.reason, row.output_error, row.gradient_error, row.tolerance)


def _time(row: FrameworkArm) -> TimeArm:
    return TimeArm(**{name: getattr(row, name) for name in TimeArm.__struct_fields__})


def _memory(row: FrameworkArm) -> MemoryArm:
    return MemoryArm(row.status, row.reason, peak=row.peak or 0, held=row.held or 0)
