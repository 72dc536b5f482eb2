"""What is measured of a cell: whether it is right, how long it takes, and what it holds."""

from typing import Literal, NotRequired, TypedDict

Status = Literal["ok", "unsupported", "disagree", "failed"]


class ParityArm(TypedDict):
    """How far an arm is from the references, scaled as in `compare.instruments.parity.measure`; null if not finite."""

    status: Status
    output_error: float | None
    gradient_error: float | None
    tolerance: float
    reason: str | None


class Parity(TypedDict):
    """The gate of a cell. `same_graph` is null where the function cannot be traced, or has branches or loops."""

    workload: str
    size: str
    agree: bool
    arms: dict[str, ParityArm]
    same_graph: bool | None
    kernel_calls: dict[str, dict[str, int]]


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
