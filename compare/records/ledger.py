"""A step byte by byte."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Arm, OfArms

Phase = Literal["trace", "compile", "forward", "backward"]


class Moment(Struct, rename={"classes": "bytes"}):
    """The bytes by class once a kernel has run, and those that it needed for itself, which are in `workspace`."""

    phase: Phase
    classes: dict[str, int]

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.classes.values())


class LedgerCount(Struct):
    """The bytes of a step once one more thing is as in the static engine."""

    cause: str
    bytes: int


class LedgerArm(Arm):
    """The bytes of one step over time, and the same peak as others count it (`compare.instruments.ledger`).

    `peak` is the ledger's, `counted_peak` tracemalloc's in a step that nobody watched. `objects` are bytes of Python
    objects, `notes` say where the peaks do not agree.
    """

    parameters: int = 0
    objects: dict[str, int] = {}
    moments: list[Moment] = []
    peak: int = 0
    counted_peak: int = 0
    resident_growth: int = 0
    notes: list[str] = []
    counts: list[LedgerCount] = []


class Ledger(OfArms, tag="ledger"):
    """The ledger of a cell, each arm in a process of its own."""

    arms: dict[str, LedgerArm]
