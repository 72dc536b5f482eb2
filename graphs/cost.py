"""What a graph costs, from specs alone: floating point operations and bytes moved."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass

from graphs import dims
from graphs.dims import Size
from graphs.ir import Graph, Node


@dataclass(frozen=True)
class Cost:
    """Floating point operations, and bytes read and written; symbolic when a dimension is."""

    flops: Size
    bytes: Size

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def at(self, **sizes: int) -> Cost:
        """The cost for these sizes of the symbolic dimensions: `cost.at(B=32)`. Raises ShapeError if one is missing."""
        return Cost(dims.evaluate(self.flops, sizes), dims.evaluate(self.bytes, sizes))


_NOTHING = Cost(0, 0)


def node_cost(node: Node) -> Cost:
    """The cost of one node: each distinct input is read once, the result is written once. A view moves nothing.

    A scan costs its steps, a switch its dearest branch, and a while_loop, whose steps nobody knows, one of them.
    """
    specs = [source.spec for source in node.inputs]
    return Cost(node.op.cost(*specs, out=node.spec, **node.attrs), _moved(node))


def _moved(node: Node) -> Size:
    if node.op.view or node.is_source:
        return 0
    inner = [graph_cost(graph).bytes for graph in node.subgraphs]
    if not inner:
        return functools.reduce(operator.add, _accesses(node))
    if "branches" in node.attrs:
        return functools.reduce(dims.maximum, inner)
    return functools.reduce(operator.add, inner) * node.attrs.get("length", 1)


def _accesses(node: Node) -> Iterator[Size]:
    """The bytes of each array that a kernel reads or writes."""
    yield node.spec.nbytes
    for source in dict.fromkeys(node.inputs):
        whole = source.spec.nbytes
        part = node.op.gathers and source is node.inputs[0]
        yield dims.minimum(whole, node.spec.nbytes) if part else whole


def graph_cost(graph: Graph) -> Cost:
    """The cost of one run of a graph."""
    return functools.reduce(operator.add, map(node_cost, graph.nodes), _NOTHING)


def cost_by_op(graph: Graph) -> dict[str, Cost]:
    """The cost of one run of a graph, by the name of the op."""
    totals: dict[str, Cost] = {}
    for node in graph.calls:
        totals[node.op.name] = totals.get(node.op.name, _NOTHING) + node_cost(node)
    return totals
