"""How long the arms of a cell take."""

from typing import NotRequired, TypedDict

from compare.records.kind import Status


class Call(TypedDict):
    """One call of the first epoch: `new` marks a shape or structure not met before, `compiled` a call that compiled."""

    length: int
    seconds: float
    new: bool
    compiled: NotRequired[bool]


class TimeArm(TypedDict):
    """What one arm took in one process; only `status` and `reason` where it was refused at the gate.

    `blocks` are seconds per call, or per example of a stream, from where all arms are steady; block i of every arm
    belongs to one round. `warmup` are the blocks before, and `steady` is false where the arm never became so: then its
    blocks are all there are. `stream` is the first epoch, null where the input never varies. `useful` and `computed`
    count the elements asked for and computed in an epoch, which differ where an arm pads.
    """

    status: Status
    reason: str | None
    build: NotRequired[float]
    first: NotRequired[float]
    calls_per_block: NotRequired[int]
    warmup: NotRequired[list[float]]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]
    stream: NotRequired[list[Call] | None]
    compiles: NotRequired[int]
    compile_seconds: NotRequired[float]
    useful: NotRequired[int]
    computed: NotRequired[int]


class Time(TypedDict):
    """The times of a cell in one worker process."""

    workload: str
    size: str
    process: int
    arms: dict[str, TimeArm]
