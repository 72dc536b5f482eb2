"""Weighting: numbers beside matrix products go where least is multiplied, and rows that are weighted, as by a softmax.

(a @ b) * c                      (a * c) @ b         a, or else b, smaller than the product; c a number
(x * c) @ b                      (x @ b) * c         x larger than what reads it all together
(x r - sum(p x r)) e             (x - sum(p x)) p    p = e r is there; r the same along what is summed
sum(p * (d @ v.T), axis=-1)      sum(d * (p @ v), axis=-1)      p @ v is there, and d is smaller than p

The last two are what is left of the gradient of a softmax, and of one that weights the rows of v. These are rules of
the pass `reassociate`: **they change bits**.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphs import dims
from graphs.dims import Size
from graphs.ir import Node
from graphs.ops import elementwise, reductions
from graphs.ops.linalg import matmul
from static.passes.facts import Facts, is_of_one_dtype
from static.passes.patterns import Entry, call, value_of


def _into_product(node: Node, p: Node, a: Node, b: Node, c: Node, facts: Facts) -> Node | None:
    if facts.uses[p] > 1 or not _is_number(c) or p.spec != node.spec or not is_of_one_dtype(p):
        return None
    if _is_less(a.spec.size, node.spec.size) and not _is_less(b.spec.size, a.spec.size):
        return Node.of(matmul, [call(elementwise.multiply, a, c, source=node.source), b], {}, p.source)
    if _is_less(b.spec.size, node.spec.size):
        return Node.of(matmul, [a, call(elementwise.multiply, b, c, source=node.source)], {}, p.source)
    return None


def _out_of_product(node: Node, p: Node, x: Node, c: Node, b: Node, facts: Facts) -> Node | None:
    size = node.spec.size * max(facts.uses[p], 1)
    if not _is_less(size, p.spec.size) or not _is_number(c) or x.spec != p.spec or value_of(x) is not None:
        return None
    operands = [x, b] if node.inputs[0] is p else [b, x]
    inner = Node.of(matmul, operands, {}, node.source)
    return call(elementwise.multiply, inner, c, source=p.source) if inner.spec == node.spec else None


def _softmax_gradient(node: Node, d: Node, p: Node, x: Node, r: Node, less: Node, e: Node, facts: Facts) -> Node | None:
    weighted, axis = less.inputs[0], less.attrs["axis"]
    product = facts.product(e, r) if facts.uses[d] <= 1 and facts.uses[p] == 2 and less.attrs["keepdims"] else None
    if product is None or not facts.owns(weighted) or set(weighted.inputs) != {product, p}:
        return None
    if x.spec != node.spec or not _is_same_along(r, axis, x):
        return None
    inner = call(elementwise.multiply, product, x, source=weighted.source)
    total = Node.of(reductions.sum, [inner], less.attrs, less.source)
    centred = call(elementwise.subtract, x, total, source=d.source)
    return call(elementwise.multiply, centred, product, source=node.source)


def _weighted_sum(node: Node, p: Node, w: Node, scores: Node, d: Node, v: Node, facts: Facts) -> Node | None:
    if not facts.owns(w) or node.attrs["axis"] != (w.spec.ndim - 1,) or scores.spec != p.spec:
        return None
    mixed = facts.weighted(p, v)
    if mixed is None or mixed.spec != d.spec or not _is_less(d.spec.size, p.spec.size):
        return None
    return Node.of(node.op, [call(elementwise.multiply, d, mixed, source=w.source)], node.attrs, node.source)


def _is_number(node: Node) -> bool:
    return not node.spec.ndim and value_of(node) is not None


def _is_less(size: Size, other: Size) -> bool:
    return isinstance(size, int) and isinstance(other, int) and size < other


def _is_same_along(r: Node, axis: Sequence[int], x: Node) -> bool:
    sizes = [*[1] * (x.spec.ndim - r.spec.ndim), *r.spec.shape]
    return all(dims.same(sizes[a], 1) for a in axis)


RULES: tuple[Entry, ...] = (
    ("(p := a @ b) * c", _into_product),
    ("(p := x * c) @ b", _out_of_product),
    ("b @ (p := x * c)", _out_of_product),
    ("(d := (p := x * r) - (less := sum(w))) * e", _softmax_gradient),
    ("(d := (p := x * r) + (0 - (less := sum(w)))) * e", _softmax_gradient),
    ("sum(w := p * (scores := d @ v))", _weighted_sum),
)
