"""What the check of C3 finds of each fault."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Record

EngineName = Literal["dynamic", "static"]
Phase = Literal["trace", "call", "forward", "backward", "update", "step", "never", "cannot happen"]


class FaultRow(Struct):
    """What a scripted debugger met of one seeded fault in one engine (`compare.claims.c3_debugging.measure`).

    Of a framework, `dynamic` is its eager arm and `static` the arm compared with it. `examine` there tells what
    `ops_before` and `steps` are where an engine does not show every value.
    """

    fault: str
    family: str
    engine: EngineName
    detected: bool
    when: Phase
    tool: str
    ops_before: int
    names_line: bool
    distance: int | None
    steps: int
    message: str


class Faults(Record, tag="fault"):
    """The seeded faults looked for for a claim; `left_out` are those that a framework cannot be given, and why."""

    claim: str
    faults: list[FaultRow]
    left_out: dict[str, str] = {}
