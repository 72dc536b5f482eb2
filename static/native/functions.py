"""Elementwise ops as operations of the loop IR, and a table of the native ops and dtypes. NumPy computes all others.

Most are one or a few instructions, which are written here, before the table `NATIVE`; `series` has the others. `FAST`
has the ops that stand for others where `fast_math` is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import Graph, Node
from graphs.op import Op, RuleTable, get
from graphs.ops.families import elementwise
from static.native.ir import LoopBuilder, Type, Value, Write, cast, maximum, minimum, operation, test
from static.native.series import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cosh,
    erf,
    exp,
    expm1,
    fast_exp,
    fast_sigmoid,
    fast_tanh,
    hypot,
    is_infinite,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    pow,
    sigmoid,
    sinh,
    tanh,
)
from static.rebuild import replace_nodes

FLOATS, REALS, BITS, ANY = "f", "fiu", "iub", "fiub"
WIDTHS = (1, 4, 8)  # bytes of elements; float16 is NumPy's
LONGEST = np.dtype(np.uint64)


class Native(NamedTuple):
    """How an op is written in loop IR, the kinds of dtypes it takes, and if it computes in its operands' dtype.

    single   of floats float32 alone
    chooses  the first operand is a truth
    holds    for a comparison: whether it holds where the first operand is smaller, and where the second is
    """

    write: Write
    kinds: str
    of_operands: bool = False
    single: bool = False
    chooses: bool = False
    holds: tuple[bool, bool] | None = None


def dtype_of(dtype: np.dtype[Any]) -> str:
    """Return the letter and bytes by which the IR names a dtype."""
    return dtype.str[1:]


def compute_dtype(node: Node) -> np.dtype[Any] | None:
    """Return the dtype that a node is computed in, None where the op is not native for its dtypes."""
    native = NATIVE[node.op]
    dtypes = [source.spec.dtype for source in node.inputs]
    if not all(d.kind in ANY and d.itemsize in WIDTHS for d in (*dtypes, node.spec.dtype)):
        return None
    if native.chooses:
        dtypes = dtypes[1:]
    kind = node.spec.dtype
    if native.of_operands:
        kind = LONGEST if _is_mixed(native, dtypes) else np.result_type(*dtypes)
    if kind.kind not in native.kinds or (native.single and kind.itemsize != 4):
        return None
    return kind if all(_casts(d, kind) for d in dtypes) else None


def _casts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether every number of one dtype has a meaning in the other; a float may be too large for an integer."""
    return not (source.kind == "f" and target.kind in "iu")


def _is_mixed(native: Native, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Whether a comparison is between int64 and uint64, which no int holds both; float64 would not be exact."""
    return native.holds is not None and {d.kind for d in dtypes} == set("iu") and np.result_type(*dtypes).kind == "f"


def compute(b: LoopBuilder, op: Op, dtype: str, args: Sequence[Value]) -> Value:
    """Return the value of a native op computed in a dtype; a first operand that chooses is cast to a truth."""
    native = NATIVE[op]
    if native.chooses:
        return native.write(b, cast(b, args[0], "b1"), *(cast(b, x, dtype) for x in args[1:]))
    if native.holds and {x.type.dtype[0] for x in args} == set("iu") and dtype == dtype_of(LONGEST):
        return _compare_mixed(b, native.write, native.holds, *args)
    return native.write(b, *(cast(b, x, dtype) for x in args))


def _select(b: LoopBuilder, truth: Value, x: Value, y: Value) -> Value:
    return b.op("select", truth, x, y, type=x.type)


def _compare(name: str) -> Write:
    return lambda b, *args: test(b, name, *args)


def _compare_mixed(b: LoopBuilder, write: Write, holds: tuple[bool, bool], x: Value, y: Value) -> Value:
    """Return a comparison of an int with uint64, computed in uint64; an int below 0 is less than any uint64."""
    unsigned = write(b, *(cast(b, operand, dtype_of(LONGEST)) for operand in (x, y)))
    signed, below = (x, holds[0]) if x.type.dtype[0] == "i" else (y, holds[1])
    is_below = test(b, "lt", signed, b.constant(0, signed.type))
    return b.op("or", unsigned, is_below) if below else b.op("and", unsigned, b.op("not", is_below))


def _truth(name: str) -> Write:
    return lambda b, *args: b.op(name, *(cast(b, x, "b1") for x in args))


def _number_of(name: str) -> Write:
    """Return fmax or fmin: of a number and NaN they give the number."""

    def write(b: LoopBuilder, x: Value, y: Value) -> Value:
        chosen = test(b, name, x, y)
        if x.type.dtype[0] == "f":
            chosen = b.op("or", chosen, test(b, "ne", y, y))
        return b.op("select", chosen, x, y, type=x.type)

    return write


def _same(_: LoopBuilder, x: Value) -> Value:
    return x


def _relu(b: LoopBuilder, x: Value) -> Value:
    zero = b.constant(0, x.type)
    return b.op("select", test(b, "ugt" if x.type.dtype[0] == "f" else "gt", x, zero), x, zero, type=x.type)


def _clip(b: LoopBuilder, x: Value, low: Value, high: Value) -> Value:
    return minimum(b, maximum(b, x, low), high)


def _square(b: LoopBuilder, x: Value) -> Value:
    return b.op("mul", x, x)


def _reciprocal(b: LoopBuilder, x: Value) -> Value:
    return b.op("div", b.constant(1.0, x.type), x)


def _sign(b: LoopBuilder, x: Value) -> Value:
    zero, plus, minus = (b.constant(n, x.type) for n in (0, 1, -1))
    signed = b.op("select", test(b, "gt", x, zero), plus, x, type=x.type)
    signed = b.op("select", test(b, "lt", x, zero), minus, signed, type=x.type)
    return b.op("select", test(b, "eq", x, zero), zero, signed, type=x.type)


def _absolute(b: LoopBuilder, x: Value) -> Value:
    if x.type.dtype[0] == "f":
        return b.op("abs", x)
    if x.type.dtype[0] == "u":
        return x
    return b.op("select", test(b, "lt", x, b.constant(0, x.type)), b.op("neg", x), x, type=x.type)


def _whole(name: str) -> Write:
    """Return a rounding function; integers stay as they are."""
    return lambda b, x: b.op(name, x) if x.type.dtype[0] == "f" else x


def _signbit(b: LoopBuilder, x: Value) -> Value:
    bits = Type("i" + x.type.dtype[1:], x.type.lanes)
    x = b.op("bits", x, type=bits) if x.type.dtype[0] == "f" else x
    return test(b, "lt", x, b.constant(0, bits))


def _isfinite(b: LoopBuilder, x: Value) -> Value:
    return test(b, "lt", b.op("abs", x), b.constant(math.inf, x.type))


def _single(write: Write) -> Native:
    """Return the entry of a function that is native for float32 alone."""
    return Native(write, FLOATS, single=True)


def _comparison(name: str, *, smaller: bool, larger: bool, kinds: str = REALS) -> Native:
    return Native(_compare(name), kinds, of_operands=True, holds=(smaller, larger))


NATIVE: RuleTable[Native] = RuleTable("native functions", otherwise=Native(_same, ""))  # native for no kind of dtype
NATIVE.enter({
    "add": Native(operation("add"), REALS),
    "subtract": Native(operation("sub"), REALS),
    "multiply": Native(operation("mul"), REALS),
    "divide": Native(operation("div"), FLOATS),
    "positive": Native(_same, REALS),
    "negative": Native(operation("neg"), REALS),
    "square": Native(_square, REALS),
    "reciprocal": Native(_reciprocal, FLOATS),
    "sqrt": Native(operation("sqrt"), FLOATS),
    "abs": Native(_absolute, REALS),
    "sign": Native(_sign, "fi"),
    "signbit": Native(_signbit, FLOATS, of_operands=True),
    "copysign": Native(operation("copysign"), FLOATS),
    "floor": Native(_whole("floor"), REALS),
    "ceil": Native(_whole("ceil"), REALS),
    "trunc": Native(_whole("trunc"), REALS),
    "round": Native(_whole("rint"), REALS),
    "maximum": Native(maximum, REALS),
    "minimum": Native(minimum, REALS),
    "fmax": Native(_number_of("ge"), REALS),
    "fmin": Native(_number_of("le"), REALS),
    "clip": Native(_clip, REALS),
    "relu": Native(_relu, REALS),
    "where": Native(_select, ANY, chooses=True),
    "astype": Native(_same, ANY),
    "exp": _single(exp),
    "tanh": _single(tanh),
    "erf": _single(erf),
    "expm1": _single(expm1),
    "sigmoid": _single(sigmoid),
    "sinh": _single(sinh),
    "cosh": _single(cosh),
    "log": _single(log),
    "log1p": _single(log1p),
    "log2": _single(log2),
    "log10": _single(log10),
    "logaddexp": _single(logaddexp),
    "hypot": _single(hypot),
    "pow": _single(pow),
    "atan": _single(atan),
    "asin": _single(asin),
    "acos": _single(acos),
    "asinh": _single(asinh),
    "acosh": _single(acosh),
    "atanh": _single(atanh),
    "bitwise_and": Native(operation("and"), BITS),
    "bitwise_or": Native(operation("or"), BITS),
    "bitwise_xor": Native(operation("xor"), BITS),
    "bitwise_invert": Native(operation("not"), BITS),
    "logical_and": Native(_truth("and"), ANY, of_operands=True),
    "logical_or": Native(_truth("or"), ANY, of_operands=True),
    "logical_xor": Native(_truth("xor"), ANY, of_operands=True),
    "logical_not": Native(_truth("not"), ANY, of_operands=True),
    "equal": _comparison("eq", smaller=False, larger=False, kinds=ANY),
    "not_equal": _comparison("ne", smaller=True, larger=True, kinds=ANY),
    "less": _comparison("lt", smaller=True, larger=False),
    "less_equal": _comparison("le", smaller=True, larger=False),
    "greater": _comparison("gt", smaller=False, larger=True),
    "greater_equal": _comparison("ge", smaller=False, larger=True),
    "isnan": Native(lambda b, x: test(b, "ne", x, x), FLOATS, of_operands=True),
    "isinf": Native(is_infinite, FLOATS, of_operands=True),
    "isfinite": Native(_isfinite, FLOATS, of_operands=True),
})  # fmt: skip

# Fast math -----------------------------------------------------------------------------------------------------------


FAST: RuleTable[Op | None] = RuleTable("fast math", otherwise=None)
"""The op of a shorter form of float32, by the op that it stands for.

The largest errors of the short and the usual form, in units in the last place over all numbers, are 2.7 and 1.1 for
exp, 5.4 and 1.5 for tanh, 3.4 and 0.51 for sigmoid. The short exp and sigmoid are 0 where the result is below 1.9e-38.
"""


def _shorten(name: str, write: Write) -> None:
    """Enter an op whose native form is shorter, and whose NumPy kernel is that of the op of this name."""
    usual = get(name)
    short = elementwise(f"fast_{name}", usual.kernel, dtype=lambda x: x, arity=1, listed=False, doc=usual.__doc__ or "")
    NATIVE.enter({short: _single(write)})
    FAST.enter({usual: short})


_shorten("exp", fast_exp)
_shorten("tanh", fast_tanh)
_shorten("sigmoid", fast_sigmoid)


def with_fast_math(graph: Graph) -> Graph:
    """Return the graph, without its subgraphs, with the short forms of float32 functions in place of the usual ones."""
    fast = [(node, op) for node in graph.nodes if (op := FAST[node.op]) and node.inputs[0].spec.dtype == np.float32]
    return replace_nodes(graph, {node: Node.of(op, node.inputs, node.attrs, node.source) for node, op in fast})
