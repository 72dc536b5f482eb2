"""Why the engines differ in bytes: from the dynamic engine's peak to the static one's, switching one thing at a time.

All steps but the first and the last are counts, the same on every machine: the most bytes that are live at once in a
graph, in an order, with or without sharing.
"""

from __future__ import annotations

from collections.abc import Sequence

import dynamic
import static
from compare.engines import cases
from compare.engines.graphduel import functions
from compare.records.breakdowns import LedgerCount
from compare.workloads.base import Case
from graphs import dims
from graphs.ir import Graph, Node
from graphs.spec import TupleSpec
from static import memory
from static.codegen.binding import ArenaLayout, lay_out
from static.codegen.lowering import lower
from static.memory import sharing
from static.memory.schedule import Schedule, schedule
from static.memory.sharing import BufferPlace
from static.passes import pipeline


def counts(case: Case) -> list[LedgerCount]:
    """From the kernels of a tape, freed by liveness, to the arena with its results beside it."""
    arguments = (case.params, *case.examples[0])
    tape = dynamic.record(functions.transformed(dynamic, case.loss, case.argnum), *arguments)
    traced = static.trace(functions.transformed(static, cases.traced(case), case.argnum), *arguments)
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


def attributed(dynamic_peak: int, counted: Sequence[LedgerCount], static_peak: int) -> list[tuple[str, int]]:
    """What each cause adds (or, negative, saves) on the way from one engine's peak to the other's: they sum to it."""
    steps = [*counted, LedgerCount("constants, own memory of kernels and of control flow", static_peak)]
    before = [dynamic_peak, *(count.bytes for count in counted)]
    return [(count.cause, count.bytes - earlier) for count, earlier in zip(steps, before, strict=True)]


def most_live(graph: Graph, plan: Schedule | None = None) -> int:
    """The most bytes that are live at once; in the order of the graph, each result in memory of its own, by default.

    Results that are handed out live from where they are computed to the end.
    """
    plan = plan or Schedule.of(graph.nodes, sharing.views(graph.nodes), _alone(graph))
    layout: ArenaLayout = lay_out(lower(graph, plan), {})
    return memory.max_live([*layout.lives, *_results(graph, plan)])


def _alone(graph: Graph) -> dict[Node, BufferPlace]:
    """Places in which nobody shares any memory."""
    owner = sharing.views(graph.nodes).owner
    return {node: BufferPlace(node) for node in sharing.in_arena(graph.nodes, graph.outputs, owner)}


def _results(graph: Graph, plan: Schedule) -> list[memory.Buffer]:
    """What is handed out, which has no place in the arena; what is no kernel's is copied at the end."""
    end = len(plan.order)
    step = {node: i for i, node in enumerate(plan.order)}
    owners = dict.fromkeys(plan.owner[node] for node in graph.outputs)
    made = [node for node in owners if not isinstance(node.spec, TupleSpec)]
    start = {node: end - 1 if node.is_source else step[sharing.writer(node)] for node in made}
    return [(start[node], end, dims.evaluate(node.spec.nbytes, {})) for node in made]
