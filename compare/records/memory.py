"""What the arms of a cell hold."""

from __future__ import annotations

from typing import Literal

from compare.records.record import Arm, OfArms


class MemoryArm(Arm):
    """What one arm held and reached, in bytes: of NumPy's buffers where nothing else is said, or else of all of malloc.

    peak             what a warm step reaches above what is there before it; of a stream, its largest step
    held             what is there between steps that was not there before the arm was built. Of malloc that is code and
                     caches of a compiler too, of NumPy's buffers arena, constants and every cached shape
    resident_growth  how far the system's resident peak of the process rises from before the build to after warm steps;
                     0 where it was not read
    kept             Python objects and NumPy's buffers that each further epoch leaves behind: what leaks
    classes          what is in `peak` and `held` by what it is for, and the Python objects of tape, graph and plan
    nodes            the nodes of the tape or of the largest graph, a number
    """

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
