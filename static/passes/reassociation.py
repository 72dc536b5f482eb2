"""Reassociation: products and sums in another order, so that less is computed on large arrays.

(x * s) * t            x * (s * t)              s, t smaller than the result: numbers, rows, columns
(x * c) * y            (x * y) * c              c a number, so that it meets others
x / s                  x * (1 / s)              s smaller than the result
-(x * s)               x * -s                   s smaller than the result
(a * b) * c            a * (b * c)              where b * c is computed anyway
x / y, x / (y * c)     x * r, (x / y) * (1 / c) where r = 1 / y is computed anyway; c a number

Only floats of one dtype are reordered, and only products that nothing else reads: in another order small ints would
overflow, and a product of two narrow floats would be rounded before it meets a wider one. **This changes bits**: each
result differs by rounding, and more only where an intermediate product leaves the range of its dtype.

Factoring: sums of products with one factor in common, and sums along axes that a factor does not vary along.

sum(x * s)             sum(x) * s               s the same along the summed axes; also mean
sum(-x), mean(-x)      0 - sum(x), 0 - mean(x)  not -sum(x): a sum of zeros is 0.0
sum of an array placed among zeros               the sum of the array
sum, mean of size 1    x + 0                    a sum starts with 0, which turns -0.0 into 0.0
x * s + y * s          (x + y) * s              nothing else reads the two products
(a - x * s) - x * s    a - x * (2 * s)          s smaller than the result
x + x                  x * 2

These are rules of the pass `reassociate`: **they change bits**.

`Facts`, at the end, has what the rules look at: the readers of a product, and the products computed already.

Weighting: a number beside a matrix product multiplies the smallest array, and rows are weighted, as by a softmax.

(a @ b) * c                      (a * c) @ b         a, or else b, smaller than the product; c a number
(x * c) @ b                      (x @ b) * c         x larger than all its readers together
(x r - sum(p x r)) e             (x - sum(p x)) p    p = e r is computed; r the same along the summed axes
sum(p * (d @ v.T), axis=-1)      sum(d * (p @ v), axis=-1)      p @ v is computed, and d is smaller than p

The last two simplify the gradient of a softmax, and of a softmax that weights the rows of v. These are rules of
the pass `reassociate`: **they change bits**.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.ir import Graph, Node
from graphs.ops import elementwise, reductions
from graphs.ops.indexing import add_along_axis
from graphs.ops.linalg import matmul
from graphs.ops.shapes import reduced_shape
from graphs.spec import broadcast_shapes
from static.passes.rewrite import (
    Entry,
    Rules,
    Uses,
    call,
    count_uses,
    is_product,
    is_sum,
    is_turned,
    number,
    rewrite,
    value_of,
)
from static.passes.views import reshape_node


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
    if x.spec != node.spec or not _is_single_along(r, axis, x):
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


def _is_single_along(r: Node, axis: Sequence[int], x: Node) -> bool:
    sizes = [*[1] * (x.spec.ndim - r.spec.ndim), *r.spec.shape]
    return all(dims.same(sizes[a], 1) for a in axis)


WEIGHTING: tuple[Entry, ...] = (
    ("(p := a @ b) * c", _into_product),
    ("(p := x * c) @ b", _out_of_product),
    ("b @ (p := x * c)", _out_of_product),
    ("(d := (p := x * r) - (less := sum(w))) * e", _softmax_gradient),
    ("(d := (p := x * r) + (0 - (less := sum(w)))) * e", _softmax_gradient),
    ("sum(w := p * (scores := d @ v))", _weighted_sum),
)


def _have_factor(node: Node, p: Node, q: Node, x: Node, y: Node, facts: Facts) -> bool:
    both = p is not q and facts.owns(p) and facts.owns(q) and x.spec.dtype == y.spec.dtype
    return both and (fills(x, node.spec.shape) or fills(y, node.spec.shape))


def _twice(node: Node, h: Node, a: Node, p: Node, x: Node, s: Node, facts: Facts) -> Node | None:
    if facts.uses[h] != 1 or facts.uses[p] != 2 or not fills(p, node.spec.shape) or not has_smaller(p, x, s):
        return None
    twice = times(number(2, s.spec.dtype, node.source), s, node.source)
    if twice is None:
        return None
    return call(node.op, a, call(elementwise.multiply, x, twice, source=node.source), source=node.source)


def _is_only_here(node: Node, p: Node, facts: Facts) -> bool:
    one_dtype = p.spec.dtype == node.spec.dtype and bool(node.attrs["axis"])
    return one_dtype and facts.uses[p] <= 1


def _factor_out(node: Node, facts: Facts) -> Node | None:
    """Rewrite sum(x * s) to sum(x) * s, for each factor that is the same along the summed axes."""
    source, axis = node.inputs[0], node.attrs["axis"]
    if source.spec.dtype != node.spec.dtype or not axis:
        return None
    if all(dims.same(source.spec.shape[a], 1) for a in axis):
        total = call(elementwise.add, source, number(0, node.spec.dtype, node.source), source=node.source)
        return reshape_node(total, node.spec.shape, node.source)
    if source.op is add_along_axis and is_sum(node) and axis == (source.attrs["axis"],):
        return Node.of(node.op, source.inputs[:1], node.attrs, node.source)
    factors = list(_factors(source, facts))
    same = [_is_same_along(factor, source.spec.shape, axis) for factor in factors]
    if all(same) or not any(same):
        return None
    varying = [factor for factor, is_same in zip(factors, same, strict=True) if not is_same]
    return _product_of_sum(node, varying, [factor for factor in factors if factor not in varying])


def _product_of_sum(node: Node, varying: Sequence[Node], same: Sequence[Node]) -> Node | None:
    rest = varying[0]
    for factor in varying[1:]:
        rest = call(elementwise.multiply, rest, factor, source=node.source)
    if not fills(rest, node.inputs[0].spec.shape) or rest.spec.dtype != node.inputs[0].spec.dtype:
        return None
    total = Node.of(node.op, [rest], node.attrs, node.source)
    for factor in same:
        total = call(elementwise.multiply, total, _reduce_factor(factor, node), source=node.source)
    return total if total.spec == node.spec else None


def _factors(node: Node, facts: Facts) -> Iterator[Node]:
    """Yield the factors of a product that no other node reads, to a depth of two, which is all that rules make."""
    if not facts.owns(node):
        yield node
        return
    for factor in node.inputs:
        inner = facts.owns(factor) and fills(factor, node.spec.shape)
        yield from factor.inputs if inner else (factor,)


def _align_factor(factor: Node, ndim: int) -> list[Size]:
    return [*[1] * (ndim - factor.spec.ndim), *factor.spec.shape]


def _is_same_along(factor: Node, shape: Shape, axis: Sequence[int]) -> bool:
    sizes = _align_factor(factor, len(shape))
    return all(dims.same(sizes[a], 1) for a in axis) and not all(dims.same(shape[a], 1) for a in axis)


def _reduce_factor(factor: Node, reduction: Node) -> Node:
    """Return a factor in the shape that broadcasts against the result of a reduction."""
    if not factor.spec.ndim:
        return factor
    shape = tuple(_align_factor(factor, reduction.inputs[0].spec.ndim))
    return reshape_node(factor, reduced_shape(shape, reduction.attrs["axis"], reduction.attrs["keepdims"]))


COMMON_FACTORS: tuple[Entry, ...] = (
    ("x + x", "x * 2"),
    ("add(p := x * s, q := y * s)", "(x + y) * s", _have_factor),
    ("(p := x * s) - (q := y * s)", "(x - y) * s", _have_factor),
    ("add(h := add(a, p := x * s), p)", _twice),
    ("(h := a - (p := x * s)) - p", _twice),
    ("sum(x)", _factor_out),
    ("mean(x)", _factor_out),
    ("sum(p := -x)", "0 - sum(x)", _is_only_here),
    ("mean(p := -x)", "0 - mean(x)", _is_only_here),
)


def reassociate(graph: Graph) -> Graph:
    """Return the graph with every rule applied where it fits."""
    facts = Facts(count_uses(graph))

    def rule(node: Node) -> Node | None:
        if node.op not in _RULE_SET.ops or not node.spec.is_float or not is_of_one_dtype(node):
            return None
        replacement = _RULE_SET(node, facts)
        if replacement is None:
            facts.note(node)
        return replacement

    return rewrite(graph, rule, facts.uses)


def _gather_factors(node: Node, p: Node, x: Node, s: Node, t: Node, facts: Facts) -> Node | None:
    if fills(t, node.spec.shape) or not fills(p, node.spec.shape) or not has_smaller(p, x, s):
        return None
    if not facts.owns(p) and (value_of(s) is None or value_of(t) is None):
        return None  # two numbers become one, even if others read the product
    size = dims.product(broadcast_shapes(s.spec.shape, t.spec.shape))
    small = None if dims.same(size, node.spec.size) else times(s, t, node.source)
    return None if small is None else call(elementwise.multiply, x, small, source=node.source)


def _reuse_product(node: Node, p: Node, a: Node, b: Node, c: Node, facts: Facts) -> Node | None:
    there = facts.product(b, c) if facts.owns(p) else None
    return None if there in (None, p) else Node.of(elementwise.multiply, [a, there], {}, node.source)


def _number_outwards(node: Node, p: Node, x: Node, c: Node, y: Node, facts: Facts) -> Node | None:
    if value_of(c) is None or value_of(y) is not None:
        return None
    if not facts.owns(p) or not fills(p, node.spec.shape) or not fills(x, node.spec.shape):
        return None
    inner = call(elementwise.multiply, x, y, source=node.source)
    return call(elementwise.multiply, inner, c, source=node.source) if inner.spec == node.spec else None


def _by_product(node: Node, p: Node, x: Node, y: Node, c: Node, facts: Facts) -> Node | None:
    if value_of(c) is None or x.spec != node.spec or not facts.owns(p) or y.spec != p.spec:
        return None
    inverse = facts.inverse(c, node.source)
    divided = call(elementwise.divide, x, y, source=node.source)
    return None if inverse is None else call(elementwise.multiply, divided, inverse, source=node.source)


def _by_reciprocal(node: Node, x: Node, s: Node, facts: Facts) -> Node | None:
    if x.spec != node.spec or (fills(s, node.spec.shape) and not facts.has_inverse(s)):
        return None
    inverse = facts.inverse(s, node.source)
    return None if inverse is None else call(elementwise.multiply, x, inverse, source=node.source)


RULES: tuple[Entry, ...] = (
    *WEIGHTING,
    *COMMON_FACTORS,
    ("(p := x * s) * t", _gather_factors),
    ("(p := a * b) * c", _reuse_product),
    ("(p := x * c) * y", _number_outwards),
    ("x / (p := y * c)", _by_product),
    ("x / s", _by_reciprocal),
    ("-(p := x * s)", "x * -s", lambda p, x, s, facts: facts.owns(p) and has_smaller(p, x, s)),
    ("reciprocal(x)", lambda: None),  # stays, and is noted
)
_RULE_SET = Rules(*RULES)


class Facts:
    """How often nodes are read, and which products (by their two factors) and reciprocals are computed already."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.products: dict[Hashable, Node] = {}  # elementwise by the set of their factors
        self._reciprocals: dict[Node, Node] = {}

    def note(self, node: Node) -> None:
        """Record a node that no rule has changed, so that later rules can reuse it."""
        if node.op is elementwise.multiply:
            self.products.setdefault(frozenset(node.inputs), node)
        elif node.op is elementwise.reciprocal:
            self._reciprocals.setdefault(node.inputs[0], node)
        elif is_product(node):
            self.products.setdefault((node.inputs[0], *_matrix(node.inputs[1])), node)

    def owns(self, product: Node) -> bool:
        """Whether a node is an elementwise product of factors of its dtype that at most one node reads."""
        multiplies = product.op is elementwise.multiply and is_of_one_dtype(product)
        return multiplies and self.uses[product] <= 1  # 0: a rule has just made it

    def product(self, x: Node, y: Node) -> Node | None:
        """Return x * y where a node that is read computes it already, else None."""
        known_product = self.products.get(frozenset((x, y)))
        return known_product if known_product is not None and self.uses[known_product] else None

    def weighted(self, p: Node, transposed: Node) -> Node | None:
        """Return p @ v where a node that is read computes it already, else None; v is given transposed."""
        root, axes = _matrix(transposed)
        known_product = self.products.get((p, root, (*axes[:-2], *axes[:-3:-1])))
        return known_product if known_product is not None and self.uses[known_product] else None

    def has_inverse(self, x: Node) -> bool:
        """Whether a node that is read computes 1 / x already."""
        return x in self._reciprocals and self.uses[self._reciprocals[x]] > 0

    def inverse(self, x: Node, source: str) -> Node | None:
        """Return 1 / x, reusing a node that computes it.

        For a number a number, or None where that leaves its dtype's range.
        """
        divisor = value_of(x)
        if divisor is None:
            if x not in self._reciprocals:
                self._reciprocals[x] = call(elementwise.reciprocal, x, source=source)
            return self._reciprocals[x]
        with np.errstate(all="ignore"):
            value = np.reciprocal(divisor)
        return _of_rank(value, x.spec.ndim, x.source) if _is_harmless(value) else None


def _matrix(node: Node) -> tuple[Node, tuple[int, ...]]:
    """Return the node that a node is a permutation of, and the order of its axes."""
    if is_turned(node):
        return node.inputs[0], node.attrs["axes"]
    return node, tuple(range(node.spec.ndim))


def fills(node: Node, shape: Shape) -> bool:
    """Whether a factor has the whole shape of its product, so that it is not repeated along any axis."""
    return node.spec.shape is shape or dims.same_shape(node.spec.shape, shape)  # equal specs are mostly one object


def is_of_one_dtype(node: Node) -> bool:
    """Whether all inputs of a node have its dtype."""
    dtype = node.spec.dtype
    for source in node.inputs:  # a loop, since rules ask this of every node
        own = source.spec.dtype
        if own is not dtype and own != dtype:
            return False
    return True


def has_smaller(product: Node, x: Node, s: Node) -> bool:
    """Whether a product of one dtype has one factor of its own shape and a smaller one."""
    shape = product.spec.shape
    return fills(x, shape) and not fills(s, shape) and is_of_one_dtype(product)


def times(x: Node, y: Node, source: str) -> Node | None:
    """Return x * y; for two numbers a number, or None where that leaves the range of their dtype."""
    x_value, y_value = value_of(x), value_of(y)
    if x_value is None or y_value is None:
        return call(elementwise.multiply, x, y, source=source)
    with np.errstate(all="ignore"):
        value = np.multiply(x_value, y_value)
    if not _is_harmless(value) and x_value and y_value:
        return None
    return _of_rank(value, max(x.spec.ndim, y.spec.ndim), source)


def _is_harmless(value: Any) -> bool:
    """Whether a number that was computed ahead is finite and not subnormal in its dtype."""
    return bool(np.isfinite(value) and abs(value) >= np.finfo(value.dtype).tiny)


def _of_rank(value: Any, ndim: int, source: str) -> Node:
    return reshape_node(number(value, value.dtype, source), (1,) * ndim, source)
