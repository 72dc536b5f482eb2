"""The crossover map."""

from __future__ import annotations

from msgspec import Struct

from compare.records.memory import MemoryArm
from compare.records.record import Block, Record, Seconds, Status


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
