"""What the checks of claims find, apart from any cell."""

from typing import Any, Literal, NotRequired, TypedDict


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
    """What a scripted debugger met of one seeded fault in one engine (`compare.claims.c3_debugging.debugger`)."""

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
    """What a structure edit cost an engine (`compare.claims.c8_structure.measure`); `way` is how static is told of it.

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
