"""Elementwise ops as operations of the loop IR, and which ops and dtypes there are.

Functions of float32 that are not one instruction are computed in float64 where few graphs spend their time there: that
is exact to a hair more than half a unit in the last place, for short series. `exp` and `tanh` have forms in float32
(Cephes' reductions and polynomials): 1.0 and 1.4 units. Of float64 these functions are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import Node
from static.backends.native.ir import Builder, Type, Value

Write = Callable[..., Value]
FLOATS, REALS, BITS, ANY = "f", "fiu", "iub", "fiub"
WIDTHS = (1, 4, 8)  # bytes of elements; float16 is NumPy's
_LARGE = 104.0  # exp of more is infinite, of less 0, in float32 after rounding
_MAGIC = 12582912.0  # 1.5 * 2**23: a float32 added to it is rounded to an integer, which its last bits are


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
    kind = np.result_type(*dtypes) if native.of_operands else node.spec.dtype
    if kind.kind not in native.kinds or (native.single and kind.itemsize != 4):
        return None
    return kind if all(_casts(d, kind) for d in dtypes) else None


def _casts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether every number has one meaning as the other: a float may be too large for an integer."""
    return not (source.kind == "f" and target.kind in "iu")


def compute(b: Builder, name: str, dtype: str, args: Sequence[Value]) -> Value:
    """The value of an op computed in a dtype; what is to be chosen by is a truth."""
    lanes = args[0].type.lanes
    if name == "where":
        return b.op("select", cast(b, args[0], "b1"), *(cast(b, x, dtype) for x in args[1:]), type=Type(dtype, lanes))
    return NATIVE[name].write(b, *(cast(b, x, dtype) for x in args))


def cast(b: Builder, x: Value, dtype: str) -> Value:
    """The value in another dtype."""
    return x if x.type.dtype == dtype else b.op("cast", x, type=Type(dtype, x.type.lanes))


def _op(name: str) -> Write:
    return lambda b, *args: b.op(name, *args)


def _compare(name: str) -> Write:
    return lambda b, *args: test(b, name, *args)


def test(b: Builder, name: str, *args: Value) -> Value:
    """A comparison: a truth a lane."""
    return b.op(name, *args, type=Type("b1", args[0].type.lanes))


def _truth(name: str) -> Write:
    return lambda b, *args: b.op(name, *(cast(b, x, "b1") for x in args))


def maximum(b: Builder, x: Value, y: Value) -> Value:
    """The larger; NaN where either is."""
    return _extreme(b, "gt", x, y)


def minimum(b: Builder, x: Value, y: Value) -> Value:
    """The smaller; NaN where either is."""
    return _extreme(b, "lt", x, y)


def _extreme(b: Builder, name: str, x: Value, y: Value) -> Value:
    chosen = test(b, name, x, y)
    if x.type.dtype[0] == "f":
        chosen = b.op("or", chosen, test(b, "ne", x, x))
    return b.op("select", chosen, x, y, type=x.type)


def _number_of(name: str) -> Write:
    """fmax and fmin: of a number and NaN the number."""

    def write(b: Builder, x: Value, y: Value) -> Value:
        chosen = test(b, name, x, y)
        if x.type.dtype[0] == "f":
            chosen = b.op("or", chosen, test(b, "ne", y, y))
        return b.op("select", chosen, x, y, type=x.type)

    return write


def _same(_: Builder, x: Value) -> Value:
    return x


def _relu(b: Builder, x: Value) -> Value:
    zero = b.constant(0, x.type)
    return b.op("select", test(b, "ugt" if x.type.dtype[0] == "f" else "gt", x, zero), x, zero, type=x.type)


def _clip(b: Builder, x: Value, low: Value, high: Value) -> Value:
    return minimum(b, maximum(b, x, low), high)


def _square(b: Builder, x: Value) -> Value:
    return b.op("mul", x, x)


def _reciprocal(b: Builder, x: Value) -> Value:
    return b.op("div", b.constant(1.0, x.type), x)


def _sign(b: Builder, x: Value) -> Value:
    zero, one, less = (b.constant(n, x.type) for n in (0, 1, -1))
    signed = b.op("select", test(b, "gt", x, zero), one, x, type=x.type)
    signed = b.op("select", test(b, "lt", x, zero), less, signed, type=x.type)
    return b.op("select", test(b, "eq", x, zero), zero, signed, type=x.type)


def _absolute(b: Builder, x: Value) -> Value:
    if x.type.dtype[0] == "f":
        return b.op("abs", x)
    if x.type.dtype[0] == "u":
        return x
    return b.op("select", test(b, "lt", x, b.constant(0, x.type)), b.op("neg", x), x, type=x.type)


def _whole(name: str) -> Write:
    """A rounding, which integers need not."""
    return lambda b, x: b.op(name, x) if x.type.dtype[0] == "f" else x


def _signbit(b: Builder, x: Value) -> Value:
    bits = Type("i" + x.type.dtype[1:], x.type.lanes)
    x = b.op("bits", x, type=bits) if x.type.dtype[0] == "f" else x
    return test(b, "lt", x, b.constant(0, bits))


def _isfinite(b: Builder, x: Value) -> Value:
    return test(b, "lt", b.op("abs", x), b.constant(math.inf, x.type))


def _isinf(b: Builder, x: Value) -> Value:
    return test(b, "eq", b.op("abs", x), b.constant(math.inf, x.type))


# Series ------------------------------------------------------------------------------------------------------


def _polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, that of the highest power first, by Horner's rule."""
    total: Value = b.constant(coefficients[0], x.type)
    for coefficient in coefficients[1:]:
        total = b.op("fma", total, x, b.constant(coefficient, x.type))
    return total


def _clamped(b: Builder, x: Value, low: float, high: float) -> Value:
    """x in a range; NaN stays."""
    for name, limit in (("lt", low), ("gt", high)):
        bound = b.constant(limit, x.type)
        x = b.op("select", test(b, name, x, bound), bound, x, type=x.type)
    return x


_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)


def _reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """n and e ** r, with x = n log(2) + r: n as the last bits of a float32."""
    magic = b.constant(_MAGIC, x.type)
    shifted = b.op("fma", x, b.constant(math.log2(math.e), x.type), magic)
    n = b.op("sub", shifted, magic)
    r = b.op("fma", n, b.constant(-0.693359375, x.type), x)
    r = b.op("fma", n, b.constant(2.12194440e-4, x.type), r)
    p = b.op("fma", _polynomial(b, r, _EXP), b.op("mul", r, r), r)
    return b.op("bits", shifted, type=Type("i4", x.type.lanes)), b.op("add", p, b.constant(1.0, x.type))


def _exp(b: Builder, x: Value) -> Value:
    """e ** x as 2 ** n e ** r, in two steps, since 2 ** n may be too large or small for a normal float32."""
    shifted, p = _reduced(b, _clamped(b, x, -_LARGE, 88.8))
    whole = shifted.type
    n = b.op("sub", shifted, b.constant(0x4B400000, whole))
    half = b.op("ashr", n, b.constant(1, whole))
    for part in (half, b.op("sub", n, half)):
        bits = b.op("add", b.op("shl", part, b.constant(23, whole)), b.constant(127 << 23, whole))
        p = b.op("mul", p, b.op("bits", bits, type=x.type))
    return p


def _tanh(b: Builder, x: Value) -> Value:
    """1 - 2 / (exp(2 |x|) + 1) with the sign of x; a polynomial near 0."""
    size = b.op("abs", x)
    limited = b.op("select", test(b, "gt", size, b.constant(10.0, x.type)), b.constant(10.0, x.type), size, type=x.type)
    shifted, p = _reduced(b, b.op("add", limited, limited))
    whole = shifted.type
    bits = b.op("add", b.op("shl", shifted, b.constant(23, whole)), b.op("bits", p, type=whole))
    raised = b.op("add", b.op("bits", bits, type=x.type), b.constant(1.0, x.type))
    large = b.op("sub", b.constant(1.0, x.type), b.op("div", b.constant(2.0, x.type), raised))
    square = b.op("mul", x, x)
    small = b.op("fma", b.op("mul", _polynomial(b, square, _TANH), square), x, x)
    result = b.op("select", test(b, "lt", size, b.constant(0.625, x.type)), small, large, type=x.type)
    return b.op("select", test(b, "ne", x, x), x, b.op("copysign", result, x), type=x.type)


def _wide(write: Write) -> Write:
    """A function of float32 that is computed in float64."""

    def rounded(b: Builder, *args: Value) -> Value:
        return cast(b, write(b, *(cast(b, x, "f8") for x in args)), "f4")

    return rounded


_POWERS_OF_TWO = [math.log(2) ** k / math.factorial(k) for k in range(9, 0, -1)]
_WIDE_MAGIC = 6755399441055744.0  # 1.5 * 2**52


def _power_parts(b: Builder, x: Value) -> tuple[Value, Value]:
    """2 ** n and 2 ** r - 1, with x = n + r and r at most one half: |x| below 1000."""
    magic, whole = b.constant(_WIDE_MAGIC, x.type), Type("i8", x.type.lanes)
    shifted = b.op("add", x, magic)
    r = b.op("sub", x, b.op("sub", shifted, magic))
    exponent = b.op("add", b.op("bits", shifted, type=whole), b.constant(1023, whole))
    scale = b.op("bits", b.op("shl", exponent, b.constant(52, whole)), type=x.type)
    return scale, b.op("mul", _polynomial(b, r, _POWERS_OF_TWO), r)


def _parts_of_exp(b: Builder, x: Value, low: float = -200.0) -> tuple[Value, Value]:
    limited = _clamped(b, x, low, 200.0)
    return _power_parts(b, b.op("mul", limited, b.constant(math.log2(math.e), x.type)))


def _wide_exp(b: Builder, x: Value) -> Value:
    scale, more = _parts_of_exp(b, x)
    return b.op("fma", scale, more, scale)


def _wide_expm1(b: Builder, x: Value) -> Value:
    scale, more = _parts_of_exp(b, x)
    less = b.op("fma", scale, more, b.op("sub", scale, b.constant(1.0, x.type)))
    return b.op("select", test(b, "eq", x, b.constant(0.0, x.type)), x, less, type=x.type)  # -0.0 stays


def _sigmoid(b: Builder, x: Value) -> Value:
    one = b.constant(1.0, x.type)
    return b.op("div", one, b.op("add", one, _wide_exp(b, b.op("neg", x))))


def _hyperbolic(name: str) -> Write:
    """sinh and cosh: half of exp(x) - exp(-x), where near 0 no digits are lost, or of their sum."""

    def write(b: Builder, x: Value) -> Value:
        half = b.constant(0.5, x.type)
        if name == "add":
            return b.op("mul", half, b.op("add", _wide_exp(b, x), _wide_exp(b, b.op("neg", x))))
        less = _wide_expm1(b, b.op("abs", x))
        one = b.constant(1.0, x.type)
        sinh = b.op("mul", half, b.op("add", less, b.op("div", less, b.op("add", less, one))))
        return b.op("copysign", sinh, x)

    return write


_ATANH = [2.0 / (2 * k + 1) for k in range(8, -1, -1)]
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1 / 2)


def _logarithm(b: Builder, x: Value, less_one: Value | None = None) -> Value:
    """log(x), or log(1 + less_one) with x = 1 + less_one: e log(2) + 2 atanh(s), s = (m - 1) / (m + 1), x = m 2 ** e.

    m lies between sqrt(1 / 2) and sqrt(2). Where e is 0, what was rounded away in x is still in `less_one`.
    """
    whole, one, zero = Type("i8", x.type.lanes), b.constant(1.0, x.type), b.constant(0.0, x.type)
    bits = b.op("bits", x, type=whole)
    exponent = b.op("ashr", b.op("sub", bits, b.constant(_ROOT_HALF, whole)), b.constant(52, whole))
    mantissa = b.op("bits", b.op("sub", bits, b.op("shl", exponent, b.constant(52, whole))), type=x.type)
    excess = b.op("sub", mantissa, one)
    if less_one is not None:
        near = test(b, "eq", exponent, b.constant(0, whole))
        excess = b.op("select", near, less_one, excess, type=x.type)
    s = b.op("div", excess, b.op("add", excess, b.constant(2.0, x.type)))
    series = b.op("mul", _polynomial(b, b.op("mul", s, s), _ATANH), s)
    result = b.op("fma", b.op("cast", exponent, type=x.type), b.constant(math.log(2), x.type), series)
    result = b.op("select", test(b, "eq", x, zero), b.constant(-math.inf, x.type), result, type=x.type)
    result = b.op("select", test(b, "lt", x, b.constant(math.inf, x.type)), result, x, type=x.type)  # infinite and NaN
    return b.op("select", test(b, "lt", x, zero), b.constant(math.nan, x.type), result, type=x.type)


def _log1p(b: Builder, x: Value) -> Value:
    result = _logarithm(b, b.op("add", x, b.constant(1.0, x.type)), x)
    return b.op("select", test(b, "eq", x, b.constant(0.0, x.type)), x, result, type=x.type)


def _scaled_log(base: float) -> Write:
    return lambda b, x: b.op("mul", _logarithm(b, x), b.constant(1 / math.log(base), x.type))


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """The larger, and log1p(exp(-difference)); of equal infinities that infinity."""
    same = test(b, "eq", x, y)
    difference = b.op("abs", b.op("sub", x, y))
    difference = b.op("select", same, b.constant(0.0, x.type), difference, type=x.type)
    more = _log1p(b, _wide_exp(b, b.op("neg", difference)))
    return b.op("add", maximum(b, x, y), more)


def _hypot(b: Builder, x: Value, y: Value) -> Value:
    length = b.op("sqrt", b.op("fma", x, x, b.op("mul", y, y)))
    infinite = b.op("or", _isinf(b, x), _isinf(b, y))
    return b.op("select", infinite, b.constant(math.inf, x.type), length, type=x.type)


NATIVE: dict[str, Native] = {
    "add": Native(_op("add"), REALS),
    "subtract": Native(_op("sub"), REALS),
    "multiply": Native(_op("mul"), REALS),
    "divide": Native(_op("div"), FLOATS),
    "positive": Native(_same, REALS),
    "negative": Native(_op("neg"), REALS),
    "square": Native(_square, REALS),
    "reciprocal": Native(_reciprocal, FLOATS),
    "sqrt": Native(_op("sqrt"), FLOATS),
    "abs": Native(_absolute, REALS),
    "sign": Native(_sign, "fi"),
    "signbit": Native(_signbit, FLOATS, of_operands=True),
    "copysign": Native(_op("copysign"), FLOATS),
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
    "where": Native(_op("select"), ANY),
    "astype": Native(_same, ANY),
    "exp": Native(_exp, FLOATS, single=True),
    "tanh": Native(_tanh, FLOATS, single=True),
    "expm1": Native(_wide(_wide_expm1), FLOATS, single=True),
    "sigmoid": Native(_wide(_sigmoid), FLOATS, single=True),
    "sinh": Native(_wide(_hyperbolic("sub")), FLOATS, single=True),
    "cosh": Native(_wide(_hyperbolic("add")), FLOATS, single=True),
    "log": Native(_wide(_logarithm), FLOATS, single=True),
    "log1p": Native(_wide(_log1p), FLOATS, single=True),
    "log2": Native(_wide(_scaled_log(2)), FLOATS, single=True),
    "log10": Native(_wide(_scaled_log(10)), FLOATS, single=True),
    "logaddexp": Native(_wide(_logaddexp), FLOATS, single=True),
    "hypot": Native(_wide(_hypot), FLOATS, single=True),
    "bitwise_and": Native(_op("and"), BITS),
    "bitwise_or": Native(_op("or"), BITS),
    "bitwise_xor": Native(_op("xor"), BITS),
    "bitwise_invert": Native(_op("not"), BITS),
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

JOINS: dict[str, Write] = {
    "add": _op("add"),
    "mul": _op("mul"),
    "max": maximum,
    "min": minimum,
    "and": _op("and"),
    "or": _op("or"),
}
"""How two parts of a reduction become one."""
