"""The nodes of a scan's body that need no state, as they are for all steps at once: with one more axis in front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from graphs import dims
from graphs.dims import Size
from graphs.ir import CONSTANT, Node
from graphs.op import Op
from graphs.ops import movement, reductions
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from static.passes.products import nbytes, rows_of
from static.passes.scans import Scan
from static.passes.views import permuted, reshaped

LARGEST = 1 << 20  # bytes of one step's value: more are not kept for all steps


class Value(NamedTuple):
    """A value of the enclosing graph: what is the same in each step, or has the entries of all steps."""

    node: Node
    each: bool


class Batched:
    """The nodes of a body that need no state, as they are for all steps at once."""

    def __init__(self, scan: Scan) -> None:
        self.length: Size = scan.node.attrs["length"]
        self.values: dict[Node, Value] = {x.inside: Value(x.value, True) for x in scan.xs}
        self.values |= {o.inside: Value(o.value, False) for o in scan.outer}
        for node in scan.body.nodes:
            if node not in self.values:
                value = self._of(node)
                if value is not None:
                    self.values[node] = value

    def _of(self, node: Node) -> Value | None:
        if node.op is CONSTANT:
            return Value(node, False)
        rule = _RULES.get(node.op, _elementwise if node.op.family == "elementwise" else None)
        inputs = [self.values.get(source) for source in node.inputs]
        if rule is None or not inputs or None in inputs or nbytes(node) > LARGEST:
            return None
        values = [value for value in inputs if value is not None]
        if not any(value.each for value in values):
            return Value(Node.of(node.op, [value.node for value in values], node.attrs, node.source), False)
        made = rule(node, values)
        fits = made is not None and dims.same_shape(made.spec.shape, (self.length, *node.spec.shape))
        return Value(made, True) if made is not None and fits else None


# What each op is --------------------------------------------------------------------------------------------------

BatchRule = Callable[[Node, Sequence[Value]], Node | None]


def _elementwise(node: Node, inputs: Sequence[Value]) -> Node | None:
    sources = [_aligned(v.node, node.spec.ndim) if v.each else v.node for v in inputs]
    return Node.of(node.op, sources, node.attrs, node.source)


def _aligned(x: Node, ndim: int) -> Node:
    """All entries with axes of size 1 before their own, so that they broadcast as one entry does."""
    length, *entry = x.spec.shape
    return reshaped(x, (length, *[1] * (ndim - len(entry)), *entry))


def _matmul(node: Node, inputs: Sequence[Value]) -> Node | None:
    x, w = inputs
    if w.each or w.node.spec.ndim != 2 or node.inputs[0].spec.ndim > 2:
        return None
    product = Node.of(matmul, [rows_of(x.node), w.node], {}, node.source)
    return reshaped(product, (x.node.spec.shape[0], *node.spec.shape), node.source)


def _permute(node: Node, inputs: Sequence[Value]) -> Node | None:
    return permuted(inputs[0].node, (0, *(a + 1 for a in node.attrs["axes"])), node.source)


def _reshape(node: Node, inputs: Sequence[Value]) -> Node | None:
    x = inputs[0].node
    return reshaped(x, (x.spec.shape[0], *node.spec.shape), node.source)


def _reduction(node: Node, inputs: Sequence[Value]) -> Node | None:
    axis = tuple(a + 1 for a in node.attrs["axis"])
    return Node.of(node.op, [inputs[0].node], {**node.attrs, "axis": axis}, node.source)


def _getitem(node: Node, inputs: Sequence[Value]) -> Node | None:
    return Node.of(getitem, [inputs[0].node], {"key": (slice(None), *node.attrs["key"])}, node.source)


def _astype(node: Node, inputs: Sequence[Value]) -> Node | None:
    return Node.of(node.op, [inputs[0].node], node.attrs, node.source)


_RULES: Mapping[Op, BatchRule] = {
    matmul: _matmul,
    movement.permute_dims: _permute,
    movement.reshape: _reshape,
    movement.astype: _astype,
    getitem: _getitem,
    reductions.sum: _reduction,
    reductions.mean: _reduction,
    reductions.max: _reduction,
}
