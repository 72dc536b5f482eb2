"""The order in which nodes run, which of them share memory, and how long each block of memory lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphs.dims import same
from graphs.ir import Graph, Node
from graphs.ops.movement import permute_dims, reshape
from graphs.spec import TupleSpec
from static import memory


class Schedule(NamedTuple):
    """The nodes in the order they run, and for each node the node that owns the memory it looks at."""

    order: tuple[Node, ...]
    owner: dict[Node, Node]

    def last_use(self) -> dict[Node, int]:
        """For each owner, the step after which nobody reads its memory."""
        last: dict[Node, int] = {}
        for step, node in enumerate(self.order):
            for value in (node, *node.inputs):
                last[self.owner[value]] = step
        return last


def schedule(graph: Graph) -> Schedule:
    """The graph's own order: that in which the user's code, and then backward, computed it."""
    return Schedule(graph.nodes, _owners(graph.nodes))


def _owners(nodes: Sequence[Node]) -> dict[Node, Node]:
    owner: dict[Node, Node] = {}
    contiguous: dict[Node, bool] = {}
    for node in nodes:
        shares = node.op.view and (node.op is not reshape or contiguous[node.inputs[0]])
        owner[node] = owner[node.inputs[0]] if shares else node
        contiguous[node] = not shares or (contiguous[node.inputs[0]] and _keeps_order(node))
    return owner


def _keeps_order(node: Node) -> bool:
    """Whether a view of contiguous memory is certainly contiguous itself."""
    if node.op is permute_dims:
        moved = [a for a in node.attrs["axes"] if not same(node.inputs[0].spec.shape[a], 1)]
        return moved == sorted(moved)
    return node.op is reshape or node.op.name == "stop_gradient"


def planned(graph: Graph, plan_of: Schedule) -> list[Node]:
    """The nodes that get a place in the arena: they own memory, compute, and are not handed to the caller."""
    kept = {plan_of.owner[output] for output in graph.outputs}
    owners = (n for n in plan_of.order if plan_of.owner[n] is n and n not in kept)
    return [n for n in owners if n.op.family != "source" and not isinstance(n.spec, TupleSpec)]


def lifetimes(nodes: Sequence[Node], plan_of: Schedule, sizes: Sequence[int]) -> list[memory.Buffer]:
    """For each node, the half-open interval of steps in which its memory is in use, and its bytes."""
    step = {node: i for i, node in enumerate(plan_of.order)}
    last = plan_of.last_use()
    return [(step[n], last[n] + 1, size) for n, size in zip(nodes, sizes, strict=True)]
