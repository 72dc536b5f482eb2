"""The graph of a user's function, and where its values lie in memory, as a worker finds them."""

from __future__ import annotations

import dynamic
import static
from compare import steps
from compare.engines.graphduel.functions import transformed
from compare.own import origin
from compare.own.case import case_of
from compare.own.workers import answered
from compare.records.job import Job
from compare.records.own import FunctionFault, FunctionGraph, FunctionMemory
from compare.workloads.base import Case
from graphs.drawing import of_graph


def measure(job: Job) -> FunctionGraph | FunctionFault:
    """What a worker answers: `asked` are the arguments of `graph_of`."""
    return answered(str(job.size), lambda: graph_of(**job.asked))


def measure_memory(job: Job) -> FunctionMemory | FunctionFault:
    """What a worker answers: `asked` are the arguments of `memory_of`."""
    return answered(str(job.size), lambda: memory_of(**job.asked))


def memory_of(function: str, *, inputs: str | None, gradient: bool | None) -> FunctionMemory:
    """The memory plan of the step over the first call, compiled."""
    case = _case(function, inputs, gradient)
    step = transformed(static, case.loss, case.argnum)
    executable = static.compile(step, case.params, *case.examples[0], convert=True)
    drawn, plan = executable.draw_memory(), executable.plan
    return FunctionMemory(function.rpartition(":")[2], plan.peak, plan.lower_bound, list(drawn.buffers))


def _case(function: str, inputs: str | None, gradient: bool | None) -> Case:
    steps.now(f"imported {function.rpartition(':')[0]}")
    f, calls = origin.called(function, inputs)
    steps.now(f"called {function}")
    return case_of(f, calls, gradient, None)


def graph_of(
    function: str, *, inputs: str | None, gradient: bool | None, engine: str, optimised: bool
) -> FunctionGraph:
    """The graph of the first call, as text and as it is drawn."""
    case = _case(function, inputs, gradient)
    step = transformed(dynamic if engine == "dynamic" else static, case.loss, case.argnum)
    args = (case.params, *case.examples[0])
    if engine == "dynamic":
        found = dynamic.record(step, *args)
    elif optimised:
        found = static.compile(step, *args, convert=True).graph
    else:
        found = static.trace(static.converted(step), *args)
    return FunctionGraph(str(found), of_graph(found))
