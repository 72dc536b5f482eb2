"""The passes in the order they run, each with what it did. Every graph is verified as it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphs.ir import Graph
from static.passes.algebra import simplify_algebra
from static.passes.common_subexpressions import merge_common_subexpressions
from static.passes.constant_folding import fold_constants
from static.passes.dead_code import remove_dead_code

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
    """The graph after all passes, and what each did."""
    steps = []
    for one in passes:
        before, graph = graph, one(graph)
        steps.append(Step(one.__name__, len(before), len(graph)))
    return graph, steps
