"""Algebraic simplification: ops that change nothing, undo each other, or have a cheaper twin that keeps every bit.

x * 1, x / 1, x - 0, +x      x             (not x + 0: it would turn -0.0 into 0.0)
x * -1, --x                  -x, x
x + -y, -x + y, x - -y       x - y, y - x, x + y
-x * y, x * -y, -x / y       -(x * y), ... so that a sum can take up the sign
-(x * c), -(x / c), -(c / x)  x * -c, x / -c, -c / x, for a constant c
x / c                        x * (1 / c), where c is a power of two and so 1 / c exact
x * x, x ** 2                square(x), which is then computed once
where(c, x, x)               x             where(not c, x, y)         where(c, y, x)
astype to the same dtype     x             astype of a wider astype   one astype
the max or min of one        x             (not the sum, which turns -0.0 into 0.0)

The bits of a NaN are not counted: NumPy's kernels do not agree on its sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphs import dims
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import Op
from graphs.ops import elementwise, movement, reductions
from static.passes.rewrite import rewrite
from static.passes.views import reshaped

Rule = Callable[[Node], Node | None]
SMALLEST_UNIFORM = 1 << 20  # elements: an array of more is not searched for one repeated value


def simplify_algebra(graph: Graph) -> Graph:
    """The graph with every rule applied where it fits."""
    return rewrite(graph, _simplified)


def _simplified(node: Node) -> Node | None:
    rules = _RULES.get(node.op)
    if rules is None:
        return None
    operands = [source.op for source in node.inputs]
    for operand, rule in rules:
        found = rule(node) if operand is None or operand in operands else None
        if found is not None:
            return found
    return None


def value_of(node: Node) -> Any:
    """The number that a constant holds, or holds everywhere; None for any other node."""
    if node.op is not CONSTANT or not isinstance(node.attrs["value"], np.ndarray):
        return None
    array = node.attrs["value"]
    if array.ndim and (not array.size or array.size > SMALLEST_UNIFORM):
        return None
    first = array.reshape(-1)[0]
    if array.ndim and not (np.all(array == first) and (first or not np.any(np.signbit(array) != np.signbit(first)))):
        return None
    return first


def number(value: Any, dtype: np.dtype[Any], source: str = "") -> Node:
    """A constant of one number."""
    return Node.of(CONSTANT, (), {"value": np.asarray(value, dtype), "dtype": dtype}, source)


def call(op: Op, *inputs: Node, source: str) -> Node:
    """The node of an elementwise op."""
    return Node.of(op, inputs, {}, source)


def _neutral(value: float, *positions: int) -> Rule:
    """Drops an operand that is this value, where the other has the result's spec already."""

    def rule(node: Node) -> Node | None:
        for position in positions:
            other, found = node.inputs[1 - position], value_of(node.inputs[position])
            if found is None or found != value or other.spec != node.spec:
                continue
            if value or not np.signbit(found):
                return other
        return None

    return rule


def is_negative(node: Node) -> bool:
    """Whether a node is -x."""
    return node.op is elementwise.negative


def _is_float(node: Node) -> bool:
    return node.spec.is_float


def _times_minus_one(node: Node) -> Node | None:
    for x, factor in (node.inputs, node.inputs[::-1]):
        if value_of(factor) == -1 and _is_float(node) and x.spec == node.spec:
            return call(elementwise.negative, x, source=node.source)
    return None


def _sum_with_negative(node: Node) -> Node | None:
    x, y = node.inputs
    if _is_float(node) and is_negative(y):
        return call(elementwise.subtract, x, y.inputs[0], source=node.source)
    if _is_float(node) and is_negative(x):
        return call(elementwise.subtract, y, x.inputs[0], source=node.source)
    return None


def _less_negative(node: Node) -> Node | None:
    x, y = node.inputs
    return call(elementwise.add, x, y.inputs[0], source=node.source) if _is_float(node) and is_negative(y) else None


def _sign_outwards(node: Node) -> Node | None:
    """-x * y as -(x * y), unless x is the smaller: then its sign is cheaper to change."""
    if not _is_float(node):
        return None
    for i, x in enumerate(node.inputs):
        if is_negative(x) and dims.same_shape(x.spec.shape, node.spec.shape):
            inputs = [*node.inputs]
            inputs[i] = x.inputs[0]
            return call(elementwise.negative, call(node.op, *inputs, source=node.source), source=node.source)
    return None


def _sign_into_constant(node: Node) -> Node | None:
    product = node.inputs[0]
    for i, factor in enumerate(product.inputs):
        value, other = value_of(factor), product.inputs[1 - i]
        # The negative of an unsigned int or a bool is another number, and so is that of the least int.
        if value is not None and _is_float(factor) and other.spec == node.spec and _is_float(node):
            inputs = [other, other]
            inputs[i] = number(-value, factor.spec.dtype, factor.source)
            return call(product.op, *inputs, source=node.source)
    return None


def _by_power_of_two(node: Node) -> Node | None:
    x, y = node.inputs
    divisor = value_of(y)
    if divisor is None or not _is_float(node) or not y.spec.is_float or not np.isfinite(divisor) or not divisor:
        return None
    if abs(math.frexp(divisor)[0]) != 0.5 or abs(math.frexp(divisor)[1]) > -np.finfo(y.spec.dtype).minexp // 2:
        return None
    inverse = reshaped_constant(1 / divisor, y)
    return call(elementwise.multiply, x, inverse, source=node.source)


def reshaped_constant(value: Any, like: Node) -> Node:
    """A constant of one value, with the spec of another."""
    array = np.full(like.spec.shape, value, like.spec.dtype)
    return Node.of(CONSTANT, (), {"value": array, "dtype": like.spec.dtype}, like.source)


def _squared(node: Node) -> Node | None:
    x, y = node.inputs
    if x is not y or x.spec.dtype.kind == "b":
        return None
    return call(elementwise.square, x, source=node.source)


def _second_power(node: Node) -> Node | None:
    x, y = node.inputs
    if not _is_float(node) or x.spec != node.spec or y.spec.ndim or value_of(y) != 2:
        return None  # NumPy squares for one exponent; for an array of them it calls a function that rounds its own way
    return call(elementwise.square, x, source=node.source)


def _square_of_negative(node: Node) -> Node | None:
    x = node.inputs[0]
    return call(node.op, x.inputs[0], source=node.source) if _is_float(x) else None


def _twice_negative(node: Node) -> Node | None:
    return node.inputs[0].inputs[0]


def _same_either_way(node: Node) -> Node | None:
    _, x, y = node.inputs
    return x if x is y and x.spec == node.spec else None


def _where_not(node: Node) -> Node | None:
    condition, x, y = node.inputs
    if condition.op is not elementwise.logical_not:
        return None
    return call(node.op, condition.inputs[0], y, x, source=node.source)


def _unchanged(node: Node) -> Node | None:
    return node.inputs[0] if node.inputs[0].spec == node.spec else None


def _cast(node: Node) -> Node | None:
    wider = node.inputs[0]
    x, dtype = wider.inputs[0], node.attrs["dtype"]
    if not np.can_cast(x.spec.dtype, wider.spec.dtype, "safe") or (x.spec.is_float and dtype.kind != "f"):
        return None  # what a float beyond the integers is cast to depends on the float's dtype
    return x if x.spec.dtype == dtype else Node.of(node.op, [x], node.attrs, node.source)


def _over_nothing(node: Node) -> Node | None:
    """A reduction over axes of size 1, or over none, is a reshape: each result is one element."""
    source = node.inputs[0]
    if source.spec.dtype != node.spec.dtype or not all(dims.same(source.spec.shape[a], 1) for a in node.attrs["axis"]):
        return None
    return reshaped(source, node.spec.shape, node.source)


# For each op its rules, each with the op that one of its operands must be of: most nodes need no closer look.
_RULES: Mapping[Op, tuple[tuple[Op | None, Rule], ...]] = {
    elementwise.multiply: (
        (CONSTANT, _neutral(1, 0, 1)),
        (CONSTANT, _times_minus_one),
        (None, _squared),
        (elementwise.negative, _sign_outwards),
    ),
    elementwise.divide: (
        (CONSTANT, _neutral(1, 1)),
        (CONSTANT, _by_power_of_two),
        (elementwise.negative, _sign_outwards),
    ),
    elementwise.add: ((elementwise.negative, _sum_with_negative),),
    elementwise.subtract: ((CONSTANT, _neutral(0, 1)), (elementwise.negative, _less_negative)),
    elementwise.negative: (
        (elementwise.negative, _twice_negative),
        (elementwise.multiply, _sign_into_constant),
        (elementwise.divide, _sign_into_constant),
    ),
    elementwise.positive: ((None, _unchanged),),
    elementwise.pow: ((CONSTANT, _second_power),),
    elementwise.square: ((elementwise.negative, _square_of_negative),),
    elementwise.abs: ((elementwise.negative, _square_of_negative),),
    elementwise.where: ((None, _same_either_way), (elementwise.logical_not, _where_not)),
    movement.astype: ((None, _unchanged), (movement.astype, _cast)),
    reductions.max: ((None, _over_nothing),),
    reductions.min: ((None, _over_nothing),),
}
