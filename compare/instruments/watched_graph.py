"""A watched static step: the arrays in the arena and beside it, and the cost of each line of source.

Every line of generated code belongs to a node, and a node to a line of source.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from types import FrameType
from typing import Any

import static
from compare.engines import cases
from compare.engines.graphduel.steps import transform_step
from compare.instruments.memory import numpy_memory
from compare.instruments.watched_tape import Counted, Reading, Spans, Timeline, moment, time_lines
from compare.records.cells import LineCost, Moment, Phase, SourceLinesRow
from compare.workloads.base import Case
from graphs import dims
from graphs.ir import Node
from graphs.spec import TupleSpec
from static.call.executable import Executable
from static.memory import schedule as scheduling
from static.passes import pipeline
from static.passes.fusion import is_result
from static.trace.tracing import trace_function


def timeline(case: Case) -> Timeline:
    """Return the timeline of building the static step of a case, then of a call over the first example."""
    arguments = (case.params, *case.examples[0])
    with numpy_memory():
        traced = trace_function(transform_step(static, cases.traceable_loss(case), case.argnum), arguments)
        moments = [Moment("trace", {"structure": tracemalloc.get_traced_memory()[0]})]
        graph, steps = pipeline.run(traced.graph)
        executable = Executable(traced, graph, steps)
        gc.collect()  # garbage cycles of the compilation are not held for the step
        held = tracemalloc.get_traced_memory()[0]
        constants = min(held, executable.report().constant_bytes)
        moments.append(Moment("compile", {"slack": held - constants, "structure": constants}))
        lines, readings = _memory_by_line(executable, arguments)
    moments += _moments(executable, case, lines, readings, moments[-1].classes)
    report = executable.report()
    binding = executable.binding
    parts: list[Any] = [binding.plan.offsets, *binding.plan.offsets, binding.lives, *binding.lives]
    plan = sum(map(sys.getsizeof, parts))
    objects = {"structure": report.structure_bytes, "plan": plan}
    return Timeline(moments, objects, report.nodes)


def _memory_by_line(executable: Executable, arguments: tuple[Any, ...]) -> tuple[list[int], list[Reading]]:
    """Return the lines of generated code in the order they ran, and tracemalloc's reading after each."""
    lines: list[int] = []
    readings: list[Reading] = []
    code = executable.program.code

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        if lines and event in ("line", "return"):
            readings.append(Reading(*tracemalloc.get_traced_memory()))
        if event == "line":
            lines.append(frame.f_lineno)
        tracemalloc.reset_peak()
        return follow

    with follow_frames(follow):
        executable(*arguments)
    return lines, readings


@contextmanager
def follow_frames(follow: Callable[[FrameType, str, Any], Any]) -> Iterator[None]:
    """A context in which Python calls `follow` when code is entered, and its result at each line of that code."""
    before = sys.gettrace()
    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(before)


def _moments(
    executable: Executable, case: Case, lines: list[int], readings: list[Reading], held: Mapping[str, int]
) -> Iterator[Moment]:
    """Yield a moment for each line, on top of the bytes `held` between calls; a node is a step of the plan."""
    program = executable.program
    forward = forward_of(executable, case)
    step = {node: i for i, node in enumerate(program.schedule.order)}
    living = _living(executable, forward, case)
    before = sum(held.values())
    phase: Phase = "forward"
    for line, reading in zip(lines, readings, strict=True):
        node = program.lines[line - 2]
        if node is not None and node not in forward:
            phase = "backward"
        inside, beside = living[step[node] if node is not None else len(step) - 1]
        classes = Counter(held) + Counter(inside) + Counter(beside)
        classes["slack"] -= sum(inside.values())
        yield moment(phase, +classes, reading, before, line_of(node) if node is not None else "")
        before = reading.current


Living = tuple[Counter[str], Counter[str]]


def _living(executable: Executable, forward: set[Node], case: Case) -> list[Living]:
    """Return, for each step of the plan, the bytes by class in the arena, and those beside it."""
    program, binding = executable.program, executable.binding
    plan, steps = program.schedule, len(program.schedule.order)
    handed_out = {plan.owner[node] for node in program.graph.outputs}
    sizes = {node: dims.evaluate(node.spec.nbytes, binding.sizes) for node in owners(executable)}
    spans, saved = _spans(executable, sizes), saved_nodes(executable, case)
    living: list[Living] = [(Counter(), Counter()) for _ in range(steps)]
    for node, (lower, upper) in spans.items():
        name = "gradients" if node in handed_out else _class(node, forward, saved)
        for now in range(lower, steps if node in handed_out else upper):
            living[now][node not in plan.place][name] += sizes[node]
    for lower, upper, size in binding.lives[len(plan.lives) if program.planned else 0 :]:
        for now in range(lower, upper):
            living[now][0]["workspace"] += size
    return living


def owners(executable: Executable) -> list[Node]:
    """Return the nodes that own memory which a kernel writes."""
    plan = executable.program.schedule
    nodes = [node for node in plan.order if plan.owner[node] is node and not node.is_source]
    return [node for node in nodes if not isinstance(node.spec, TupleSpec)]


def _spans(executable: Executable, sizes: Mapping[Node, int]) -> dict[Node, tuple[int, int]]:
    """Return the steps between which each node's bytes are its own: to its last reader, or until overwritten."""
    plan = executable.program.schedule
    step = {node: i for i, node in enumerate(plan.order)}
    last = scheduling.last_use(plan.order, plan.owner)
    spans = {node: (step[scheduling.writer(node)], last[node] + 1) for node in sizes}
    residents: dict[Node, list[tuple[int, int, Node]]] = {}
    for node, (buffer, offset) in plan.place.items():
        start = dims.evaluate(offset, executable.sizes)
        residents.setdefault(buffer, []).append((start, start + sizes[node], node))
    for together in residents.values():
        for start, end, node in together:
            lower, upper = spans[node]
            later = (spans[n][0] for s, e, n in together if s < end and start < e and spans[n][0] > lower)
            spans[node] = lower, min([upper, *later])
    return spans


def _class(node: Node, forward: set[Node], saved: set[Node]) -> str:
    if node not in forward:
        return "workspace"
    return "saved" if node in saved else "activations"


def saved_nodes(executable: Executable, case: Case) -> set[Node]:
    """Return the forward nodes whose memory the backward pass reads; none where a step takes no gradients."""
    if case.argnum is None:
        return set()
    forward, owner = forward_of(executable, case), executable.program.schedule.owner
    late = [node for node in executable.nodes() if node not in forward]
    return {owner[source] for node in late for source in node.inputs if owner[source] in forward}


def forward_of(executable: Executable, case: Case) -> set[Node]:
    """Return the nodes from which the loss is computed; every node where a step takes no gradients."""
    if case.argnum is None:
        return set(executable.nodes())
    forward: set[Node] = set()
    stack = [executable.graph.outputs[0]]
    while stack:
        node = stack.pop()
        if node not in forward:
            forward.add(node)
            stack.extend(node.inputs)
    return forward


def line_of(node: Node) -> str:
    """Return the source line of a node: for a group that of its last result, for a result of a group its own."""
    if is_result(node):
        return line_of(node.inputs[0].subgraphs[0].outputs[node.attrs["number"]])
    if not node.source and node.subgraphs:
        return line_of(node.subgraphs[-1].outputs[-1])
    return node.source


def lines(executable: Executable, case: Case) -> SourceLinesRow:
    """Return the row of lines for an executable's step, over the first example of a case."""
    arguments = (case.params, *case.examples[0])
    executable(*arguments)
    counted = counts(executable, case)
    return time_lines(counted, lambda: executable(*arguments), lambda: _watch_executable(executable, arguments))


def counts(executable: Executable, case: Case) -> Counted:
    """Count kernels, bytes and saved arrays of each line.

    A fused group counts as the kernels inside it. Its bytes are those of its results: arrays that live only in a block
    are written to no memory of the step.
    """
    counted = Counted(LineCost)
    for program in executable.program.nested():
        for node in dict.fromkeys(program.lines):
            if node is not None and not node.subgraphs:
                counted[line_of(node)].kernels += 1
    saved = saved_nodes(executable, case)
    for node in owners(executable):
        size = dims.evaluate(node.spec.nbytes, executable.sizes)
        line = counted[line_of(node)]
        line.made += size
        line.saved += node in saved
        line.saved_bytes += size * (node in saved)
    counted.pop("", None)
    return counted


class _Follower:
    """Follows the generated code, with its loops and groups, and reads the clock at each line of it."""

    def __init__(self, executable: Executable) -> None:
        self.programs = {id(program.code): program for program in executable.program.nested()}
        self.spans: Spans = []
        self.stack: list[str] = []
        self.last = perf_counter()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        """Note the seconds of the last line; Python calls this, and its own time is not counted."""
        now = perf_counter()
        program = self.programs.get(id(frame.f_code))
        if program is None:
            self.last += perf_counter() - now
            return None
        if self.stack:
            self.spans.append((self.stack[-1], now - self.last))
        if event == "call":
            self.stack.append(self.stack[-1] if self.stack else "")
        elif event == "return":
            self.stack.pop()
        elif event == "line":
            node = program.lines[frame.f_lineno - 2]
            self.stack[-1] = line_of(node) if node is not None else self.stack[-2] if len(self.stack) > 1 else ""
        self.last = perf_counter()
        return self


def _watch_executable(executable: Executable, arguments: tuple[Any, ...]) -> Spans:
    follower = _Follower(executable)
    with follow_frames(follower):
        executable(*arguments)
    return follower.spans
