"""Factoring: sums of products with one factor in common, and sums along axes that a factor does not vary along.

sum(x * s)             sum(x) * s               s the same along what is summed; also mean
sum(-x), mean(-x)      0 - sum(x), 0 - mean(x)  not -sum(x): a sum of zeros is 0.0
sum of what lies at some places of zeros         its sum
sum, mean of one       x + 0                    a sum starts with 0, which turns -0.0 into 0.0
x * s + y * s          (x + y) * s              nothing else reads the two products
(a - x * s) - x * s    a - x * (2 * s)          s smaller than the result
x + x                  x * 2

These are rules of the pass `reassociate`: **they change bits**.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphs import dims
from graphs.dims import Shape, Size
from graphs.ir import Node
from graphs.ops import elementwise, reductions
from graphs.ops.picking import add_along_axis
from graphs.ops.shapes import reduced_shape
from static.passes.facts import Facts, fills, has_smaller, times
from static.passes.patterns import Entry, call, number
from static.passes.views import reshaped


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
    """sum(x * s) -> sum(x) * s, for each factor that is the same along the axes that are summed."""
    source, axis = node.inputs[0], node.attrs["axis"]
    if source.spec.dtype != node.spec.dtype or not axis:
        return None
    if all(dims.same(source.spec.shape[a], 1) for a in axis):
        total = call(elementwise.add, source, number(0, node.spec.dtype, node.source), source=node.source)
        return reshaped(total, node.spec.shape, node.source)
    if source.op is add_along_axis and node.op is reductions.sum and axis == (source.attrs["axis"],):
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
        total = call(elementwise.multiply, total, _reduced(factor, node), source=node.source)
    return total if total.spec == node.spec else None


def _factors(node: Node, facts: Facts) -> Iterator[Node]:
    """The factors of a product that nothing else reads; two levels are all that rules make."""
    if not facts.owns(node):
        yield node
        return
    for factor in node.inputs:
        inner = facts.owns(factor) and fills(factor, node.spec.shape)
        yield from factor.inputs if inner else (factor,)


def _aligned(factor: Node, ndim: int) -> list[Size]:
    return [*[1] * (ndim - factor.spec.ndim), *factor.spec.shape]


def _is_same_along(factor: Node, shape: Shape, axis: Sequence[int]) -> bool:
    sizes = _aligned(factor, len(shape))
    return all(dims.same(sizes[a], 1) for a in axis) and not all(dims.same(shape[a], 1) for a in axis)


def _reduced(factor: Node, reduction: Node) -> Node:
    """A factor in the shape that it has beside the result of a reduction."""
    if not factor.spec.ndim:
        return factor
    shape = tuple(_aligned(factor, reduction.inputs[0].spec.ndim))
    return reshaped(factor, reduced_shape(shape, reduction.attrs["axis"], reduction.attrs["keepdims"]))


RULES: tuple[Entry, ...] = (
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
