"""The passes in the order they run, each with what it did. Every graph is verified as it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphs.ir import Graph, Node
from static.passes.algebra import simplify_algebra
from static.passes.common_subexpressions import merge_common_subexpressions
from static.passes.constant_folding import fold_constants
from static.passes.dead_code import remove_dead_code
from static.passes.rewrite import rewrite

Pass = Callable[[Graph], Graph]

# The rungs of the ladder. Each gives the same bits as the one before.
REPLAY: tuple[Pass, ...] = (remove_dead_code,)
SIMPLIFY: tuple[Pass, ...] = (simplify_algebra, fold_constants, merge_common_subexpressions, remove_dead_code)
DEFAULT = SIMPLIFY


class Step(NamedTuple):
    """One pass that ran: its name, and the number of nodes before and after."""

    name: str
    before: int
    after: int


def run(graph: Graph, passes: Sequence[Pass] = DEFAULT) -> tuple[Graph, list[Step]]:
    """The graph after all passes, its subgraphs first, and what each pass did to the graph itself."""
    graph = rewrite(graph, lambda node: _with_subgraphs(node, passes))
    steps = []
    for one in passes:
        before, graph = graph, one(graph)
        steps.append(Step(one.__name__, len(before), len(graph)))
    return graph, steps


def _with_subgraphs(node: Node, passes: Sequence[Pass]) -> Node | None:
    """A control-flow node with its branches and bodies after the passes; None for any other node."""
    if not node.subgraphs:
        return None
    attrs = {key: _optimized(value, passes) for key, value in node.attrs.items()}
    return Node(node.op, node.inputs, attrs, node.spec, node.source)


def _optimized(value: Any, passes: Sequence[Pass]) -> Any:
    if isinstance(value, Graph):
        return run(value, passes)[0]
    return tuple(_optimized(v, passes) for v in value) if isinstance(value, tuple) else value
