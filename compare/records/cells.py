"""The records of a cell: parity, times, bytes and compilations of its modes; parts of a step; maps over sizes.

`admit_modes` decides from the records of a cell which modes may be timed. The parts of a step are its rungs (`Ladder`),
its programs (`Parts`), its bytes (`Ledger`) and its lines (`SourceLines`). Maps over sizes are the crossover map and
the strategies for inputs of varying length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from compare.records.record import FORMER, Block, ModeRow, OfCell, OfModes, Record, Seconds, Status, records_of


class ParityRow(ModeRow):
    """The errors of a mode against the references, scaled as in `compare.instruments.rounding`; null if not finite.

    `state_error` is the error of the state after a call, null without a state. `tolerance` is the largest error
    allowed. Errors below `unseen` are not seen; it may be smaller than `tolerance`, which then applies only in
    directions in which rounding moves the results. `coarse` is the number of arrays in which errors above the tolerance
    of the dtype are not seen, and `coarsest` the name of the one in which `unseen` holds.
    """

    output_error: float | None
    gradient_error: float | None
    tolerance: float
    state_error: float | None = None
    unseen: float | None = None
    coarsest: str | None = None
    coarse: int = 0


class Parity(OfModes, tag="parity"):
    """The parity gate of a cell: whether its modes agree with the reference.

    `same_graph` is null if the function cannot be traced, or has branches or loops.
    """

    agree: bool
    modes: dict[str, ParityRow]
    same_graph: bool | None
    kernel_calls: dict[str, dict[str, int]]


class Call(Struct):
    """One call of the first epoch: `new` marks a shape or structure not met before, `compiled` a call that compiled."""

    length: int
    seconds: Seconds
    new: bool
    compiled: bool = False


class TimeRow(ModeRow):
    """The times of one mode in one process; only `status` and `reason` if it was refused at the parity gate.

    `blocks` are seconds per call, or per example of a stream, once all modes are steady; block i of every mode belongs
    to one round. `warmup` holds the blocks before. `steady` is false if the mode never became steady; `blocks` then
    holds all blocks. `stream` is the first epoch, null if the input never varies. `useful` and `computed` count the
    elements of the inputs and the elements computed in an epoch, which differ if a mode pads. `whole` is false if the
    first epoch was ended at a limit: then the last call of `stream` was interrupted, and there are no blocks.
    `processor` is the processor seconds of build and first calls, compilers in other processes included; null if blocks
    use wall time. If blocks use processor time, `wall` is the wall seconds of a call, the median of the blocks, and
    `waits` the share of these in which the call neither computed nor waited for a core; null for other clocks. On
    several threads, blocks use wall time, `busy` is the processor seconds of a call over all threads, and `neighbours`
    the share of the cores' seconds that other processes had meanwhile; null if untold.
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
    busy: float | None = None
    neighbours: float | None = None


class Time(OfModes, tag="time"):
    """The times of a cell in one worker process.

    `clock` is the clock of blocks: processor seconds of the process (`cpu`), wall seconds (`wall`), or events of a GPU
    (`events`). First calls are in wall seconds; with the clock `cpu`, each row also has the processor seconds of all of
    them. A process with a `cold` `cache` found no compiled code on the disk and timed no steady state; `cache` is null
    for engines that keep no such code.
    """

    process: int
    modes: dict[str, TimeRow]
    cache: Literal["cold", "warm"] | None = None
    clock: Literal["cpu", "wall", "events"] = "wall"


class GlimpseRow(ModeRow):
    """The progress of a mode: the seconds of each of its first `calls` that ended, and of a later `call`, if timed."""

    calls: int
    first: list[Seconds]
    call: Block | None = None


class Glimpse(OfModes, tag="glimpse"):
    """The progress that a process reported before it failed to answer; its results were not compared."""

    modes: dict[str, GlimpseRow]


class MemoryRow(ModeRow):
    """The bytes of one mode: of NumPy's buffers, unless `Memory.counted` says otherwise.

    peak             the largest rise in a warm step above the bytes before it; of a stream, in its largest step
    held             the bytes between steps that were not there before the mode was built. Counted by malloc, they
                     include code and caches of a compiler; counted by NumPy, arena, constants and every cached shape
    resident_growth  the growth of the process's resident peak from before the build to after warm steps; counted by
                     malloc, that of its resident bytes, to after the first calls; 0 if it was not read
    kept             the bytes of Python objects and NumPy's buffers that each further epoch leaks
    classes          the bytes of `peak` and `held` by their purpose, and the Python objects of tape, graph and plan
    nodes            the number of nodes of the tape or of the largest graph
    """

    peak: int = 0
    held: int = 0
    resident_growth: int = 0
    kept: int = 0
    classes: dict[str, int] = {}
    nodes: int = 0


class Memory(OfModes, tag="memory"):
    """The memory of a cell, each mode in a process of its own.

    If `checked`, all modes were counted in one process, which also compared their outputs and gradients as the parity
    gate does, and refused wrong modes. `counted` says which bytes: of NumPy's buffers, of malloc, or of a GPU's
    allocator.
    """

    modes: dict[str, MemoryRow]
    checked: bool = False
    counted: Literal["NumPy", "malloc", "allocator"] = "NumPy"


class CompilationRow(Struct):
    """One compilation: its reason, and its seconds, null if the engine does not report them.

    `phases` has the seconds of each phase of the compiler, of both passes; empty if the engine does not report them.
    """

    reason: str
    seconds: Seconds | None
    phases: dict[str, Seconds] = {}


class CompiledRow(ModeRow):
    """The compilations of a mode as its engine reports them.

    `breaks` counts graph breaks by reason and line, with the framework's advice on the lines below. `limits` names code
    that runs eagerly because it was compiled too often. `share` is the share of the forward pass's ops that ran
    compiled, from 0 to 1; null if the engine does not report it.
    """

    made: list[CompilationRow] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []
    share: float | None = None


class Compilations(OfModes, tag="compilations"):
    """The compilations of an engine's modes from nothing, and how the function could be compared.

    `random` is whether another seed gives another result. `undoubled` is why the function does not run in float64: then
    the eager mode is the only reference. `uncompared` is why it cannot be a reference either. `dtype` is the lowest
    dtype in which the function computes; it sets the tolerance. `trains` is whether the function is a whole training
    step, which differentiates and changes its parameters itself. `conditioning` is the error of the eager mode from
    rounding, scaled as in `compare.instruments.parity`. `gradients` names the variables of the gradients, if there are
    more than the argument asked for. `undifferentiated` is why only values were compared.
    """

    version: str
    modes: dict[str, CompiledRow]
    random: bool = False
    undoubled: str | None = None
    uncompared: str | None = None
    dtype: str = ""
    trains: bool = False
    conditioning: float = 0.0
    gradients: str = ""
    undifferentiated: str = ""


class Admission(NamedTuple):
    """The modes of a cell that may be timed, and the row of each mode that may not.

    `ended` are the modes whose first epoch reached its limit with compiled code on the disk: the next one will, too.
    """

    modes: tuple[str, ...]
    refused: dict[str, ModeRow]
    ended: frozenset[str]


def admit_modes(records: Sequence[OfModes], base: str | None = None, *, wrong: bool = False) -> Admission:
    """Decide which modes may be timed: those right in all records of a cell, and no mode at all if `base` is not right.

    With `wrong`, modes that disagree are admitted too, except the base. A mode that reached its limit without compiled
    code on the disk is not refused: the code it has compiled is kept, so that it may finish next time.
    """
    rows = together(records)
    calls = {mode: (row.whole, time.cache) for time in records_of(records, Time) for mode, row in time.modes.items()}
    cold = {mode for mode, (whole, cache) in calls.items() if not whole and cache == "cold"}
    passes = {"ok", "disagree"} if wrong else {"ok"}
    refused = {
        mode: row
        for mode, row in rows.items()
        if mode not in cold and row.status not in (passes if mode != base else {"ok"})
    }
    is_right = base is None or (base in rows and base not in refused)
    modes = tuple(mode for mode in rows if mode not in refused) if is_right else ()
    return Admission(modes, refused, frozenset(mode for mode, (whole, _) in calls.items() if not whole) - cold)


def together(records: Sequence[OfModes]) -> dict[str, ModeRow]:
    """Return one row for each mode over all records: a row that is not ok, if there is any.

    A mode that reached its limit is recorded as unsupported; a later row in which it finished replaces that one.
    """
    rows: dict[str, ModeRow] = {}
    for record in records:
        for mode, row in record.modes.items():
            if mode not in rows or row.status != "ok" or rows[mode].status == "unsupported":
                rows[mode] = row
    return rows


class Rung(ModeRow):
    """A rung of the ladder, compared with the rung `base`; `blocks` are seconds per call, paired by round.

    `peak` is the most bytes of NumPy data in a step, arena included. `arena` is the bytes of the memory plan, and
    `live` the most bytes it must hold at once; 0 without a plan. `kernels` counts the calls of each kernel in a step.
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
    """The rungs of a cell in one process, on one example (`compare.instruments.ladder`), in seconds of the thread.

    `unequal` holds, for rungs that must call each kernel as often as the tape, the surplus of calls by kernel. `traced`
    counts the kernels of the graph as it was traced, null if the function cannot be traced. `off_core` is the share of
    wall time in which other processes had the core.
    """

    process: int
    rungs: dict[str, Rung]
    same_graph: bool | None
    unequal: dict[str, dict[str, int]]
    traced: dict[str, int] | None
    off_core: float


class Threads(OfCell, tag="threads"):
    """The rung of threads of a cell, on `cores` cores, and the rung below it in the same process, in wall seconds.

    The clock is the wall, because threads in parallel take more processor time and less time to wait for.
    """

    process: int
    cores: int
    rungs: dict[str, Rung]


class Parts(OfCell, tag="parts"):
    """The programs by which a step is split into parts, in one process: seconds per call of the thread, by engine.

    `off_core` is the share of wall time in which other processes had the core. `once` holds the seconds of each stage,
    for each compilation (`compare.instruments.parts`).
    """

    process: int
    engines: dict[str, dict[str, list[float]]]
    off_core: float
    once: list[dict[str, float]]


Phase = Literal["trace", "compile", "forward", "backward"]


class Moment(Struct, rename={"classes": "bytes"}, omit_defaults=True):
    """The live bytes by class after a kernel has run; the class `workspace` is the kernel's own scratch memory.

    `line` is the source line of the kernel, as `mine.py:7`; empty if it is not known.
    """

    phase: Phase
    classes: dict[str, int]
    line: str = ""

    @property
    def total(self) -> int:
        """The bytes of all classes."""
        return sum(self.classes.values())


class LedgerCount(Struct):
    """The bytes of a step after one more difference (`cause`) is set as in the static engine."""

    cause: str
    bytes: int


class LedgerRow(ModeRow):
    """The bytes of one step over time, and its peak by other counters (`compare.instruments.ledger`).

    `peak` is the ledger's peak, `counted_peak` is tracemalloc's in a step without the ledger. `objects` are bytes of
    Python objects by name. `notes` say where the two peaks do not agree.
    """

    parameters: int = 0
    objects: dict[str, int] = {}
    moments: list[Moment] = []
    peak: int = 0
    counted_peak: int = 0
    resident_growth: int = 0
    notes: list[str] = []
    counts: list[LedgerCount] = []


class Ledger(OfModes, tag="ledger"):
    """The ledger of a cell, each mode in a process of its own."""

    modes: dict[str, LedgerRow]


class LineCost(Struct):
    """The cost of one line of source: its seconds, its kernels, and the bytes of the arrays they make (`made`).

    `saved` is the number of these arrays that the forward pass keeps for backward, and `saved_bytes` their bytes.
    """

    seconds: Seconds = 0.0
    kernels: int = 0
    made: int = 0
    saved: int = 0
    saved_bytes: int = 0


class SourceLinesRow(ModeRow):
    """A step of one mode by source line; the keys of `lines` are as `model.py:12`, in the order in which they run.

    `step` is the seconds of a step that is not watched: the sum of the lines' seconds and `elsewhere`.
    """

    step: Seconds = 0.0
    elsewhere: Seconds = 0.0
    lines: dict[str, LineCost] = {}


class SourceLines(OfModes, tag="lines"):
    """The costs of a cell's modes by source line, and the text of each line that can be read."""

    modes: dict[str, SourceLinesRow]
    code: dict[str, str] = {}


def rank_lines(modes: Sequence[SourceLinesRow]) -> list[str]:
    """Return the lines of all modes, the line with the most seconds in any mode first."""
    lines = dict.fromkeys(line for row in modes for line in row.lines)
    return sorted(lines, key=lambda line: -max(row.lines[line].seconds for row in modes if line in row.lines))


class GridPlace(Struct, rename=FORMER):
    """A place of the crossover map: a chain of `depth` ops over `elements` floats; no modes if the engines disagree."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None


class GridRow(Struct):
    """The times of one engine at a place of the crossover map; `blocks` are seconds per call."""

    build: Seconds
    first: Seconds
    steady: bool
    blocks: list[Block]


class GridTimes(GridPlace):
    """The times of both engines at a place of the map."""

    modes: dict[str, GridRow]


class GridMemory(GridPlace):
    """The bytes of both engines at a place of the map."""

    modes: dict[str, MemoryRow]


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


class StrategyRow(ModeRow):
    """The measurements of a strategy for varying lengths in one process (`compare.instruments.lengths`).

    `blocks` are seconds per example, and `latency` the seconds of each call once warm, in the order of `stream`.
    `error` is the largest error of losses and gradients against the reference. `held` is the bytes of all compiled
    graphs, and `plans` has pairs of a graph's size and its bytes; the size is 0 if it is symbolic.
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


class Lengths(OfModes, tag="lengths"):
    """The strategies for varying lengths in one process, for a model and the lengths of its `examples`."""

    lengths: str
    process: int
    examples: list[int]
    modes: dict[str, StrategyRow]


class LengthsProbe(Record, tag="lengths probe"):
    """The probe of lengths: for each length reached, the seconds to compile a graph for it and to run a step."""

    points: list[tuple[int, float, float]]
