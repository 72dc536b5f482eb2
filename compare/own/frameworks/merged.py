"""What several processes left of one function, as one run: a gate, what was compiled, times of each process, memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from compare.instruments.runnables import FunctionRunnable
from compare.records.compilations import Compilations
from compare.records.lines import SourceLines
from compare.records.memory import Memory, MemoryArm
from compare.records.parity import Parity
from compare.records.record import Arm, OfArms, Record, Records, of
from compare.records.time import Time

R = TypeVar("R", bound=OfArms)


def merged(records: Records) -> Iterator[Record]:
    """The records, those of a kind as one but for times. What a process refused stands, else what the first found.

    A mode that was ended at its limit and came through later, with compiled code in its cache, came through.
    """
    for parity in _together(of(records, Parity)):
        yield replace(parity, agree=all(row.status in ("ok", "unsupported") for row in parity.arms.values()))
        refused = {mode: row for mode, row in parity.arms.items() if row.status != "ok"}
        yield from _together(of(records, Compilations))
        yield from of(records, Time)
        for memory in _together(of(records, Memory)):
            memory.add({mode: MemoryArm(row.status, row.reason) for mode, row in refused.items()})
            yield memory
    yield from _together(of(records, SourceLines))


def _together(records: list[R]) -> list[R]:
    """One record with the arms of all; none of none."""
    rows: dict[str, Arm] = {}
    for record in records:
        for arm, row in record.arms.items():
            if arm not in rows or row.status != "ok" or rows[arm].status == FunctionRunnable.cut:
                rows[arm] = row
    return [replace(records[0], arms=rows)] if records else []
