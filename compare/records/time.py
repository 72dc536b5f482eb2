"""How long the arms of a cell take."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Arm, Block, OfArms, Seconds


class Call(Struct):
    """One call of the first epoch: `new` marks a shape or structure not met before, `compiled` a call that compiled."""

    length: int
    seconds: Seconds
    new: bool
    compiled: bool = False


class TimeArm(Arm):
    """What one arm took in one process; only `status` and `reason` where it was refused at the gate.

    `blocks` are seconds per call, or per example of a stream, from where all arms are steady; block i of every arm
    belongs to one round. `warmup` are the blocks before, and `steady` is false where the arm never became so: then its
    blocks are all there are. `stream` is the first epoch, null where the input never varies. `useful` and `computed`
    count the elements asked for and computed in an epoch, which differ where an arm pads. `whole` is false where the
    first epoch was ended at a limit: the last call of `stream` is then the interrupted one, and there are no blocks.
    """

    build: Seconds = 0.0
    first: Seconds = 0.0
    calls_per_block: int = 0
    warmup: list[float] = []
    steady: bool = True
    blocks: list[Block] = []
    stream: list[Call] | None = None
    compiles: int = 0
    compile_seconds: float = 0.0
    useful: int = 0
    computed: int = 0
    whole: bool = True


class Time(OfArms, tag="time"):
    """The times of a cell in one worker process.

    Blocks are seconds of the processor that the process had, `cpu`, or of the `wall`; first calls are of the wall. A
    `cold` process found no compiled code on the disk and timed no steady state; null where there is no such code.
    """

    process: int
    arms: dict[str, TimeArm]
    cache: Literal["cold", "warm"] | None = None
    clock: Literal["cpu", "wall"] = "wall"
