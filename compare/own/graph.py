"""The graph of a user's function, and its values in memory, as a worker finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from textwrap import fill
from typing import Any

import dynamic
import static
from compare import steps, text
from compare.engines.graphduel.steps import transform_step
from compare.own.workers import answer_or_fault
from compare.records.job import Job
from compare.records.own import FunctionFault, FunctionGraph, FunctionMemory
from compare.report.show import WIDTH
from compare.subjects import origin
from compare.subjects.case import case_of
from compare.workloads.base import Case
from graphs.drawing import beside, difference, mark_changes, of_graph
from graphs.drawing.diagram import Change
from graphs.drawing.difference import renumber_like
from graphs.drawing.drawing import Stage
from graphs.drawing.text import CHANGES, changes_of, outline
from graphs.ir import Graph, format_rows
from static.passes import pipeline


def measure(job: Job) -> FunctionGraph | FunctionFault:
    """Return a worker's answer with the graph; `asked` are the arguments of `graph_of`."""
    return answer_or_fault(str(job.size), lambda: graph_of(**job.asked))


def measure_memory(job: Job) -> FunctionMemory | FunctionFault:
    """Return a worker's answer with the memory; `asked` are the arguments of `memory_of`."""
    return answer_or_fault(str(job.size), lambda: memory_of(**job.asked))


def memory_of(function: str, *, inputs: str | None, gradient: bool | None) -> FunctionMemory:
    """Return the memory plan of the compiled step over the first call."""
    case = _case(function, inputs, gradient)
    step = transform_step(static, case.loss, case.argnum)
    executable = static.compile(step, case.params, *case.examples[0], convert=True)
    drawn, plan = executable.draw_memory(), executable.plan
    return FunctionMemory(function.rpartition(":")[2], plan.peak, plan.lower_bound, list(drawn.buffers))


def _case(function: str, inputs: str | None, gradient: bool | None) -> Case:
    steps.now(f"imported {function.rpartition(':')[0]}")
    f, calls = origin.load_function(function, inputs)
    steps.now(f"called {function}")
    return case_of(f, calls, gradient, None)


def graph_of(
    function: str,
    *,
    inputs: str | None,
    gradient: bool | None,
    engine: str,
    optimised: bool,
    passes: bool,
    unfold: bool,
) -> FunctionGraph:
    """Return the graph of the first call, as text and as a drawing; with `passes` after each pass.

    The engine "both" gives the tape of dynamic beside the graph that static optimises, with differences marked.
    """
    case = _case(function, inputs, gradient)
    args = (case.params, *case.examples[0])
    if passes:
        return _after_passes(static.trace(static.converted(_step(static, case)), *args), unfold)
    if engine == "both":
        return _beside(_record_graph(case, args), _optimise_graph(case, args), unfold)
    if engine == "dynamic":
        graph = _record_graph(case, args)
    else:
        graph = _optimise_graph(case, args) if optimised else static.trace(static.converted(_step(static, case)), *args)
    written = str(graph) if unfold else outline(graph, *format_rows(graph))
    return FunctionGraph(written, [Stage(graph.name, "", of_graph(graph))])


def _step(engine: Any, case: Case) -> Callable[..., Any]:
    return transform_step(engine, case.loss, case.argnum)


def _record_graph(case: Case, args: tuple[Any, ...]) -> Graph:
    return dynamic.record(_step(dynamic, case), *args)


def _optimise_graph(case: Case, args: tuple[Any, ...]) -> Graph:
    return static.compile(_step(static, case), *args, convert=True).graph


def _after_passes(graph: Graph, unfold: bool) -> FunctionGraph:
    """Return the traced graph, and the graph after each pass that changed it; a node keeps its number."""
    before, fresh = of_graph(graph), count(len(graph))
    stages = [Stage("traced", text.count_noun(len(graph), "node"), before)]
    idle = []
    for step, after in pipeline.stages(graph):
        if step.changed:
            diagram = renumber_like(before, of_graph(after), fresh)
            stages.append(
                Stage(step.name, str(step).partition(": ")[2].replace("->", "→"), difference(before, diagram))
            )
            before = diagram
        else:
            idle.append(step.name)
    rows = [f"graph {graph.name}, {stages[0].note} as it was traced"]
    for stage in stages[1:]:
        rows += [f"{stage.title}: {stage.note}", *changes_of(stage.diagram, None if unfold else CHANGES)]
    busy = {stage.title for stage in stages}
    unused = ", ".join(dict.fromkeys(name for name in idle if name not in busy)) or "no pass"
    rows.append(fill(f"nothing to do for {unused}", WIDTH, subsequent_indent="  "))
    return FunctionGraph("\n".join(rows), stages)


def _beside(tape: Graph, optimised: Graph, unfold: bool) -> FunctionGraph:
    """Return the tape beside the optimised graph: nodes that passes left out are "removed", new ones "added"."""
    before, after = of_graph(tape), of_graph(optimised)
    changed = difference(before, after)
    left, right = mark_changes(before, after)
    titled = replace(left, title="dynamic: the tape of one run"), replace(right, title="static: the optimised graph")
    counts = Counter(item.change for item in changed.items if item.change)
    said = ", ".join(f"{counts[change]:,} {word}" for change, word in _CHANGES.items() if counts[change])
    sizes = (
        f"dynamic records {text.count_noun(len(tape), 'node')}, static runs {text.count_noun(len(optimised), 'node')}"
    )
    rows = [f"{tape.name}: {sizes}: {said or 'the same'}", *changes_of(changed, None if unfold else 3 * CHANGES)]
    return FunctionGraph("\n".join(rows), [Stage(tape.name, said, beside(*titled))])


_CHANGES: dict[Change, str] = {"removed": "removed", "added": "added", "rewritten": "read other nodes"}
