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

Common subexpressions: the same op on the same inputs is computed once.

Constant folding: a node that depends on constants alone is computed once, when the graph is compiled.

Dead code: nodes that no output and no effect depends on.

Decomposition: an op that is made of simpler ops is replaced by them, since other passes know more about these.

softmax    exp(x - max(x)) / sum(...): elementwise ops and sums over rows, which fuse with the ops around them
stack      a concat

Bits stay, since an op's parts have the bits of its kernel. Decomposition comes after differentiation, so that the
gradient is the gradient of the whole op, as on the tape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import dims
from graphs.builder import Builder
from graphs.dims import is_symbolic
from graphs.dispatch import BROKEN_RULES
from graphs.ir import CONSTANT, Graph, Node, format_attr
from graphs.ops import elementwise
from static.passes.rewrite import Entry, Rules, call, number, rewrite, value_of
from static.passes.views import reshape_node
from static.trace.symbol import Symbol
from static.trace.tracing import tracing


def simplify_algebra(graph: Graph) -> Graph:
    """Return the graph with every rule of `RULES` applied where it fits."""
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
    """Whether a sign may move from x to the result: x is a float and not smaller than the result."""
    return _has_sign_bit(x) and dims.same_shape(x.spec.shape, node.spec.shape)


def _has_sign(node: Node, x: Node, c: Node) -> bool:
    """Whether c is a float constant whose sign may flip; an unsigned int, a bool and the least int have no negative."""
    return value_of(c) is not None and c.spec.is_float and _is_alike_float(node, x)


def _negative(c: Node) -> Node:
    return number(-value_of(c), c.spec.dtype, c.source)


def _is_root(node: Node, x: Node, half: Node) -> bool:
    """Whether NumPy takes the square root for this exponent 0.5: pow of -inf is inf, its root is NaN."""
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
        return None  # the cast of a float beyond the integers depends on the float's dtype
    return x if x.spec.dtype == dtype else Node.of(node.op, [x], node.attrs, node.source)


def _over_nothing(node: Node, x: Node) -> Node | None:
    """Rewrite a reduction over axes of size 1, or over no axes, to a reshape: each result is one element."""
    if x.spec.dtype != node.spec.dtype or not all(dims.same(x.spec.shape[a], 1) for a in node.attrs["axis"]):
        return None
    return reshape_node(x, node.spec.shape, node.source)


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


def merge_common_subexpressions(graph: Graph) -> Graph:
    """Return the graph with equal computations merged; bits stay, since ops are functions of their inputs."""
    seen: dict[Any, Node] = {}
    return rewrite(graph, lambda node: seen.setdefault(_key(node), node) if _is_mergeable(node) else None)


def _is_mergeable(node: Node) -> bool:
    return not node.is_input and not (node.op.may_have_effect and node.has_effect)


def _key(node: Node) -> Any:
    if not node.attrs:
        return node.op, node.inputs
    return node.op, node.inputs, *[(name, _comparable(value)) for name, value in sorted(node.attrs.items())]


def _comparable(value: Any) -> Any:
    """Return a hashable value that is equal for two attributes exactly when they mean the same."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes() if value.nbytes <= 64 else id(value)
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, Graph):
        return id(value)
    return type(value).__name__, format_attr(value)


LARGEST = 1 << 16  # bytes: a larger result would take more memory than it saves time


def fold_constants(graph: Graph) -> Graph:
    """Return the graph with each op on constants replaced by its result, which has the bits that the op would give.

    Views of constants stay, although their values are known: they cost nothing to run, and a folded view would take
    memory of its own.
    """
    values: dict[Node, Any] = {}
    return rewrite(graph, lambda node: _fold_constant(node, values))


def _fold_constant(node: Node, values: dict[Node, Any]) -> Node | None:
    if node.is_constant and not is_symbolic(node.attrs["value"]):
        values[node] = node.attrs["value"]
    if not _foldable(node, values):
        return None
    try:  # a kernel may give a NumPy scalar where an array of no axes is meant
        value = np.asarray(node.op.kernel(*(values[source] for source in node.inputs), **node.attrs))
    except BROKEN_RULES:
        return None  # the op may be in a branch that is never taken; where it runs, it fails there
    if node.op.view:
        values[node] = value
        return None
    folded = Node(CONSTANT, (), {"value": value, "dtype": node.spec.dtype}, node.spec, node.source)
    values[folded] = value
    return folded


def _foldable(node: Node, values: dict[Node, Any]) -> bool:
    if not node.inputs or not values.keys() >= set(node.inputs):
        return False
    if node.op.may_have_effect or any(map(is_symbolic, node.attrs.values())):
        return False
    return node.op.view or node.spec.nbytes <= LARGEST


def remove_dead_code(graph: Graph) -> Graph:
    """Return the graph without nodes that no output or effect needs; inputs stay, because callers pass them."""
    live: set[Node] = {*graph.inputs, *graph.outputs, *graph.effects}
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    if len(live) == len(graph):
        return graph
    return Graph(graph.name, graph.inputs, [node for node in graph.nodes if node in live], graph.outputs)


def decompose(graph: Graph) -> Graph:
    """Return the graph with each op that defines its parts replaced by these parts."""
    return rewrite(graph, parts_of) if any(op.parts for op in graph.ops) else graph


def parts_of(node: Node) -> Node | None:
    """Return the last node of an op's parts, all with the source line of the op; None for an op without parts."""
    if node.op.parts is None:
        return None
    builder = Builder(node.op.name)
    builder.line = node.source
    with tracing(builder):
        result: Symbol = node.op.parts(*[Symbol(builder, source) for source in node.inputs], **node.attrs)
    return result.node
