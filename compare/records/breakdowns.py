"""A step taken apart: rung by rung, part by part, byte by byte and line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from compare.records.record import Arm, Block, OfArms, OfCell, Seconds


class Rung(Arm):
    """A rung of the ladder, compared with the rung `base`; `blocks` are seconds a call, paired.

    `peak` is the most bytes of NumPy data in a step, with the arena; `arena` and `live` are the bytes of the plan and
    the most that it has to hold at once, where there is one. `kernels` says how often each is called in a step.
    """

    base: str | None
    build: Seconds = 0.0
    peak: int = 0
    kernels: dict[str, int] = {}
    arena: int = 0
    live: int = 0
    steady: bool = True
    blocks: list[Block] = []


class Ladder(OfCell, tag="ladder"):
    """The rungs of a cell in one process, over one example (`compare.instruments.ladder`), in the thread's own seconds.

    `unequal` holds, by rung, how many more calls of a kernel it makes than the tape where it must make as many;
    `traced` is what the graph calls as it was traced, null where it cannot be. `off_core` is the share of the wall time
    in which others had the core.
    """

    process: int
    rungs: dict[str, Rung]
    same_graph: bool | None
    unequal: dict[str, dict[str, int]]
    traced: dict[str, int] | None
    off_core: float


class Threads(OfCell, tag="threads"):
    """The last rung of a cell, on so many `cores`, and the one below it in the same process, in seconds on the wall.

    On the wall, for threads that work side by side take more time of processors, and less that somebody waits.
    """

    process: int
    cores: int
    rungs: dict[str, Rung]


class Parts(OfCell, tag="parts"):
    """What a step is taken apart with, in one process: by engine and program, seconds a call of the thread's own time.

    `off_core` is the share of the wall time in which others had the core, `once` the stages of compilations
    (`compare.instruments.parts`).
    """

    process: int
    engines: dict[str, dict[str, list[float]]]
    off_core: float
    once: list[dict[str, float]]


Phase = Literal["trace", "compile", "forward", "backward"]


class Moment(Struct, rename={"classes": "bytes"}, omit_defaults=True):
    """The bytes by class once a kernel has run, and those that it needed for itself, which are in `workspace`.

    `line` is the line of source that the kernel is of, `mine.py:7`; empty where nobody knows.
    """

    phase: Phase
    classes: dict[str, int]
    line: str = ""

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.classes.values())


class LedgerCount(Struct):
    """The bytes of a step once one more thing is as in the static engine."""

    cause: str
    bytes: int


class LedgerArm(Arm):
    """The bytes of one step over time, and the same peak as others count it (`compare.instruments.watch.ledger`).

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


class LineCost(Struct):
    """What one line of source costs: seconds, kernels, and bytes of the arrays that these make.

    `saved` are the arrays among them that the forward pass keeps for backward, `saved_bytes` their bytes.
    """

    seconds: Seconds = 0.0
    kernels: int = 0
    made: int = 0
    saved: int = 0
    saved_bytes: int = 0


class SourceLinesArm(Arm):
    """A step of one arm: `lines` by `model.py:12`, in the order they run.

    `step` are the seconds of a step that nobody watches; those of the lines and `elsewhere` come to it.
    """

    step: Seconds = 0.0
    elsewhere: Seconds = 0.0
    lines: dict[str, LineCost] = {}


class SourceLines(OfArms, tag="lines"):
    """The arms of a cell line by line, and the text of each line that can be read."""

    arms: dict[str, SourceLinesArm]
    code: dict[str, str] = {}


def ranked(arms: Sequence[SourceLinesArm]) -> list[str]:
    """The lines of all arms, the dearest first."""
    lines = dict.fromkeys(line for row in arms for line in row.lines)
    return sorted(lines, key=lambda line: -max(row.lines[line].seconds for row in arms if line in row.lines))
