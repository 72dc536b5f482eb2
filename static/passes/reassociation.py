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

from graphs import dims
from graphs.ir import Graph, Node
from graphs.ops import elementwise
from graphs.spec import broadcast_shapes
from static.passes import common_factors, weighting
from static.passes.facts import Facts, fills, has_smaller, is_of_one_dtype, times
from static.passes.patterns import Entry, Rules, call, value_of
from static.passes.rewrite import count_uses, rewrite


def reassociate(graph: Graph) -> Graph:
    """The graph with every rule applied where it fits."""
    facts = Facts(count_uses(graph))

    def rule(node: Node) -> Node | None:
        if node.op not in _RULE_SET or not node.spec.is_float or not is_of_one_dtype(node):
            return None
        replacement = _RULE_SET(node, facts)
        if replacement is None:
            facts.note(node)
        return replacement

    return rewrite(graph, rule, facts.uses)


def _gathered(node: Node, p: Node, x: Node, s: Node, t: Node, facts: Facts) -> Node | None:
    if fills(t, node.spec.shape) or not fills(p, node.spec.shape) or not has_smaller(p, x, s):
        return None
    if not facts.owns(p) and (value_of(s) is None or value_of(t) is None):
        return None  # two numbers become one, even if others read the product
    size = dims.product(broadcast_shapes(s.spec.shape, t.spec.shape))
    small = None if dims.same(size, node.spec.size) else times(s, t, node.source)
    return None if small is None else call(elementwise.multiply, x, small, source=node.source)


def _reused(node: Node, p: Node, a: Node, b: Node, c: Node, facts: Facts) -> Node | None:
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
    *weighting.RULES,
    *common_factors.RULES,
    ("(p := x * s) * t", _gathered),
    ("(p := a * b) * c", _reused),
    ("(p := x * c) * y", _number_outwards),
    ("x / (p := y * c)", _by_product),
    ("x / s", _by_reciprocal),
    ("-(p := x * s)", "x * -s", lambda p, x, s, facts: facts.owns(p) and has_smaller(p, x, s)),
    ("reciprocal(x)", lambda: None),  # stays, and is noted
)
_RULE_SET = Rules(*RULES)
