"""Broadcasting pushed down: elementwise work is done on what is repeated, before it is repeated, or needs no repeating.

multiply(broadcast_to(s, (B, N)), x)     multiply(s, x)
divide(broadcast_to(s, (B, N)), 2)       broadcast_to(divide(s, 2), (B, N))
multiply(ones of (B, N), x)              multiply(a constant of one number, x)

The same kernels run on the same numbers, and so give the same bits. What is computed on fewer elements than before is
only what IEEE 754 defines to the last bit: the loops for other functions may differ with how their operand lies.
"""

from __future__ import annotations

from typing import Any

from graphs import dims
from graphs.ir import CONSTANT, Graph, Node
from graphs.ops import elementwise
from graphs.ops.creation import full
from graphs.ops.movement import broadcast_to
from graphs.spec import broadcast_shapes
from static.passes.patterns import number, value_of
from static.passes.rewrite import rewrite

_DEFINED = frozenset(
    [
        elementwise.add, elementwise.subtract, elementwise.multiply, elementwise.divide, elementwise.negative,
        elementwise.abs, elementwise.sign, elementwise.square, elementwise.sqrt, elementwise.reciprocal,
        elementwise.maximum, elementwise.minimum, elementwise.relu, elementwise.where, elementwise.equal,
        elementwise.not_equal, elementwise.less, elementwise.less_equal, elementwise.greater,
        elementwise.greater_equal, elementwise.logical_and, elementwise.logical_or, elementwise.logical_not,
        elementwise.isfinite, elementwise.isnan, elementwise.isinf,
    ]
)  # fmt: skip


_REPEATS = frozenset([broadcast_to, full, CONSTANT])


def push_broadcasts(graph: Graph) -> Graph:
    """The graph with operands of elementwise ops taken as they were before they were repeated."""
    return rewrite(graph, _pushed)


def _pushed(node: Node) -> Node | None:
    if node.op.family != "elementwise" or not node.spec.ndim or not any(s.op in _REPEATS for s in node.inputs):
        return None
    inputs = [_unrepeated(source, node) for source in node.inputs]
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return None
    shape = broadcast_shapes(*(source.spec.shape for source in inputs))
    if dims.same_shape(shape, node.spec.shape):
        return Node.of(node.op, inputs, node.attrs, node.source)
    if node.op not in _DEFINED:
        return None
    smaller = Node.of(node.op, inputs, node.attrs, node.source)
    return Node.of(broadcast_to, [smaller], {"shape": node.spec.shape}, node.source)


def _unrepeated(source: Node, reader: Node) -> Node:
    if source.op is broadcast_to:
        return source.inputs[0]
    if not source.spec.ndim or reader.op not in _DEFINED:
        return source
    value: Any = source.attrs["value"] if source.op is full else value_of(source)
    return source if value is None else number(value, source.spec.dtype, reader.source)
