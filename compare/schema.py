"""The schema of a results file, version 1: what each kind of line holds. Times are in seconds, sizes in bytes.

A line is one JSON object with `schema`, `kind` and the fields below. A field may be added without a new version;
a line of a kind that is not here is left alone. What a worker measured also has the `seed` of its orders, the
`environment` of the worker, and `startup`: from its start until it and both engines were loaded. `host` is the same for
all that was measured on one host (`compare.machines.label`).
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

VERSION = 1

Status = Literal["ok", "unsupported", "disagree", "failed"]


class Run(TypedDict):
    """The start of a run, or of a resumed one; `at` is ISO 8601, in UTC."""

    run: str
    at: str
    settings: dict[str, Any]
    environment: dict[str, Any]


class ParityArm(TypedDict):
    """How far an arm is from the references, as `compare.parity` scales it; null where that is not finite."""

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
    """What one arm held and reached, as `compare.measure.memory` defines it."""

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


class Gradients(TypedDict):
    """The gradient checks made for a claim."""

    claim: str
    checks: int
    passed: int
    failures: list[str]
    by_op: dict[str, Any]


class ProgramRow(TypedDict):
    """One program with control flow: whether it runs as it is in the dynamic engine, and what static takes.

    `trace` is how it fares in static as it is, on all inputs, and `trace_reason` why. `edit` is the share of its
    `tokens` that the rewriting changes, and `graph_tokens` what it has then. `dynamic_seconds` and `static_seconds` are
    those of a call for the value and the gradient, `compile_seconds` those of all `compiles` for its inputs. What a
    program has not got is null.
    """

    program: str
    family: str
    dynamic: bool
    static: Literal["unchanged", "rewritten", "refused"]
    reason: str | None
    trace: Literal["right", "wrong", "refused", "failed"]
    trace_reason: str | None
    edit: float | None
    tokens: int
    graph_tokens: NotRequired[int | None]
    dynamic_seconds: float | None
    static_seconds: float | None
    compiles: int | None
    compile_seconds: float | None


class Programs(TypedDict):
    """The programs measured for a claim."""

    claim: str
    programs: list[ProgramRow]


class FaultRow(TypedDict):
    """What a scripted debugger met of one seeded fault in one engine, as `compare.faults.debugger` counts it."""

    fault: str
    family: str
    engine: Literal["dynamic", "static"]
    detected: bool
    when: Literal["trace", "call", "forward", "backward", "update", "step", "never", "cannot happen"]
    tool: str
    ops_before: int
    names_line: bool
    distance: int | None
    steps: int
    message: str


class Faults(TypedDict):
    """The seeded faults looked for for a claim."""

    claim: str
    faults: list[FaultRow]


class EditCost(TypedDict):
    """What a structure edit cost an engine, as `compare.edits.measure` defines it; `way` is static's way of telling it.

    `steps` are steady steps, `edits` the new structures of a training, `seconds` those of a whole training.
    """

    rebuild: int
    steps: float
    seconds: float
    compile_seconds: float
    edits: int
    way: NotRequired[Literal["retraced", "foreseen"]]


class EditRow(TypedDict):
    """One structure edit during training in each engine, static as foreseen where `ways` has that.

    `difference` is how far the losses of the engines are apart at most, relative.
    """

    edit: str
    engines: dict[str, EditCost]
    ways: dict[str, EditCost]
    agree: bool
    difference: float


class Edits(TypedDict):
    """The structure edits measured for a claim."""

    claim: str
    edits: list[EditRow]


class ModelCost(TypedDict):
    """What an edit of a model costs in an engine: seconds from it to the first result, and how long the model is."""

    edit_to_result: list[float]
    lines: int
    tokens: int


class TaskRow(TypedDict):
    """One edit of a model."""

    task: str
    edit: str
    engines: dict[str, ModelCost]


class Prototypes(TypedDict):
    """The edits of models measured for a claim."""

    claim: str
    tasks: list[TaskRow]


class GroupCall(TypedDict):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: float
    compiled: bool


class StrategyArm(TypedDict):
    """What a strategy for inputs of varying length took in one process, as `compare.lengths.measure` defines it.

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs.
    """

    status: Status
    reason: str | None
    compilation: str
    padding: str
    batching: str
    error: NotRequired[float]
    build: NotRequired[float]
    stream: NotRequired[list[GroupCall]]
    latency: NotRequired[list[float]]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]
    compiles: NotRequired[int]
    useful: NotRequired[int]
    computed: NotRequired[int]
    held: NotRequired[int]


class Lengths(TypedDict):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    workload: str
    size: str
    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]


class GridArm(TypedDict):
    """What an engine took in a cell of the crossover map; `blocks` are seconds a call."""

    build: float
    first: float
    steady: bool
    blocks: list[float]


class GridCell(TypedDict):
    """A chain of `depth` ops over `elements` floats; no arms where the engines disagree."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None
    arms: dict[str, GridArm]


class Crossover(TypedDict):
    """The times of the crossover map in one process."""

    size: str
    process: int
    cells: list[GridCell]


class GridMemory(TypedDict):
    """The bytes of both engines in a cell of the map."""

    ops: str
    depth: int
    elements: int
    status: Status
    reason: str | None
    arms: dict[str, MemoryArm]


class CrossoverMemory(TypedDict):
    """The memory of the crossover map."""

    size: str
    cells: list[GridMemory]


class Rung(TypedDict):
    """A rung of the ladder, compared with the rung `base`; `blocks` are the thread's own seconds a call, paired.

    `peak` is the most bytes of NumPy data in a step, with the arena; `arena` and `live` are the bytes of the plan and
    the most that it has to hold at once, where there is one. `kernels` says how often each is called in a step.
    """

    base: str | None
    status: Status
    reason: str | None
    build: NotRequired[float]
    peak: NotRequired[int]
    kernels: NotRequired[dict[str, int]]
    arena: NotRequired[int]
    live: NotRequired[int]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]


class Ladder(TypedDict):
    """The rungs of a cell in one process, over one example (`compare.ladder`).

    `unequal` holds, by rung, how many more calls of a kernel it makes than the tape where it must make as many;
    `traced` is what the graph calls as it was traced, null where it cannot be. `off_core` is the share of the wall time
    in which others had the core.
    """

    workload: str
    size: str
    process: int
    rungs: dict[str, Rung]
    same_graph: bool | None
    unequal: dict[str, dict[str, int]]
    traced: dict[str, int] | None
    off_core: float


class Parts(TypedDict):
    """What a step is taken apart with, in one process: by engine and program, seconds a call of the thread's own time.

    `off_core` is the share of the wall time in which others had the core, `once` the stages of compilations
    (`compare.parts`).
    """

    workload: str
    size: str
    process: int
    engines: dict[str, dict[str, list[float]]]
    off_core: float
    once: list[dict[str, float]]


class LedgerMoment(TypedDict):
    """The bytes of NumPy data by class once a kernel has run."""

    phase: Literal["trace", "compile", "forward", "backward"]
    bytes: dict[str, int]


class LedgerCount(TypedDict):
    """The bytes of a step once one more thing is as in the static engine."""

    cause: str
    bytes: int


class LedgerArm(TypedDict):
    """The bytes of one step over time, and the same peak as others count it (`compare.ledger`).

    `peak` is the ledger's, `counted_peak` tracemalloc's in a step that nobody watched. `objects` are bytes of Python
    objects, `notes` say where the peaks do not agree.
    """

    status: Status
    reason: str | None
    parameters: NotRequired[int]
    objects: NotRequired[dict[str, int]]
    moments: NotRequired[list[LedgerMoment]]
    peak: NotRequired[int]
    counted_peak: NotRequired[int]
    resident_growth: NotRequired[int]
    notes: NotRequired[list[str]]
    counts: NotRequired[list[LedgerCount]]


class Ledger(TypedDict):
    """The ledger of a cell, each arm in a process of its own."""

    workload: str
    size: str
    arms: dict[str, LedgerArm]


class Failure(TypedDict):
    """A job that left no result, by the fields that name it."""

    job: dict[str, Any]
    error: str


class Rate(TypedDict):
    """How many of the `comparisons` in which a size was injected found it; `met` is null where there is no target."""

    injected: float
    comparisons: int
    found: int
    rate: float
    interval: list[float]
    met: bool | None


class SpeedRate(Rate):
    """Of a slowdown by a share, whose size by the calls made is `counted`.

    `slower` and `faster` say how many intervals of the ratio lie wholly above and below 1, `sides` where they lie by
    the smallest effect of interest. `estimate` and `half_width` are medians.
    """

    counted: float
    slower: int
    faster: int
    interval_holds_truth: int
    estimate: float
    half_width: float
    sides: dict[str, int]


class LeakRate(Rate):
    """Of a leak of bytes with each epoch: `kept` is the median that was measured."""

    kept: float


class Selftest(TypedDict):
    """What `graphduel selftest --json` writes, as the one value of its file. `whole` is false of few comparisons."""

    at: str
    seconds: float
    settings: dict[str, Any]
    environment: dict[str, Any]
    whole: bool
    outcome: Literal["met", "missed", "too noisy"]
    speed: list[SpeedRate]
    leaks: list[LeakRate]
    failures: list[str]


KINDS: Mapping[str, Any] = {
    "run": Run,
    "parity": Parity,
    "time": Time,
    "memory": Memory,
    "gradients": Gradients,
    "program": Programs,
    "fault": Faults,
    "edit": Edits,
    "prototype": Prototypes,
    "lengths": Lengths,
    "crossover": Crossover,
    "crossover memory": CrossoverMemory,
    "ladder": Ladder,
    "parts": Parts,
    "ledger": Ledger,
    "failure": Failure,
    "selftest": Selftest,
}


def violation(record: Mapping[str, Any]) -> str | None:
    """What in a line breaks the schema, as `arms.dynamic.blocks[0] is no float`; None where nothing does."""
    expected = KINDS.get(record["kind"])
    return None if expected is None else _violation(record, expected, "")


def _violation(value: Any, expected: Any, place: str) -> str | None:
    parts = get_args(expected)
    if is_typeddict(expected):
        return _in_fields(value, expected, place)
    if get_origin(expected) is dict:
        entries: Any = value.items() if isinstance(value, dict) else None
        return _in_entries(entries, parts[1], place, "{}.{}")
    if get_origin(expected) is list:
        entries = enumerate(value) if isinstance(value, list) else None
        return _in_entries(entries, parts[0], place, "{}[{}]")
    if get_origin(expected) is UnionType:
        found = [_violation(value, part, place) for part in parts if part is not NoneType]
        return None if value is None else found[0]
    return None if _is_plain(value, expected, parts) else f"{place} is no {getattr(expected, '__name__', parts)}"


def _in_fields(value: Any, expected: Any, place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place} is no object"
    prefix = f"{place}." if place else ""
    for name in sorted(expected.__required_keys__ - value.keys()):
        return f"{prefix}{name} is missing"
    hints = get_type_hints(expected)
    problems = (_violation(value[n], hints[n], f"{prefix}{n}") for n in hints.keys() & value.keys())
    return next(filter(None, problems), None)


def _in_entries(entries: Any, expected: Any, place: str, name: str) -> str | None:
    if entries is None:
        return f"{place} is no container"
    problems = (_violation(entry, expected, name.format(place, key)) for key, entry in entries)
    return next(filter(None, problems), None)


def _is_plain(value: Any, expected: Any, literals: tuple[Any, ...]) -> bool:
    if expected is Any:
        return True
    if literals:
        return value in literals
    kinds = (int, float) if expected is float else expected
    return isinstance(value, kinds) and (expected is bool or not isinstance(value, bool))
