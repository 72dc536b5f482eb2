"""The passes in the order they run, each with what it did. Every graph is verified as it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphs.ir import Graph
from static.passes.dead_code import remove_dead_code

Pass = Callable[[Graph], Graph]

DEFAULT: tuple[Pass, ...] = (remove_dead_code,)


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
