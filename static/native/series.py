"""Functions of float32 that are not one instruction, as operations of the loop IR: reductions, polynomials and series.

Most are computed in float64, which for short series is exact to a hair more than half a unit in the last place of
float32. `exp` and `tanh`, in which graphs spend their time, have forms in float32 (Cephes' reductions and polynomials):
within 1.1 and 1.5 units. So has `erf`, by one rational function of degree 5 in x * x, which
was made by Lawson's algorithm: within 6. Three `fast_` forms are shorter, with larger errors (`functions.FAST`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from static.native.ir import LoopBuilder, Type, Value, Write, cast, maximum, test

_LARGE = 104.0  # exp of more is infinite, of less 0, in float32 after rounding
_MAGIC = 12582912.0  # 1.5 * 2**23: a float32 added to it is rounded to an integer, which its last bits are
_BIAS = 127  # the bias of a float32's exponent


def _polynomial(b: LoopBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial with these coefficients, the highest power first, by Horner's rule."""
    total: Value = b.constant(coefficients[0], x.type)
    for coefficient in coefficients[1:]:
        total = b.op("fma", total, x, b.constant(coefficient, x.type))
    return total


def _pair_coefficients(b: LoopBuilder, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial of an odd number of coefficients, in pairs by powers of x * x for more parallelism."""
    first, *rest = (b.constant(coefficient, x.type) for coefficient in coefficients)
    total: Value = first
    for high, low in zip(rest[::2], rest[1::2], strict=True):
        total = b.op("fma", total, square, b.op("fma", high, x, low))
    return total


def _clamp(b: LoopBuilder, x: Value, low: float, high: float) -> Value:
    """Return x clamped to a range; NaN stays."""
    for name, limit in (("lt", low), ("gt", high)):
        bound = b.constant(limit, x.type)
        x = b.op("select", test(b, name, x, bound), bound, x, type=x.type)
    return x


_EXP = (1.3814320560e-3, 8.3688511712e-3, 4.1668401091e-2, 1.6666519523e-1, 4.9999993373e-1)  # |x| < log(2) / 2
_EXP_TWICE = (0.0885554776, 0.2679954171, 0.6666916609, 1.3333135843, 1.9999996424, 2.0, 1.0)  # |x| < log(2) / 4
_LOG2 = -0.693359375, 2.12194440e-4  # - log(2), in two parts: products of the first with small integers are exact
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)


def _reduce_range(b: LoopBuilder, x: Value, bias: int) -> tuple[Value, Value]:
    """Return n + bias as the last bits of an integer, and r, for x = n log(2) + r with the smallest |r|."""
    magic = b.constant(_MAGIC + bias, x.type)
    shifted = b.op("fma", x, b.constant(math.log2(math.e), x.type), magic)
    n = b.op("sub", shifted, magic)
    r = b.op("fma", n, b.constant(_LOG2[0], x.type), x)
    r = b.op("fma", n, b.constant(_LOG2[1], x.type), r)
    return b.op("bits", shifted, type=Type("i4", x.type.lanes)), r


def _power(b: LoopBuilder, biased: Value) -> Value:
    """Return 2 ** n, given n + 127 in the last bits of an integer, whose other bits are shifted out."""
    exponent = b.op("shl", biased, b.constant(23, biased.type))
    return b.op("bits", exponent, type=Type("f4", biased.type.lanes))


def _exp(b: LoopBuilder, x: Value) -> Value:
    """Return e ** x as 2 ** n e ** r, in two steps, since 2 ** n may be beyond the normal float32 numbers."""
    shifted, r = _reduce_range(b, _clamp(b, x, -_LARGE, 88.8), 2 * _BIAS)
    square = b.op("mul", r, r)
    p = b.op("fma", _pair_coefficients(b, r, square, _EXP), square, r)
    half = b.op("ashr", shifted, b.constant(1, shifted.type))
    scale = _power(b, half)
    return b.op("mul", b.op("fma", p, scale, scale), _power(b, b.op("sub", shifted, half)))


def _tanh(b: LoopBuilder, x: Value) -> Value:
    """Return tanh(x): 1 - 2 / (exp(2 |x|) + 1) with the sign of x, a polynomial near 0; NaN stays."""
    type, whole = x.type, Type("i4", x.type.lanes)
    unit, most = b.constant(1.0, type), b.constant(10.0, type)
    size = b.op("abs", x)
    limited = b.op("select", test(b, "gt", size, most), most, size, type=type)
    magic = b.constant(_MAGIC + _BIAS, type)
    shifted = b.op("fma", limited, b.constant(2 * math.log2(math.e), type), magic)
    n = b.op("sub", shifted, magic)
    r = b.op("fma", n, b.constant(-math.log(2) / 2, type), limited)  # n is small: one constant is enough
    scale = _power(b, b.op("bits", shifted, type=whole))
    raised = b.op("fma", scale, _polynomial(b, r, _EXP_TWICE), unit)
    large = b.op("sub", unit, b.op("div", b.constant(2.0, type), raised))
    square = b.op("mul", size, size)
    small = b.op("fma", b.op("mul", _polynomial(b, square, _TANH), square), size, size)
    result = b.op("select", test(b, "lt", size, b.constant(0.625, type)), small, large, type=type)
    sign = b.op("and", b.op("bits", x, type=whole), b.constant(-(1 << 31), whole))
    return b.op("bits", b.op("or", b.op("bits", result, type=whole), sign), type=type)  # no bit of a sign is set there


_FAST_EXP = (8.312501356e-3, 4.189033195e-2, 1.6667115390e-1, 4.9999230307e-1)  # |x| < log(2) / 2
_LEAST = -86.98  # 2 ** (n - 1) is below the normal float32 numbers from here on
_FAST_TANH_TOP = (1.3318963288e-8, 2.0583400710e-5, 3.4940296336e-3, 1.3379713806e-1, 9.9999997903e-1)
_FAST_TANH_BOTTOM = (7.7619742485e-7, 3.2830847909e-4, 2.5871054486e-2, 4.6713029050e-1, 1.0)
_TANH_IS_ONE = 9.02


def fast_exp(b: LoopBuilder, x: Value) -> Value:
    """Return e ** x as 2 (2 ** (n - 1) e ** r), which overflows to infinity by itself; NaN stays."""
    most = b.constant(89.0, x.type)
    limited = b.op("select", test(b, "gt", x, most), most, x, type=x.type)
    shifted, r = _reduce_range(b, limited, _BIAS - 1)
    square = b.op("mul", r, r)
    p = b.op("fma", _polynomial(b, r, _FAST_EXP), square, r)
    scale = _power(b, shifted)
    half = b.op("fma", p, scale, scale)
    below = test(b, "lt", x, b.constant(_LEAST, x.type))
    return b.op("select", below, b.constant(0.0, x.type), b.op("add", half, half), type=x.type)


def fast_tanh(b: LoopBuilder, x: Value) -> Value:
    """Return tanh(x) by a rational function of degree 4 in x * x, which rounding takes beyond 1; NaN stays."""
    limited = _clamp(b, x, -_TANH_IS_ONE, _TANH_IS_ONE)
    square = b.op("mul", limited, limited)
    top = b.op("mul", limited, _polynomial(b, square, _FAST_TANH_TOP))
    return _clamp(b, b.op("div", top, _polynomial(b, square, _FAST_TANH_BOTTOM)), -1.0, 1.0)


def fast_sigmoid(b: LoopBuilder, x: Value) -> Value:
    """Return 1 / (1 + e ** -x) in float32."""
    unit = b.constant(1.0, x.type)
    return b.op("div", unit, b.op("add", unit, fast_exp(b, b.op("neg", x))))


_ONE = 3.9375  # erf is 1 from here in float32
_ERF_TOP = (2.03597472e-06, 2.84737506e-4, 3.78951753e-3, 5.28197252e-2, 1.9105366e-1, 1.12837914e0)
_ERF_BOTTOM = (3.79384272e-05, 1.16707216e-3, 1.50174615e-2, 1.14363382e-1, 5.02649605e-1, 1.0)


def _erf(b: LoopBuilder, x: Value) -> Value:
    """Return erf(x) by a rational function, in float32; 1 and -1 where erf rounds to them."""
    limited = _clamp(b, x, -_ONE, _ONE)
    square = b.op("mul", limited, limited)
    ratio = b.op("div", _polynomial(b, square, _ERF_TOP), _polynomial(b, square, _ERF_BOTTOM))
    inside = _clamp(b, b.op("mul", limited, ratio), -1.0, 1.0)
    is_far = test(
        b, "gt", b.op("abs", limited), b.constant(_LAST_BELOW_ONE, x.type)
    )  # the ratio, fused, rounds below 1
    unit = b.op("copysign", b.constant(1.0, x.type), limited)
    return b.op("select", is_far, unit, inside, type=x.type)


_LAST_BELOW_ONE = float(np.nextafter(np.float32(_ONE), np.float32(0)))


def _wide(write: Write) -> Write:
    """Return a function of float32 that computes in float64."""

    def write_rounding(b: LoopBuilder, *args: Value) -> Value:
        return cast(b, write(b, *(cast(b, x, "f8") for x in args)), "f4")

    return write_rounding


# (2 ** r - 1) / r with |r| up to one half, by the polynomial whose largest relative error is least: 4.6e-12.
_POWERS_OF_TWO = (1.3215473072e-06, 1.53037116248e-05, 0.0001540363000190, 0.00133334784967689, 0.00961812894152169,
                  0.0555041090624425, 0.240226506964938, 0.693147180556851)  # fmt: skip


_WIDE_MAGIC, _WIDE_BIAS = 6755399441055744.0, 1023  # 1.5 * 2**52


def _power_parts(b: LoopBuilder, x: Value) -> tuple[Value, Value]:
    """Return 2 ** n and 2 ** r - 1, for x = n + r with |r| at most one half and |x| below 1000."""
    magic, whole = b.constant(_WIDE_MAGIC + _WIDE_BIAS, x.type), Type("i8", x.type.lanes)
    shifted = b.op("add", x, magic)
    r = b.op("sub", x, b.op("sub", shifted, magic))
    scale = b.op("bits", b.op("shl", b.op("bits", shifted, type=whole), b.constant(52, whole)), type=x.type)
    return scale, b.op("mul", _polynomial(b, r, _POWERS_OF_TWO), r)


def _parts_of_exp(b: LoopBuilder, x: Value, low: float = -200.0) -> tuple[Value, Value]:
    limited = _clamp(b, x, low, 200.0)
    return _power_parts(b, b.op("mul", limited, b.constant(math.log2(math.e), x.type)))


def _wide_exp(b: LoopBuilder, x: Value) -> Value:
    scale, more = _parts_of_exp(b, x)
    return b.op("fma", scale, more, scale)


def _wide_expm1(b: LoopBuilder, x: Value) -> Value:
    scale, more = _parts_of_exp(b, x)
    less = b.op("fma", scale, more, b.op("sub", scale, b.constant(1.0, x.type)))
    return b.op("select", test(b, "eq", x, b.constant(0.0, x.type)), x, less, type=x.type)  # -0.0 stays


def _wide_sigmoid(b: LoopBuilder, x: Value) -> Value:
    unit = b.constant(1.0, x.type)
    return b.op("div", unit, b.op("add", unit, _wide_exp(b, b.op("neg", x))))


def _hyperbolic(join: str) -> Write:
    """Return sinh or cosh: half of exp(x) - exp(-x), which loses no digits near 0, or of their sum."""

    def write(b: LoopBuilder, x: Value) -> Value:
        half = b.constant(0.5, x.type)
        if join == "add":
            return b.op("mul", half, b.op("add", _wide_exp(b, x), _wide_exp(b, b.op("neg", x))))
        less = _wide_expm1(b, b.op("abs", x))
        unit = b.constant(1.0, x.type)
        sinh = b.op("mul", half, b.op("add", less, b.op("div", less, b.op("add", less, unit))))
        return b.op("copysign", sinh, x)

    return write


# 2 atanh(s) / s by powers of s * s, |s| up to 3 - sqrt(8), in the same way: 2.8e-14.
_ATANH = (0.1961358077527943, 0.2217386189964606, 0.2857217585953604, 0.3999999478983097, 0.6666666667998558,
          1.9999999999999445)  # fmt: skip


_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1 / 2)


def _wide_log(b: LoopBuilder, x: Value, less_one: Value | None = None) -> Value:
    """Return log(x), or log(1 + less_one) with x = 1 + less_one.

    It is e log(2) + 2 atanh(s) with s = (m - 1) / (m + 1) and x = m 2 ** e; m lies between sqrt(1 / 2) and sqrt(2).
    Where e is 0, the part that was rounded away in x is still in `less_one`.
    """
    whole, unit, zero = Type("i8", x.type.lanes), b.constant(1.0, x.type), b.constant(0.0, x.type)
    bits = b.op("bits", x, type=whole)
    exponent = b.op("ashr", b.op("sub", bits, b.constant(_ROOT_HALF, whole)), b.constant(52, whole))
    mantissa = b.op("bits", b.op("sub", bits, b.op("shl", exponent, b.constant(52, whole))), type=x.type)
    excess = b.op("sub", mantissa, unit)
    if less_one is not None:
        near = test(b, "eq", exponent, b.constant(0, whole))
        excess = b.op("select", near, less_one, excess, type=x.type)
    s = b.op("div", excess, b.op("add", excess, b.constant(2.0, x.type)))
    series = b.op("mul", _polynomial(b, b.op("mul", s, s), _ATANH), s)
    result = b.op("fma", b.op("cast", exponent, type=x.type), b.constant(math.log(2), x.type), series)
    result = b.op("select", test(b, "eq", x, zero), b.constant(-math.inf, x.type), result, type=x.type)
    result = b.op("select", test(b, "lt", x, b.constant(math.inf, x.type)), result, x, type=x.type)  # infinite and NaN
    return b.op("select", test(b, "lt", x, zero), b.constant(math.nan, x.type), result, type=x.type)


def _wide_log1p(b: LoopBuilder, x: Value) -> Value:
    result = _wide_log(b, b.op("add", x, b.constant(1.0, x.type)), x)
    return b.op("select", test(b, "eq", x, b.constant(0.0, x.type)), x, result, type=x.type)


def _scaled_log(base: float) -> Write:
    return lambda b, x: b.op("mul", _wide_log(b, x), b.constant(1 / math.log(base), x.type))


def _wide_logaddexp(b: LoopBuilder, x: Value, y: Value) -> Value:
    """Return the larger plus log1p(exp(-difference)); for equal infinities that infinity."""
    same = test(b, "eq", x, y)
    difference = b.op("abs", b.op("sub", x, y))
    difference = b.op("select", same, b.constant(0.0, x.type), difference, type=x.type)
    more = _wide_log1p(b, _wide_exp(b, b.op("neg", difference)))
    return b.op("add", maximum(b, x, y), more)


def _wide_hypot(b: LoopBuilder, x: Value, y: Value) -> Value:
    length = b.op("sqrt", b.op("fma", x, x, b.op("mul", y, y)))
    infinite = b.op("or", is_infinite(b, x), is_infinite(b, y))
    return b.op("select", infinite, b.constant(math.inf, x.type), length, type=x.type)


def is_infinite(b: LoopBuilder, x: Value) -> Value:
    """Return whether a float is infinite."""
    return test(b, "eq", b.op("abs", x), b.constant(math.inf, x.type))


_HALVINGS = 3
_ATAN = [(-1) ** k * 2.0**_HALVINGS / (2 * k + 1) for k in range(9, -1, -1)]


def _wide_atan(b: LoopBuilder, x: Value) -> Value:
    """Return atan(x): the angle halved three times, atan(x) = 2 atan(x / (1 + sqrt(1 + x * x))), then a series."""
    unit = b.constant(1.0, x.type)
    u = _clamp(b, x, -1e30, 1e30)
    for _ in range(_HALVINGS):
        u = b.op("div", u, b.op("add", unit, b.op("sqrt", b.op("fma", u, u, unit))))
    return b.op("mul", _polynomial(b, b.op("mul", u, u), _ATAN), u)


def _wide_asin(b: LoopBuilder, x: Value) -> Value:
    unit = b.constant(1.0, x.type)
    other = b.op("sqrt", b.op("mul", b.op("sub", unit, x), b.op("add", unit, x)))
    return _wide_atan(b, b.op("div", x, other))


def _wide_acos(b: LoopBuilder, x: Value) -> Value:
    unit = b.constant(1.0, x.type)
    half = _wide_atan(b, b.op("sqrt", b.op("div", b.op("sub", unit, x), b.op("add", unit, x))))
    return b.op("add", half, half)


def _wide_asinh(b: LoopBuilder, x: Value) -> Value:
    size, unit = b.op("abs", x), b.constant(1.0, x.type)
    root = b.op("sqrt", b.op("fma", x, x, unit))
    result = _wide_log1p(b, b.op("add", size, b.op("div", b.op("mul", x, x), b.op("add", unit, root))))
    result = b.op("select", is_infinite(b, x), size, result, type=x.type)
    return b.op("copysign", result, x)


def _wide_acosh(b: LoopBuilder, x: Value) -> Value:
    less, two = b.op("sub", x, b.constant(1.0, x.type)), b.constant(2.0, x.type)
    result = _wide_log1p(b, b.op("add", less, b.op("sqrt", b.op("mul", less, b.op("add", less, two)))))
    small = test(b, "lt", x, b.constant(1.0, x.type))
    return b.op("select", small, b.constant(math.nan, x.type), result, type=x.type)


def _wide_atanh(b: LoopBuilder, x: Value) -> Value:
    ratio = b.op("div", b.op("add", x, x), b.op("sub", b.constant(1.0, x.type), x))
    return b.op("mul", b.constant(0.5, x.type), _wide_log1p(b, ratio))


def _wide_pow(b: LoopBuilder, x: Value, y: Value) -> Value:
    """Return |x| ** y by logarithm and exponential, with the sign of x for odd y, and C's special cases."""
    zero, unit = b.constant(0.0, x.type), b.constant(1.0, x.type)
    size, half = b.op("abs", x), b.constant(0.5, x.type)
    exponent = b.op("mul", y, b.op("mul", _wide_log(b, size), b.constant(math.log2(math.e), x.type)))
    scale, more = _power_parts(b, _clamp(b, exponent, -200.0, 200.0))
    result = b.op("fma", scale, more, scale)
    whole = test(b, "eq", b.op("trunc", y), y)
    halved = b.op("mul", y, half)
    odd = b.op("and", whole, test(b, "ne", b.op("trunc", halved), halved))
    result = b.op("select", odd, b.op("copysign", result, x), result, type=x.type)
    finite = test(b, "lt", size, b.constant(math.inf, x.type))
    negative = b.op("and", test(b, "lt", x, zero), finite)
    nowhere = b.op("and", negative, b.op("not", whole))
    result = b.op("select", nowhere, b.constant(math.nan, x.type), result, type=x.type)
    stays = b.op("and", test(b, "eq", size, unit), is_infinite(b, y))
    surely = b.op("or", stays, b.op("or", test(b, "eq", y, zero), test(b, "eq", x, unit)))
    return b.op("select", surely, unit, result, type=x.type)


exp, tanh, erf = _exp, _tanh, _erf
expm1, sigmoid, sinh, cosh = map(_wide, (_wide_expm1, _wide_sigmoid, _hyperbolic("sub"), _hyperbolic("add")))
log, log1p, log2, log10 = map(_wide, (_wide_log, _wide_log1p, _scaled_log(2), _scaled_log(10)))
logaddexp, hypot, pow = map(_wide, (_wide_logaddexp, _wide_hypot, _wide_pow))
atan, asin, acos = map(_wide, (_wide_atan, _wide_asin, _wide_acos))
asinh, acosh, atanh = map(_wide, (_wide_asinh, _wide_acosh, _wide_atanh))
