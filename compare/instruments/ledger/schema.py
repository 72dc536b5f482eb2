"""A step byte by byte."""

from typing import Literal, NotRequired, TypedDict

from compare.records.kind import Status


class LedgerMoment(TypedDict):
    """The bytes of NumPy data by class once a kernel has run."""

    phase: Literal["trace", "compile", "forward", "backward"]
    bytes: dict[str, int]


class LedgerCount(TypedDict):
    """The bytes of a step once one more thing is as in the static engine."""

    cause: str
    bytes: int


class LedgerArm(TypedDict):
    """The bytes of one step over time, and the same peak as others count it (`compare.instruments.ledger`).

    `peak` is the ledger's, `counted_peak` tracemalloc's in a step that nobody watched. `objects` are bytes of Python
    objects, `notes` say where the peaks do not agree.
    """

    status: Status
    reason: str | None
    parameters: NotRequired[int]
    objects: NotRequired[dict[str, int]]
    moments: NotRequired[list[LedgerMoment]]
    peak: NotRequired[int]
    counted_peak: NotRequired[int]
    resident_growth: NotRequired[int]
    notes: NotRequired[list[str]]
    counts: NotRequired[list[LedgerCount]]


class Ledger(TypedDict):
    """The ledger of a cell, each arm in a process of its own."""

    workload: str
    size: str
    arms: dict[str, LedgerArm]
