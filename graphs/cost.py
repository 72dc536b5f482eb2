"""What a graph costs, from specs alone: floating point operations and bytes moved."""

from __future__ import annotations

from dataclasses import dataclass

from graphs.dims import Size
from graphs.ir import Graph, Node


@dataclass(frozen=True)
class Cost:
    """Floating point operations, and bytes read and written; symbolic when a dimension is."""

    flops: Size
    bytes: Size

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)


def node_cost(node: Node) -> Cost:
    """The cost of one node. A view moves nothing."""
    specs = [source.spec for source in node.inputs]
    flops = node.op.cost(*specs, out=node.spec, **node.attrs)
    moved: Size = 0
    if not node.op.view and node.op.family != "source":
        for spec in (*specs, node.spec):
            moved = moved + spec.nbytes
    return Cost(flops, moved)


def graph_cost(graph: Graph) -> Cost:
    """The cost of one run of a graph."""
    total = Cost(0, 0)
    for node in graph.nodes:
        total = total + node_cost(node)
    return total
