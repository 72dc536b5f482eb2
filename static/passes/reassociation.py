"""Reassociation: products and sums in another order, so that less is computed on large arrays.

(x * s) * t            x * (s * t)              s, t smaller than the result: numbers, rows, columns
(x * c) * y            (x * y) * c              c a number, so that it meets others
x / s                  x * (1 / s)              s smaller than the result
-(x * s)               x * -s                   s smaller than the result
(a * b) * c            a * (b * c)              where b * c is computed anyway
x / y, x / (y * c)     x * r, (x / y) * (1 / c) where r = 1 / y is computed anyway; c a number

and the rules for sums in `common_factors.py`, for matrix products in `weighting.py`.
Only floats of one dtype, and only products that nothing else reads: in another order small ints would overflow, and
numbers of few digits be rounded before they meet one of many. **This changes bits**: each result differs by rounding,
and more only where an intermediate product leaves the range of its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphs import dims
from graphs.ir import Graph, Node
from graphs.op import Op
from graphs.ops import elementwise
from graphs.spec import broadcast_shapes
from static.passes import common_factors, weighting
from static.passes.algebra import call, value_of
from static.passes.facts import Facts, fills, is_of_one_dtype, sides, split, times
from static.passes.rewrite import Uses, rewrite_with_uses


def reassociate(graph: Graph) -> Graph:
    """The graph with every rule applied where it fits."""

    def rules(uses: Uses) -> Callable[[Node], Node | None]:
        facts = Facts(uses)

        def rule(node: Node) -> Node | None:
            one = _RULES.get(node.op)
            if one is None or not node.spec.is_float or not is_of_one_dtype(node):
                return None
            found = one(node, facts)
            if found is None:
                facts.note(node)
            return found

        return rule

    return rewrite_with_uses(graph, rules)


def _product(node: Node, facts: Facts) -> Node | None:
    found = weighting.product(node, facts)
    if found is not None or not any(source.op is elementwise.multiply for source in node.inputs):
        return found
    return _gather_small(node, facts) or _reuse(node, facts) or _number_outwards(node, facts)


def _gather_small(node: Node, facts: Facts) -> Node | None:
    """(x * s) * t -> x * (s * t)."""
    for product, t in sides(node):
        if product.op is not elementwise.multiply or fills(t, node.spec.shape) or not fills(product, node.spec.shape):
            continue
        factors = split(product)
        if factors is None:
            continue
        x, s = factors
        if not facts.owns(product) and (value_of(s) is None or value_of(t) is None):
            continue  # two numbers become one whoever reads the product
        size = dims.product(broadcast_shapes(s.spec.shape, t.spec.shape))
        small = None if dims.same(size, node.spec.size) else times(s, t, node.source)
        if small is not None:
            return call(elementwise.multiply, x, small, source=node.source)
    return None


def _reuse(node: Node, facts: Facts) -> Node | None:
    """(a * b) * c -> a * (b * c), where the second product is there already."""
    for product, c in sides(node):
        if not facts.owns(product):
            continue
        for a, b in sides(product):
            there = facts.product(b, c)
            if there is not None and there is not product:
                return call(elementwise.multiply, a, there, source=node.source)
    return None


def _number_outwards(node: Node, facts: Facts) -> Node | None:
    """(x * c) * y -> (x * y) * c."""
    for product, y in sides(node):
        if not facts.owns(product) or not fills(product, node.spec.shape) or value_of(y) is not None:
            continue
        for x, c in sides(product):
            if value_of(c) is not None and fills(x, node.spec.shape):
                inner = call(elementwise.multiply, x, y, source=node.source)
                return call(elementwise.multiply, inner, c, source=node.source) if inner.spec == node.spec else None
    return None


def _quotient(node: Node, facts: Facts) -> Node | None:
    x, y = node.inputs
    if x.spec != node.spec or y.spec.dtype != node.spec.dtype:
        return None
    return _by_product(node, facts) or _by_reciprocal(node, facts)


def _by_product(node: Node, facts: Facts) -> Node | None:
    """x / (y * c) -> (x / y) * (1 / c)."""
    x, product = node.inputs
    if not facts.owns(product):
        return None
    for y, c in sides(product):
        inverse = facts.inverse(c, node.source) if value_of(c) is not None else None
        if inverse is not None and y.spec == product.spec:
            divided = call(elementwise.divide, x, y, source=node.source)
            return call(elementwise.multiply, divided, inverse, source=node.source)
    return None


def _by_reciprocal(node: Node, facts: Facts) -> Node | None:
    """x / s -> x * (1 / s)."""
    x, s = node.inputs
    if fills(s, node.spec.shape) and not facts.has_inverse(s):
        return None
    inverse = facts.inverse(s, node.source)
    return None if inverse is None else call(elementwise.multiply, x, inverse, source=node.source)


def _negative(node: Node, facts: Facts) -> Node | None:
    """-(x * s) -> x * -s."""
    factors = split(node.inputs[0]) if facts.owns(node.inputs[0]) else None
    if factors is None:
        return None
    x, s = factors
    return call(elementwise.multiply, x, call(elementwise.negative, s, source=node.source), source=node.source)


def _nothing(_: Node, __: Facts) -> None:
    """A reciprocal stays, and is noted."""


_RULES: Mapping[Op, Callable[[Node, Facts], Node | None]] = {
    **common_factors.RULES,
    **weighting.RULES,
    elementwise.multiply: _product,
    elementwise.divide: _quotient,
    elementwise.negative: _negative,
    elementwise.reciprocal: _nothing,
}
