"""The crossover map."""

from typing import TypedDict

from compare.instruments.memory.schema import MemoryArm
from compare.records.kind import Status


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
