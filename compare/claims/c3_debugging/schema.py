"""What the check of C3 finds of each fault."""

from typing import Literal, TypedDict


class FaultRow(TypedDict):
    """What a scripted debugger met of one seeded fault in one engine (`compare.claims.c3_debugging.debugger`)."""

    fault: str
    family: str
    engine: Literal["dynamic", "static"]
    detected: bool
    when: Literal["trace", "call", "forward", "backward", "update", "step", "never", "cannot happen"]
    tool: str
    ops_before: int
    names_line: bool
    distance: int | None
    steps: int
    message: str


class Faults(TypedDict):
    """The seeded faults looked for for a claim."""

    claim: str
    faults: list[FaultRow]
