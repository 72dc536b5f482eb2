"""What workers answer about a function of the user's before it is timed, and what a step of it does, counted.

Counts are terms that the seconds of a step are a sum of, each an amount that a machine has a price for
(`compare.advice`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from msgspec import Struct

from compare.records.record import Arm, OfCell, Record, Setting
from graphs.drawing import Diagram
from graphs.drawing.drawing import MappedBuffer, Stage


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


Terms = dict[str, float]
"""Amounts by what they are of. Arms share a price where they share a name."""

Sort = Literal["view", "read", "product", "other"]
Control = Literal["none", "in the graph", "between graphs"]
"""Where values decide what runs: nowhere, in ops of the graph, or in Python, where each decision ends a graph."""


class RanOp(Struct, frozen=True):
    """An op that a framework ran.

    Its sort says whether it only looks at memory in another way, hands a value to Python, which may decide by it, or is
    a product, which no compiler fuses. `elements` are those that it makes, `moved` the bytes that it reads and writes,
    and `flops` its multiplications and additions, where it is a product.
    """

    sort: Sort
    elements: int = 0
    moved: int = 0
    flops: int = 0


class CallCounts(Struct, frozen=True):
    """The terms of a call in an eager arm and in one that compiles, and those of its compilation.

    `ops` are those that the eager arm runs, both passes. `remarks` say what was assumed to count them, and `ran`
    whether the function was run for it.
    """

    eager: Terms
    compiled: Terms
    compile: Terms
    ops: int
    control: Control = "none"
    remarks: list[str] = []
    ran: bool = True


class TimedCall(Struct, frozen=True):
    """Seconds of a call once warm, eager and compiled, and what the first compiled calls take more, for each shape."""

    eager: float
    compiled: float
    compile: float


class CountedProgram(Struct):
    """The counts of each call of a program, the shapes among the calls, and what a call took where it was timed.

    `refused` says why the arm that compiles does not take it.
    """

    name: str
    counts: list[CallCounts]
    shapes: int
    timed: TimedCall | None = None
    refused: str | None = None


class CountedPrograms(Record, tag="counted programs"):
    """Programs as a worker has counted them, in a version of an engine."""

    version: str
    programs: list[CountedProgram]


def count_calls(ran: Iterable[RanOp]) -> CallCounts:
    """The counts of what a framework ran eagerly, in its order.

    Eager: a call, each op by its sort, and the bytes and flops of all. Compiled: each kernel that fusing leaves, as
    runs of ops without a product between them may become one, what they make, and each value that Python reads: a graph
    ends there. Compilation: each op that it looks at, and each kernel and each graph that it makes.
    """
    ops = list(ran)
    kernels = [op for op in ops if op.sort != "view"]
    others = [op for op in kernels if op.sort == "other"]
    count = Counter(op.sort for op in ops)
    views, reads, products = count["view"], count["read"], count["product"]
    stretches = sum(sort == "other" for sort, _ in groupby(kernels, lambda op: op.sort))
    flops = sum(op.flops for op in kernels)
    every = views + products + len(others)
    read = (
        f"Python reads {reads} value{'s' if reads > 1 else ''} in a call, for example in an `if` or by item(): the "
        "graph breaks at each, and the framework compiles each new path"
    )
    return CallCounts(
        eager={
            "eager calls": 1,
            "eager ops": len(others) + reads,
            "eager views": views,
            "eager products": products,
            "bytes moved by eager ops": sum(op.moved for op in others),
            "eager flops": flops,
        },
        compiled={
            "compiled calls": 1,
            "compiled products": products,
            "fused kernels": stretches,
            "elements of fused kernels": sum(op.elements for op in others),
            "compiled flops": flops,
            "graph breaks": reads,
        },
        compile={
            "compilations": 1,
            "ops looked at": every,
            "kernels made": products + stretches,
            "further graphs": reads,
        },
        ops=every,
        control="between graphs" if reads else "none",
        remarks=[read] if reads else [],
    )
