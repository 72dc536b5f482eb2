"""What a process answers that looks at a step in a framework for the advice."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Record
from compare.records.work import Work


class Timed(Struct, frozen=True):
    """Seconds of a step once warm, eager and compiled, and those of the first compiled call with no code at hand."""

    eager: float
    compiled: float
    first: float


class FrameworkWork(Record, tag="framework work"):
    """The work of a step for each of its calls, the shapes among them, and what it took where it was measured."""

    version: str
    works: list[Work]
    shapes: int
    timed: Timed | None = None
