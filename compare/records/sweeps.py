"""What is measured over a range of inputs: the crossover map, and strategies for inputs of varying length."""

from __future__ import annotations

from msgspec import Struct

from compare.records.cells import MemoryArm
from compare.records.record import Arm, Block, OfArms, Record, Seconds, Status


class GridPlace(Struct):
    """A chain of `depth` ops over `elements` floats; no arms where the engines disagree."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None


class GridArm(Struct):
    """What an engine took at a place of the map; `blocks` are seconds a call."""

    build: Seconds
    first: Seconds
    steady: bool
    blocks: list[Block]


class GridTimes(GridPlace):
    """The times of both engines at a place of the map."""

    arms: dict[str, GridArm]


class GridMemory(GridPlace):
    """The bytes of both engines at a place of the map."""

    arms: dict[str, MemoryArm]


class Crossover(Record, tag="crossover"):
    """The times of the crossover map in one process."""

    size: str
    process: int
    cells: list[GridTimes]


class CrossoverMemory(Record, tag="crossover memory"):
    """The memory of the crossover map."""

    size: str
    cells: list[GridMemory]


class GroupCall(Struct):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: Seconds
    compiled: bool


class StrategyArm(Arm):
    """What a strategy for inputs of varying length took in one process (`compare.instruments.lengths.measure`).

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs, and
    `plans` those of each by the size that it is for, 0 where that is symbolic.
    """

    compilation: str
    padding: str
    batching: str
    error: float = 0.0
    build: Seconds = 0.0
    stream: list[GroupCall] = []
    latency: list[float] = []
    steady: bool = True
    blocks: list[Block] = []
    compiles: int = 0
    useful: int = 0
    computed: int = 0
    held: int = 0
    plans: list[list[int]] = []


class Lengths(OfArms, tag="lengths"):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]


class LengthsProbe(Record, tag="lengths probe"):
    """For each length that a worker came to, the seconds to compile a graph of it, and to run a step."""

    points: list[tuple[int, float, float]]
