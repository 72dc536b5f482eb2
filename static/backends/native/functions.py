"""Elementwise ops as operations of the loop IR, and which ops and dtypes there are. Others are NumPy's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import Node
from static.backends.native import series
from static.backends.native.ir import LoopBuilder, Type, Value
from static.backends.native.operations import Write, cast, maximum, minimum, operation, test

FLOATS, REALS, BITS, ANY = "f", "fiu", "iub", "fiub"
WIDTHS = (1, 4, 8)  # bytes of elements; float16 is NumPy's
LONGEST = np.dtype(np.uint64)

COMPARISONS = {
    "equal": (False, False),
    "not_equal": (True, True),
    "less": (True, False),
    "less_equal": (True, False),
    "greater": (False, True),
    "greater_equal": (False, True),
}
"""Of each comparison whether it holds where the first operand is the smaller, and where the second one is."""


class Native(NamedTuple):
    """How an op is written, on values of which kinds, and in which dtype: that of the result, or of the operands."""

    write: Write
    kinds: str
    of_operands: bool = False
    single: bool = False  # of floats float32 alone


def dtype_of(dtype: np.dtype[Any]) -> str:
    """The letter and bytes that the IR calls a dtype."""
    return dtype.str[1:]


def computed_in(node: Node) -> np.dtype[Any] | None:
    """The dtype that a node is computed in; None where the op is not native for these dtypes."""
    native = NATIVE.get(node.op.name)
    dtypes = [source.spec.dtype for source in node.inputs]
    if native is None or not all(d.kind in ANY and d.itemsize in WIDTHS for d in (*dtypes, node.spec.dtype)):
        return None
    if node.op.name == "where":
        dtypes = dtypes[1:]
    if node.op.name == "astype":
        return node.spec.dtype if _casts(dtypes[0], node.spec.dtype) else None
    kind = node.spec.dtype
    if native.of_operands:
        kind = LONGEST if _is_mixed(node.op.name, dtypes) else np.result_type(*dtypes)
    if kind.kind not in native.kinds or (native.single and kind.itemsize != 4):
        return None
    return kind if all(_casts(d, kind) for d in dtypes) else None


def _casts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether every number has one meaning as the other: a float may be too large for an integer."""
    return not (source.kind == "f" and target.kind in "iu")


def _is_mixed(name: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Whether ints are compared that no int holds both of: float64, which they would become, is not exact."""
    return name in COMPARISONS and {d.kind for d in dtypes} == set("iu") and np.result_type(*dtypes).kind == "f"


def compute(b: LoopBuilder, name: str, dtype: str, args: Sequence[Value]) -> Value:
    """The value of an op computed in a dtype; what is to be chosen by is a truth."""
    lanes = args[0].type.lanes
    if name == "where":
        return b.op("select", cast(b, args[0], "b1"), *(cast(b, x, dtype) for x in args[1:]), type=Type(dtype, lanes))
    if name in COMPARISONS and {x.type.dtype[0] for x in args} == set("iu") and dtype == dtype_of(LONGEST):
        return _compare_mixed(b, name, *args)
    return NATIVE[name].write(b, *(cast(b, x, dtype) for x in args))


def _compare(name: str) -> Write:
    return lambda b, *args: test(b, name, *args)


def _compare_mixed(b: LoopBuilder, name: str, x: Value, y: Value) -> Value:
    """A comparison of an int with uint64, in uint64; an int below 0 is less than that, whatever it holds."""
    unsigned = NATIVE[name].write(b, *(cast(b, operand, dtype_of(LONGEST)) for operand in (x, y)))
    signed, below = (x, COMPARISONS[name][0]) if x.type.dtype[0] == "i" else (y, COMPARISONS[name][1])
    is_below = test(b, "lt", signed, b.constant(0, signed.type))
    return b.op("or", unsigned, is_below) if below else b.op("and", unsigned, b.op("not", is_below))


def _truth(name: str) -> Write:
    return lambda b, *args: b.op(name, *(cast(b, x, "b1") for x in args))


def _number_of(name: str) -> Write:
    """fmax and fmin: of a number and NaN the number."""

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
    """A rounding, which integers need not."""
    return lambda b, x: b.op(name, x) if x.type.dtype[0] == "f" else x


def _signbit(b: LoopBuilder, x: Value) -> Value:
    bits = Type("i" + x.type.dtype[1:], x.type.lanes)
    x = b.op("bits", x, type=bits) if x.type.dtype[0] == "f" else x
    return test(b, "lt", x, b.constant(0, bits))


def _isfinite(b: LoopBuilder, x: Value) -> Value:
    return test(b, "lt", b.op("abs", x), b.constant(math.inf, x.type))


def _isinf(b: LoopBuilder, x: Value) -> Value:
    return test(b, "eq", b.op("abs", x), b.constant(math.inf, x.type))


def _single(write: Write) -> Native:
    """A function of float32 alone."""
    return Native(write, FLOATS, single=True)


NATIVE: dict[str, Native] = {
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
    "where": Native(operation("select"), ANY),
    "astype": Native(_same, ANY),
    "exp": _single(series.exp),
    "tanh": _single(series.tanh),
    "erf": _single(series.erf),
    "expm1": _single(series.expm1),
    "sigmoid": _single(series.sigmoid),
    "sinh": _single(series.sinh),
    "cosh": _single(series.cosh),
    "log": _single(series.log),
    "log1p": _single(series.log1p),
    "log2": _single(series.log2),
    "log10": _single(series.log10),
    "logaddexp": _single(series.logaddexp),
    "hypot": _single(series.hypot),
    "pow": _single(series.pow),
    "atan": _single(series.atan),
    "asin": _single(series.asin),
    "acos": _single(series.acos),
    "asinh": _single(series.asinh),
    "acosh": _single(series.acosh),
    "atanh": _single(series.atanh),
    "bitwise_and": Native(operation("and"), BITS),
    "bitwise_or": Native(operation("or"), BITS),
    "bitwise_xor": Native(operation("xor"), BITS),
    "bitwise_invert": Native(operation("not"), BITS),
    "logical_and": Native(_truth("and"), ANY, of_operands=True),
    "logical_or": Native(_truth("or"), ANY, of_operands=True),
    "logical_xor": Native(_truth("xor"), ANY, of_operands=True),
    "logical_not": Native(_truth("not"), ANY, of_operands=True),
    "equal": Native(_compare("eq"), ANY, of_operands=True),
    "not_equal": Native(_compare("ne"), ANY, of_operands=True),
    "less": Native(_compare("lt"), REALS, of_operands=True),
    "less_equal": Native(_compare("le"), REALS, of_operands=True),
    "greater": Native(_compare("gt"), REALS, of_operands=True),
    "greater_equal": Native(_compare("ge"), REALS, of_operands=True),
    "isnan": Native(lambda b, x: test(b, "ne", x, x), FLOATS, of_operands=True),
    "isinf": Native(_isinf, FLOATS, of_operands=True),
    "isfinite": Native(_isfinite, FLOATS, of_operands=True),
}
