"""Cells looked at closer: rung by rung, time part by part, and byte by byte."""

from typing import Literal, NotRequired, TypedDict

from compare.records.schema.cells import Status


class Rung(TypedDict):
    """A rung of the ladder, compared with the rung `base`; `blocks` are the thread's own seconds a call, paired.

    `peak` is the most bytes of NumPy data in a step, with the arena; `arena` and `live` are the bytes of the plan and
    the most that it has to hold at once, where there is one. `kernels` says how often each is called in a step.
    """

    base: str | None
    status: Status
    reason: str | None
    build: NotRequired[float]
    peak: NotRequired[int]
    kernels: NotRequired[dict[str, int]]
    arena: NotRequired[int]
    live: NotRequired[int]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]


class Ladder(TypedDict):
    """The rungs of a cell in one process, over one example (`compare.instruments.ladder`).

    `unequal` holds, by rung, how many more calls of a kernel it makes than the tape where it must make as many;
    `traced` is what the graph calls as it was traced, null where it cannot be. `off_core` is the share of the wall time
    in which others had the core.
    """

    workload: str
    size: str
    process: int
    rungs: dict[str, Rung]
    same_graph: bool | None
    unequal: dict[str, dict[str, int]]
    traced: dict[str, int] | None
    off_core: float


class Parts(TypedDict):
    """What a step is taken apart with, in one process: by engine and program, seconds a call of the thread's own time.

    `off_core` is the share of the wall time in which others had the core, `once` the stages of compilations
    (`compare.instruments.parts`).
    """

    workload: str
    size: str
    process: int
    engines: dict[str, dict[str, list[float]]]
    off_core: float
    once: list[dict[str, float]]


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
