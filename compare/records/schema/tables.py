"""What is measured beside the workloads: strategies for lengths, and the crossover map."""

from typing import NotRequired, TypedDict

from compare.records.schema.cells import MemoryArm, Status


class GroupCall(TypedDict):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: float
    compiled: bool


class StrategyArm(TypedDict):
    """What a strategy for inputs of varying length took in one process (`compare.instruments.lengths.measure`).

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs, and
    `plans` those of each by the size that it is for, 0 where that is symbolic.
    """

    status: Status
    reason: str | None
    compilation: str
    padding: str
    batching: str
    error: NotRequired[float]
    build: NotRequired[float]
    stream: NotRequired[list[GroupCall]]
    latency: NotRequired[list[float]]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]
    compiles: NotRequired[int]
    useful: NotRequired[int]
    computed: NotRequired[int]
    held: NotRequired[int]
    plans: NotRequired[list[list[int]]]


class Lengths(TypedDict):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    workload: str
    size: str
    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]


class GridArm(TypedDict):
    """What an engine took in a cell of the crossover map; `blocks` are seconds a call."""

    build: float
    first: float
    steady: bool
    blocks: list[float]


class GridCell(TypedDict):
    """A chain of `depth` ops over `elements` floats; no arms where the engines disagree."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None
    arms: dict[str, GridArm]


class Crossover(TypedDict):
    """The times of the crossover map in one process."""

    size: str
    process: int
    cells: list[GridCell]


class GridMemory(TypedDict):
    """The bytes of both engines in a cell of the map."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None
    arms: dict[str, MemoryArm]


class CrossoverMemory(TypedDict):
    """The memory of the crossover map."""

    size: str
    cells: list[GridMemory]
