"""What the arms of a cell hold."""

from __future__ import annotations

from typing import Literal

from compare.records.record import Arm, OfArms


class MemoryArm(Arm):
    """What one arm held and reached, as `compare.instruments.memory.measure` defines it."""

    peak: int = 0
    held: int = 0
    resident_growth: int = 0
    kept: int = 0
    classes: dict[str, int] = {}
    nodes: int = 0


class Memory(OfArms, tag="memory"):
    """The memory of a cell, each arm in a process of its own.

    Where `checked`, all arms were counted in one process, which has also compared their outputs and gradients, as the
    gate does, and refused those that were wrong. `counted` says whose bytes these are: of NumPy's buffers, or all of
    malloc's.
    """

    arms: dict[str, MemoryArm]
    checked: bool = False
    counted: Literal["NumPy", "malloc"] = "NumPy"
