"""Elementwise ops, quantized integers among them, and reductions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphs import dims, linalg, ops
from graphs.errors import ShapeError
from graphs.frontends.onnx.ops.layers import convolution, per_channel
from graphs.frontends.onnx.table import AutoPad, Count, Counts, Sizes, translates
from graphs.ops.elementwise import fmod as truncated
from graphs.ops.movement import cast
from graphs.ops.shapes import dtype_of, highest, lowest, positive_axes, positive_axis, reduced_shape, shape_of

_SAME: dict[str, Callable[..., Any]] = {
    "Abs": ops.abs,
    "Acos": ops.acos,
    "Acosh": ops.acosh,
    "Add": ops.add,
    "And": ops.logical_and,
    "Asin": ops.asin,
    "Asinh": ops.asinh,
    "Atan": ops.atan,
    "Atanh": ops.atanh,
    "BitwiseAnd": ops.bitwise_and,
    "BitwiseNot": ops.bitwise_invert,
    "BitwiseOr": ops.bitwise_or,
    "BitwiseXor": ops.bitwise_xor,
    "Ceil": ops.ceil,
    "Cos": ops.cos,
    "Cosh": ops.cosh,
    "Det": linalg.det,
    "Equal": ops.equal,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "Floor": ops.floor,
    "Greater": ops.greater,
    "GreaterOrEqual": ops.greater_equal,
    "IsNaN": ops.isnan,
    "Less": ops.less,
    "LessOrEqual": ops.less_equal,
    "Log": ops.log,
    "MatMul": ops.matmul,
    "Mul": ops.multiply,
    "Neg": ops.negative,
    "Not": ops.logical_not,
    "Or": ops.logical_or,
    "Reciprocal": ops.reciprocal,
    "Relu": ops.relu,
    "Round": ops.round,
    "Sigmoid": ops.sigmoid,
    "Sign": ops.sign,
    "Sin": ops.sin,
    "Sinh": ops.sinh,
    "Softplus": ops.softplus,
    "Sqrt": ops.sqrt,
    "Sub": ops.subtract,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
    "Where": ops.where,
    "Xor": ops.logical_xor,
}
for name, function in _SAME.items():
    translates(name)(function)


@translates("Identity")
def identity(x: Any) -> Any:
    return x


@translates("Div")
def divide(x: Any, y: Any) -> Any:
    """Division; of integers the quotient rounded towards 0, as in C."""
    if dtype_of(x).kind == "f":
        return ops.divide(x, y)
    down = ops.floor_divide(x, y)
    if dtype_of(x).kind == "u":
        return down
    rest = ops.not_equal(ops.multiply(down, y), x)
    return ops.where(ops.logical_and(rest, ops.less(down, 0)), ops.add(down, 1), down)


@translates("Mod")
def remainder(x: Any, y: Any, *, fmod: bool = False) -> Any:
    """The remainder with the sign of the divisor, or with `fmod` that of the dividend."""
    if not fmod:
        return ops.remainder(x, y)
    if dtype_of(x).kind == "u":
        return ops.remainder(x, y)
    return truncated(x, y)


@translates("Pow")
def power(x: Any, y: Any) -> Any:
    return cast(ops.pow(x, y), dtype_of(x))


@translates("BitShift")
def shift(x: Any, y: Any, *, direction: Literal["LEFT", "RIGHT"]) -> Any:
    return (ops.bitwise_left_shift if direction == "LEFT" else ops.bitwise_right_shift)(x, y)


@translates("IsInf")
def is_infinite(x: Any, *, detect_negative: bool = True, detect_positive: bool = True) -> Any:
    signs = [sign for sign, wanted in ((-1, detect_negative), (1, detect_positive)) if wanted]
    if len(signs) == 2:
        return ops.isinf(x)
    return ops.equal(x, signs[0] * math.inf) if signs else ops.not_equal(ops.isinf(x), ops.isinf(x))


@translates("Clip")
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        return x
    kind = dtype_of(x)
    return ops.clip(x, lowest(kind) if low is None else low, highest(kind) if high is None else high)


@translates("Max")
def maximum(*values: Any) -> Any:
    return functools.reduce(ops.maximum, values)


@translates("Min")
def minimum(*values: Any) -> Any:
    return functools.reduce(ops.minimum, values)


@translates("Sum")
def total(*values: Any) -> Any:
    return functools.reduce(ops.add, values)


@translates("Mean")
def mean(*values: Any) -> Any:
    return ops.divide(total(*values), len(values))


@translates("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return ops.where(ops.greater_equal(x, 0), x, ops.multiply(x, alpha))


@translates("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    return ops.where(ops.greater_equal(x, 0), x, ops.multiply(x, slope))


@translates("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return ops.elu(x, alpha)


@translates("Selu")
def selu(x: Any, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Any:
    return ops.multiply(ops.elu(x, alpha), gamma)


@translates("Gelu")
def gelu(x: Any, *, approximate: Literal["none", "tanh"] = "none") -> Any:
    return ops.gelu(x, approximate == "tanh")


@translates("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, alpha)))


@translates("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return ops.clip(ops.add(ops.multiply(x, alpha), beta), 0, 1)


@translates("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    inwards = ops.subtract(x, ops.multiply(ops.sign(x), _same_kind(bias, x)))
    return ops.where(ops.greater(ops.abs(x), lambd), inwards, ops.multiply(x, 0))


def _same_kind(value: float, x: Any) -> Any:
    return np.asarray(value, dtype_of(x))


@translates("Cast")
def convert(x: Any, *, to: np.dtype[Any], saturate: bool = True, round_mode: str = "up") -> Any:
    """Cast x; `saturate` and `round_mode` only matter for types that no tensor has here."""
    return ops.astype(x, to)


@translates("CastLike")
def convert_like(x: Any, like: Any, *, saturate: bool = True, round_mode: str = "up") -> Any:
    return ops.astype(x, dtype_of(like))


@translates("Einsum")
def einsum(*values: Any, equation: str) -> Any:
    return ops.einsum(equation.replace(" ", ""), *values)


@translates("Gemm")
def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: bool = False, transB: bool = False
) -> Any:  # fmt: skip
    """alpha * a @ b + beta * c."""
    product = ops.matmul(ops.matrix_transpose(a) if transA else a, ops.matrix_transpose(b) if transB else b)
    scaled = product if alpha == 1 else ops.multiply(product, _same_kind(alpha, a))
    if c is None:
        return scaled
    return ops.add(scaled, c if beta == 1 else ops.multiply(c, _same_kind(beta, a)))


@translates("Trilu")
def triangle(x: Any, k: Any = None, *, upper: bool = True) -> Any:
    diagonal = 0 if k is None else int(np.asarray(k).item())
    return (ops.triu if upper else ops.tril)(x, diagonal)


@translates("Softmax", since=13)
def softmax(x: Any, *, axis: int = -1) -> Any:
    return ops.softmax(x, axis=axis)


@translates("LogSoftmax", since=13)
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    return ops.log_softmax(x, axis=axis)


@translates("Hardmax", since=13)
def hardmax(x: Any, *, axis: int = -1) -> Any:
    """1 at the first largest element along the axis, 0 elsewhere."""
    at = axis % len(shape_of(x))
    places = ops.reshape(ops.arange(shape_of(x)[at]), [-1 if i == at else 1 for i in range(len(shape_of(x)))])
    return ops.astype(ops.equal(places, ops.argmax(x, axis=at, keepdims=True)), dtype_of(x))


# Quantized ------------------------------------------------------------------------------------------------------------


def _along(scale: Any, x: Any, axis: int, block_size: int) -> Any:
    """Reshape a scale or zero point to broadcast to x: it is one number, or one per place or block of an axis."""
    shape = shape_of(scale)
    if block_size:
        return ops.repeat(scale, block_size, axis=axis)
    if len(shape) != 1 or len(shape_of(x)) == 1:
        return scale
    at = positive_axis(axis, len(shape_of(x)))
    if not dims.same(shape[0], shape_of(x)[at]):
        raise ShapeError(f"{shape[0]} scales or zeros for an axis of {shape_of(x)[at]}; make them equal")
    return ops.reshape(scale, [-1 if i == at else 1 for i in range(len(shape_of(x)))])


@translates("QuantizeLinear")
def quantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: np.dtype[Any] | None = None, saturate: bool = True,
) -> Any:  # fmt: skip
    kind = np.dtype(np.uint8) if zero is None and output_dtype is None else output_dtype or dtype_of(zero)
    steps = ops.round(ops.divide(x, _along(scale, x, axis, block_size)))
    if zero is not None:
        steps = ops.add(steps, ops.astype(_along(zero, x, axis, block_size), dtype_of(x)))
    ends = np.iinfo(kind)
    return ops.astype(ops.clip(steps, ends.min, ends.max), kind)


@translates("DequantizeLinear")
def dequantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: np.dtype[Any] | None = None,
) -> Any:  # fmt: skip
    kind = output_dtype or dtype_of(scale)
    values = ops.astype(x, dtype_of(scale))
    if zero is not None:
        values = ops.subtract(values, ops.astype(_along(zero, x, axis, block_size), dtype_of(scale)))
    return ops.astype(ops.multiply(values, _along(scale, x, axis, block_size)), kind)


def _subtract_zero(x: Any, zero: Any, last: bool = False) -> Any:
    """x minus its zero point, as int32; a vector has a zero point for each row, or with `last` each column."""
    wide = ops.astype(x, np.int32)
    if zero is None:
        return wide
    axes = shape_of(zero)
    column = not last and len(axes) == 1 and axes[0] != 1
    return ops.subtract(wide, ops.astype(ops.expand_dims(zero, -1) if column else zero, np.int32))


@translates("MatMulInteger")
def integer_product(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return ops.matmul(_subtract_zero(a, a_zero), _subtract_zero(b, b_zero, last=True))


@translates("QLinearMatMul")
def quantized_product(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    whole = integer_product(a, b, a_zero, b_zero)
    return _requantize(whole, ops.multiply(a_scale, b_scale), y_scale, y_zero)


def _requantize(whole: Any, scale: Any, y_scale: Any, y_zero: Any) -> Any:
    """Round integers of one scale to integers of another."""
    scaled = ops.divide(ops.multiply(ops.astype(whole, dtype_of(y_scale)), scale), y_scale)
    kind = dtype_of(y_zero)
    ends = np.iinfo(kind)
    steps = ops.add(ops.round(scaled), ops.astype(y_zero, dtype_of(scaled)))
    return ops.astype(ops.clip(steps, ends.min, ends.max), kind)


@translates("ConvInteger")
def integer_convolution(
    x: Any, weight: Any, x_zero: Any = None, weight_zero: Any = None, *, auto_pad: AutoPad = "NOTSET",
    dilations: Counts | None = None, group: Count = 1, kernel_shape: Counts | None = None, pads: Sizes | None = None,
    strides: Counts | None = None,
) -> Any:  # fmt: skip
    """Convolve integers in float64, where sums of products of bytes are exact; one weight zero, or one a feature."""
    feature_zero = None if weight_zero is None else ops.reshape(weight_zero, (-1, *(1,) * (len(shape_of(weight)) - 1)))
    ends = [
        ops.astype(_subtract_zero(value, zero, True), np.float64)
        for value, zero in ((x, x_zero), (weight, feature_zero))
    ]
    options = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    return ops.astype(convolution(*ends, **options), np.int32)


@translates("QLinearConv")
def quantized_convolution(
    x: Any, x_scale: Any, x_zero: Any, weight: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
    bias: Any = None, *, auto_pad: AutoPad = "NOTSET", dilations: Counts | None = None, group: Count = 1,
    kernel_shape: Counts | None = None, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    """Convolve quantized integers; the weight has one scale or one per feature, the bias that of the products."""
    options = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    whole = integer_convolution(x, weight, x_zero, w_zero, **options)
    if bias is not None:
        whole = ops.add(whole, per_channel(bias, whole))
    scale = ops.multiply(x_scale, per_channel(w_scale, whole) if shape_of(w_scale) else w_scale)
    return _requantize(whole, scale, y_scale, y_zero)


# Reductions -----------------------------------------------------------------------------------------------------------


Reduce = Callable[..., Any]  # of x, its axes, and whether these stay


def _reduction(name: str, function: Reduce) -> None:
    @translates(name)
    def reduce(x: Any, axes: Sizes | None = None, *, keepdims: bool = True, noop_with_empty_axes: bool = False) -> Any:
        """Reduce over the axes; without axes over all, or with `noop_with_empty_axes` over none."""
        if not axes and noop_with_empty_axes:
            return cast(function(x, axis=(), keepdims=True), dtype_of(x))
        over = positive_axes(tuple(int(axis) for axis in axes) if axes else None, len(shape_of(x)))
        return cast(function(x, axis=over, keepdims=keepdims), dtype_of(x))


def _extreme(function: Reduce, of_none: Callable[[np.dtype[Any]], Any]) -> Reduce:
    """Wrap an extreme: over no elements it is the end of the dtype."""

    def reduce(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if any(dims.same(shape_of(x)[a], 0) for a in axis):
            return ops.full(reduced_shape(shape_of(x), axis, keepdims), of_none(dtype_of(x)), dtype_of(x))
        return function(x, axis=axis, keepdims=keepdims)

    return reduce


def _norm(x: Any, **over: Any) -> Any:
    return ops.sqrt(ops.sum(ops.square(x), **over))


_reduction("ReduceSum", ops.sum)
_reduction("ReduceMean", ops.mean)
_reduction("ReduceProd", ops.prod)
_reduction("ReduceMax", _extreme(ops.max, lowest))
_reduction("ReduceMin", _extreme(ops.min, highest))
_reduction("ReduceL1", lambda x, **over: ops.sum(ops.abs(x), **over))
_reduction("ReduceL2", _norm)
_reduction("ReduceSumSquare", lambda x, **over: ops.sum(ops.square(x), **over))
_reduction("ReduceLogSum", lambda x, **over: ops.log(ops.sum(x, **over)))
_reduction("ReduceLogSumExp", ops.logsumexp)


def _place(name: str, function: Reduce) -> None:
    @translates(name)
    def place(x: Any, *, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Any:
        """The index of the first extreme along an axis, or of the last."""
        if not select_last_index:
            return ops.astype(function(x, axis=axis, keepdims=keepdims), np.int64)
        last = shape_of(x)[axis] - 1
        return ops.astype(ops.subtract(last, function(ops.flip(x, axis=axis), axis=axis, keepdims=keepdims)), np.int64)


_place("ArgMax", ops.argmax)
_place("ArgMin", ops.argmin)


@translates("LpNormalization")
def unit_norm(x: Any, *, axis: int = -1, p: Count = 2) -> Any:
    """x divided by its norm along an axis; 0 where the norm is 0."""
    size = _norm(x, axis=axis, keepdims=True) if p == 2 else ops.sum(ops.abs(x), axis=axis, keepdims=True)
    zero = ops.equal(size, 0)
    return ops.where(zero, ops.multiply(x, 0), ops.divide(x, ops.where(zero, 1, size)))
