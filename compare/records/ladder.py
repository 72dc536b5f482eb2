"""A cell rung by rung."""

from __future__ import annotations

from compare.records.record import Arm, Block, OfCell, Seconds


class Rung(Arm):
    """A rung of the ladder, compared with the rung `base`; `blocks` are the thread's own seconds a call, paired.

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
    """The rungs of a cell in one process, over one example (`compare.instruments.ladder`).

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
