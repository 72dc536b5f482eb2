"""The records of a user's function: the first look, its graph and memory plan, hints, and counts of its calls.

Counts are amounts of work, such as ops or bytes moved. `compare.advice` predicts the seconds of a call as the sum of
amounts times their prices on a machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from compare.records import cells
from compare.records.cells import Compilations, Ledger, LineCost, Memory, MemoryRow, Parity, SourceLines, Time, TimeRow
from compare.records.record import ModeRow, OfCell, OfModes, Record, Records, Seconds, Setting, records_of
from graphs.drawing import Diagram
from graphs.drawing.drawing import MappedBuffer, Stage


class FunctionFault(Record, tag="function fault"):
    """An error in the user's file, function or calls, and the exit code for it."""

    error: str
    code: int


class FunctionLook(Record, tag="first look"):
    """The user's function as the first worker finds it; the worker's measurements of it are in `beside`.

    `settings` are settings of the run that the worker found. `source` is where other workers find function and calls;
    it is empty if the first worker has measured all. `files` are digests of the user's files that it loaded.
    """

    name: str
    modes: list[str]
    settings: dict[str, Setting]
    source: str
    files: dict[str, str] = {}


class FunctionGraph(Record, tag="function graph"):
    """The graph of a function as text and as drawings: several stages if it is shown after each pass."""

    text: str
    stages: list[Stage]


class FunctionMemory(Record, tag="function memory"):
    """The memory plan of a compiled step: the place and lifetime of each buffer in the arena, in bytes."""

    title: str
    peak: int
    lower_bound: int
    buffers: list[MappedBuffer]


class PolicyCompile(Struct):
    """One compilation: the number of the call that caused it, from 1, and the reason."""

    call: int
    reason: str


class PolicyCount(ModeRow):
    """The compilations of `static.jit` with these `options` over the inputs.

    `padding` is elements computed ÷ elements of the inputs: 1 without padding.
    """

    options: str
    compiles: list[PolicyCompile]
    padding: float = 1.0


class ShapePolicies(OfCell, tag="shape policies"):
    """The shape policies by name, over the `shapes` calls that differ in shape, structure or static values.

    `left_out` is the number of further such calls that were not examined.
    """

    shapes: int
    left_out: int
    policies: dict[str, PolicyCount]


KERNELS, GUARDS = "kernels", "guards"
"""Parts of a warm call: what computes, and what a compiler checks before it."""


class GraphCost(Struct):
    """A compiled graph in a warm call: how often it ran, its seconds, and its ops by the user's line, `model.py:12`.

    `kernels` and `around` are the seconds of the kernels, and of the compiler's code around them, in both passes.
    """

    name: str
    runs: int
    kernels: Seconds
    around: Seconds
    lines: dict[str, int]


class CallPartsRow(ModeRow):
    """The seconds of a warm call of a mode that compiles, in parts; only `status` and `reason` where it has none.

    `whole` is the seconds of a call without clocks, and `parts` are those of clocks in other calls, so that the two
    differ a little. `guards` is the number of guards. `ops` counts the ops of an eager forward pass by line; `outside`
    has those among them that run outside of graphs, with their seconds. `code` is the text of the lines.
    """

    whole: Seconds = 0.0
    parts: dict[str, Seconds] = {}
    guards: int = 0
    graphs: list[GraphCost] = []
    ops: dict[str, int] = {}
    outside: dict[str, LineCost] = {}
    code: dict[str, str] = {}


class CallParts(OfModes, tag="call parts"):
    """The parts of a warm call of a function, over the call of median length."""

    modes: dict[str, CallPartsRow]


class GraphTrial(Struct, omit_defaults=True):
    """A captured graph by itself, eager and compiled: its first line, its ops with their lines, and seconds of a call.

    `ratio` is compiled ÷ eager and the ends of its 95% interval; [] where it was not timed. `wrong` is how its results
    disagree, by the gate, and `failed` is why it does not run.
    """

    line: str
    ops: list[str]
    eager: Seconds = 0.0
    compiled: Seconds = 0.0
    ratio: list[float] = []
    wrong: str = ""
    failed: str = ""

    @property
    def lost(self) -> float:
        """The seconds by which a compiled call is longer."""
        return self.compiled - self.eager


AROUND = 2.0
"""What a graph loses ÷ what any graph loses, below which it is not an op of it that is slow."""


class BisectionRow(ModeRow):
    """The graphs of a call in order, and the one that is wrong, or slower: its number from 1, and 0 for none.

    `part` is the smallest part of it that shows the same, and `least` a graph of one op on one number, which loses what
    any graph does. `program` is the text of a file that holds the part and measures it.
    """

    graphs: list[GraphTrial] = []
    number: int = 0
    part: GraphTrial | None = None
    least: GraphTrial | None = None
    program: str = ""


class Bisection(OfModes, tag="bisection"):
    """Which graph of a compiled function is slower than in eager, or wrong, and which of its ops."""

    modes: dict[str, BisectionRow]

    def file(self, mode: str) -> str:
        """Return the name of the file that shows the graph of a mode."""
        name = f"_{mode}" if sum(bool(row.program) for row in self.modes.values()) > 1 else ""
        return f"graph_{self.modes[mode].number}{re.sub('[^A-Za-z0-9]+', '_', name)}.py"


class CompileEvent(Struct):
    """A phase of a compiler: its start in seconds from the first, its seconds, and the graph that it is about."""

    name: str
    start: Seconds
    seconds: Seconds
    graph: str = ""


class CompileTraceRow(ModeRow):
    """The events of the compiler in the first calls of a mode, in the order they began; events lie within others."""

    events: list[CompileEvent] = []


class CompileTrace(OfModes, tag="compile trace"):
    """What a framework's compiler did in the first calls, where it keeps a trace."""

    modes: dict[str, CompileTraceRow]


class RewriteHint(Struct):
    """A pattern in the user's function that keeps a fixed graph from helping: its count by line, and the remedy."""

    what: str
    lines: dict[str, int]
    remedy: str

    def __str__(self) -> str:
        """Return a sentence, as `model.py:12 (20), 13 (5): a Python loop ...; remedy`."""
        places = ", ".join(f"{line} ({count:,})" for line, count in self.lines.items())
        return f"{places}: {self.what}; {self.remedy}" if places else f"{self.what}; {self.remedy}"


class RewriteHints(OfCell, tag="hints"):
    """The hints for a function, and the text of each line that can be read."""

    hints: list[RewriteHint]
    code: dict[str, str]


class EngineGraphs(OfCell, tag="engine graphs"):
    """The graphs of a step by engine, as diagrams, folded if they are large; `nodes` counts their nodes."""

    graphs: dict[str, Diagram]
    nodes: dict[str, int]


Terms = dict[str, float]
"""Amounts of work by name. Modes whose amounts have one name share its price."""

Sort = Literal["view", "read", "product", "other"]
Control = Literal["none", "in the graph", "between graphs"]
"""Where values decide what runs: nowhere, in ops of the graph, or in Python, where each decision ends a graph."""


class RanOp(Struct, frozen=True):
    """An op that a framework ran.

    `sort` is `view` for an op that only reinterprets memory, `read` for one that hands a value to Python, `product` for
    a product, which no compiler fuses, and `other`. `elements` is the number of elements of its result, `moved` the
    bytes that it reads and writes, and `flops` the multiplications and additions of a product.
    """

    sort: Sort
    elements: int = 0
    moved: int = 0
    flops: int = 0


class CallCounts(Struct, frozen=True):
    """The amounts of work of a call in an eager mode and in a compiled mode, and those of its compilation.

    `ops` is the number of ops that the eager mode runs, in both passes. `remarks` name assumptions of the counts, and
    `ran` is whether the function was run for them.
    """

    eager: Terms
    compiled: Terms
    compile: Terms
    ops: int
    control: Control = "none"
    remarks: list[str] = []
    ran: bool = True


class TimedCall(Struct, frozen=True):
    """Seconds of a warm call, eager and compiled, and the extra seconds of the first compiled call for each shape."""

    eager: float
    compiled: float
    compile: float


class CountedProgram(Struct):
    """The counts of each call of a program, the number of shapes among the calls, and its times, if it was timed.

    `refused` is why the compiled mode cannot run it.
    """

    name: str
    counts: list[CallCounts]
    shapes: int
    timed: TimedCall | None = None
    refused: str | None = None


class CountedPrograms(Record, tag="counted programs"):
    """The programs whose calls a worker has counted, with the version of the engine."""

    version: str
    programs: list[CountedProgram]


class ModeCost(Struct, omit_defaults=True):
    """What a mode costs: seconds of a warm call, of the first pass, and of one that finds compiled code; bytes held.

    `ratio` is a warm call ÷ that of the mode that compiles nothing, and the ends of its 95% interval, if known. A
    `status` other than "ok" says in a word why it was not timed.
    """

    status: str = "ok"
    call: float | None = None
    ratio: list[float] = []
    first: float | None = None
    cached: float | None = None
    held: float | None = None
    compiles: int | None = None


class ModelVerdict(Struct, omit_defaults=True):
    """The costs of the modes of one model or function, on so many threads; `base` is the mode that compiles nothing."""

    model: str
    base: str
    modes: dict[str, ModeCost]
    threads: int = 1


class SharedVerdict(Struct, tag="verdict", tag_field="kind"):
    """What a run found, to be put beside the runs of others: no path, no code, no name of a host, and no time.

    `device` is the processor, or the GPU that the run was on.
    """

    schema: int
    engine: str
    version: str
    python: str
    device: str
    models: list[ModelVerdict]


def count_calls(ran: Iterable[RanOp]) -> CallCounts:
    """Count the work of one call from the ops that a framework ran eagerly, in order.

    The eager amounts are one call, the ops by their sort, and all bytes and flops. The compiled amounts are the kernels
    left after fusing (ops without a product between them count as one kernel), the elements they make, and the values
    that Python reads, as each ends a graph. The amounts of the compilation are its ops, kernels and graphs.
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


TOGETHER: tuple[type[OfModes], ...] = (
    Parity,
    Compilations,
    Memory,
    Ledger,
    SourceLines,
    CallParts,
    Bisection,
    CompileTrace,
)
"""The kinds of record that are merged into one record of a run."""


def merge_records(records: Records) -> Iterator[Record]:
    """Yield the records, with one of each kind except times. A refusal by any process stands, else the first finding.

    A mode that was ended at its limit but completed later, with compiled code in its cache, counts as complete.
    """
    together = {
        kind: replace(some[0], modes=cells.together(some)) for kind in TOGETHER if (some := records_of(records, kind))
    }
    gate = together.get(Parity)
    bad = {} if gate is None else {mode: row for mode, row in gate.modes.items() if row.status != "ok"}
    for told in records:
        record = together.pop(type(told), None) if isinstance(told, OfModes) and type(told) in TOGETHER else told
        if isinstance(record, Parity):
            record.agree = all(row.status == "unsupported" for row in bad.values())
        elif isinstance(record, Memory):
            record.add({mode: MemoryRow(row.status, row.reason) for mode, row in bad.items()})
        elif isinstance(record, Time):  # each worker's record stays apart
            missing = [mode for mode in bad if mode not in record.modes]
            others = {mode: TimeRow(bad[mode].status, bad[mode].reason) for mode in missing}
            record = replace(record, modes={**record.modes, **others})
        if record is not None and not isinstance(record, FunctionLook):
            yield record
