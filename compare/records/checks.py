"""What checks find: those of claims, of programs, gradients, faults and edits; and the selftest, of the harness."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.cells import MemoryArm, TimeArm
from compare.records.record import OfArms, Record, Seconds, Setting


class ProgramRow(Struct):
    """One program with control flow: whether it runs as it is in the dynamic engine, and what static takes.

    `trace` is how it fares in static as it is, on all inputs, and `trace_reason` why; `convert` and `convert_reason`
    are the same with its control flow converted, and `inputs` the number of arguments that both were given. `static`
    is what static takes without conversion. `edit` is the share of its `tokens` that the rewriting changes, and
    `graph_tokens` what it has then. `dynamic_seconds` and `static_seconds` are those of a call for the value and the
    gradient, `compile_seconds` those of all `compiles` for its own inputs; `convert_seconds`, `convert_compiles` and
    `convert_compile_seconds` are the same of the converted program. What a program has not got is null, and so is what
    was measured before there was a conversion.

    Of an arm of a framework, `dynamic` is its eager arm and `static` is that arm; `compile_seconds` are those of the
    first calls, which compile. `idiom` is what the framework calls the control flow of the rewriting. `breaks` are the
    graph breaks of the program as it is where they are allowed, and `pieces` is how it fares then. `kernels` is false
    where the graphs of the program ran op by op, since to make kernels takes a framework seconds, and null where that
    is no stage of its own.
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
        """The tokens of what static takes: the program itself where it is converted; null where it takes nothing."""
        return self.tokens if self.convert == "right" else self.graph_tokens


class Programs(Record, tag="program"):
    """The programs measured for a claim."""

    claim: str
    programs: list[ProgramRow]


class Gradients(Record, tag="gradients"):
    """The gradient checks made for a claim."""

    claim: str
    checks: int
    passed: int
    failures: list[str]
    by_op: dict[str, dict[str, int]]


EngineName = Literal["dynamic", "static"]
Phase = Literal["trace", "call", "forward", "backward", "update", "step", "never", "cannot happen"]


class FaultRow(Struct):
    """What a scripted debugger met of one seeded fault in one engine (`compare.claims.c3_debugging`).

    Of a framework, `dynamic` is its eager arm and `static` the arm compared with it. `examine` there tells what
    `ops_before` and `steps` are where an engine does not show every value.
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
    """The seeded faults looked for for a claim; `left_out` are those that a framework cannot be given, and why."""

    claim: str
    faults: list[FaultRow]
    left_out: dict[str, str] = {}


class ModelCost(Struct):
    """What an edit of a model costs in an engine: seconds from it to the first result, and how long the model is."""

    edit_to_result: list[float]
    lines: int
    tokens: int


class TaskRow(Struct, omit_defaults=True):
    """One edit of a model; `refused` says why an engine gave no result: a framework may not take it, or not end."""

    task: str
    edit: str
    engines: dict[str, ModelCost]
    refused: dict[str, str] = {}


class Prototypes(Record, tag="prototype"):
    """The edits of models measured for a claim."""

    claim: str
    tasks: list[TaskRow]


Way = Literal["retraced", "foreseen"]


class EditCost(Struct, omit_defaults=True):
    """What a structure edit cost an engine (`compare.claims.c8_structure`); `way` is how static learns of it.

    `steps` are steady steps, `edits` the new structures of a training, `seconds` those of a whole training.
    """

    rebuild: int
    steps: float
    seconds: Seconds
    compile_seconds: float
    edits: int
    way: Way | None = None


class EditRow(Struct, omit_defaults=True):
    """One structure edit during training in each engine, static as foreseen where `ways` has that.

    `difference` is how far the losses are apart at most, relative, and `refused` why an engine or a way of it did not
    run: a framework does not take the code, or does not end.
    """

    edit: str
    engines: dict[str, EditCost]
    ways: dict[str, EditCost]
    agree: bool
    difference: float | None = None
    refused: dict[str, str] = {}


class Edits(Record, tag="edit"):
    """The structure edits measured for a claim."""

    claim: str
    edits: list[EditRow]


Outcome = Literal["met", "missed", "too noisy"]


class TrialArm(TimeArm):
    """An engine, as it is or slowed down: the calls that were made, or the parts of work in them, and those done."""

    calls: int = 0
    runs: int = 0


class TrialTime(OfArms, tag="selftest time"):
    """The times of a comparison of an engine with itself, in one worker process."""

    comparison: int
    process: int
    arms: dict[str, TrialArm]


class TrialMemory(OfArms, tag="selftest memory"):
    """The memory of one arm of a comparison of an engine with itself, which may leak."""

    comparison: int
    process: int
    arms: dict[str, MemoryArm]


class Rate(Struct, rename={"detected": "found"}, kw_only=True):
    """How many of the `comparisons` with a size injected detected it; `met` is null where there is no target."""

    injected: float
    comparisons: int
    detected: int
    rate: float
    interval: list[float]
    met: bool | None


class SpeedRate(Rate, kw_only=True):
    """Of a slowdown by a share, whose size by the calls made is `counted`.

    `slower` and `faster` say how many intervals of the ratio lie wholly above and below 1, `sides` where they lie by
    the smallest effect of interest. `estimate` and `half_width` are medians. `subject` is the size of a function of a
    user's own, and empty for the workloads.
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
    """Of a leak of bytes with each epoch: `kept` is the median that was measured."""

    kept: float


class Coverage(Struct, kw_only=True):
    """Of the intervals that so many processes give, how many hold the true ratio; `half_width` is their median.

    `met` is null where there are too few of them to tell.
    """

    processes: int
    comparisons: int
    held: int
    rate: float
    interval: list[float]
    half_width: float
    met: bool | None


class Selftest(Record, tag="selftest", kw_only=True):
    """What `graphduel selftest --json` writes, as the one value of its file. `whole` is false of few comparisons.

    `at` is the end; `seconds` are those of the last of its `starts`, and `environment` is that of the first.
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
