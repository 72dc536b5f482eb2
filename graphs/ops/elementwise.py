"""Elementwise ops. Subgradients where a function has a kink are PyTorch's: see the doc of each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import promotion
from graphs.op import Array, Op, Prepared, TorchName
from graphs.ops.families import elementwise, ufunc_dtype
from graphs.ops.selection import select
from graphs.ops.shapes import HALF, SINGLE, as_operand, dtype_of, highest, lowest, store

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "copysign", "cos", "cosh",
    "divide", "equal", "exp", "expm1", "floor", "floor_divide", "fmax", "fmin", "gcd", "greater", "greater_equal",
    "hypot", "isfinite", "isinf", "isnan", "lcm", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "reciprocal", "relu", "remainder", "round", "sigmoid", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
]  # fmt: skip


FLOATS, NUMBERS = TorchName("floats", in_place=True), TorchName("numbers", in_place=True)
PROMOTED, BITS = TorchName("promoted", in_place=True), TorchName("bits", in_place=True)
INTS, TRUTHS = TorchName("ints", in_place=True), TorchName("truths", in_place=True)


# Arithmetic -------------------------------------------------------------------------------------------------

add: Op = elementwise("add", np.add, lambda g: g, lambda g: g, infix=" + ", doc="x + y.", exact=True, fails="of floats")
subtract: Op = elementwise(
    "subtract",
    np.subtract,
    lambda g: g,
    lambda g: negative(g),
    infix=" - ",
    doc="x - y.",
    exact=True,
    fails="of floats",
)
multiply: Op = elementwise(
    "multiply",
    np.multiply,
    lambda g, y: multiply(g, y),
    lambda g, x: multiply(g, x),
    infix=" * ",
    doc="x * y.",
    exact=True,
    fails="of floats",
    torch=TorchName("promoted", "mul", alias="multiply", in_place=True, single=(0, 1)),
)
divide: Op = elementwise(
    "divide",
    np.true_divide,
    lambda g, y: divide(g, y),
    lambda g, y, out: negative(multiply(g, divide(out, y))),
    infix=" / ",
    doc="x / y, true division.",
    exact=True,
    copies=True,
    torch=TorchName("floats", "true_divide", in_place=True, single=(0, 1)),
)
pow: Op = elementwise(
    "pow",
    np.power,
    # The inner `where` keeps x ** (0 - 1) and log(0) from being computed, so that no warning is raised for nothing.
    lambda g, x, y: multiply(g, multiply(y, pow(x, subtract(where(equal(y, 0), 1, y), 1)))),
    lambda g, x, out: multiply(g, multiply(out, log(where(logical_and(equal(x, 0), isfinite(out)), 1, x)))),
    infix=" ** ",
    flops=10,
    doc="x ** y. Where x is 0 the gradient in y is 0, but infinite where y is negative.",
    fails="raises",
)
floor_divide: Op = elementwise(
    "floor_divide",
    np.floor_divide,
    lambda g: multiply(g, 0),
    lambda g: multiply(g, 0),
    infix=" // ",
    doc="The largest integer at most x / y; gradient 0.",
)
remainder: Op = elementwise(
    "remainder",
    np.remainder,
    lambda g: g,
    lambda g, x, y: negative(multiply(g, floor_divide(x, y))),
    infix=" % ",
    doc="x - y * floor(x / y), with the sign of y.",
)


def _fmod(x: Array, y: Array) -> Array:
    if np.result_type(dtype_of(x), dtype_of(y)).kind != "f":
        rest = remainder(x, y)
        is_above = logical_and(not_equal(rest, 0), not_equal(less(x, 0), less(y, 0)))
        return where(is_above, subtract(rest, y), rest)
    below = signbit(x)  # -0.0 too
    rest = remainder(where(below, negative(x), x), abs(y))
    return where(below, negative(rest), rest)


fmod: Op = elementwise(
    "fmod", np.fmod, lambda g: g, lambda g, x, y: negative(multiply(g, trunc(divide(x, y)))),
    doc="What a division rounded to 0 leaves, with the sign of x.", parts=_fmod, listed=False,
)  # fmt: skip
positive: Op = elementwise("positive", np.positive, lambda g: g, doc="+x: a copy.")
negative: Op = elementwise(
    "negative", np.negative, lambda g: negative(g), doc="-x.", exact=True, fails="of floats",
    torch=TorchName("numbers", "neg", alias="negative", in_place=True),
)  # fmt: skip
abs: Op = elementwise(
    "abs", np.abs, lambda g, x: multiply(g, sgn(x)), doc="The absolute value; gradient 0 at 0 and at NaN.", exact=True,
    zero_safe=True, torch=TorchName("numbers", alias="absolute", in_place=True),
)  # fmt: skip
sign: Op = elementwise("sign", np.sign, lambda g: multiply(g, 0), doc="-1, 0 or 1; its gradient is 0.", exact=True)


def _signs(x: Array, out: Array = None) -> Array:
    signs = np.asarray(np.sign(x, out))
    if signs.dtype.kind == "f" and math.isnan(np.maximum.reduce(signs, axis=None, initial=0)):
        np.add(np.fmod(np.fmax(signs, -2, signs), 2, signs), 0, signs)  # NaN by way of -2 and -0: without a mask
    return signs


sgn: Op = elementwise(
    "sgn", _signs, lambda g: multiply(g, 0), dtype=ufunc_dtype(np.sign), doc="-1, 0 or 1, and 0 of NaN; gradient 0.",
    parts=lambda x: where(isnan(x), np.zeros((), dtype_of(x)), sign(x)), exact=True, overwrites=(0,), listed=False,
)  # fmt: skip
signbit: Op = elementwise(
    "signbit", np.signbit, doc="Whether the sign bit is set: true for -0.0.", torch=TorchName("any")
)
copysign: Op = elementwise(
    "copysign",
    np.copysign,
    lambda g, x, out: multiply(g, multiply(sign(x), sign(out))),
    lambda g: multiply(g, 0),
    doc="The magnitude of x with the sign of y; gradient 0 where x is 0.",
    torch=FLOATS,
)
nextafter: Op = elementwise("nextafter", np.nextafter, doc="The next representable value after x towards y.")
square: Op = elementwise("square", np.square, lambda g, x: multiply(g, multiply(x, 2)), doc="x * x.", exact=True)
reciprocal: Op = elementwise(
    "reciprocal",
    np.reciprocal,
    lambda g, out: negative(multiply(g, square(out))),
    doc="1 / x.",
    exact=True,
    torch=FLOATS,
)

# Exponentials and roots -------------------------------------------------------------------------------------

exp: Op = elementwise("exp", np.exp, lambda g, out: multiply(g, out), flops=10, doc="e ** x.", torch=FLOATS)
expm1: Op = elementwise("expm1", np.expm1, lambda g, x: multiply(g, exp(x)), flops=10, doc="exp(x) - 1.", torch=FLOATS)
log: Op = elementwise("log", np.log, lambda g, x: divide(g, x), flops=10, doc="The natural logarithm.", torch=FLOATS)
log1p: Op = elementwise("log1p", np.log1p, lambda g, x: divide(g, add(x, 1)), flops=10, doc="log(1 + x).", torch=FLOATS)
log2: Op = elementwise(
    "log2", np.log2, lambda g, x: divide(g, multiply(x, np.log(2.0).item())), flops=10, doc="The base 2 logarithm.",
    torch=FLOATS,
)  # fmt: skip
log10: Op = elementwise(
    "log10", np.log10, lambda g, x: divide(g, multiply(x, np.log(10.0).item())), flops=10, doc="The base 10 logarithm.",
    torch=FLOATS,
)  # fmt: skip
sqrt: Op = elementwise(
    "sqrt", np.sqrt, lambda g, out: divide(g, multiply(out, 2)), flops=4, doc="The square root.", exact=True,
    torch=FLOATS,
)  # fmt: skip
hypot: Op = elementwise(
    "hypot",
    np.hypot,
    lambda g, x, out: multiply(g, _share(x, out)),
    lambda g, y, out: multiply(g, _share(y, out)),
    flops=6,
    doc="sqrt(x * x + y * y), without overflow; gradient 0 where both are 0.",
    torch=PROMOTED,
)


def _share(x: Array, length: Array) -> Array:
    return divide(x, where(equal(length, 0), 1, length))


_FEW = 512  # numbers: of so many NumPy has the logarithm as soon, one by one


def _has_lanes(x: Array) -> bool:
    """Whether an array is float32 or float64, for which NumPy uses SIMD in exponentials, logarithms and maxima."""
    return type(x) is np.ndarray and x.dtype.char in "fd"


def _logaddexp(x: Array, y: Array, out: Array = None) -> Array:
    """log(exp(x) + exp(y)), without overflow."""
    if type(x) is not type(y):  # a number beside an array is of its dtype
        x, y = promotion.weak_to_array(x, (y,)), promotion.weak_to_array(y, (x,))
    if not (_has_lanes(x) and _has_lanes(y)) or max(x.size, y.size) <= _FEW:
        return np.logaddexp(x, y, out=out)
    with np.errstate(invalid="ignore"):  # of two equal infinities
        apart = np.subtract(x, y)
    share = np.exp(np.negative(np.abs(apart, out=apart), out=apart), out=apart)
    if (same := np.isnan(share)).any():  # equal infinities, or a NaN, which is the larger of the two
        share[same] = 1
    larger = x.clip(y, math.inf) if y.ndim == 0 else np.maximum(x, y)
    # log(1 + x) for x from 0 to 1, with the rounding of 1 + x corrected; overwrites x. `np.log1p` takes longer.
    total = np.add(share, 1)
    logarithm = np.log(total)
    lost = np.subtract(share, np.subtract(total, 1), out=share)
    return np.add(larger, np.add(logarithm, np.divide(lost, total, out=lost), out=logarithm), out=out)


logaddexp: Op = elementwise(
    "logaddexp",
    _logaddexp,
    lambda g, x, y: multiply(g, sigmoid(subtract(x, y))),
    lambda g, x, y: multiply(g, sigmoid(subtract(y, x))),
    dtype=ufunc_dtype(np.logaddexp),
    flops=20,
    overwrites=(0, 1),
    torch=TorchName("floats"),
)

# Trigonometry -----------------------------------------------------------------------------------------------

sin: Op = elementwise("sin", np.sin, lambda g, x: multiply(g, cos(x)), flops=10, doc="The sine.", torch=FLOATS)
cos: Op = elementwise(
    "cos", np.cos, lambda g, x: negative(multiply(g, sin(x))), flops=10, doc="The cosine.", torch=FLOATS
)
tan: Op = elementwise(
    "tan", np.tan, lambda g, out: multiply(g, add(square(out), 1)), flops=10, doc="The tangent.", torch=FLOATS
)
asin: Op = elementwise(
    "asin", np.arcsin, lambda g, x: divide(g, sqrt(_square_from_1(x))), flops=10, doc="The inverse sine.",
    torch=TorchName("floats", alias="arcsin", in_place=True),
)  # fmt: skip
acos: Op = elementwise(
    "acos",
    np.arccos,
    lambda g, x: negative(divide(g, sqrt(_square_from_1(x)))),
    flops=10,
    doc="The inverse cosine.",
    torch=TorchName("floats", alias="arccos", in_place=True),
)
atan: Op = elementwise(
    "atan", np.arctan, lambda g, x: divide(g, add(square(x), 1)), flops=10, doc="The inverse tangent.",
    torch=TorchName("floats", alias="arctan", in_place=True),
)  # fmt: skip
atan2: Op = elementwise(
    "atan2",
    np.arctan2,
    # By the distance twice: its square would leave the range of the dtype for tiny and for large numbers.
    lambda g, x, y: divide(divide(multiply(g, y), hypot(x, y)), hypot(x, y)),
    lambda g, x, y: negative(divide(divide(multiply(g, x), hypot(x, y)), hypot(x, y))),
    flops=15,
    doc="The angle of the point (y, x): the inverse tangent of x / y in the right quadrant.",
)


def _square_from_1(x: Array) -> Array:
    """1 - x * x, with all of its digits where x is near 1, since 1 - x is exact there."""
    return multiply(subtract(1, x), add(x, 1))


sinh: Op = elementwise(
    "sinh", np.sinh, lambda g, x: multiply(g, cosh(x)), flops=15, doc="The hyperbolic sine.", torch=FLOATS
)
cosh: Op = elementwise(
    "cosh", np.cosh, lambda g, x: multiply(g, sinh(x)), flops=15, doc="The hyperbolic cosine.", torch=FLOATS
)
tanh: Op = elementwise(
    "tanh", np.tanh, lambda g, out: multiply(g, subtract(1, square(out))), flops=15, doc="The hyperbolic tangent.",
    torch=FLOATS,
)  # fmt: skip

asinh: Op = elementwise(
    "asinh", np.arcsinh, lambda g, x: divide(g, hypot(x, 1)), flops=15, doc="The inverse hyperbolic sine.",
    torch=TorchName("floats", alias="arcsinh", in_place=True),
)  # fmt: skip
acosh: Op = elementwise(
    "acosh",
    np.arccosh,
    lambda g, x: divide(divide(g, sqrt(subtract(x, 1))), sqrt(add(x, 1))),
    flops=15,
    doc="The inverse hyperbolic cosine, of x >= 1.",
    torch=TorchName("floats", alias="arccosh", in_place=True),
)
atanh: Op = elementwise(
    "atanh",
    np.arctanh,
    lambda g, x: divide(g, _square_from_1(x)),
    flops=15,
    doc="The inverse hyperbolic tangent, of -1 <= x <= 1.",
    torch=TorchName("floats", alias="arctanh", in_place=True),
)

# Kinks and steps --------------------------------------------------------------------------------------------

maximum: Op = elementwise(
    "maximum",
    np.maximum,
    lambda g, x, y: where(less(x, y), 0, _halve_on_ties(g, x, y)),
    lambda g, x, y: where(less(y, x), 0, _halve_on_ties(g, x, y)),
    zero_safe=True,
    doc="The larger of x and y; a tie gives half of the gradient to each.",
    exact=True,
    torch=TorchName("promoted"),
)
minimum: Op = elementwise(
    "minimum",
    np.minimum,
    lambda g, x, y: where(less(y, x), 0, _halve_on_ties(g, x, y)),
    lambda g, x, y: where(less(x, y), 0, _halve_on_ties(g, x, y)),
    zero_safe=True,
    doc="The smaller of x and y; a tie gives half of the gradient to each.",
    exact=True,
    torch=TorchName("promoted"),
)
fmax: Op = elementwise(
    "fmax",
    np.fmax,
    lambda g, x, y: where(logical_or(greater_equal(x, y), isnan(y)), g, 0),
    lambda g, x, y: where(logical_or(greater_equal(x, y), isnan(y)), 0, g),
    zero_safe=True,
    doc="The larger of x and y, and of a number and NaN the number; a tie gives the gradient to x.",
    torch=TorchName("promoted"),
)
fmin: Op = elementwise(
    "fmin",
    np.fmin,
    lambda g, x, y: where(logical_or(less_equal(x, y), isnan(y)), g, 0),
    lambda g, x, y: where(logical_or(less_equal(x, y), isnan(y)), 0, g),
    zero_safe=True,
    doc="The smaller of x and y, and of a number and NaN the number; a tie gives the gradient to x.",
    torch=TorchName("promoted"),
)


def _halve_on_ties(g: Array, x: Array, y: Array) -> Array:
    return where(equal(x, y), divide(g, 2), g)


floor: Op = elementwise(
    "floor", np.floor, lambda g: multiply(g, 0), doc="The largest integer at most x; gradient 0.", torch=NUMBERS
)
ceil: Op = elementwise(
    "ceil", np.ceil, lambda g: multiply(g, 0), doc="The smallest integer at least x; gradient 0.", torch=NUMBERS
)
trunc: Op = elementwise(
    "trunc", np.trunc, lambda g: multiply(g, 0), doc="x without its fraction; gradient 0.",
    torch=TorchName("numbers", alias="fix", in_place=True),
)  # fmt: skip


def _round(x: Array, out: Array = None) -> Array:
    """The nearest integer, ties to even; gradient 0."""
    # Integers are round already; np.rint would convert them to floats.
    return (np.positive if dtype_of(x).kind in "iu" else np.rint)(x, out=out)


def _round_dtype(x: np.dtype[Any]) -> np.dtype[Any]:
    return x if x.kind in "iu" else ufunc_dtype(np.rint)(x)


round: Op = elementwise("round", _round, lambda g: multiply(g, 0), dtype=_round_dtype, overwrites=(0,))


def _limits(x: Array, /, min: Array = None, max: Array = None) -> Prepared:
    x = as_operand(x)
    kind = dtype_of(x)
    low = np.asarray(lowest(kind), kind) if min is None else min
    return (x, low, np.asarray(highest(kind), kind) if max is None else max), {}


clip: Op = elementwise(
    "clip",
    lambda x, low, high, out=None: np.clip(x, low, high, out=out),
    lambda g, x, y, z: where(logical_and(greater_equal(x, y), less_equal(x, z)), g, 0),
    lambda g, x, y, z: where(logical_and(less(x, y), logical_or(less(y, z), equal(z, math.inf))), g, 0),  # as if none
    lambda g, x, y, z: where(logical_or(greater(x, z), less(z, y)), g, 0),
    dtype=lambda *dtypes: np.result_type(*dtypes),
    prepare=_limits,
    flops=2,
    zero_safe=True,
    doc="x limited to the range from `min` to `max`, either of which may be None; gradient 1 in x at the limits.",
    overwrites=(0, 1, 2),
)


hardtanh: Op = elementwise(
    "hardtanh",
    lambda x, low, high, out=None: np.clip(x, low, high, out=out),
    lambda g, out, y, z: where(logical_and(less(y, out), less(out, z)), g, 0),
    None,
    None,
    dtype=lambda *dtypes: np.result_type(*dtypes),
    flops=2,
    zero_safe=True,
    listed=False,
    doc="x limited to the range between two numbers; gradient 0 at the limits, where that of `clip` is 1.",
    parts=clip,
    overwrites=(0,),
)


def _relu(x: Array, out: Array = None) -> Array:
    """max(x, 0); gradient 0 at 0."""
    if not _has_lanes(x):
        return np.maximum(x, 0, out=out)
    return x.clip(0, math.inf, out)  # NumPy's maximum of an array and a number takes four times as long


def _sigmoid(x: Array, out: Array = None) -> Array:
    """1 / (1 + exp(-x)); in float16 exp(-x) would be infinite long before the result is 0."""
    if type(x) is np.ndarray and x.dtype.num == HALF:
        return store(_sigmoid(x.astype(SINGLE)).astype(x.dtype), out)
    with np.errstate(over="ignore"):  # exp(-x) may be infinite, and 1 / infinity is right
        out = np.exp(np.multiply(x, -1.0, out=out), out=out)
    out = np.add(out, 1, out=out if isinstance(out, np.ndarray) else None)
    return np.reciprocal(out, out=out if isinstance(out, np.ndarray) else None)


def _relu_dtype(x: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(x, 0)


# The output is 0, positive or NaN, and a mask of elements to keep saves `where` from inverting a mask.
relu: Op = elementwise(
    "relu",
    _relu,
    lambda g, out: where(not_equal(out, 0), g, 0),
    dtype=_relu_dtype,
    zero_safe=True,
    exact=True,
    overwrites=(0,),
    torch=NUMBERS,
)
sigmoid: Op = elementwise(
    "sigmoid",
    _sigmoid,
    lambda g, out: multiply(g, multiply(out, subtract(1, out))),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=18,
    overwrites=(0,),
    torch=FLOATS,
)


where: Op = elementwise(
    "where",
    select,
    None,
    lambda g, x: where(x, g, 0),
    lambda g, x: where(x, 0, g),
    dtype=lambda _, x, y: np.result_type(x, y),
    zero_safe=True,
    exact=True,
    overwrites=(1, 2),
)

# Tests and logic: nothing to differentiate ------------------------------------------------------------------

equal: Op = elementwise(
    "equal", np.equal, infix=" == ", doc="x == y.", exact=True, torch=TorchName("compared", "eq", in_place=True)
)
not_equal: Op = elementwise(
    "not_equal", np.not_equal, infix=" != ", doc="x != y.", exact=True,
    torch=TorchName("compared", "ne", alias="not_equal", in_place=True),
)  # fmt: skip
less: Op = elementwise(
    "less",
    np.less,
    infix=" < ",
    doc="x < y.",
    exact=True,
    torch=TorchName("compared", "lt", alias="less", in_place=True),
)
less_equal: Op = elementwise(
    "less_equal", np.less_equal, infix=" <= ", doc="x <= y.", exact=True,
    torch=TorchName("compared", "le", alias="less_equal", in_place=True),
)  # fmt: skip
greater: Op = elementwise(
    "greater", np.greater, infix=" > ", doc="x > y.", exact=True,
    torch=TorchName("compared", "gt", alias="greater", in_place=True),
)  # fmt: skip
greater_equal: Op = elementwise(
    "greater_equal", np.greater_equal, infix=" >= ", doc="x >= y.", exact=True,
    torch=TorchName("compared", "ge", alias="greater_equal", in_place=True),
)  # fmt: skip
bitwise_and: Op = elementwise("bitwise_and", np.bitwise_and, infix=" & ", doc="x & y, bit by bit.", torch=BITS)
bitwise_or: Op = elementwise("bitwise_or", np.bitwise_or, infix=" | ", doc="x | y, bit by bit.", torch=BITS)
bitwise_xor: Op = elementwise("bitwise_xor", np.bitwise_xor, infix=" ^ ", doc="x ^ y, bit by bit.", torch=BITS)
bitwise_left_shift: Op = elementwise(
    "bitwise_left_shift", np.left_shift, infix=" << ", doc="x * 2 ** y.", torch=PROMOTED
)
bitwise_right_shift: Op = elementwise(
    "bitwise_right_shift", np.right_shift, infix=" >> ", doc="The largest integer at most x / 2 ** y.", torch=PROMOTED
)
gcd: Op = elementwise("gcd", np.gcd, doc="The greatest common divisor of x and y, at least 0.", torch=INTS)
lcm: Op = elementwise("lcm", np.lcm, doc="The least common multiple of x and y, at least 0.", torch=INTS)
bitwise_invert: Op = elementwise(
    "bitwise_invert", np.invert, doc="~x, bit by bit.", torch=TorchName("any", "bitwise_not", in_place=True)
)
logical_and: Op = elementwise("logical_and", np.logical_and, doc="x and y.", exact=True, torch=TRUTHS)
logical_or: Op = elementwise("logical_or", np.logical_or, doc="x or y.", exact=True, torch=TRUTHS)
logical_xor: Op = elementwise("logical_xor", np.logical_xor, doc="Exactly one of x and y.", torch=TRUTHS)
logical_not: Op = elementwise("logical_not", np.logical_not, doc="not x.", exact=True, torch=TRUTHS)
isnan: Op = elementwise("isnan", np.isnan, doc="Whether x is NaN.", exact=True, torch=TorchName("any"))
isinf: Op = elementwise("isinf", np.isinf, doc="Whether x is infinite.", exact=True, torch=TorchName("any"))
isfinite: Op = elementwise(
    "isfinite", np.isfinite, doc="Whether x is neither infinite nor NaN.", exact=True, torch=TorchName("any")
)
