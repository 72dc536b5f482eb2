"""What is measured of the arms of a cell: whether they agree, their times, their bytes and their compilations.

And which of them may be timed, by what the records of a cell say (`admitted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from compare.records.record import Arm, Block, OfArms, Seconds, of


class ParityArm(Arm):
    """How far an arm is from the references, scaled as in `compare.instruments.rounding`; null if not finite.

    `state_error` is that of the state after a call, null where there is none; `tolerance` the most that was allowed.
    """

    output_error: float | None
    gradient_error: float | None
    tolerance: float
    state_error: float | None = None


class Parity(OfArms, tag="parity"):
    """The gate of a cell. `same_graph` is null where the function cannot be traced, or has branches or loops."""

    agree: bool
    arms: dict[str, ParityArm]
    same_graph: bool | None
    kernel_calls: dict[str, dict[str, int]]


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
    `processor` are the seconds of processor that building and first calls took, those of compilers in other processes
    included; null where the wall is the clock. There `wall` are the seconds of a call on the wall, the median of the
    blocks, and `waits` the share of these in which it neither computed nor waited for a core; null for other clocks.
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
    processor: Seconds | None = None
    wall: float | None = None
    waits: float | None = None


class Time(OfArms, tag="time"):
    """The times of a cell in one worker process.

    Blocks are seconds of the processor that the process had, `cpu`, of the `wall`, or of a GPU by its `events`. First
    calls are of the wall, and where blocks are not, each row has the seconds of processor of all of them as well. A
    `cold` process found no compiled code on the disk and timed no steady state; null where there is no such code.
    """

    process: int
    arms: dict[str, TimeArm]
    cache: Literal["cold", "warm"] | None = None
    clock: Literal["cpu", "wall", "events"] = "wall"


class GlimpseArm(Arm):
    """What an arm had come to: the seconds of each of its first `calls` that had ended, and of a `call` after them."""

    calls: int
    first: list[Seconds]
    call: Block | None = None


class Glimpse(OfArms, tag="glimpse"):
    """What a process had told that came to no answer. Nothing of it was compared."""

    arms: dict[str, GlimpseArm]


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
    gate does, and refused those that were wrong. `counted` says whose bytes these are: of NumPy's buffers, all of
    malloc's, or those of a GPU's allocator.
    """

    arms: dict[str, MemoryArm]
    checked: bool = False
    counted: Literal["NumPy", "malloc", "allocator"] = "NumPy"


class Made(Struct):
    """One compilation: why there was one, and its seconds where the engine says them."""

    reason: str
    seconds: Seconds | None


class CompiledArm(Arm):
    """What an engine tells of an arm.

    `breaks` are graph breaks by reason and line, with what the framework advises below, and `limits` says what runs
    eager since it was compiled too often. `share` is how many of the ops of the forward pass ran compiled, of 1; null
    where the engine does not tell.
    """

    made: list[Made] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []
    share: float | None = None


class Compilations(OfArms, tag="compilations"):
    """What an engine tells of its arms, from nothing. A function is `random` where another seed gives another result.

    `undoubled` is why it does not run in float64, where it does not: then eager alone says what is right. `uncompared`
    is why not even that does, and `dtype` the lowest that it computes in, by which it was judged. One that
    `trains` is a whole training step, which differentiates and changes its parameters by itself. `conditioning` is
    how far eager itself is off, as `compare.instruments.parity` scales errors. `gradients` says what they are
    in, where that is more than the argument asked for.
    """

    version: str
    arms: dict[str, CompiledArm]
    random: bool = False
    undoubled: str | None = None
    uncompared: str | None = None
    dtype: str = ""
    trains: bool = False
    conditioning: float = 0.0
    gradients: str = ""
    undifferentiated: str = ""


class Admission(NamedTuple):
    """Which arms of a cell may be timed, and the row of each that may not.

    `ended` are those whose last first epoch with compiled code on the disk came to its limit: the next one will, too.
    """

    arms: tuple[str, ...]
    refused: dict[str, Arm]
    ended: frozenset[str]


def admitted(records: Sequence[OfArms], base: str | None = None, *, wrong: bool = False) -> Admission:
    """May an arm be timed? Where no record of a cell calls it wrong, and none is where its `base` is not right.

    With `wrong` also one that disagrees, but for the base. One that came to its limit with no compiled code on the disk
    is not refused: what it has compiled by then is kept, so that it may come through.
    """
    rows = together(records)
    calls = {arm: (row.whole, time.cache) for time in of(records, Time) for arm, row in time.arms.items()}
    cold = {arm for arm, (whole, cache) in calls.items() if not whole and cache == "cold"}
    passes = {"ok", "disagree"} if wrong else {"ok"}
    refused = {
        arm: row
        for arm, row in rows.items()
        if arm not in cold and row.status not in (passes if arm != base else {"ok"})
    }
    is_right = base is None or (base in rows and base not in refused)
    arms = tuple(arm for arm in rows if arm not in refused) if is_right else ()
    return Admission(arms, refused, frozenset(arm for arm, (whole, _) in calls.items() if not whole) - cold)


def together(records: Sequence[OfArms]) -> dict[str, Arm]:
    """The row of each arm that stands for those of all records: that of one which is not right, if there is any.

    An arm that came to its limit counts as unsupported; coming through later, it came through.
    """
    rows: dict[str, Arm] = {}
    for record in records:
        for arm, row in record.arms.items():
            if arm not in rows or row.status != "ok" or rows[arm].status == "unsupported":
                rows[arm] = row
    return rows
