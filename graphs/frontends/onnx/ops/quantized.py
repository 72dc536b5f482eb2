"""Quantized values: integers with a scale and the integer that stands for zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.errors import ShapeError
from graphs.frontends.onnx.ops.layers import convolution, per_channel
from graphs.frontends.onnx.table import AutoPad, Count, Counts, Sizes, translates
from graphs.ops.shapes import dtype_of, positive_axis, shape_of


def _along(scale: Any, x: Any, axis: int, block_size: int) -> Any:
    """A scale, or a zero, as it broadcasts to x: one number, one for each place of an axis, or one for each block."""
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


def _centred(x: Any, zero: Any, last: bool = False) -> Any:
    """x less its zero, as int32; a zero for each row, or each column (`last`)."""
    wide = ops.astype(x, np.int32)
    if zero is None:
        return wide
    axes = shape_of(zero)
    column = not last and len(axes) == 1 and axes[0] != 1
    return ops.subtract(wide, ops.astype(ops.expand_dims(zero, -1) if column else zero, np.int32))


@translates("MatMulInteger")
def integer_product(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return ops.matmul(_centred(a, a_zero), _centred(b, b_zero, last=True))


@translates("QLinearMatMul")
def quantized_product(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    whole = integer_product(a, b, a_zero, b_zero)
    return _requantized(whole, ops.multiply(a_scale, b_scale), y_scale, y_zero)


def _requantized(whole: Any, scale: Any, y_scale: Any, y_zero: Any) -> Any:
    """Integers of one scale, rounded to those of another."""
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
    """In float64, in which sums of products of bytes are exact; the weight has one zero, or one for each feature."""
    feature_zero = None if weight_zero is None else ops.reshape(weight_zero, (-1, *(1,) * (len(shape_of(weight)) - 1)))
    ends = [
        ops.astype(_centred(value, zero, True), np.float64) for value, zero in ((x, x_zero), (weight, feature_zero))
    ]
    options = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    return ops.astype(convolution(*ends, **options), np.int32)


@translates("QLinearConv")
def quantized_convolution(
    x: Any, x_scale: Any, x_zero: Any, weight: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
    bias: Any = None, *, auto_pad: AutoPad = "NOTSET", dilations: Counts | None = None, group: Count = 1,
    kernel_shape: Counts | None = None, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    """A scale of the weight, or one for each feature; the bias has the scale of the products."""
    options = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    whole = integer_convolution(x, weight, x_zero, w_zero, **options)
    if bias is not None:
        whole = ops.add(whole, per_channel(bias, whole))
    scale = ops.multiply(x_scale, per_channel(w_scale, whole) if shape_of(w_scale) else w_scale)
    return _requantized(whole, scale, y_scale, y_zero)
