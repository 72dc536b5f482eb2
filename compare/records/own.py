"""What workers answer about a function of the user's before it is timed, and what is looked at without a clock."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Arm, OfCell, Record, Setting
from graphs.drawing import Diagram
from graphs.drawing.drawing import MappedBuffer
from graphs.drawing.viewer import Stage


class FunctionFault(Record, tag="function fault"):
    """What is wrong with the user's file, function or calls, and the exit code of that."""

    error: str
    code: int


class FunctionLook(Record, tag="first look"):
    """A function of the user's, as the first worker finds it; what it measures of it is beside it.

    `settings` are what it says of the run, and `source` is where other workers find function and calls: nowhere, if
    that worker has measured all there is. `files` are digests of the user's files that it has loaded.
    """

    name: str
    arms: list[str]
    settings: dict[str, Setting]
    source: str
    files: dict[str, str] = {}


class FunctionGraph(Record, tag="function graph"):
    """The graph of a function, as text and as it is drawn: several stages where it is shown after each pass."""

    text: str
    stages: list[Stage]


class FunctionMemory(Record, tag="function memory"):
    """The memory plan of a compiled step: where each buffer of the arena lies, and when."""

    title: str
    peak: int
    lower_bound: int
    buffers: list[MappedBuffer]


class PolicyCompile(Struct):
    """One compilation: at which call of the inputs, the first being 1, and why."""

    call: int
    reason: str


class PolicyCount(Arm):
    """What `static.jit` with these `options` compiles over the inputs.

    `padding` are the elements computed for each element asked for: 1 where nothing is padded.
    """

    options: str
    compiles: list[PolicyCompile]
    padding: float = 1.0


class ShapePolicies(OfCell, tag="shape policies"):
    """The shape policies by name, over the calls that differ in shape, structure or static values: `shapes` of them.

    `left_out` are further such calls, at which nobody looked.
    """

    shapes: int
    left_out: int
    policies: dict[str, PolicyCount]


class RewriteHint(Struct):
    """What of a function keeps a fixed graph from helping: the count for each line of the user's, and the remedy."""

    what: str
    lines: dict[str, int]
    remedy: str


class RewriteHints(OfCell, tag="hints"):
    """The hints for a function, and the text of each line that can be read."""

    hints: list[RewriteHint]
    code: dict[str, str]


class EngineGraphs(OfCell, tag="engine graphs"):
    """The graphs of a step by engine, as they are drawn: folded where they are large."""

    graphs: dict[str, Diagram]
    nodes: dict[str, int]
