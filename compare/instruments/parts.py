"""Time part by part: where the seconds of a step go in each engine, by taking away one thing at a time.

The measured code has no hooks: each part is the difference of two programs that differ in it alone, timed side by side.
The rest, which no difference explains, is the part `unexplained`. The programs of the dynamic engine:

    step       a training step by `value_and_grad`        forward    the kernels of the loss alone, as straight code
    passes     the same by `backward` on tensors          kept       the same, what backward reads kept to the end
    recorded   the loss on tensors that need gradients    whole      the kernels of the step alone, as straight code
    plain      the loss on tensors that need none         into       the same, into memory laid out beforehand
    wrapped    `value_and_grad` of a sum of one leaf
    made       tensors of the leaves that need gradients
    anew       `passes` on leaves made anew               bare       `wrapped` by `backward` on leaves made anew

Those of the static engine, compiled when first called:

    step       a call of the jitted function              run        what the generated code takes
    call       a call of its executable                   calls      the generated code with kernels that do nothing
    guard      that call with nothing to run              fresh      results allocated anew, and filled
                                                          filled     as many bytes filled that are there already

`unexplained` does not vanish by arithmetic: `step` and `anew` are two ways to the same gradients, and `call` is not
made of `guard` and `run`, which are each timed on their own.

The clock is that of the thread. A difference of programs is a small number between large ones, and what other
processes take of the core belongs to no part: its share of the wall time is recorded as `off_core`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

import dynamic
import graphs
import static
from compare import workloads
from compare.engines import cases
from compare.engines.cases import traceable_loss
from compare.engines.graphduel.steps import tensor_of, transform_step
from compare.engines.process import limit_seconds
from compare.engines.step import Step, Turns
from compare.errors import UnsupportedError
from compare.instruments import ledger
from compare.instruments.bench import Bench
from compare.instruments.rounds import TimedCall, own_rounds
from compare.records.cells import Parts
from compare.records.job import Job
from compare.records.own import CallParts, CallPartsRow
from compare.steps import now
from compare.workloads.base import Case
from graphs import tree
from graphs.ir import Graph
from graphs.spec import TupleSpec
from static.call.executable import Executable
from static.codegen.binding import bind
from static.codegen.lowering import lower
from static.memory.schedule import Schedule, in_arena, places, views
from static.passes import pipeline
from static.trace.tracing import trace_function

Weights = Mapping[str, Mapping[str, int]]
"""Each part as a sum of programs: the factor of each program."""
UNEXPLAINED = "unexplained"

DYNAMIC: Weights = {
    "kernel": {"into": 1},
    "allocation": {"whole": 1, "into": -1},
    "dispatch": {"plain": 1, "forward": -1},
    "recording": {"recorded": 1, "plain": -1, "kept": -1, "forward": 1},
    "backward": {"passes": 1, "recorded": -1, "whole": -1, "kept": 1},
    "containers": {"made": 1, "wrapped": 1, "bare": -1},
    "in place": {"anew": 1, "made": -1, "passes": -1},
    UNEXPLAINED: {"step": 1, "anew": -1, "wrapped": -1, "bare": 1},
}
"""Each part of a dynamic step as a sum of programs.

`backward` is the cost of walking the tape beside the kernels that it runs; keeping arrays for it is part of
`allocation`. `containers` is the cost of the functional form: nested arguments become tensors, and gradients are laid
out. `in place` is how much more the loss and its backward pass cost on leaves that were just made, as in a step, than
in a loop of their own, where code and memory are still warm in the caches.
"""
STATIC: Weights = {
    "kernel": {"run": 1, "calls": -1, "fresh": -1, "filled": 1},
    "allocation": {"fresh": 1, "filled": -1},
    "dispatch": {"calls": 1},
    "guard": {"guard": 1},
    "cache lookup": {"step": 1, "call": -1},
    UNEXPLAINED: {"call": 1, "guard": -1, "run": -1},
}
"""Each part of a static step as a sum of programs.

Its backward pass belongs to the graph, and is no part of its own.
"""
ENGINES: Mapping[str, Weights] = {"dynamic": DYNAMIC, "static": STATIC}


def dynamic_programs(case: Case) -> dict[str, TimedCall]:
    """Return the programs of the dynamic engine, over the first example of a case with gradients."""
    arguments = (case.params, *case.examples[0])
    plain = [tree.tree_map(tensor_of, argument) for argument in arguments]

    def make_leaves() -> list[Any]:
        leaves = [*plain]
        leaves[_gradient_argument(case)] = tree.tree_map(_needing, arguments[_gradient_argument(case)])
        return leaves

    needing = make_leaves()
    step = dynamic.value_and_grad(case.loss, _gradient_argument(case))
    trivial = partial(_sum_of_one, _gradient_argument(case))
    wrapped = dynamic.value_and_grad(trivial, _gradient_argument(case))
    whole = dynamic.record(step, *arguments)
    # The first kernel calls of the run as a graph; its outputs are those that are read later, and the last result.
    numbers = itertools.accumulate(not node.is_source for node in whole.nodes)
    calls = sum(dynamic.record(case.loss, *arguments).op_counts().values())
    early = [node for node, number in zip(whole.nodes, numbers, strict=True) if number <= calls]
    owner = views(whole.nodes).owner
    inside = {node for node in early if not node.is_source}
    read = dict.fromkeys(owner[source] for node in whole.nodes[len(early) :] for source in node.inputs)
    last = next(node for node in reversed(early) if node in inside)
    kept = Graph("kept", whole.inputs, early, [*(node for node in read if node in inside and node is not last), last])
    arrays = [leaf for leaf in tree.leaves(arguments) if isinstance(leaf, np.ndarray)]
    return {
        "step": lambda: step(*arguments),
        "passes": _passes(case.loss, needing, _gradient_argument(case)),
        "recorded": lambda: case.loss(*needing),
        "plain": lambda: case.loss(*plain),
        "wrapped": lambda: wrapped(*arguments),
        "bare": lambda: trivial(*make_leaves()).backward(),
        "anew": lambda: case.loss(*make_leaves()).backward(),
        "made": make_leaves,
        "forward": straight(Graph("forward", kept.inputs, kept.nodes, kept.outputs[-1:]), arrays, arena=False),
        "kept": straight(kept, arrays, arena=False),
        "whole": straight(whole, arrays, arena=False),
        "into": straight(whole, arrays, arena=True),
    }


def _passes(loss: Any, tensors: Sequence[Any], wanted: int) -> TimedCall:
    """Return a program: a loss on tensors, and backward from it."""
    leaves = tree.leaves(tensors[wanted])

    def passes() -> None:
        loss(*tensors).backward()
        for leaf in leaves:
            leaf.grad = None

    return passes


def _sum_of_one(wanted: int, *arguments: Any) -> Any:
    """Return the sum of the smallest leaf of an argument, the least that can be differentiated."""
    return graphs.sum(min(tree.leaves(arguments[wanted]), key=lambda leaf: leaf.size))


def straight(graph: Graph, arrays: Sequence[Any], *, arena: bool) -> TimedCall:
    """Return the kernels of a recorded run on the same arrays, in the same order, as straight generated code."""
    seen = views(graph.nodes)
    placed = places(graph.nodes, seen, in_arena(graph.nodes, graph.outputs, seen.owner))
    run = bind(lower(graph, Schedule.of(graph.nodes, seen, placed), arena), {}).run
    return lambda: run(*arrays)


def static_programs(case: Case) -> dict[str, TimedCall]:
    """Return the programs of the static engine, over the first example. Raises the errors of compilation."""
    arguments = (case.params, *case.examples[0])
    jitted = static.jit(transform_step(static, traceable_loss(case), case.argnum))
    jitted(*arguments)
    (executable,) = jitted.executables.values()
    run, arrays = executable.binding.run, executable.inputs(arguments)
    nothing, outputs = _without_kernels(run), run(*arrays)
    guard = executable.with_run(lambda *_: outputs)  # checks its arguments, finds its binding, and has nothing to run
    # A call allocates its results, and arrays outside the arena.
    order = executable.program.schedule
    nodes = [node for node in order.order if order.owner[node] is node and node not in order.place]
    computed = [node for node in nodes if not node.is_source and not isinstance(node.spec, TupleSpec)]
    specs = [(node.spec.shape, node.spec.dtype) for node in computed]
    there = [np.empty(shape, dtype) for shape, dtype in specs]
    return {
        "step": lambda: jitted(*arguments),
        "call": lambda: executable(*arguments),
        "guard": lambda: guard(*arguments),
        "run": lambda: run(*arrays),
        "calls": lambda: nothing(*arrays),
        "fresh": lambda: _fill(np.empty(shape, dtype) for shape, dtype in specs),
        "filled": lambda: _fill(there),
    }


def _without_kernels(run: Any) -> FunctionType:
    """Return generated code in which every called object does nothing."""
    nothing = "".format  # takes any arguments, in C
    names = {name: nothing if callable(value) else value for name, value in run.__globals__.items()}
    defaults = tuple([nothing if callable(value) else value for value in run.__defaults__ or ()])
    return FunctionType(run.__code__, names, "run", defaults)


def _fill(arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    for array in arrays:
        array.fill(0)


def _gradient_argument(case: Case) -> int:
    if case.argnum is None:
        raise UnsupportedError("time part by part is that of a training step, and this case takes no gradients")
    return case.argnum


def _needing(array: Any) -> Any:
    """Return a tensor that requires a gradient, over the memory of an array."""
    return dynamic.from_numpy(array).requires_grad_()


# A function of a framework -------------------------------------------------------------------------------------------


PATIENCE = 60.0
"""The longest first pass in seconds of a mode that is compiled once more to be told apart."""
BRIEF = 0.5
"""The seconds of steady state from which on that is done: who measures for less wants counts, and wants them soon."""


def of_bench(job: Job, bench: Bench, names: Mapping[str, str], first: Mapping[str, float]) -> Iterator[CallParts]:
    """Yield the record of a user's function whose modes compile, over the call of median length.

    `names` are those of modes in records, and `first` has the seconds of the first pass of each that is right.
    """
    if bench.written is None or job.budget.seconds < BRIEF:
        return
    engine, index = bench.engine, cases.median_length(bench.lengths)
    rows: dict[str, CallPartsRow] = {}
    for mode, seconds in first.items():
        if seconds > PATIENCE:
            rows[names[mode]] = CallPartsRow("unsupported", f"it would compile again for {seconds:.0f} s")
            continue
        try:
            now(f"timed the parts of a call in {names[mode]}")
            with limit_seconds(2 * PATIENCE), bench.state.fresh():
                make, eager = partial(bench.step, mode), bench.step(bench.base)
                row = engine.ops.parts(mode, make, eager, index, partial(_turns, bench, mode))
        except Exception as error:  # noqa: BLE001  (the figures of the answer are there: this look fails alone)
            row = CallPartsRow("unsupported" if engine.errors.refuses(error, mode) else "failed", bench.reason(error))
        if row is not None:
            lines = [*row.ops, *row.outside, *(line for graph in row.graphs for line in graph.lines)]
            row.code = ledger.texts(bench.written, dict.fromkeys(lines))
            rows[names[mode]] = row
    if rows:
        yield CallParts(str(job.workload), str(job.size), modes=rows)


def _turns(bench: Bench, mode: str, step: Step) -> Turns:
    return bench.state.turns({mode: step})


# The measurement ------------------------------------------------------------------------------------------------------


COMPILES = 3
_PROGRAMS = {"dynamic": dynamic_programs, "static": static_programs}


def measure(job: Job) -> Parts:
    """Return the parts record of one process, over the example of median length.

    Raises UnsupportedError for a case without gradients.
    """
    case = cases.alone(workloads.load(job.source).case(str(job.size)))
    return measure_parts(job, case)


def measure_parts(job: Job, case: Case) -> Parts:
    """Return the blocks of every program of both engines, in seconds per call, and the stages of compilation."""
    programs = {f"{engine} {name}": program for engine, of in _PROGRAMS.items() for name, program in of(case).items()}
    for program in programs.values():
        program()
    rounds, off_core = own_rounds(programs, job.budget, job.random())
    blocks = rounds.steady()
    engines = {
        engine: {name.partition(" ")[2]: seconds for name, seconds in blocks.items() if name.startswith(f"{engine} ")}
        for engine in _PROGRAMS
    }
    return Parts(
        **job.head, engines=engines, off_core=off_core, once=[compile_stage_seconds(case) for _ in range(COMPILES)]
    )


def compile_stage_seconds(case: Case) -> dict[str, float]:
    """Return the seconds of each stage of compiling a step, and of a whole compilation."""
    step = transform_step(static, cases.traceable_loss(case), case.argnum)
    arguments = (case.params, *case.examples[0])
    stages: dict[str, float] = {}

    def time_stage(name: str, stage: Any, *args: Any) -> Any:
        start = time.perf_counter()
        result = stage(*args)
        stages[name] = time.perf_counter() - start
        return result

    time_stage("whole", static.compile, step, *arguments)
    traced = time_stage("tracing", trace_function, step, arguments)
    graph, steps = time_stage("passes", pipeline.run, traced.graph)
    time_stage("planning", Executable, traced, graph, steps)
    return stages
