"""Algebraic simplification: ops that change nothing, or undo each other. Only rules that keep every bit.

x * 1, x / 1, x - 0          x           (not x + 0: it would turn -0.0 into 0.0)
reshape to the same shape    x           reshape of a reshape       one reshape
permute in order             x           permute of a permute       one permute
broadcast to the same shape  x           astype to the same dtype   x
the max or min of one        x           (not the sum, which turns -0.0 into 0.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from graphs import dims
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import Op
from graphs.ops import elementwise, movement, reductions
from static.passes.rewrite import rewrite


def simplify_algebra(graph: Graph) -> Graph:
    """The graph with every rule applied where it fits."""
    return rewrite(graph, _simplified)


def _simplified(node: Node) -> Node | None:
    rule = _RULES.get(node.op)
    return rule(node) if rule is not None else None


def _neutral(value: float, *positions: int) -> Callable[[Node], Node | None]:
    """Drops an operand that is this value, where the other has the result's spec already."""

    def rule(node: Node) -> Node | None:
        for position in positions:
            other = node.inputs[1 - position]
            if _is_constant(node.inputs[position], value) and other.spec == node.spec:
                return other
        return None

    return rule


def _is_constant(node: Node, value: float) -> bool:
    if node.op is not CONSTANT or not isinstance(node.attrs["value"], np.ndarray):
        return False
    array = node.attrs["value"]
    return bool(array.size and np.all(array == value) and (value or not np.signbit(array).any()))


def _unchanged(node: Node) -> Node | None:
    return node.inputs[0] if node.inputs[0].spec == node.spec else None


def _reshape(node: Node) -> Node | None:
    source = node.inputs[0]
    if source.op is movement.reshape:
        inner = source.inputs[0]
        return inner if inner.spec == node.spec else Node(node.op, [inner], node.attrs, node.spec, node.source)
    return _unchanged(node)


def _permute(node: Node) -> Node | None:
    source, axes = node.inputs[0], node.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return source
    if source.op is not movement.permute_dims:
        return None
    both = tuple(source.attrs["axes"][a] for a in axes)
    if both == tuple(range(len(both))):
        return source.inputs[0]
    return Node(node.op, source.inputs, {"axes": both}, node.spec, node.source)


def _over_nothing(node: Node) -> Node | None:
    """A reduction over axes of size 1, or over none, is a reshape: each result is one element."""
    source = node.inputs[0]
    if source.spec.dtype != node.spec.dtype or not all(dims.same(source.spec.shape[a], 1) for a in node.attrs["axis"]):
        return None
    if source.spec == node.spec:
        return source
    return Node(movement.reshape, [source], {"shape": node.spec.shape}, node.spec, node.source)


_RULES: Mapping[Op, Callable[[Node], Node | None]] = {
    elementwise.multiply: _neutral(1, 0, 1),
    elementwise.divide: _neutral(1, 1),
    elementwise.subtract: _neutral(0, 1),
    movement.reshape: _reshape,
    movement.permute_dims: _permute,
    movement.broadcast_to: _unchanged,
    movement.astype: _unchanged,
    reductions.max: _over_nothing,
    reductions.min: _over_nothing,
}
