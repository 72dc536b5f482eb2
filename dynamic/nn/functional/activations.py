"""Activations with PyTorch's names and options, of ops."""

from __future__ import annotations

import math
from typing import Any

from dynamic.inplace import as_it_was
from dynamic.nn import draws
from dynamic.nn.functional.common import Array, check_dtypes, write_result
from graphs import ops
from graphs.errors import DTypeError, GraphError, OptionError, ShapeError, locate
from graphs.frontends.torch.arithmetic import refused_bools, true_divide
from graphs.frontends.torch.shapes import laid_in_rows
from graphs.frontends.torch.words import axis_and_size, of_floats, unless_empty, with_axis, within
from graphs.ops.elementwise import hardtanh as limit
from graphs.ops.movement import in_single
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.slicing import cut

__all__ = [
    "celu", "elu", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "selu", "sigmoid", "silu",
    "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(input: Array, inplace: bool = False) -> Array:
    """x where it is positive, else 0."""
    if dtype_of(input).kind == "b":
        raise DTypeError("takes numbers, not bools; convert with .int()")
    return write_result(input, ops.relu(input)) if inplace else ops.relu(input)


def relu_(input: Array) -> Array:
    """relu in place."""
    return relu(input, inplace=True)


def _clamp_open(input: Array, low: float, high: float) -> Array:
    """Clamp x to a range, with gradient 0 at and beyond the limits. A limit that is NaN limits nothing."""
    return limit(input, -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def _fit_bound(value: float, x: Array) -> Any:
    """A number as elements of x hold it: cut to an int for ints. Raises DTypeError where they do not."""
    is_whole = dtype_of(refused_bools(x, "a bound")).kind in "iu" and abs(value) < math.inf
    return within(int(value) if is_whole else value, dtype_of(x))


def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Array:
    """x clamped to the range from `min_val` to `max_val`."""
    if min_val > max_val:
        raise OptionError(f"there is no range from {min_val} to {max_val}; swap the two")
    if dtype_of(input).kind == "u" and min(min_val, max_val) < 0:
        raise DTypeError(f"{dtype_of(input)} has no numbers below 0; convert with .int() first")
    low, high = [_fit_bound(bound, input) for bound in (min_val, max_val)]
    return write_result(input, _clamp_open(input, low, high), inplace)


def relu6(input: Array, inplace: bool = False) -> Array:
    """x clamped to the range from 0 to 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return write_result(input, ops.elu(input, alpha), inplace)


def celu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1). Raises GraphError unless alpha is above 0."""
    if not alpha > 0:
        raise GraphError(locate(f"celu: alpha is above 0, not {alpha}; use elu"))
    return write_result(input, _celu(input, alpha), inplace)


@in_single
def _celu(input: Array, alpha: float) -> Array:
    below = ops.less_equal(input, 0)
    return ops.where(below, ops.multiply(ops.expm1(ops.divide(ops.where(below, input, 0), alpha)), alpha), input)


def selu(input: Array, inplace: bool = False) -> Array:
    """elu with the scales that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return write_result(input, in_single(_selu)(input), inplace)


def _selu(input: Array) -> Array:
    return ops.multiply(ops.elu(input, _SELU_ALPHA), _SELU_SCALE)


def leaky_relu(input: Array, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    """x where it is positive, else `negative_slope` * x."""
    return write_result(input, ops.leaky_relu(input, negative_slope), inplace)


def prelu(input: Array, weight: Array) -> Array:
    """leaky_relu with a learned slope, one for all or one for each channel along axis 1."""
    check_dtypes(input, weight)
    count, ndim = shape_of(weight)[-1] if shape_of(weight) else 1, len(shape_of(input))
    if len(shape_of(weight)) > 1 or (count != 1 and (not ndim or count != shape_of(input)[min(1, ndim - 1)])):
        raise ShapeError("one slope, or a vector of one for each channel, which lie along axis 1; reshape the weight")
    slope = (
        ops.reshape(weight, (1,) * min(ndim, 1) + (count,) + (1,) * (ndim - 2)) if count != 1 and ndim > 1 else weight
    )
    slope = slope if ndim else ops.reshape(slope, ())
    return ops.where(ops.greater(input, 0), input, ops.multiply(slope, input))


@laid_in_rows
def rrelu(
    input: Array, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Array:
    """leaky_relu; in training each slope is drawn from `lower` to `upper`, otherwise it is their mean."""
    if lower > upper:
        raise OptionError(f"the slopes are from lower to upper, not from {lower} to {upper}; exchange them")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    drawn = ops.uniform(draws.key_for(input), shape_of(input), dtype_of(input))
    slope = ops.add(ops.multiply(drawn, upper - lower), lower)
    return write_result(input, ops.where(ops.greater(input, 0), input, ops.multiply(slope, input)), inplace)


def gelu(input: Array, approximate: str = "none") -> Array:
    """x times the normal distribution function of x, or its approximation by "tanh"."""
    if approximate not in ("none", "tanh"):
        raise GraphError(locate(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}"))
    return ops.gelu(input, approximate=approximate == "tanh")


def silu(input: Array, inplace: bool = False) -> Array:
    """x * sigmoid(x)."""
    x = as_it_was(input) if inplace else input
    return write_result(input, ops.silu(x), inplace)


def mish(input: Array, inplace: bool = False) -> Array:
    """x * tanh(softplus(x)) (Misra, 2019)."""
    x = as_it_was(input) if inplace else input
    return write_result(input, in_single(lambda x: ops.multiply(x, ops.tanh(ops.softplus(x))))(x), inplace)


def hardsigmoid(input: Array, inplace: bool = False) -> Array:
    """x / 6 + 1 / 2 limited to the range from 0 to 1; gradient 0 at the limits, and at NaN."""
    return write_result(input, _hardsigmoid(input), inplace)


@in_single
def _hardsigmoid(input: Array) -> Array:
    rising = ops.divide(ops.clip(ops.add(input, 3), 0, 6), 6)
    return ops.where(ops.less(ops.abs(input), 3), rising, ops.stop_gradient(rising))


def hardswish(input: Array, inplace: bool = False) -> Array:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
    return write_result(input, _hardswish(input), inplace)


@in_single
def _hardswish(input: Array) -> Array:
    low, is_between = ops.less_equal(input, -3), ops.less(ops.abs(input), 3)
    between = ops.where(is_between, input, 0)  # no infinity, whose gradient would be NaN
    inner = ops.divide(ops.multiply(between, ops.add(between, 3)), 6)
    return ops.where(low, ops.multiply(input, 0), ops.where(is_between, inner, input))


@in_single
def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold."""
    scaled = ops.multiply(input, beta) if beta != 1 else input
    soft = ops.softplus(scaled)
    return ops.where(ops.greater(scaled, threshold), input, ops.divide(soft, beta) if beta != 1 else soft)


@laid_in_rows
@in_single
def logsigmoid(input: Array) -> Array:
    """log(sigmoid(x)), without overflow."""
    return ops.negative(ops.softplus(ops.negative(input)))


@of_floats
@in_single
def softsign(input: Array) -> Array:
    """x / (1 + |x|)."""
    return ops.divide(input, ops.add(ops.abs(input), 1))


@of_floats
@in_single
def tanhshrink(input: Array) -> Array:
    """x - tanh(x)."""
    return ops.subtract(input, ops.tanh(input))


@in_single
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """x moved by `lambd` towards 0; 0 where |x| is at most `lambd`."""
    if not lambd >= 0:
        raise OptionError(f"lambd is 0 or more, not {lambd}; change its sign")
    lambd = within(lambd, dtype_of(input))
    nearer = ops.subtract(input, ops.multiply(ops.sign(input), lambd))
    return ops.where(ops.less_equal(ops.abs(input), lambd), 0, nearer)


def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """x where |x| exceeds `lambd`, else 0."""
    return ops.where(ops.less_equal(ops.abs(input), within(lambd, dtype_of(input))), 0, input)


def threshold(input: Array, threshold: float, value: float, inplace: bool = False) -> Array:
    """x where it exceeds the threshold, else `value`; NaN stays."""
    threshold, value = [_fit_bound(number, input) for number in (threshold, value)]
    return write_result(input, ops.where(ops.less_equal(input, threshold), value, input), inplace)


def sigmoid(input: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


def tanh(input: Array) -> Array:
    """The hyperbolic tangent."""
    return ops.tanh(input)


def _dim(x: Array, dim: int | None) -> int:
    """The axis; without one, the axis that PyTorch takes."""
    return dim if dim is not None else 0 if len(shape_of(x)) in (0, 1, 3) else 1


def _check_float(x: Array, dtype: Any) -> Array:
    x = x if dtype is None else ops.astype(x, dtype)
    if dtype_of(x).kind != "f":
        raise DTypeError(f"takes floats, not {dtype_of(x)}; convert with .float(), or give dtype=")
    return x


def softmax(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along an axis."""
    return with_axis(unless_empty(ops.softmax), _check_float(input, dtype), _dim(input, dim))


def softmin(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """softmax of -x."""
    return softmax(ops.negative(input), dim, dtype=dtype)


def log_softmax(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """The logarithm of softmax."""
    return with_axis(unless_empty(ops.log_softmax), _check_float(input, dtype), _dim(input, dim))


@in_single
def glu(input: Array, dim: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second. Raises ShapeError for an odd size."""
    axis, size = axis_and_size(input, dim)
    half = size // 2
    first, second = cut(input, axis, 0, half), cut(input, axis, half, 2 * half)
    if shape_of(input)[dim] % 2:
        raise GraphError(locate(f"glu: the size {shape_of(input)[dim]} is odd; halves need an even one"))
    return ops.multiply(first, ops.sigmoid(second))


def gumbel_softmax(logits: Array, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Array:
    """A sample of a relaxed one-hot (Jang et al., 2017); `hard` gives a one-hot with the gradient of the relaxed."""
    if dtype_of(logits).kind != "f":
        raise DTypeError(locate(f"gumbel_softmax of {dtype_of(logits)}; convert with .float() first"))
    unit = ops.uniform(draws.key_for(logits), shape_of(logits), dtype_of(logits))
    noise = ops.negative(ops.log(ops.negative(ops.log(ops.add(ops.multiply(unit, 1 - 2 * 1e-7), 1e-7)))))
    soft = ops.softmax(true_divide(ops.add(logits, noise), tau), axis=dim)
    if not hard:
        return soft
    best = ops.argmax(soft, axis=dim)
    classes: Any = shape_of(soft)[dim]
    chosen = ops.moveaxis(ops.one_hot(best, classes, dtype_of(soft)), -1, dim)
    return ops.add(ops.subtract(chosen, ops.stop_gradient(soft)), soft)
