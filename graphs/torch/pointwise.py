"""PyTorch's functions that work element by element. Ints become floats where the result is no int."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import ops
from graphs.ops.shapes import dtype_of, shape_of
from graphs.promotion import is_scalar
from graphs.torch.promotion import promoted, result_dtype
from graphs.torch.words import cast, floats, refuse, words

Function = Callable[..., Any]

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "allclose",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "div",
    "divide",
    "eq",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "heaviside",
    "hypot",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "lerp",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "rad2deg",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "threshold",
    "true_divide",
    "trunc",
    "xlogy",
]  # fmt: skip


def unary(op: Function) -> Function:
    """An op of one tensor that keeps its dtype."""

    def called(input: Any) -> Any:
        return op(input)

    return _named(called, op)


def of_floats(op: Function) -> Function:
    """An op of one tensor that gives floats."""

    def called(input: Any) -> Any:
        return op(floats(input))

    return _named(called, op)


def _rounding(op: Function) -> Function:
    """An op of one tensor that leaves ints as they are, and refuses bools."""

    def called(input: Any) -> Any:
        return op(refused_bools(input, op.__name__))

    return _named(called, op)


def binary(op: Function, convert: Function = lambda x: x) -> Function:
    """An op of two tensors or numbers, in the dtype that PyTorch computes in."""

    def called(input: Any, other: Any) -> Any:
        left, right = promoted(input, other)
        return op(convert(left), convert(right))

    return _named(called, op)


def _floating(x: Any) -> Any:
    return x if is_scalar(x) else floats(x)


def _named(called: Function, op: Function) -> Function:
    called.__name__ = called.__qualname__ = op.__name__
    called.__doc__ = op.__doc__
    return called


def refused_bools(x: Any, name: str) -> Any:
    """The tensor itself. Raises DTypeError for bools, which PyTorch refuses here."""
    if dtype_of(x).kind == "b":
        raise refuse(f"{name} of bools", "convert with .int() first")
    return x


abs = absolute = _rounding(ops.abs)
acos = arccos = of_floats(ops.acos)
acosh = arccosh = of_floats(ops.acosh)
asin = arcsin = of_floats(ops.asin)
asinh = arcsinh = of_floats(ops.asinh)
atan = arctan = of_floats(ops.atan)
atanh = arctanh = of_floats(ops.atanh)
bitwise_and = binary(ops.bitwise_and)
bitwise_or = binary(ops.bitwise_or)
bitwise_xor = binary(ops.bitwise_xor)
bitwise_left_shift = binary(ops.bitwise_left_shift)
bitwise_right_shift = binary(ops.bitwise_right_shift)
bitwise_not = unary(ops.bitwise_invert)
ceil = _rounding(ops.ceil)
copysign = binary(ops.copysign, _floating)
cos = of_floats(ops.cos)
cosh = of_floats(ops.cosh)
eq = binary(ops.equal)
erf = of_floats(ops.erf)
erfc = of_floats(ops.erfc)
exp = of_floats(ops.exp)
expm1 = of_floats(ops.expm1)
floor = _rounding(ops.floor)
fmax = binary(ops.fmax)
fmin = binary(ops.fmin)
ge = greater_equal = binary(ops.greater_equal)
gt = greater = binary(ops.greater)
hypot = binary(ops.hypot)
isfinite = unary(ops.isfinite)
isinf = unary(ops.isinf)
isnan = unary(ops.isnan)
le = less_equal = binary(ops.less_equal)
log = of_floats(ops.log)
log10 = of_floats(ops.log10)
log1p = of_floats(ops.log1p)
log2 = of_floats(ops.log2)
logaddexp = binary(ops.logaddexp, _floating)
lt = less = binary(ops.less)
maximum = binary(ops.maximum)
minimum = binary(ops.minimum)
mul = multiply = binary(ops.multiply)
ne = not_equal = binary(ops.not_equal)
neg = negative = _rounding(ops.negative)
positive = _rounding(ops.positive)
reciprocal = of_floats(ops.reciprocal)
sigmoid = of_floats(ops.sigmoid)
signbit = unary(ops.signbit)
sin = of_floats(ops.sin)
sinc = of_floats(ops.sinc)
sinh = of_floats(ops.sinh)
sqrt = of_floats(ops.sqrt)
tan = of_floats(ops.tan)
tanh = of_floats(ops.tanh)
trunc = fix = _rounding(ops.trunc)
true_divide = binary(ops.divide, _floating)


def _truth(x: Any) -> Any:
    return x if is_scalar(x) or dtype_of(x).kind == "b" else ops.not_equal(x, 0)


logical_and = binary(ops.logical_and, _truth)
logical_or = binary(ops.logical_or, _truth)
logical_xor = binary(ops.logical_xor, _truth)


def sign(input: Any) -> Any:
    """-1, 0 or 1; 0 of NaN."""
    found = ops.sign(input)
    return ops.where(ops.isnan(input), 0, found) if dtype_of(input).kind == "f" else found


sgn = sign


def atan2(input: Any, other: Any) -> Any:
    """The angle of points from the positive half of the second axis; gradient 0 where both are 0."""
    y, x = [_floating(value) for value in promoted(input, other)]
    origin = ops.logical_and(ops.equal(y, 0), ops.equal(x, 0))
    both = [value if is_scalar(value) else ops.where(origin, ops.stop_gradient(value), value) for value in (y, x)]
    return ops.atan2(*both)


arctan2 = atan2


def logical_not(input: Any) -> Any:
    """Whether each element is 0."""
    return ops.logical_not(_truth(input))


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else other * alpha if is_scalar(other) else mul(other, alpha)


@words
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input + alpha * other`."""
    return ops.add(*promoted(input, _scaled(other, alpha)))


@words
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input - alpha * other`. Raises DTypeError for bools."""
    if all_bools(input, other):
        raise refuse("a difference of bools", "use logical_xor, or convert with .int()")
    return ops.subtract(*promoted(input, _scaled(other, alpha)))


subtract = sub


def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """`other - alpha * input`."""
    return sub(other, input, alpha=alpha)


def all_bools(*operands: Any) -> bool:
    """Whether some of the operands are tensors of bools."""
    return builtins.any(not is_scalar(x) and dtype_of(x).kind == "b" for x in operands)


@words
def div(input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """`input / other`, in floats; rounded down with "floor", to 0 with "trunc"."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    left, right = promoted(input, other)
    return cast(ops.trunc(ops.divide(left, right)), result_dtype((input, other)))


divide = div


def floor_divide(input: Any, other: Any) -> Any:
    """The quotient rounded down."""
    return ops.floor_divide(*promoted(input, other))


def remainder(input: Any, other: Any) -> Any:
    """What a division rounded down leaves: it has the sign of `other`."""
    return ops.remainder(*promoted(input, other))


def fmod(input: Any, other: Any) -> Any:
    """What a division rounded to 0 leaves: it has the sign of `input`."""
    left, right = promoted(input, other)
    dtype = result_dtype((input, other))
    endless = ops.isinf(right)
    divisor = cast(ops.where(endless, 1, right), dtype) if dtype.kind == "f" else right
    rest = ops.subtract(left, ops.multiply(divisor, cast(ops.trunc(ops.divide(left, divisor)), dtype)))
    return ops.where(endless, left, rest) if dtype.kind == "f" else rest


@words
def pow(input: Any, exponent: Any) -> Any:
    """Each element to a power."""
    left, right = promoted(input, exponent)
    if _is_bool(input) and _is_bool(exponent):
        raise refuse("a power of bools", "convert with .int() first")
    return ops.square(left) if type(right) is int and right == 2 else ops.pow(left, right)


def _is_bool(x: Any) -> bool:
    return type(x) is bool or getattr(x, "dtype", None) == np.bool_


def square(input: Any) -> Any:
    """Each element times itself; bools become ints."""
    return ops.square(cast(input, np.int64) if dtype_of(input).kind == "b" else input)


def rsqrt(input: Any) -> Any:
    """1 over the square root."""
    return ops.reciprocal(sqrt(input))


def exp2(input: Any) -> Any:
    """2 to each element."""
    return ops.pow(2.0, floats(input))


def frac(input: Any) -> Any:
    """What is behind the point."""
    return ops.subtract(input, ops.trunc(input))


def deg2rad(input: Any) -> Any:
    """Degrees as radians."""
    return ops.multiply(floats(input), np.pi / 180)


def rad2deg(input: Any) -> Any:
    """Radians as degrees."""
    return ops.multiply(floats(input), 180 / np.pi)


def logit(input: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid."""
    x = floats(input)
    if eps is not None and eps > 0.5:
        raise ValueError(f"logit: eps is at most 0.5, not {eps}")
    x = x if eps is None else ops.clip(x, eps, 1 - eps)
    return ops.log(ops.divide(x, ops.subtract(1, x)))


def logaddexp2(input: Any, other: Any) -> Any:
    """The logarithm to base 2 of the sum of powers of 2."""
    two = float(np.log(2))
    left, right = [x if is_scalar(x) else cast(floats(x), result_dtype((input, other))) for x in (input, other)]
    return ops.divide(ops.logaddexp(ops.multiply(left, two), ops.multiply(right, two)), two)


def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`, and 0 where `input` is 0."""
    dtype = dtype_of(true_divide(input, other))
    left, right = [x if is_scalar(x) else cast(x, dtype) for x in (input, other)]
    none = ops.equal(left, 0)
    logarithm = ops.log(cast(ops.where(none, 1, right), dtype))
    return ops.where(none, ops.multiply(logarithm, 0), ops.multiply(left, logarithm))


def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above, and `values` at 0."""
    return ops.where(ops.equal(input, 0), values, cast(ops.greater(input, 0), dtype_of(input)))


def relu(input: Any) -> Any:
    """The elements above 0, and 0 for the others."""
    return ops.relu(refused_bools(input, "relu"))


def threshold(input: Any, threshold: float, value: float) -> Any:
    """The elements above a threshold, and `value` for the others."""
    if dtype_of(input).kind != "f" and not (isinstance(value, int) and isinstance(threshold, int)):
        raise refuse("threshold of ints by floats", "convert with .float() first")
    return ops.where(ops.greater(input, threshold), input, value)


@words
def round(input: Any, *, decimals: int = 0) -> Any:
    """To the nearest integer, or to so many decimals; halves go to the even one."""
    x = refused_bools(input, "round")
    if not decimals or dtype_of(x).kind in "iu":
        if decimals:
            raise refuse("round of ints to decimals", "convert with .float() first")
        return ops.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals < 0:
        return ops.multiply(ops.round(ops.divide(x, scale)), scale)
    return ops.divide(ops.round(ops.multiply(x, scale)), scale)


@words
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """No less than `min` and no more than `max`, which may be tensors. Raises ValueError where both are None."""
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    given = [bound for bound in (min, max) if bound is not None]
    converted = iter(promoted(input, *given))
    x = next(converted)
    low, high = [None if bound is None else next(converted) for bound in (min, max)]
    return ops.clip(x, low, high)


clip = clamp


def clamp_min(input: Any, min: Any) -> Any:
    """No less than `min`."""
    return clamp(input, min=min)


def clamp_max(input: Any, max: Any) -> Any:
    """No more than `max`."""
    return clamp(input, max=max)


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`."""
    return ops.add(input, ops.multiply(weight, ops.subtract(end, input)))


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 * tensor2`."""
    return add(input, mul(tensor1, tensor2), alpha=value)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 / tensor2`. Raises DTypeError for ints, as PyTorch does."""
    if dtype_of(tensor1).kind != "f" and dtype_of(tensor2).kind != "f":
        raise refuse("addcdiv of ints", "convert with .float() first")
    return add(input, div(tensor1, tensor2), alpha=value)


def nextafter(input: Any, other: Any) -> Any:
    """The next float towards another; the gradient is that of `input`, and 0 where both are equal."""
    if dtype_of(input).kind != "f" or dtype_of(input) != dtype_of(other):
        raise refuse("nextafter of other than floats of one dtype", "convert with .to(dtype)")
    step = ops.stop_gradient(ops.subtract(ops.nextafter(input, other), input))
    return ops.where(ops.equal(input, other), ops.stop_gradient(input), ops.add(input, step))


def isposinf(input: Any) -> Any:
    """Whether each element is infinity."""
    return ops.equal(input, np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


def isneginf(input: Any) -> Any:
    """Whether each element is -infinity."""
    return ops.equal(input, -np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


@words
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN and infinities replaced: by 0 and the largest numbers by default."""
    if dtype_of(input).kind != "f":
        return unary(ops.identity)(input)
    return ops.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether each two elements differ by no more than `atol + rtol * |other|`."""
    if dtype_of(input) != dtype_of(other):
        raise refuse(f"isclose of {dtype_of(input)} and {dtype_of(other)}", "convert one of them")
    wide = [cast(x, np.float64) if dtype_of(x).kind != "f" else x for x in (input, other)]
    gap, room = ops.abs(ops.subtract(*wide)), ops.add(atol, ops.multiply(rtol, ops.abs(wide[1])))
    near = ops.logical_or(ops.equal(input, other), ops.logical_and(ops.less_equal(gap, room), ops.isfinite(gap)))
    return ops.logical_or(near, ops.logical_and(ops.isnan(input), ops.isnan(other))) if equal_nan else near


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as a bool."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements, as a bool; `eq` compares element by element."""
    if dtype_of(input) != dtype_of(other):
        raise refuse(f"equal of {dtype_of(input)} and {dtype_of(other)}", "convert one of them")
    return shape_of(input) == shape_of(other) and bool(ops.all(ops.equal(input, other)))
