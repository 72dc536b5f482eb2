"""Algebraic simplification: ops that change nothing, undo each other, or have a cheaper twin that keeps every bit.

x * 1, x / 1, x - 0, +x      x             x + -0.0 too; x + 0 of ints alone, since of floats it turns -0.0 into 0.0
x * -1, --x                  -x, x
x + -y, -x + y, x - -y       x - y, y - x, x + y
-x * y, x * -y, -x / y       -(x * y), ... so that a sum can take up the sign
-(x * c), -(x / c), -(c / x)  x * -c, x / -c, -c / x, for a constant c
x / c                        x * (1 / c), where c is a power of two and so 1 / c exact
x * x, x ** 2                square(x), which is then computed once; x ** 0.5 is sqrt(x)
where(c, x, x)               x             where(not c, x, y)         where(c, y, x)
astype to the same dtype     x             astype of a wider astype   one astype
the max or min of one        x             (not the sum, which turns -0.0 into 0.0)

The bits of a NaN are not counted: NumPy's kernels do not agree on its sign.
"""

from __future__ import annotations

import math

import numpy as np

from graphs import dims
from graphs.ir import CONSTANT, Graph, Node
from graphs.ops import elementwise
from static.passes.patterns import Entry, Rules, call, number, value_of
from static.passes.rewrite import rewrite
from static.passes.views import reshaped


def simplify_algebra(graph: Graph) -> Graph:
    """The graph with every rule applied where it fits."""
    return rewrite(graph, _RULE_SET)


def _has_sign_bit(y: Node) -> bool:
    """Whether a negated operand is a float: an unsigned int or the least int has no negative."""
    return y.spec.is_float


def _is_alike(node: Node, x: Node) -> bool:
    return x.spec == node.spec


def _is_alike_whole(node: Node, x: Node) -> bool:
    return node.spec.dtype.kind in "iu" and x.spec == node.spec


def _is_alike_float(node: Node, x: Node) -> bool:
    return node.spec.is_float and x.spec == node.spec


def _fills(node: Node, x: Node) -> bool:
    """Whether a sign is as cheap to change in the result as in x: not where x is the smaller."""
    return _has_sign_bit(x) and dims.same_shape(x.spec.shape, node.spec.shape)


def _has_sign(node: Node, x: Node, c: Node) -> bool:
    """Whether c is a number whose sign may change: that of an unsigned int, a bool or the least int would not."""
    return value_of(c) is not None and c.spec.is_float and _is_alike_float(node, x)


def _negative(c: Node) -> Node:
    return number(-value_of(c), c.spec.dtype, c.source)


def _is_root(node: Node, x: Node, half: Node) -> bool:
    """Whether NumPy takes the root for one exponent of 0.5: it is NaN of -inf, where the power is inf."""
    return _is_alike_float(node, x) and not half.spec.ndim and node.spec.dtype.itemsize > np.dtype(np.float16).itemsize


def _by_power_of_two(node: Node, x: Node, y: Node) -> Node | None:
    divisor = value_of(y)
    if divisor is None or not node.spec.is_float or not y.spec.is_float or not np.isfinite(divisor) or not divisor:
        return None
    if abs(math.frexp(divisor)[0]) != 0.5 or abs(math.frexp(divisor)[1]) > -np.finfo(y.spec.dtype).minexp // 2:
        return None
    inverse = np.full(y.spec.shape, 1 / divisor, y.spec.dtype)
    constant = Node.of(CONSTANT, (), {"value": inverse, "dtype": y.spec.dtype}, y.source)
    return call(elementwise.multiply, x, constant, source=node.source)


def _cast(node: Node, wider: Node, x: Node) -> Node | None:
    dtype = node.attrs["dtype"]
    if not np.can_cast(x.spec.dtype, wider.spec.dtype, "safe") or (x.spec.is_float and dtype.kind != "f"):
        return None  # what a float beyond the integers is cast to depends on the float's dtype
    return x if x.spec.dtype == dtype else Node.of(node.op, [x], node.attrs, node.source)


def _over_nothing(node: Node, x: Node) -> Node | None:
    """A reduction over axes of size 1, or over none, is a reshape: each result is one element."""
    if x.spec.dtype != node.spec.dtype or not all(dims.same(x.spec.shape[a], 1) for a in node.attrs["axis"]):
        return None
    return reshaped(x, node.spec.shape, node.source)


RULES: tuple[Entry, ...] = (
    ("x * 1", "x", _is_alike),
    ("x * -1", "-x", _is_alike_float),
    ("x * x", "square(x)", lambda x: x.spec.dtype.kind != "b"),
    ("multiply(-x, y)", "-(x * y)", _fills),
    ("multiply(y, -x)", "-(y * x)", _fills),
    ("x / 1", "x", _is_alike),
    ("x / y", _by_power_of_two),
    ("-x / y", "-(x / y)", _fills),
    ("y / -x", "-(y / x)", _fills),
    ("x + -y", "x - y", _has_sign_bit),
    ("x + 0", "x", _is_alike_whole),
    ("x + -0.0", "x", _is_alike),
    ("x - 0", "x", _is_alike),
    ("x - -y", "x + y", _has_sign_bit),
    ("--x", "x"),
    ("-multiply(x, c)", lambda node, x, c: call(elementwise.multiply, x, _negative(c), source=node.source), _has_sign),
    ("-multiply(c, x)", lambda node, x, c: call(elementwise.multiply, _negative(c), x, source=node.source), _has_sign),
    ("-(x / c)", lambda node, x, c: call(elementwise.divide, x, _negative(c), source=node.source), _has_sign),
    ("-(c / x)", lambda node, x, c: call(elementwise.divide, _negative(c), x, source=node.source), _has_sign),
    ("positive(x)", "x", _is_alike),
    # NumPy squares for one exponent; for an array of them it calls a function that rounds its own way.
    ("pow(x, (two := 2))", "square(x)", lambda node, x, two: _is_alike_float(node, x) and not two.spec.ndim),
    ("pow(x, (half := 0.5))", "sqrt(x)", _is_root),
    ("square(-x)", "square(x)", lambda x: x.spec.is_float),
    ("abs(-x)", "abs(x)", lambda x: x.spec.is_float),
    ("where(condition, x, x)", "x", _is_alike),
    ("where(logical_not(condition), x, y)", "where(condition, y, x)"),
    ("astype(x)", "x", _is_alike),
    ("astype(wider := astype(x))", _cast),
    ("max(x)", _over_nothing),
    ("min(x)", _over_nothing),
)
_RULE_SET = Rules(*RULES)
