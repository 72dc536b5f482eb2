"""Weighting: numbers beside matrix products go where least is multiplied, and rows that are weighted, as by a softmax.

(a @ b) * c                      (a * c) @ b         a, or else b, smaller than the product; c a number
(x * c) @ b                      (x @ b) * c         x larger than what reads it all together
(x r - sum(p x r)) e             (x - sum(p x)) p    p = e r is there; r the same along what is summed
sum(p * (d @ v.T), axis=-1)      sum(d * (p @ v), axis=-1)      p @ v is there, and d is smaller than p

The last two are what is left of the gradient of a softmax, and of one that weights the rows of v. These are rules of
the pass `reassociate`: **they change bits**.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphs import dims
from graphs.dims import Size
from graphs.ir import Node
from graphs.op import Op
from graphs.ops import elementwise, reductions
from graphs.ops.linalg import matmul
from static.passes.algebra import call, value_of
from static.passes.facts import Facts, sides


def product(node: Node, facts: Facts) -> Node | None:
    """The rules whose last step is an elementwise product."""
    return _into_matmul(node, facts) or _softmax_gradient(node, facts)


def _into_matmul(node: Node, facts: Facts) -> Node | None:
    """(a @ b) * c -> (a * c) @ b, or a @ (b * c)."""
    for whole, c in sides(node):
        if whole.op is not matmul or facts.uses[whole] > 1 or not _is_number(c) or whole.spec != node.spec:
            continue
        a, b = whole.inputs
        if whole.spec.dtype not in (a.spec.dtype, b.spec.dtype) or a.spec.dtype != b.spec.dtype:
            continue
        if _is_less(a.spec.size, node.spec.size) and not _is_less(b.spec.size, a.spec.size):
            return Node.of(matmul, [call(elementwise.multiply, a, c, source=node.source), b], {}, whole.source)
        if _is_less(b.spec.size, node.spec.size):
            return Node.of(matmul, [a, call(elementwise.multiply, b, c, source=node.source)], {}, whole.source)
    return None


def _out_of_matmul(node: Node, facts: Facts) -> Node | None:
    """(x * c) @ b -> (x @ b) * c, and a @ (x * c) -> (a @ x) * c."""
    for place, scaled in enumerate(node.inputs):
        readers = max(facts.uses[scaled], 1)
        if scaled.op is not elementwise.multiply or not _is_less(node.spec.size * readers, scaled.spec.size):
            continue
        for x, c in sides(scaled):
            if _is_number(c) and x.spec == scaled.spec and value_of(x) is None:
                operands = [x if i == place else source for i, source in enumerate(node.inputs)]
                inner = Node.of(matmul, operands, {}, node.source)
                return call(elementwise.multiply, inner, c, source=scaled.source) if inner.spec == node.spec else None
    return None


def _softmax_gradient(node: Node, facts: Facts) -> Node | None:
    """(x r - sum(p x r)) e -> (x - sum(p x)) p."""
    for difference, e in sides(node):
        scaled, less = _deducted(difference)
        if less is None or facts.uses[difference] > 1 or facts.uses[scaled] != 2:
            continue
        weighted, axis = less.inputs[0], less.attrs["axis"]
        if not less.attrs["keepdims"] or not facts.owns(weighted):
            continue
        for x, r in sides(scaled):
            p = facts.product(e, r)
            if (
                p is None
                or set(weighted.inputs) != {p, scaled}
                or x.spec != node.spec
                or not _is_same_along(r, axis, x)
            ):
                continue
            inner = call(elementwise.multiply, p, x, source=weighted.source)
            total = Node.of(reductions.sum, [inner], less.attrs, less.source)
            centred = call(elementwise.subtract, x, total, source=difference.source)
            return call(elementwise.multiply, centred, p, source=node.source)
    return None


def _deducted(node: Node) -> tuple[Node, Node | None]:
    """The product and the sum of `product - sum`, or `product + -sum`; None where a node is no such thing."""
    if node.op not in (elementwise.subtract, elementwise.add):
        return node, None
    product, less = node.inputs
    if node.op is elementwise.add:
        less = less.inputs[0] if less.op is elementwise.negative else product
    fits = product.op is elementwise.multiply and less.op is reductions.sum
    return product, less if fits else None


def weighted_sum(node: Node, facts: Facts) -> Node | None:
    """sum(p * (d @ v.T), axis=-1) -> sum(d * (p @ v), axis=-1)."""
    weighted = node.inputs[0]
    if not facts.owns(weighted) or node.attrs["axis"] != (weighted.spec.ndim - 1,):
        return None
    for p, scores in sides(weighted):
        if scores.op is not matmul or scores.spec != p.spec:
            continue
        d, v_t = scores.inputs
        mixed = facts.weighted(p, v_t)
        if mixed is not None and mixed.spec == d.spec and _is_less(d.spec.size, p.spec.size):
            inner = call(elementwise.multiply, d, mixed, source=weighted.source)
            return Node.of(node.op, [inner], node.attrs, node.source)
    return None


def _is_number(node: Node) -> bool:
    return not node.spec.ndim and value_of(node) is not None


def _is_less(one: Size, other: Size) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one < other


def _is_same_along(r: Node, axis: Sequence[int], x: Node) -> bool:
    sizes = [*[1] * (x.spec.ndim - r.spec.ndim), *r.spec.shape]
    return all(dims.same(sizes[a], 1) for a in axis)


RULES: Mapping[Op, Callable[[Node, Facts], Node | None]] = {matmul: _out_of_matmul}
