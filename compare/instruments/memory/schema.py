"""What the arms of a cell hold."""

from typing import NotRequired, TypedDict

from compare.records.kind import Status


class MemoryArm(TypedDict):
    """What one arm held and reached, as `compare.instruments.memory.measure` defines it."""

    status: Status
    reason: str | None
    peak: NotRequired[int]
    held: NotRequired[int]
    resident_growth: NotRequired[int]
    kept: NotRequired[int]
    classes: NotRequired[dict[str, int]]
    nodes: NotRequired[int]


class Memory(TypedDict):
    """The memory of a cell, each arm in a process of its own."""

    workload: str
    size: str
    arms: dict[str, MemoryArm]
