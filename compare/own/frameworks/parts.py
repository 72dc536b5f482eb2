"""The answers of processes about a function in a framework, as records of the kinds that every engine has.

So claims, verdict, page and gate read them as they read those of our own engines. A mode that did not end its first
pass at its limit is refused, with what it came to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from compare.instruments.outside.measure import COLD
from compare.own.bundle import SIZE
from compare.own.frameworks.asked import Asked
from compare.records.framework_cells import Compilations, CompiledArm, FrameworkArm, FrameworkStep
from compare.records.memory import Memory, MemoryArm
from compare.records.parity import Parity, ParityArm
from compare.records.record import Record, Status
from compare.records.time import Time, TimeArm


def parts(asked: Asked, steps: Sequence[FrameworkStep]) -> Iterator[Record]:
    """Parity, what was compiled, the times of each process, and memory."""
    place, eager = (asked.name, SIZE), asked.mode(asked.arms[0])
    first = [step for step in steps if step.process in (COLD, None)]
    rows = {asked.mode(arm): row for arm in asked.arms for step in first if (row := step.arms.get(arm))}
    refused = {asked.mode(arm): row for step in steps for arm, row in step.arms.items() if _status(row) != "ok"}
    parity = {mode: _parity(refused.get(mode, row)) for mode, row in {**rows, **refused}.items()}
    agree = all(row.status in ("ok", "unsupported") for row in parity.values())
    yield Parity(*place, agree=agree, arms=parity, same_graph=None, kernel_calls={}, eager=eager)
    if first:
        told = {mode: CompiledArm(_status(row), row.reason, row.compilations, row.breaks, row.limits)
                for mode, row in rows.items()}  # fmt: skip
        yield Compilations(
            *place,
            version=first[0].version,
            arms=told,
            random=first[0].random,
            undoubled=first[0].undoubled,
            eager=eager,
        )
    for step in steps:
        arms = {asked.mode(arm): _time(row) for arm, row in step.arms.items()}
        yield Time(
            *place, process=step.process or 0, arms=arms, cache=_cache(step), clock=asked.clock_name, eager=eager
        )
    if counted := {mode: _memory(row) for mode, row in rows.items() if row.peak is not None}:
        yield Memory(*place, arms=_whole(counted, refused), eager=eager, counted="malloc")


def _cache(step: FrameworkStep) -> Literal["cold", "warm"] | None:
    if step.process is None:
        return None
    return "cold" if step.process == COLD else "warm"


def _whole(counted: Mapping[str, MemoryArm], refused: Mapping[str, FrameworkArm]) -> dict[str, MemoryArm]:
    return {**counted, **{mode: MemoryArm(_status(row), row.reason) for mode, row in refused.items()}}


def _status(row: FrameworkArm) -> Status:
    return row.status if row.whole else "unsupported"


def _parity(row: FrameworkArm) -> ParityArm:
    return ParityArm(_status(row), row.reason, row.output_error, row.gradient_error, row.tolerance)


def _time(row: FrameworkArm) -> TimeArm:
    values = {name: getattr(row, name) for name in TimeArm.__struct_fields__}
    return TimeArm(**{**values, "status": _status(row)})


def _memory(row: FrameworkArm) -> MemoryArm:
    return MemoryArm(_status(row), row.reason, peak=row.peak or 0, held=row.held or 0)
