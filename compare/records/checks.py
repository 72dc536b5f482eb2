"""The records of checks: programs (C1), gradients (C2), faults (C3), edits (C7, C8), and the selftest."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.cells import MemoryRow, TimeRow
from compare.records.record import OfModes, Record, Seconds, Setting


class ProgramRow(Struct):
    """One program with control flow: whether the dynamic engine runs it unchanged, and which form static runs.

    `trace` is the outcome of the unchanged program in static on all inputs, and `trace_reason` its reason; `convert`
    and `convert_reason` are the same with its control flow converted. `inputs` is the number of inputs for both.
    `static` is the form that static runs without conversion. `edit` is the share of the program's `tokens` that its
    rewriting changes, and `graph_tokens` the number of tokens of the form that static runs. `dynamic_seconds` and
    `static_seconds` are of a call for value and gradient, `compile_seconds` of all `compiles` for its own inputs;
    `convert_seconds`, `convert_compiles` and `convert_compile_seconds` are the same for the converted program. A field
    is null if it does not apply, or was measured before conversion existed.

    For a mode of a framework, `dynamic` is the framework's eager mode and `static` is the mode itself;
    `compile_seconds` are of the first calls, which compile. `idiom` is the framework's name for the control flow of the
    rewriting. `breaks` is the number of graph breaks of the unchanged program if they are allowed, and `pieces` its
    outcome then. `kernels` is false if the program's graphs ran op by op, because making kernels takes a framework
    seconds; null if making kernels is not a stage of its own.
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
    dynamic_seconds: float | None
    static_seconds: float | None
    compiles: int | None
    compile_seconds: float | None
    graph_tokens: int | None = None
    idiom: str | None = None
    kernels: bool | None = None
    breaks: int | None = None
    pieces: Literal["right", "wrong", "refused", "failed"] | None = None
    inputs: int | None = None
    convert: Literal["right", "wrong", "refused", "failed"] | None = None
    convert_reason: str | None = None
    convert_seconds: float | None = None
    convert_compiles: int | None = None
    convert_compile_seconds: float | None = None

    @property
    def taken_tokens(self) -> int | None:
        """The tokens of the form that static runs: of the program itself if converted; None if static runs no form."""
        return self.tokens if self.convert == "right" else self.graph_tokens


class Programs(Record, tag="program"):
    """The programs that were measured for claim C1."""

    claim: str
    programs: list[ProgramRow]


class Gradients(Record, tag="gradients"):
    """The gradient checks of claim C2: their number, how many passed, the failures, and counts by op."""

    claim: str
    checks: int
    passed: int
    failures: list[str]
    by_op: dict[str, dict[str, int]]


EngineName = Literal["dynamic", "static"]
Phase = Literal["trace", "call", "forward", "backward", "update", "step", "never", "cannot happen"]


class FaultRow(Struct):
    """The search of a scripted debugger for one seeded fault in one engine (`compare.claims.c3_debugging`).

    In a framework, `dynamic` is its eager mode and `static` the mode compared with it. `examine` in that module defines
    the fields, also for engines that do not show every value.
    """

    fault: str
    family: str
    engine: EngineName
    detected: bool
    when: Phase
    tool: str
    ops_before: int
    names_line: bool
    distance: int | None
    steps: int
    message: str


class Faults(Record, tag="fault"):
    """The seeded faults of claim C3; `left_out` has the reason for each fault that a framework cannot run."""

    claim: str
    faults: list[FaultRow]
    left_out: dict[str, str] = {}


class ModelCost(Struct):
    """The cost of an edit of a model in an engine: seconds from edit to first result, and the model's length."""

    edit_to_result: list[float]
    lines: int
    tokens: int


class TaskRow(Struct, omit_defaults=True):
    """One edit of a model in both engines; `refused` is why an engine gave no result: an error or a time limit."""

    task: str
    edit: str
    engines: dict[str, ModelCost]
    refused: dict[str, str] = {}


class Prototypes(Record, tag="prototype"):
    """The edits of models that were timed for claim C7."""

    claim: str
    tasks: list[TaskRow]


Way = Literal["retraced", "foreseen"]


class EditCost(Struct, omit_defaults=True):
    """The cost of a structure edit in an engine (`compare.claims.c8_structure`); `way` is how static learns of it.

    `rebuild` is the number of rebuilds. `steps` is the time of a step after an edit, in steady steps. `edits` is the
    number of new structures in a training, and `seconds` the time of a whole training.
    """

    rebuild: int
    steps: float
    seconds: Seconds
    compile_seconds: float
    edits: int
    way: Way | None = None


class EditRow(Struct, omit_defaults=True):
    """One structure edit during training in each engine; static uses its foreseen version if `ways` has one.

    `difference` is the largest relative difference of the losses. `refused` is why an engine, or a way of static, did
    not run: an error or a time limit.
    """

    edit: str
    engines: dict[str, EditCost]
    ways: dict[str, EditCost]
    agree: bool
    difference: float | None = None
    refused: dict[str, str] = {}


class Edits(Record, tag="edit"):
    """The structure edits that were measured for claim C8."""

    claim: str
    edits: list[EditRow]


Outcome = Literal["met", "missed", "too noisy"]


class TrialRow(TimeRow):
    """The times of an engine, unchanged or slowed down: `calls` that were made (or parts of work), `runs` done."""

    calls: int = 0
    runs: int = 0


class TrialTime(OfModes, tag="selftest time"):
    """The times of a comparison of an engine with itself, in one worker process."""

    comparison: int
    process: int
    modes: dict[str, TrialRow]


class TrialMemory(OfModes, tag="selftest memory"):
    """The memory of one mode in a comparison of an engine with itself; the mode may leak on purpose."""

    comparison: int
    process: int
    modes: dict[str, MemoryRow]


class Rate(Struct, rename={"detected": "found"}, kw_only=True):
    """The share of `comparisons` that detected an effect of the size `injected`; `met` is null without a target."""

    injected: float
    comparisons: int
    detected: int
    rate: float
    interval: list[float]
    met: bool | None


class SpeedRate(Rate, kw_only=True):
    """The detection rate of a slowdown by a share; `counted` is its true size by the calls that were made.

    `slower` and `faster` count the intervals of the ratio that lie wholly above and wholly below 1. `sides` counts them
    by their side with the smallest effect of interest. `estimate` and `half_width` are medians. `subject` is the size
    of a user's own function, and empty for workloads.
    """

    counted: float
    slower: int
    faster: int
    interval_holds_truth: int
    estimate: float
    half_width: float
    sides: dict[str, int]
    subject: str = ""


class LeakRate(Rate, kw_only=True):
    """The detection rate of a leak of bytes in each epoch; `kept` is the median of the measured leaks, in bytes."""

    kept: float


class Coverage(Struct, kw_only=True):
    """The share of intervals from a number of `processes` that hold the true ratio; `half_width` is a median.

    `met` is null if there are too few intervals to decide.
    """

    processes: int
    comparisons: int
    held: int
    rate: float
    interval: list[float]
    half_width: float
    met: bool | None


class Selftest(Record, tag="selftest", kw_only=True):
    """The result of the selftest, which `graphduel selftest --json` writes as the one value of its file.

    `whole` is false if there were too few comparisons. `at` is the time of its end. `seconds` is the time of the last
    of its `starts`, and `environment` is that of the first.
    """

    at: str
    seconds: float
    starts: int = 1
    settings: dict[str, Setting]
    whole: bool
    outcome: Outcome
    speed: list[SpeedRate]
    leaks: list[LeakRate]
    coverage: list[Coverage] = []
    failures: list[str]
