"""The parts of a compiled call: where its time goes among guards, Dynamo, AOTAutograd, kernels, and what runs eager.

The step is compiled anew with clocks at the places that PyTorch has in Python: around each graph that Dynamo has
captured, each call of Inductor's code, each backward pass of a graph, and the engine of autograd. A clock counts what
no other clock inside it counts, so that parts cannot overlap. Guards run in C++, so they are evaluated by themselves.
Blocks with the clocks off, between those with them, say how long the call takes: the parts must add up to that.

What Dynamo's entry costs is the rest of a call that is one graph. Where graphs break, it is that of a function that
does nothing, for each graph, and what is left is Python and ops between graphs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, perf_counter_ns
from typing import Any, TypeVar

from compare.engines.process import patch_namespace
from compare.engines.step import BoundCall, Function, Step, Turns
from compare.engines.torch import dispatcher, dynamo
from compare.errors import UnsupportedError, is_users
from compare.records.own import GUARDS, KERNELS, CallPartsRow, GraphCost
from graphs.blocks import without_collection

WRAPPER, ENTRY = "AOTAutograd's wrapper", "Dynamo's entry"
AUTOGRAD, BETWEEN, AROUND = "autograd's engine", "Python and ops between graphs", "Python around the call"
GRAPHS = "graphs, op by op"
"""The part of graphs that a backend runs without Inductor's kernels."""
CALL, GRAPH, BACKWARD, ENGINE = "call", "graph", "backward", "engine"
"""The clocks: of the compiled function, of a graph, of a graph's backward pass, and of autograd's engine."""
COMPILED = "CompiledFunction"
"""The name of AOTAutograd's function of a graph with a backward pass."""
SECONDS, BLOCK = 2.0, 0.02
"""About the seconds of all blocks, and of one."""
LEAST = 3
"""The least number of pairs of blocks, and of calls before them."""
CHECKS, BLOCKS = 200, 25
"""How often what is short runs in a row, and the number of such rows: other programs only make one longer."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ')
Reading = TypeVar("Reading")
Key = tuple[str, str]
"""A clock and its graph, `0/0` as Dynamo numbers it; "" where the clock is of no graph."""


@dataclass(frozen=True)
class ClockedCall:
    """The nanoseconds of one call by clock, without those of clocks inside.

    `runs` says how often each clock ran, and `inside` how many clocks ran in it.
    """

    seen: Mapping[Key, float]
    runs: Mapping[Key, int]
    inside: Mapping[Key, int] = field(default_factory=dict)

    @property
    def whole(self) -> float:
        """The nanoseconds of the call."""
        return sum(self.seen.values())

    def graphs(self) -> dict[str, int]:
        """Return how often each graph ran."""
        return {graph: count for (clock, graph), count in self.runs.items() if clock == GRAPH}

    @classmethod
    def of(cls, marks: Sequence[Any]) -> ClockedCall:
        """Return a call by the marks of its clocks: a key and a time where one begins, a time alone where it ends."""
        seen, runs, inside = dict[Key, float](), dict[Key, int](), dict[Key, int]()
        stack: list[Any] = [[("", ""), 0, 0]]
        items = iter(marks)
        for item in items:
            if isinstance(item, tuple):
                (clock, graph), (_, around) = item, stack[-1][0]
                stack.append([(clock, around if graph is None else graph), next(items), 0])
                continue
            key, start, within = stack.pop()
            stack[-1][2] += item - start
            outer = stack[-1][0]
            inside[outer] = inside.get(outer, 0) + 1
            seen[key] = seen.get(key, 0.0) + item - start - within
            runs[key] = runs.get(key, 0) + 1
        return cls(seen, runs, inside)

    def without(self, inner: float, outer: float) -> ClockedCall:
        """Return the sample without what a clock costs, in nanoseconds inside of itself and around it."""
        seen = {
            key: spent - inner * self.runs[key] - outer * self.inside.get(key, 0) for key, spent in self.seen.items()
        }
        return replace(self, seen=seen)


class Clocks:
    """Nested clocks: each counts the nanoseconds of its function that no clock inside it counts.

    They run while `on`. While `doubled`, each function has a second clock inside the first, which shows what one costs
    where it stands: in a loop of its own a clock takes half as long.
    """

    def __init__(self) -> None:
        self.on = self.doubled = False
        self._marks: list[Any] = []
        self._mark = self._marks.append

    def around(self, clock: str, graph: str | None, function: Function) -> Function:
        """Return a function with a clock; of a graph that is None it has the graph of the clock around it.

        A clock leaves marks, which are read later. Dynamo may run while the function is called, so that nothing else
        that is written in Python is called here.
        """
        return self._clock(clock, graph, function, self._clock(clock, graph, function, function))

    def _clock(self, clock: str, graph: str | None, function: Function, doubled: Function) -> Function:
        key = clock, graph

        def run(*args: Any, **options: Any) -> Any:
            if not self.on:
                return function(*args, **options)
            mark = self._mark
            mark(key)
            mark(perf_counter_ns())
            try:
                return doubled(*args, **options) if self.doubled else function(*args, **options)
            finally:
                mark(perf_counter_ns())

        return run

    def marks(self, run: Callable[[], Any], *, doubled: bool = False) -> list[Any]:
        """Run a call with the clocks on, and return their marks."""
        self._marks.clear()
        self.on, self.doubled = True, doubled
        try:
            run()
        finally:
            self.on = self.doubled = False
        return [*self._marks]

    def sample(self, run: Callable[[], Any], *, doubled: bool = False) -> ClockedCall:
        """Return a call with the clocks on."""
        return ClockedCall.of(self.marks(run, doubled=doubled))

    def inner_share(self) -> float:
        """Return the share of what a clock costs that it counts itself; the rest is in the clock around it."""
        nothing, many = "".format, range(CHECKS)
        clocked = self.around(CALL, "", nothing)
        plain = min(_seconds(partial(_each, nothing)) for _ in many)
        inside = min(self.sample(partial(_each, clocked)).whole for _ in many) / 1e9
        whole = min(_seconds(partial(self.marks, partial(_each, clocked))) for _ in many)
        return min(1.0, max(0.0, inside - plain) / max(whole - plain, 1e-9))


def _each(function: Callable[[], Any]) -> None:
    for _ in range(CHECKS):
        function()


def _seconds(run: Callable[[], Any]) -> float:
    start = perf_counter_ns()
    run()
    return (perf_counter_ns() - start) / 1e9


# PyTorch's places -----------------------------------------------------------------------------------------------------


@dataclass
class CapturedGraph:
    """A graph of Dynamo's: its ops by the user's line, and its guards with the names of a frame that they hold for."""

    lines: Mapping[str, int] = field(default_factory=dict)
    guards: Any = None
    scope: Any = None

    def guard_seconds(self) -> float:
        """Return the seconds in which the guards are evaluated; 0 where they are not known, or no longer hold."""
        check, scope = getattr(self.guards, "check", None), self.scope
        if check is None or not check(scope):
            return 0.0
        return min(_seconds(partial(_each, partial(check, scope))) for _ in range(BLOCKS)) / CHECKS


class GraphWatch:
    """The graphs that PyTorch compiles meanwhile, with clocks at their places."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.graphs: dict[str, CapturedGraph] = {}
        self.outside = dispatcher.OutsideOps()
        self.is_watching = False
        self._names: dict[Any, str] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """A context in which graphs that are compiled get clocks, and their guards are kept."""
        import torch._dynamo.guards as guards
        from torch._dynamo.output_graph import OutputGraph

        with ExitStack() as stack:
            stack.enter_context(patch_method(OutputGraph, "call_user_compiler", self._compiling))
            if profiled := vars(guards).get("profile_guard_manager"):
                stack.enter_context(patch_namespace(vars(guards), {"profile_guard_manager": self._keeping(profiled)}))
            yield

    @contextmanager
    def with_clocks(self) -> Iterator[None]:
        """A context in which kernels, backward passes of graphs and autograd's engine have clocks."""
        import torch
        from torch._dynamo.eval_frame import skip_code
        from torch._inductor.output_code import CompiledFxGraph
        from torch.autograd.function import BackwardCFunction

        autograd = vars(torch.autograd)
        engine = self.clocks.around(ENGINE, "", autograd["_engine_run_backward"])
        skip_code(engine.__code__)
        with ExitStack() as stack:
            stack.enter_context(patch_method(CompiledFxGraph, "__call__", partial(self.clocks.around, KERNELS, None)))
            for name in ("apply", "apply_boxed"):  # the engine calls the second in later versions
                stack.enter_context(patch_method(BackwardCFunction, name, partial(self._applying, skip_code)))
            stack.enter_context(patch_namespace(autograd, {"_engine_run_backward": engine}))
            yield

    def _compiling(self, compiler: Function) -> Function:
        def compile_(output: Any, graph: Any, *args: Any) -> Any:
            name = _compile_id()
            self.graphs.setdefault(name, CapturedGraph()).lines = lines_of(graph)
            return self._running(name, compiler(output, graph, *args))

        return compile_

    def _running(self, name: str, compiled: Function) -> Function:
        """Return a compiled graph with its clock; while it is watched it tells that it runs, and its backward pass."""
        clocked = self.clocks.around(GRAPH, name, compiled)

        def run(*args: Any) -> Any:
            if self.clocks.on:
                return clocked(*args)
            if not self.is_watching:
                return compiled(*args)
            with self.outside.without_graph():
                returned = compiled(*args)
            for each in returned if isinstance(returned, (tuple, list)) else (returned,):
                if of := getattr(type(getattr(each, "grad_fn", None)), "_forward_cls", None):
                    self._names.setdefault(of, name)
            return returned

        return run

    def _applying(self, skip_code: Function, apply: Function) -> Function:
        """Return the backward pass of a node, with a clock where the node is a graph's."""
        clocks = self.clocks

        def of_graph(node: Any, *args: Any) -> Any:
            of = node._forward_cls
            if not clocks.on or of.__name__ != COMPILED:
                return apply(node, *args)
            if of not in applied:
                applied[of] = clocks.around(BACKWARD, self._names.get(of, ""), apply)
            return applied[of](node, *args)

        applied: dict[Any, Function] = {}
        skip_code(of_graph.__code__)
        return of_graph

    def _keeping(self, profiled: Function) -> Function:
        def keep(guards: Any, scope: Any, *args: Any) -> Any:
            kept = self.graphs.setdefault(_compile_id(), CapturedGraph())
            kept.guards, kept.scope = guards, scope
            return profiled(guards, scope, *args)

        return keep


@contextmanager
def patch_method(owner: type, name: str, change: Callable[[Function], Function]) -> Iterator[None]:
    """A context in which a method of a class is changed, if the class has it."""
    before = vars(owner).get(name)
    if before is not None:
        setattr(owner, name, change(before))
    try:
        yield
    finally:
        if before is not None:
            setattr(owner, name, before)


def _compile_id() -> str:
    from torch._guards import CompileContext

    return str(CompileContext.current_compile_id())


def lines_of(graph: Any) -> dict[str, int]:
    """Count the ops of a graph of Dynamo's by the innermost line of the user's, `model.py:12`."""
    return dict(Counter(line_of(node) for node in graph.graph.nodes if node.op.startswith("call_")))


def line_of(node: Any) -> str:
    """Return the innermost line of the user's of an op in a graph of Dynamo's; "" where there is none."""
    places = [place for place in _FRAME.findall(node.meta.get("stack_trace") or "") if is_users(place[0])]
    return f"{Path(places[-1][0]).name}:{places[-1][1]}" if places else ""


# The measurement ------------------------------------------------------------------------------------------------------


def call_parts(
    make: Callable[[], Step], eager: Step, index: int, turns: Callable[[Step], Turns], *, whole: bool
) -> CallPartsRow:
    """Return the parts of a warm call, by index, of a step that `make` makes and that is compiled anew.

    `whole` is whether all of the function is compiled as one. `eager` is the step of the mode that compiles nothing.
    Raises UnsupportedError where the step compiles again in later calls, or where they run other graphs or none.
    """
    dynamo.forget()
    watch = GraphWatch()
    with watch.listening():
        step = make()
        call, begin = step.bind(index), turns(step)
        clocked = _call_with_clock(step, index, watch.clocks) if whole else call
        with step.within():
            for _ in range(LEAST):
                begin_call(begin)
                call.run()
            compiles = step.compiles
            watch.is_watching = True
            begin_call(begin)
            call.run()
            watch.is_watching = False
            plain, samples = _blocks(call, clocked, begin, watch)
        if step.compiles != compiles:
            raise UnsupportedError("it compiles again in later calls")
        ran = samples[0].graphs()
        if any(sample.graphs() != ran for sample in samples):
            raise UnsupportedError("its calls do not run the same graphs")
        if not ran:
            raise UnsupportedError("no graph that Dynamo has captured runs in it")
        watch.is_watching = True
        outside = watch.outside.of_call(call)
        ops = dispatcher.OutsideOps().of_call(eager.bind(index))
    guards = sum(count * watch.graphs[name].guard_seconds() for name, count in ran.items() if name in watch.graphs)
    is_one = whole and sum(ran.values()) == 1 and not step.observed.breaks
    parts = split(samples, guards, None if is_one else _entry(), whole=whole)
    outside.pop("", None)
    watched = sum(cost.seconds for cost in outside.values())
    for cost in outside.values():
        cost.seconds *= min(1.0, parts.get(BETWEEN, 0.0) / (watched or 1.0))
    return CallPartsRow(
        "ok",
        None,
        whole=_lower(plain),
        parts=parts,
        guards=guard_count(ran),
        graphs=graph_costs(samples, {name: graph.lines for name, graph in watch.graphs.items()}),
        ops={line: cost.kernels for line, cost in ops.items() if line and cost.kernels},
        outside=outside,
    )


def begin_call(turns: Turns) -> None:
    """Restore the state before a call."""
    for restore in (turns.block, turns.call):
        if restore:
            restore()


def _call_with_clock(step: Step, index: int, clocks: Clocks) -> BoundCall:
    """Return the call of a step with a clock around its compiled function."""
    built: Any = step.built
    run = built.run
    built.run = clocks.around(CALL, "", run)
    try:
        return step.ready(*step.examples[index])
    finally:
        built.run = run


def _blocks(
    call: BoundCall, clocked: BoundCall, turns: Turns, watch: GraphWatch
) -> tuple[list[float], list[ClockedCall]]:
    """Return the seconds of calls without clocks, and samples of calls with them, in blocks that take turns."""
    plain, samples, doubled, began = list[float](), list[ClockedCall](), list[ClockedCall](), perf_counter()
    count, done, clocks = 1, 0, watch.clocks
    run = clocks.around(AROUND, "", clocked.run)
    while done < LEAST or perf_counter() - began < SECONDS:
        plain += _block(turns, count, lambda: _seconds(call.run))
        with watch.with_clocks():
            once = _block(turns, count, partial(clocks.marks, run))
            twice = _block(turns, count, partial(clocks.marks, run, doubled=True))
        samples += map(ClockedCall.of, once)
        doubled += map(ClockedCall.of, twice)
        count, done = max(1, round(BLOCK / median(plain[-count:]))), done + 1
    cost = _cost(samples, doubled)
    share = clocks.inner_share()
    return plain, [sample.without(cost * share, cost * (1 - share)) for sample in samples]


def _cost(samples: Sequence[ClockedCall], doubled: Sequence[ClockedCall]) -> float:
    """Return the nanoseconds that a clock costs, by calls in which each stands twice."""
    once, twice = (_lower([sample.whole for sample in each]) for each in (samples, doubled))
    return max(0.0, twice - once) / sum(samples[-1].runs.values())


def _block(turns: Turns, count: int, read: Callable[[], Reading]) -> list[Reading]:
    """Return what so many calls give, each from the state that it needs."""
    begin_call(turns)
    readings = []
    with without_collection():
        for _ in range(count):
            if turns.call:
                turns.call()
            readings.append(read())
    return readings


def _lower(values: Sequence[float]) -> float:
    """Return the mean of the lower half: other programs only make a call longer."""
    return fmean(sorted(values)[: max(1, len(values) // 2)])


def _mean_seconds(samples: Sequence[ClockedCall]) -> dict[Key, float]:
    """Return the seconds by clock of the half of the samples that has the least: a mean, so that they add up."""
    quiet = sorted(samples, key=lambda sample: sample.whole)[: max(1, len(samples) // 2)]
    keys = dict.fromkeys(key for sample in quiet for key in sample.seen)
    return {key: max(0.0, sum(sample.seen.get(key, 0.0) for sample in quiet) / len(quiet) / 1e9) for key in keys}


def split(
    samples: Sequence[ClockedCall], guards: float, entry: tuple[float, float] | None, *, whole: bool
) -> dict[str, float]:
    """Return the seconds of each part of a call.

    `guards` are the seconds of guards. `entry` are the seconds in which Dynamo enters a first graph, and a further one
    after a break; None for a call of one graph, of which all that no clock counts is Dynamo's. With `whole` there is a
    clock around the compiled function.
    """
    spent: dict[str, float] = {}
    for (clock, _), seconds in _mean_seconds(samples).items():
        spent[clock] = spent.get(clock, 0.0) + seconds
    rest = spent.get(CALL if whole else AROUND, 0.0)
    evaluated = min(guards, rest)
    entered = rest - evaluated
    if entry is not None:
        (first, further), graphs = entry, sum(samples[0].graphs().values())
        entered = min(entered, first + further * (graphs - 1) if whole else first * graphs)
    parts = {
        KERNELS: spent.get(KERNELS, 0.0),
        WRAPPER if spent.get(KERNELS) else GRAPHS: spent.get(GRAPH, 0.0) + spent.get(BACKWARD, 0.0),
        GUARDS: evaluated,
        ENTRY: entered,
        BETWEEN: rest - evaluated - entered,
        AUTOGRAD: spent.get(ENGINE, 0.0),
        AROUND: spent.get(AROUND, 0.0) if whole else 0.0,
    }
    return {part: seconds for part, seconds in parts.items() if seconds > 0}


def graph_costs(samples: Sequence[ClockedCall], lines: Mapping[str, Mapping[str, int]]) -> list[GraphCost]:
    """Return the graphs that run in a call, the dearest first; `lines` has the ops of each graph by line."""
    seconds, costs = _mean_seconds(samples), list[GraphCost]()
    for graph, runs in samples[0].graphs().items():
        kernels = seconds.get((KERNELS, graph), 0.0)
        around = seconds.get((GRAPH, graph), 0.0) + seconds.get((BACKWARD, graph), 0.0)
        costs.append(GraphCost(graph, runs, kernels, around, dict(lines.get(graph, {}))))
    return sorted(costs, key=lambda cost: -(cost.kernels + cost.around))


def guard_count(graphs: Mapping[str, int]) -> int:
    """Return the number of guards that are evaluated for these graphs, as Dynamo's records have it."""
    from torch._dynamo.utils import get_compilation_metrics

    counts = ((str(metrics.compile_id), metrics.guard_count or 0) for metrics in get_compilation_metrics())
    return sum(graphs.get(graph, 0) * count for graph, count in counts)  # a backward pass has a record without guards


def _entry() -> tuple[float, float]:
    """Return the seconds in which Dynamo enters a graph that does nothing, and one more after a break."""
    import torch

    x = torch.zeros(())

    def unbroken(x: Any) -> Any:
        return x + 1

    def with_break(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y + 1

    spent = []
    for function in (unbroken, with_break):
        run = partial(torch.compile(function, backend=lambda *_: lambda *_: (x,)), x)
        spent.append(min(_seconds(partial(_each, run)) for _ in range(BLOCKS)) / CHECKS)
    return spent[0], max(0.0, spent[1] - spent[0])
