"""What a step is made of, before anything is timed: its graph in each engine, from tracing alone where that will do.

Where a function branches on values, one run of the dynamic engine says which ops it runs. Workloads are run so, and a
function of the user's never is: it may be large, and do more than compute. Its graph is then the converted one in both
engines, with the longest of its branches, and `TURNS` of a loop whose length only a run knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import dynamic
import static
from compare.advice import work
from compare.advice.costs import Costs, Overhead
from compare.advice.work import StepSeconds
from compare.engines.graphduel.functions import transformed
from compare.errors import described
from graphs import tree
from graphs.errors import ControlFlowError, GraphError
from graphs.ir import CONSTANT, Graph
from static.passes import pipeline
from static.trace.tracing import trace_function

TURNS = 10.0
"""Turns of a loop whose length only a run would tell, in a function that is not run."""


class Predicted(NamedTuple):
    """The parts of a step in each engine, and the seconds of a compilation; None where static refuses the function."""

    dynamic: StepSeconds
    static: StepSeconds | None
    compile: float | None


@dataclass(frozen=True)
class Structure:
    """The graphs of a step: `dynamic` as it is recorded, `static` optimised, None with the `reason` if it is refused.

    `traced` are the nodes that are compiled, `trips` is how often loops of unknown length turned, or are taken to turn,
    and `ran` whether it took a run of the function to know: only a workload that branches on values is run. Where both
    graphs are the converted one instead, `converted` is that of the function without its gradient.
    """

    dynamic: Graph
    static: Graph | None
    traced: int
    trips: float
    reason: str | None = None
    gradient: bool = True
    ran: bool = False
    converted: Graph | None = None

    def predicted(self, costs: Costs) -> Predicted:
        """The seconds by the costs of a machine."""
        eager = self._eager(costs, costs.dynamic if self.gradient else costs.plain)
        if self.static is None:
            return Predicted(eager, None, None)
        compile = costs.compile.call + costs.compile.op * self.traced
        return Predicted(eager, work.static_parts(self.static, costs, self.trips), compile)

    def _eager(self, costs: Costs, overhead: Overhead) -> StepSeconds:
        if self.converted is None:
            return work.dynamic_parts(self.dynamic, costs, overhead)
        found = work.dynamic_parts(self.dynamic, costs, overhead, self.trips)
        if not self.gradient:
            return found
        return found + work.repeated_parts(self.converted, costs, overhead, self.trips).times(-1)


def structure(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnum: int | None,
    static_f: Callable[..., Any] | None = None,
    *,
    run: bool = True,
) -> Structure:
    """The structure of a step of `f`, with its gradients in `argnum` if that is given.

    `static_f` is what the static engine traces if that is not f itself: the same without Python's control flow on
    values. Without `run` nothing is run, and a trace that fails raises its GraphError. Raises what `f` raises.
    """
    static_f = static_f or f
    try:
        traced, reason = static.trace(transformed(static, static_f, argnum), *args), None
    except GraphError as error:
        if not run:
            raise
        traced, reason = None, described(error)
    branches = traced is None or static_f is not f
    ran = run and branches
    eager = dynamic.record(transformed(dynamic, f, argnum), *args) if traced is None or ran else traced
    if traced is None:
        return Structure(eager, None, 0, 1.0, reason, argnum is not None, ran)
    nodes = sum(len(graph) for graph in traced.nested())
    trips = TURNS if branches and not ran else _trips(traced, eager)
    optimised, _ = pipeline.run(traced)
    converted = None
    if branches and not ran:
        converted = traced if argnum is None else static.trace(transformed(static, static_f, None), *args)
    return Structure(eager, optimised, nodes, trips, None, argnum is not None, ran, converted)


def output_of(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The specs of what `f` returns, from its trace; None for what depends on no argument. Raises what that raises.

    A function that branches on values is converted.
    """
    try:
        traced = trace_function(f, args)
    except ControlFlowError:
        traced = trace_function(static.converted(f), args)
    specs = [None if node.op is CONSTANT else node.spec for node in traced.graph.outputs]
    return tree.unflatten(traced.outputs, specs)


def _trips(traced: Graph, eager: Graph) -> float:
    """How often loops turned in the dynamic run, by the ops that it took and those of one turn."""
    inside = sum(sum(1 for _ in work.calls(graph, 1)) for graph in work.loops(traced))
    outside = sum(1 for _ in work.calls(traced, 0))
    once = sum(1 for _ in work.calls(eager, 1))
    return max(1.0, (once - (outside - inside)) / inside) if inside else 1.0
