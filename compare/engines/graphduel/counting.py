"""What the dynamic engine runs in a step, op by op, both passes: the ops that its tape would record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dynamic
from compare.engines.base import Function
from compare.records.work import RanOp
from graphs.cost import node_cost
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec

PRODUCTS = ("matmul", "conv2d")
"""How the names of products begin: ops that no pass fuses."""


def ran(step: Function, call: tuple[Any, ...]) -> list[RanOp]:
    """The ops of a call, in order. The call is run once."""
    return list(_ops(dynamic.record(step, *call)))


def _ops(graph: Graph) -> Iterator[RanOp]:
    for node in graph.calls:
        if node.op.family != "source":
            yield _of(node)


def _of(node: Node) -> RanOp:
    if node.op.view:
        return RanOp("view")
    specs: list[Any] = [each.spec for each in (node, *node.inputs) if type(each.spec) is TensorSpec]
    moved = sum(int(spec.nbytes) for spec in specs)
    elements = int(specs[0].size) if type(node.spec) is TensorSpec else 0
    if node.op.name.startswith(PRODUCTS):
        return RanOp("product", elements, moved, int(node_cost(node).flops))
    return RanOp("other", elements, moved)
