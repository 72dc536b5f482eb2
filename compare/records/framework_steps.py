"""What the processes answer that look at a user's function in a framework."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.framework_cells import Made
from compare.records.record import Block, Record, Seconds

Outcome = Literal["ok", "disagree", "refused", "failed", "limit"]
"""How a mode came out; "limit" did not end its first pass in the seconds it may take."""


class GateMode(Struct, omit_defaults=True):
    """Whether a mode's outputs and gradients are right: the largest scaled error, and that in ulp of float32."""

    status: Outcome
    reason: str | None = None
    error: float | None = None

    @property
    def ulp(self) -> float | None:
        """The error in units in the last place of float32."""
        return None if self.error is None else self.error / 2**-23


class FrameworkGate(Record, tag="framework gate"):
    """Whether all modes agree. The function is `random` where another seed gives another result.

    `undoubled` is why it does not run in float64, where it does not.
    """

    version: str
    random: bool
    modes: dict[str, GateMode]
    undoubled: str | None = None


class FrameworkFault(Record, tag="framework fault"):
    """What is wrong with the user's file, function or calls, and the exit code of that."""

    error: str
    code: int


class TimedMode(Struct, omit_defaults=True):
    """What a mode took in one process.

    `first` are the seconds of each first call, `blocks` those of a call once warm, and `peak` the bytes from malloc
    that a pass over the calls reaches above what was there, null where the process does not count them. `limits` says
    what the framework runs eager since it has compiled it too often.
    """

    status: Outcome
    reason: str | None
    first: list[Seconds]
    compilations: list[Made] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []
    blocks: list[Block] = []
    peak: int | None = None


class FrameworkTime(Record, tag="framework time"):
    """What modes took in one process, over so many calls of the function."""

    process: int
    calls: int
    modes: dict[str, TimedMode]
