"""The instruments that watch a step: where its bytes go over time (the ledger), and what each line of its source costs.

The ledger puts each byte of a step into a class, over time, for one mode of a cell in a process of its own. A timeline
(`compare.instruments.watched_tape` for the dynamic engine, `compare.instruments.watched_graph` for the static one)
classifies every array by its purpose; tracemalloc and the operating system show whether it has all of them. The
difference of the engines in bytes is explained from the dynamic engine's peak to the static one's, by switching one
thing at a time. All steps but the first and the last are counts, the same on every machine: the most bytes that are
live at once in a graph, in an order, with or without sharing.

parameters   the arguments of a step; the same arrays in both engines
structure    the graph or the tape as Python objects, with generated code; of NumPy data, the constants of a graph
plan         Python objects of the memory plan
activations  results of the forward pass that backward does not need
saved        results of the forward pass that are kept for backward
gradients    the results of a step
workspace    cotangents on their way, and memory that kernels need while they run
caches       bytes that an engine holds between steps beside these
slack        bytes of the arena in which nothing lives at that moment
untold       bytes of NumPy data that the ledger does not know

Each line has its time, its bytes and the tensors kept for backward. In the dynamic engine a kernel of the forward pass
belongs to the line that runs, and one of the backward pass to the line whose gradient it computes. In the static
engine a kernel belongs to the line that its node came from; inside a fused group each kernel has its own. A
framework's adapter tells the line of each op of an eager step, if it can (`Ops.lines`). The rest is `elsewhere`. All
this is read in a step that is watched, apart from the steps that are timed.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import dynamic
import static
from compare import engines, workloads
from compare.engines import cases
from compare.engines.graphduel.steps import transform_step
from compare.engines.step import Step
from compare.errors import describe_error
from compare.instruments import watched_graph, watched_tape
from compare.instruments.bench import Bench
from compare.instruments.memory import nbytes_of, numpy_memory, resident_growth, warm_peak
from compare.instruments.rounds import CLOCK
from compare.instruments.watched_tape import Timeline, thin_moments
from compare.records.cells import Ledger, LedgerCount, LedgerRow, SourceLines, SourceLinesRow
from compare.records.job import Job
from compare.workloads.base import Case
from graphs import dims
from graphs.errors import is_internal
from graphs.ir import Graph, Node
from graphs.spec import TupleSpec
from static import memory
from static.codegen.binding import ArenaLayout, lay_out
from static.codegen.lowering import lower
from static.memory import schedule as scheduling
from static.memory.schedule import BufferPlace, Schedule, schedule
from static.passes import pipeline

MODES = engines.ours()
"""The modes that have a ledger, with one graph each, over one example."""
COUNTED_WITHIN, RESIDENT_WITHIN = 0.01, 0.10
RESIDENT_FROM = 64 << 20
"""The peak in bytes below which the pages of Python and its libraries are too much of the process's growth."""


def measure(job: Job) -> Ledger:
    """Return the ledger record of a job's modes, over the example of median length; give one mode per process."""
    case = cases.alone(workloads.load(job.source).case(str(job.size)))
    return Ledger(**job.head, modes={mode: measure_mode(mode, case) for mode in job.modes if mode in MODES})


def measure_mode(mode: str, case: Case) -> LedgerRow:
    """Return a mode's timeline, its peak beside those of tracemalloc and the system, and counts of a static one."""
    try:
        growth = resident_growth(mode, case)
        counted, is_compiled = counted_peak(mode, case)
        timeline = watched_graph.timeline(case) if is_compiled else watched_tape.timeline(case)
        switched = counts(case) if is_compiled else []
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what its row says)
        return LedgerRow("unsupported" if engines.refuses(mode, error) else "failed", describe_error(error))
    peak = timeline.peak
    return LedgerRow(
        "ok",
        None,
        parameters=nbytes_of(case.params),
        objects=dict(timeline.objects),
        moments=thin_moments(timeline.moments),
        peak=peak.total,
        counted_peak=counted,
        resident_growth=growth,
        notes=disagreements(timeline, counted, growth),
        counts=switched,
    )


def counted_peak(mode: str, case: Case) -> tuple[int, bool]:
    """Return the peak in bytes of NumPy data of a warm step that is not watched, and whether it is compiled."""
    with numpy_memory():
        step = engines.step(mode, case)
        return warm_peak(step)[1], bool(step.executables())


def disagreements(timeline: Timeline, counted: int, growth: int) -> list[str]:
    """Return notes where the ledger's peak differs from tracemalloc's or the process's; empty if all agree."""
    peak, notes = timeline.peak.total, []
    if abs(peak - counted) > COUNTED_WITHIN * counted:
        notes.append(f"the ledger's peak is {peak:,} bytes, tracemalloc's {counted:,}: {_off(peak, counted)}")
    if peak > RESIDENT_FROM and abs(growth - peak) > RESIDENT_WITHIN * peak:
        notes.append(f"the process grew by {growth:,} bytes, the ledger's peak is {peak:,}: {_off(growth, peak)}")
    return notes


def _off(actual: int, expected: int) -> str:
    return f"{actual / expected - 1:+.1%}" if expected else "of nothing"


def counts(case: Case) -> list[LedgerCount]:
    """Return the counts from the kernels of a tape, freed by liveness, to the arena with its results beside it."""
    arguments = (case.params, *case.examples[0])
    tape = dynamic.record(transform_step(dynamic, case.loss, case.argnum), *arguments)
    traced = static.trace(transform_step(static, cases.traceable_loss(case), case.argnum), *arguments)
    simplified, _ = pipeline.run(traced, pipeline.SIMPLIFY)
    restructured, _ = pipeline.run(simplified, pipeline.RESTRUCTURE + pipeline.SIMPLIFY)
    final, _ = pipeline.run(traced)
    ordered, planned = schedule(final)._replace(place=_alone(final)), schedule(final)
    layout = lay_out(lower(final, planned), {})
    results = sum(size for _, _, size in _results(final, planned))
    padded = layout.plan.lower_bound
    return [
        LedgerCount("kept by Python variables and the tape", most_live(tape)),
        LedgerCount("branches and loops as graphs", most_live(traced)),
        LedgerCount("simplification", most_live(simplified)),
        LedgerCount("restructuring", most_live(restructured)),
        LedgerCount("fusion", most_live(final)),
        LedgerCount("order", most_live(final, ordered)),
        LedgerCount("in place", most_live(final, planned)),
        LedgerCount("results beside the arena", memory.max_live(layout.lives) + results),
        LedgerCount("padding to cache lines", padded + results),
        LedgerCount("fragmentation", layout.plan.peak + results),
    ]


def attribute_causes(dynamic_peak: int, counted: Sequence[LedgerCount], static_peak: int) -> list[tuple[str, int]]:
    """Return the bytes that each cause adds (negative: saves) from one engine's peak to the other's."""
    steps = [*counted, LedgerCount("constants, own memory of kernels and of control flow", static_peak)]
    before = [dynamic_peak, *(count.bytes for count in counted)]
    return [(count.cause, count.bytes - earlier) for count, earlier in zip(steps, before, strict=True)]


def most_live(graph: Graph, plan: Schedule | None = None) -> int:
    """Return the most bytes live at once; by default in graph order, each result in memory of its own.

    Results of the step live from where they are computed to the end.
    """
    plan = plan or Schedule.of(graph.nodes, scheduling.views(graph.nodes), _alone(graph))
    layout: ArenaLayout = lay_out(lower(graph, plan), {})
    return memory.max_live([*layout.lives, *_results(graph, plan)])


def _alone(graph: Graph) -> dict[Node, BufferPlace]:
    """Return a plan's places in which no nodes share memory."""
    owner = scheduling.views(graph.nodes).owner
    return {node: BufferPlace(node) for node in scheduling.in_arena(graph.nodes, graph.outputs, owner)}


def _results(graph: Graph, plan: Schedule) -> list[memory.Buffer]:
    """Return lifetimes and bytes of the step's results, outside the arena; sources are copied at the end."""
    end = len(plan.order)
    step = {node: i for i, node in enumerate(plan.order)}
    owners = dict.fromkeys(plan.owner[node] for node in graph.outputs)
    made = [node for node in owners if not isinstance(node.spec, TupleSpec)]
    start = {node: end - 1 if node.is_source else step[scheduling.writer(node)] for node in made}
    return [(start[node], end, dims.evaluate(node.spec.nbytes, {})) for node in made]


# Source lines ---------------------------------------------------------------------------------------------------------


def measure_source_lines(job: Job) -> SourceLines:
    """Return the record of a job's modes, over the example of median length."""
    return measure_lines(job, workloads.load(job.source).case(str(job.size)))


def measure_lines(job: Job, case: Case) -> SourceLines:
    """Return the record of a job's modes over a given case."""
    case = cases.alone(case)
    rows = {mode: _row(mode, case) for mode in job.modes if engines.of_mode(mode).traits(mode).readable}
    lines = dict.fromkeys(line for row in rows.values() for line in row.lines)
    return SourceLines(**job.head, modes=rows, code=texts(case.loss, lines))


def of_bench(job: Job, bench: Bench, mode: str, step: Step) -> Iterator[SourceLines]:
    """Yield the record of a user's function whose step runs op by op, over the call of median length.

    Nothing is yielded where nobody reads its lines, or the engine cannot tell them. `mode` is its name in the record.
    """
    engine = bench.engine
    if bench.written is None or not engine.tells_lines:
        return
    middle = cases.median_length(bench.lengths)
    call = step.bind(middle)
    try:
        clock = CLOCK if engine.device == "cpu" else perf_counter_ns
        with bench.state.fresh(), call.within():
            row = watched_tape.read(lambda: engine.ops.lines(call.run, ()), call.run, clock, bench.state.begin)
    except Exception as error:  # noqa: BLE001  (as for our modes)
        row = SourceLinesRow("unsupported" if engine.errors.refuses(error, mode) else "failed", bench.reason(error))
    yield SourceLines(str(job.workload), str(job.size), modes={mode: row}, code=texts(bench.written, row.lines))


def _row(mode: str, case: Case) -> SourceLinesRow:
    try:
        executables = engines.step(mode, case).executables()
        return watched_graph.lines(executables[0], case) if executables else watched_tape.lines(case)
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what its row says)
        return SourceLinesRow("unsupported" if engines.refuses(mode, error) else "failed", describe_error(error))


def texts(f: Callable[..., Any], lines: Iterable[str]) -> dict[str, str]:
    """Return the text of lines such as `model.py:12` in the file of `f`, or of a loaded module with that name."""
    places = {line: line.rpartition(":") for line in lines}
    files = _files(f, {name for name, _, _ in places.values()})
    code = {
        line: linecache.getline(files[name], int(number)).strip()
        for line, (name, _, number) in places.items()
        if name in files
    }
    return {line: text for line, text in code.items() if text}


def _files(f: Callable[..., Any], names: Collection[str]) -> dict[str, str]:
    """Return the path of each file: that of `f`, or of the one loaded module with the name that is not ours."""
    paths: dict[str, set[str]] = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and Path(path).name in names and not is_internal(path):
            paths.setdefault(Path(path).name, set()).add(path)
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is not None:
        paths[Path(code.co_filename).name] = {code.co_filename}
    return {name: alike.pop() for name, alike in paths.items() if len(alike) == 1}
