"""Factoring: sums of products with one factor in common, and sums along axes that a factor does not vary along.

sum(x * s)             sum(x) * s               s the same along what is summed; also mean, and sum(-x)
sum of what lies at some places of zeros         its sum; sum and mean of one: it
x * s + y * s          (x + y) * s              nothing else reads the two products
(a - x * s) - x * s    a - x * (2 * s)          s smaller than the result
x + x, x + 0           x * 2, x

These are rules of the pass `reassociate`: **they change bits**.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from graphs import dims
from graphs.dims import Shape, Size
from graphs.ir import Node
from graphs.op import Op
from graphs.ops import elementwise, reductions
from graphs.ops.picking import add_along_axis
from graphs.ops.shapes import reduced_shape
from static.passes import weighting
from static.passes.algebra import call, number, value_of
from static.passes.facts import Facts, fills, sides, split, times
from static.passes.views import reshaped


def _sum(node: Node, facts: Facts) -> Node | None:
    x, y = node.inputs
    if x is y:
        return call(elementwise.multiply, x, number(2, x.spec.dtype), source=node.source)
    for kept, nothing in sides(node):
        if value_of(nothing) == 0 and kept.spec == node.spec:
            return kept
    return _difference(node, facts)


def _difference(node: Node, facts: Facts) -> Node | None:
    if not any(source.op is elementwise.multiply for source in node.inputs):
        return None
    return _common_factor(node, facts) or _same_term_twice(node, facts)


def _common_factor(node: Node, facts: Facts) -> Node | None:
    """x * s + y * s -> (x + y) * s."""
    first, second = node.inputs
    if first is second or not facts.owns(first) or not facts.owns(second):
        return None
    for x, s in sides(first):
        for y, t in sides(second):
            if s is t and (fills(x, node.spec.shape) or fills(y, node.spec.shape)) and x.spec.dtype == y.spec.dtype:
                return call(elementwise.multiply, call(node.op, x, y, source=node.source), s, source=node.source)
    return None


def _same_term_twice(node: Node, facts: Facts) -> Node | None:
    """(a - x * s) - x * s -> a - x * (2 * s); the same for sums."""
    held, term = node.inputs
    if held.op is not node.op or facts.uses[held] != 1 or facts.uses[term] != 2 or held.inputs[1] is not term:
        return None
    factors = split(term) if term.op is elementwise.multiply and fills(term, node.spec.shape) else None
    if factors is None:
        return None
    x, s = factors
    twice = times(number(2, s.spec.dtype, node.source), s, node.source)
    if twice is None:
        return None
    return call(node.op, held.inputs[0], call(elementwise.multiply, x, twice, source=node.source), source=node.source)


def _factor_out(node: Node, facts: Facts) -> Node | None:
    """sum(x * s) -> sum(x) * s, for each factor that is the same along the axes that are summed."""
    found = weighting.weighted_sum(node, facts)
    if found is not None:
        return found
    source, axis = node.inputs[0], node.attrs["axis"]
    if source.spec.dtype != node.spec.dtype or not axis:
        return None
    if all(dims.same(source.spec.shape[a], 1) for a in axis):
        return reshaped(source, node.spec.shape, node.source)
    if source.op is add_along_axis and node.op is reductions.sum and axis == (source.attrs["axis"],):
        return Node.of(node.op, source.inputs[:1], node.attrs, node.source)
    if source.op is elementwise.negative and facts.uses[source] <= 1:
        total = Node.of(node.op, source.inputs, node.attrs, node.source)
        return call(elementwise.negative, total, source=node.source)
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


RULES: Mapping[Op, Callable[[Node, Facts], Node | None]] = {
    elementwise.add: _sum,
    elementwise.subtract: _difference,
    reductions.sum: _factor_out,
    reductions.mean: _factor_out,
}
