"""PyTorch's functions of one tensor, and of two tensors or numbers, element by element.

Of one tensor: ints become floats where the result is no int. Of two: in the dtype that PyTorch computes in.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphs import capture, ops
from graphs.errors import OptionError, locate
from graphs.frontends.torch.names import name, name_each
from graphs.frontends.torch.shapes import laid_like
from graphs.frontends.torch.words import (
    beside_single,
    bits,
    cast,
    check_tensor,
    floats,
    is_weak,
    number,
    of_one_dtype,
    promote,
    promote_for_comparison,
    promote_to_float,
    refuse,
    result_dtype,
    truth,
    truths,
    values_of,
    whole,
    within,
)
from graphs.op import Op, TorchName, registered_ops
from graphs.ops.elementwise import fmod as exact
from graphs.ops.elementwise import sgn
from graphs.ops.families import elementwise, ufunc_dtype
from graphs.ops.movement import in_single, wider
from graphs.ops.shapes import dtype_of, holds_half
from graphs.promotion import is_scalar

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


OPS: dict[str, Op] = {}
"""The functions that are an op of floats of one dtype, by their names."""


def of_op(op: Op, takes: str = "") -> Function:
    """Make PyTorch's function of an op of one or two operands; `takes` is for an op without `op.torch`.

    Raises ValueError for other ops, and for a `takes` that does not fit the number of operands.
    """
    takes = takes or (op.torch.takes if op.torch else "any")
    makers = {1: OF_ONE, 2: _OF_TWO}.get(op.arity or 0, {})
    if takes not in makers:
        raise ValueError(f"{op.name}: an op of {op.arity} operands takes one of {[*makers]}, not {takes!r}")
    function = makers[takes](op)
    if op.torch and op.torch.single:
        function = beside_single(*op.torch.single)(function)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def _of_two(promote: Callable[..., Sequence[Any]]) -> Callable[[Op], Function]:
    return lambda op: lambda input, other: op(*promote(input, other))


OF_ONE: dict[str, Callable[[Op], Function]] = {
    "any": lambda op: lambda input: op(input),
    "floats": lambda op: lambda input: op(floats(input)),
    "numbers": lambda op: lambda input: op(refused_bools(input, op.name)),
    "truths": lambda op: lambda input: op(truth(input)),
}
_PROMOTED = {
    "promoted": promote, "floats": promote_to_float, "compared": promote_for_comparison, "bits": bits,
    "truths": truths, "ints": whole,
}  # fmt: skip
_OF_TWO = {takes: _of_two(promote) for takes, promote in _PROMOTED.items()}
"""What becomes of operands first, by the word in `TorchName.takes`."""


def _enter(op: Op, torch: TorchName) -> None:
    function = of_op(op)
    function.__name__ = torch.name or op.name
    name(*torch.alias.split(), in_place=torch.in_place, pairs=True)(function)  # an op answers for itself
    OPS.update(dict.fromkeys((function.__name__, *torch.alias.split()), op))


def refused_bools(x: Any, name: str) -> Any:
    """Return the tensor. Raises DTypeError for bools, which PyTorch refuses here."""
    if dtype_of(x).kind == "b":
        raise refuse(f"{name} of bools", "convert with .int() first")
    return x


digamma, sinc = name_each(OF_ONE["floats"], in_place=True, digamma=ops.digamma, sinc=ops.sinc)


@name()
def polygamma(n: Any, input: Any) -> Any:
    """Derivative n + 1 of log(gamma(input)). Raises DTypeError for an n below 0, or that is no int."""
    if not isinstance(n, int) or n < 0:
        raise refuse(f"polygamma of order {n!r}", "use 0, 1, 2 and so on")
    return ops.polygamma(n, floats(input))


@name()
def positive(input: Any) -> Any:
    """Return the tensor. Raises DTypeError for bools."""
    return refused_bools(input, "positive")


@name("sgn", in_place=True)
def sign(input: Any) -> Any:
    """-1, 0 or 1, and 0 for NaN."""
    return sgn(input)


@name(in_place=True)
def square(input: Any) -> Any:
    """Each element times itself; bools become ints."""
    return ops.square(cast(input, np.int64) if dtype_of(input).kind == "b" else input)


@name(in_place=True)
@in_single
def rsqrt(input: Any) -> Any:
    """1 over the square root."""
    return ops.reciprocal(ops.sqrt(floats(input)))


@name(in_place=True)
def exp2(input: Any) -> Any:
    """2 to the power of each element."""
    return ops.pow(2.0, floats(input))


@name(in_place=True)
def frac(input: Any) -> Any:
    """The fractional part of each element."""
    return ops.subtract(input, ops.trunc(input))


@name(in_place=True)
def deg2rad(input: Any) -> Any:
    """Convert degrees to radians."""
    return mul(floats(input), np.pi / 180)


@name(in_place=True)
def rad2deg(input: Any) -> Any:
    """Convert radians to degrees."""
    return mul(floats(input), 180 / np.pi)


@name(in_place=True)
@in_single
def logit(input: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid."""
    x = floats(input)
    if eps is not None and eps > 0.5:
        raise ValueError(f"logit: eps is at most 0.5, not {eps}")
    x = x if eps is None else ops.clip(x, eps, 1 - eps)
    # A ratio keeps the digits near 1/2, and a difference the slopes at 0 and 1, which are infinite.
    distance = ops.abs(ops.subtract(x, 0.5))
    middle = ops.less(distance, 0.25)
    near, far = ops.where(middle, x, 0.5), ops.where(middle, 0.25, x)
    sloped = ops.where(ops.greater(distance, 0.5), math.nan, 1.0)
    far = ops.multiply(far, cast(sloped, dtype_of(x)))  # NaN has no slope either
    ratio = ops.log(ops.divide(near, ops.subtract(1, near)))
    return ops.where(middle, ratio, ops.subtract(ops.log(far), ops.log1p(ops.negative(far))))


@name(in_place=True)
def threshold(input: Any, threshold: float, value: float) -> Any:
    """The elements above a threshold, and `value` for the others; NaN stays."""
    if dtype_of(input).kind != "f" and not (isinstance(value, int) and isinstance(threshold, int)):
        raise refuse("threshold of ints by floats", "convert with .float() first")
    return ops.where(ops.less_equal(input, threshold), value, input)


@name(in_place=True)
def round(input: Any, *, decimals: int = 0) -> Any:
    """Round to the nearest integer, or to `decimals`; halves go to the even neighbour."""
    x = refused_bools(input, "round")
    if not decimals or dtype_of(x).kind in "iu":
        if decimals:
            raise refuse("round of ints to decimals", "convert with .float() first")
        return ops.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals < 0:
        return ops.multiply(ops.round(ops.divide(x, scale)), scale)
    return ops.divide(ops.round(ops.multiply(x, scale)), scale)


@name(in_place=True)
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN and infinities replaced: by 0 and the largest numbers by default."""
    if dtype_of(input).kind != "f":
        return ops.identity(input)
    return ops.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


for _op in registered_ops().values():
    if _op.torch is not None:
        _enter(_op, _op.torch)


# Two tensors ----------------------------------------------------------------------------------------------------------

mul, true_divide = of_op(ops.multiply), of_op(ops.divide)


@name("arctan2", in_place=True)
def atan2(input: Any, other: Any) -> Any:
    """The angle of points from the positive half of the second axis; gradient 0 where both are 0."""
    y, x = promote_to_float(input, other)
    origin = ops.logical_and(ops.equal(y, 0), ops.equal(x, 0))
    both = [value if is_weak(value) else ops.where(origin, ops.stop_gradient(value), value) for value in (y, x)]
    return ops.atan2(*both)


def _promote_scaled(input: Any, other: Any, alpha: Any) -> Sequence[Any]:
    """The operands in the dtype that PyTorch computes in, the second one times `alpha` in that dtype.

    Raises DTypeError for ints or bools and an `alpha` that is a float.
    """
    first, second = promote(input, other)
    if is_scalar(alpha) and alpha == 1:
        return first, second
    if is_weak(second):
        return promote(first, second * alpha)
    dtype = result_dtype((first, second))
    factor = within(alpha, dtype)
    if dtype.kind != "f" and isinstance(factor, float):
        raise refuse(f"alpha={factor} of {dtype}", "give an int, or convert with .float() first")
    scaled = cast(second, dtype)
    return first, mul(scaled, bool(factor) if dtype.kind == "b" and is_weak(factor) else factor)


def _number_first(option: str, count: int) -> Callable[[F], F]:
    """Let a function of `count` tensors take PyTorch's older order too: the number of an option before the tensors."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(input: Any, *operands: Any, **options: Any) -> Any:
            if len(operands) > count and is_weak(operands[0]):
                options[option], *operands = operands  # type: ignore[assignment]
            return function(input, *operands, **options)

        return wrapper  # type: ignore[return-value]

    return decorate


@name(in_place=True, pairs=True)
@_number_first("alpha", 1)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input + alpha * other`."""
    return _plus_scaled(ops.add, input, other, alpha)


@name("subtract", in_place=True, pairs=True)
@_number_first("alpha", 1)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input - alpha * other`. Raises DTypeError for bools."""
    if _is_bool(input) and _is_bool(number(other)):
        raise refuse("a difference of bools", "use logical_xor, or convert with .int()")
    return _plus_scaled(ops.subtract, input, other, alpha)


def _plus_scaled(op: Op, input: Any, other: Any, alpha: Any) -> Any:
    """The op of two operands, the second times `alpha`. Of float16 in float32, with the float16 nearest to `alpha`."""
    if type(alpha) is int and alpha == 1:
        return op(*promote(input, other))
    if is_scalar(alpha) and result_dtype((input, other)) == np.float16:
        factor = float(np.float16(within(alpha, np.dtype(np.float16))))
        return cast(op(*_promote_scaled(wider(input), wider(other), factor)), np.float16)
    return op(*_promote_scaled(input, other, alpha))


@name()
def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """`other - alpha * input`."""
    return sub(other, input, alpha=alpha)


@name("divide", in_place=True, pairs=True)
def div(input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """`input / other`, in floats; rounded down with "floor", to 0 with "trunc"."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    return _truncated_quotient(input, other)


@beside_single(1)
def _truncated_quotient(input: Any, other: Any) -> Any:
    left, right = _division_operands(input, other)
    dtype = result_dtype((input, other))
    if dtype.kind != "f":
        return cast(ops.floor_divide(ops.subtract(left, exact(left, right)), right), dtype)
    return cast(_whole_quotient(left, right), dtype)


_whole_quotient = elementwise(
    "div",
    lambda x, y, out=None: np.trunc(np.true_divide(x, y, out), out),
    lambda g: ops.multiply(g, 0),
    lambda g: ops.multiply(g, 0),
    dtype=ufunc_dtype(np.true_divide),
    parts=lambda x, y: ops.trunc(ops.divide(x, y)),
    listed=False,
)


def _division_operands(input: Any, other: Any) -> tuple[Any, Any]:
    """The operands of a division that is rounded. Raises OptionError where an int is divided by 0."""
    left, right = promote(input, other)
    if all(dtype_of(x).kind in "iu" for x in (left, right) if not is_weak(x)):
        divisors = right if is_scalar(right) else values_of(right)
        if divisors is not None and not (divisors.all() if isinstance(divisors, np.ndarray) else divisors):
            raise OptionError(locate("an int divided by 0; convert with .float(), or replace the zeros"))
    return left, right


@name(in_place=True)
@beside_single(1)
def floor_divide(input: Any, other: Any) -> Any:
    """The quotient rounded down; gradient 0. Raises OptionError where an int is divided by 0."""
    return ops.floor_divide(*_division_operands(input, other))


@name(in_place=True)
def remainder(input: Any, other: Any) -> Any:
    """The remainder of a division rounded down, with the sign of `other`. Raises OptionError for ints divided by 0."""
    return ops.remainder(*_division_operands(input, other))


@name(in_place=True)
def fmod(input: Any, other: Any) -> Any:
    """The remainder of a division rounded to 0, with the sign of `input`. Raises OptionError for x / 0."""
    left, right = _division_operands(input, other)
    dtype = result_dtype((input, other))
    left, right = [cast(ops.asarray(x), dtype) if is_weak(x) else x for x in (left, right)]
    return ops.remainder(left, right) if dtype.kind in "bu" else exact(left, right)


@name(in_place=True)
def pow(input: Any, exponent: Any) -> Any:
    """Each element to a power."""
    if type(exponent := number(exponent)) is int and dtype_of(input).kind in "iu":
        exponent = within(exponent, dtype_of(input))
    left, right = promote(input, exponent)
    if _is_bool(input) and _is_bool(exponent):
        raise refuse("a power of bools", "convert with .int() first")
    if is_scalar(right) and holds_half(left):
        right = within(right, dtype_of(left))
    if type(right) is int and right == 2:
        return ops.square(left)
    is_whole = not is_scalar(right) and dtype_of(right).kind == "i" and (is_scalar(left) or dtype_of(left).kind in "iu")
    return _whole_power(left, right) if is_whole and _may_be_negative(right) else ops.pow(left, right)


def _may_be_negative(x: Any) -> bool:
    """Whether an element may be below 0; assumed in a trace, which serves later values too."""
    values = None if capture.is_traced() else values_of(x)
    return values is None or bool(np.any(values < 0))


def _whole_power(base: Any, exponent: Any) -> Any:
    """Powers of ints, where a negative exponent gives the whole part: 1 and -1 of 1 and -1, and 0 of all others."""
    sign = ops.subtract(1, ops.multiply(2, ops.bitwise_and(exponent, 1)))
    inverse = ops.where(ops.equal(base, 1), 1, ops.where(ops.equal(base, -1), sign, 0))
    return ops.where(ops.less(exponent, 0), inverse, ops.pow(base, ops.maximum(exponent, 0)))


def _is_bool(x: Any) -> bool:
    return type(x) is bool or getattr(x, "dtype", None) == np.bool_


@name(in_place=True)
def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`; 0 where `input` is 0 and `other` is a number."""
    from graphs import special

    return special.xlogy(*alike(input, other))


def alike(input: Any, other: Any) -> list[Any]:
    """Both operands as tensors of the float dtype that they promote to."""
    dtype = dtype_of(true_divide(input, other))
    return [np.asarray(x, dtype) if is_scalar(x) else cast(x, dtype) for x in (input, other)]


@name(in_place=True)
def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above, and `values` at 0."""
    check_tensor(input, values)
    return ops.where(ops.equal(input, 0), values, cast(ops.greater(input, 0), dtype_of(input)))


@name("clip", in_place=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Clamp the elements between `min` and `max`, which may be tensors. Raises ValueError where both are None."""
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    if holds_half(input) or dtype_of(input).kind in "iu":
        is_half = holds_half(input)
        min, max = [within(x, dtype_of(input)) if is_half or type(x) is int else x for x in (min, max)]
    bounds = [bound for bound in (min, max) if bound is not None]
    converted = iter(promote(input, *bounds))
    x = next(converted)
    low, high = [None if bound is None else next(converted) for bound in (min, max)]
    return ops.clip(x, low, high)


@name(in_place=True)
def clamp_min(input: Any, min: Any) -> Any:
    """Clamp the elements to at least `min`."""
    return clamp(input, min=min)


@name(in_place=True)
def clamp_max(input: Any, max: Any) -> Any:
    """Clamp the elements to at most `max`."""
    return clamp(input, max=max)


@name(in_place=True)
@in_single
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`, for weights from 0.5 on from the end: with weight 1 it is `end` exactly."""
    weight, apart = number(weight), ops.subtract(end, input)
    if is_scalar(weight):
        start, factor = (input, weight) if builtins.abs(weight) < 0.5 else (end, weight - 1)
        return laid_like(ops.add(start, ops.multiply(apart, factor)), input, end)
    near = ops.add(input, ops.multiply(weight, apart))
    far = ops.subtract(end, ops.multiply(apart, ops.subtract(1, weight)))
    return laid_like(ops.where(ops.less(ops.abs(weight), 0.5), near, far), input, end, weight)


@name(in_place=True)
@_number_first("value", 2)
@of_one_dtype
@in_single
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 * tensor2`; of ints the value is cut to an int."""
    product = mul(tensor1, tensor2)
    is_whole = result_dtype((input, product)).kind != "f"
    return add(input, product, alpha=int(value) if is_whole and is_weak(number(value)) else value)


@name(in_place=True)
@_number_first("value", 2)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 / tensor2`. Raises DTypeError for ints, as PyTorch does."""
    if dtype_of(tensor1).kind != "f" and dtype_of(tensor2).kind != "f":
        raise refuse("addcdiv of ints", "convert with .float() first")
    return _addcdiv(input, tensor1, tensor2, value)


@of_one_dtype
@in_single
def _addcdiv(x: Any, first: Any, second: Any, value: float) -> Any:
    return add(x, div(first, second), alpha=value)


@name(in_place=True)
def nextafter(input: Any, other: Any) -> Any:
    """The next float towards another; the gradient is that of `input`, and 0 where both are equal."""
    if dtype_of(input).kind != "f" or dtype_of(input) != dtype_of(other):
        raise refuse("nextafter of other than floats of one dtype", "convert with .to(dtype)")
    return _nextafter(input, other)


_nextafter = elementwise(
    "nextafter",
    np.nextafter,
    lambda g, x, y: ops.where(ops.equal(x, y), 0, g),
    lambda g: ops.multiply(g, 0),
    parts=lambda x, y: ops.nextafter(x, y),
    zero_safe=True,
    listed=False,
)
