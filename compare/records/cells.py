"""What is measured of a cell: whether its arms agree, their times, bytes and compilations; a step taken apart; ranges.

`admitted` tells from the records of a cell which arms may be timed. A step is taken apart rung by rung,
part by part, byte by byte and line by line. Ranges are the crossover map, and strategies for inputs of varying length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from compare.records.record import Arm, Block, OfArms, OfCell, Record, Seconds, Status, records_of


class ParityArm(Arm):
    """How far an arm is from the references, scaled as in `compare.instruments.rounding`; null if not finite.

    `state_error` is that of the state after a call, null where there is none; `tolerance` the most that was allowed.
    Below `unseen` no error is seen, where that is less: what is allowed is so in directions in which rounding moves.
    """

    output_error: float | None
    gradient_error: float | None
    tolerance: float
    state_error: float | None = None
    unseen: float | None = None


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


class CompilationRow(Struct):
    """One compilation: why there was one, and its seconds where the engine says them."""

    reason: str
    seconds: Seconds | None


class CompiledArm(Arm):
    """What an engine tells of an arm.

    `breaks` are graph breaks by reason and line, with what the framework advises below, and `limits` says what runs
    eager since it was compiled too often. `share` is how many of the ops of the forward pass ran compiled, of 1; null
    where the engine does not tell.
    """

    made: list[CompilationRow] = []
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


def admit_arms(records: Sequence[OfArms], base: str | None = None, *, wrong: bool = False) -> Admission:
    """May an arm be timed? Where no record of a cell calls it wrong, and none is where its `base` is not right.

    With `wrong` also one that disagrees, but for the base. One that came to its limit with no compiled code on the disk
    is not refused: what it has compiled by then is kept, so that it may come through.
    """
    rows = together(records)
    calls = {arm: (row.whole, time.cache) for time in records_of(records, Time) for arm, row in time.arms.items()}
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


def rank_lines(arms: Sequence[SourceLinesArm]) -> list[str]:
    """The lines of all arms, the dearest first."""
    lines = dict.fromkeys(line for row in arms for line in row.lines)
    return sorted(lines, key=lambda line: -max(row.lines[line].seconds for row in arms if line in row.lines))


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


class GroupCall(Struct):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: Seconds
    compiled: bool


class StrategyArm(Arm):
    """What a strategy for inputs of varying length took in one process (`compare.instruments.lengths.measure`).

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs, and
    `plans` those of each by the size that it is for, 0 where that is symbolic.
    """

    compilation: str
    padding: str
    batching: str
    error: float = 0.0
    build: Seconds = 0.0
    stream: list[GroupCall] = []
    latency: list[float] = []
    steady: bool = True
    blocks: list[Block] = []
    compiles: int = 0
    useful: int = 0
    computed: int = 0
    held: int = 0
    plans: list[list[int]] = []


class Lengths(OfArms, tag="lengths"):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]


class LengthsProbe(Record, tag="lengths probe"):
    """For each length that a worker came to, the seconds to compile a graph of it, and to run a step."""

    points: list[tuple[int, float, float]]
