"""Pooling: windows of the last axes, each to one element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.errors import ShapeError
from graphs.frontends.onnx.ops.layers import window_of
from graphs.frontends.onnx.table import AutoPad, Count, Counts, Sizes, translates
from graphs.ops.pooling import places_of
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.windows import Window


def _pooled(
    x: Any,
    lengths: Sizes,
    strides: Counts | None,
    pads: Sizes | None,
    dilations: Counts | None,
    auto_pad: AutoPad,
    up: bool,
) -> tuple[Window, Window]:
    """The window, and the same with more padding behind where the last reaches beyond (`ceil_mode`)."""
    have = shape_of(x)[2:]
    window = window_of(lengths, have, strides, pads, dilations, auto_pad)
    if not up:
        return window, window
    return window, tuple(
        (k, s, b, a + _rest(size, k, s, b, a, d), d) for size, (k, s, b, a, d) in zip(have, window, strict=True)
    )


def _rest(size: Any, length: int, stride: int, before: int, after: int, dilation: int) -> int:
    if not isinstance(size, int):
        raise ShapeError(f"with ceil_mode the windows over a size of {size} are not known; give it as a number")
    padded, reach = size + before + after, dilation * (length - 1) + 1
    last = -(-(padded - reach) // stride) * stride
    if last >= size + before:  # in the padding behind: no window
        last -= stride
    return max(0, last + reach - padded)


@translates("MaxPool")
def max_pool(
    x: Any, *, kernel_shape: Counts, auto_pad: AutoPad = "NOTSET", ceil_mode: bool = False,
    dilations: Counts | None = None, pads: Sizes | None = None, storage_order: int = 0, strides: Counts | None = None,
    outputs: int,
) -> Any:  # fmt: skip
    """The largest of each window, and where it lies in the whole of x, row by row or column by column."""
    _, whole = _pooled(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    peak = ops.window_max(x, window=whole)
    if outputs == 1:
        return peak
    sizes = shape_of(x)[2:]
    places = places_of(x, peak, whole)
    if storage_order:
        places = _by_columns(places, sizes)
    batch = dims.product(shape_of(x)[:2])
    first = ops.reshape(ops.multiply(ops.arange(batch), dims.product(sizes)), (*shape_of(x)[:2], *(1,) * len(sizes)))
    return peak, ops.add(places, first)


def _by_columns(places: Any, sizes: Any) -> Any:
    """Places counted row by row, counted with the first axis fastest."""
    result: Any = np.zeros((), np.int64)
    for axis in reversed(range(len(sizes))):
        along = ops.remainder(ops.floor_divide(places, dims.product(sizes[axis + 1 :])), sizes[axis])
        result = ops.add(result, ops.multiply(along, dims.product(sizes[:axis])))
    return result


@translates("AveragePool")
def average_pool(
    x: Any, *, kernel_shape: Counts, auto_pad: AutoPad = "NOTSET", ceil_mode: bool = False,
    count_include_pad: bool = False, dilations: Counts | None = None, pads: Sizes | None = None,
    strides: Counts | None = None,
) -> Any:  # fmt: skip
    """The mean of each window; padding counts as zeros or not at all, and what is beyond it never."""
    window, whole = _pooled(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    total = ops.window_sum(x, window=whole)
    if window == whole and (count_include_pad or not any(b or a for _, _, b, a, _ in window)):
        return ops.divide(total, math.prod(part[0] for part in window))
    sizes = list(shape_of(x)[2:])
    if count_include_pad:
        sizes = [size + b + a for size, (_, _, b, a, _) in zip(sizes, window, strict=True)]
        whole = tuple((k, s, 0, more - a, d) for (k, s, _, more, d), (_, _, _, a, _) in zip(whole, window, strict=True))
    return ops.divide(total, ops.window_sum(ops.full(tuple(sizes), 1, dtype_of(x)), window=whole))


@translates("LpPool")
def norm_pool(
    x: Any, *, kernel_shape: Counts, auto_pad: AutoPad = "NOTSET", ceil_mode: bool = False,
    dilations: Counts | None = None, p: Count = 2, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    """The p-norm of each window."""
    _, whole = _pooled(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    return ops.pow(ops.window_sum(ops.pow(ops.abs(x), float(p)), window=whole), 1 / p)


def _rest_axes(x: Any) -> tuple[int, ...]:
    return tuple(range(2, len(shape_of(x))))


@translates("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    return ops.mean(x, axis=_rest_axes(x), keepdims=True)


@translates("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    return ops.max(x, axis=_rest_axes(x), keepdims=True)


@translates("GlobalLpPool")
def global_norm_pool(x: Any, *, p: Count = 2) -> Any:
    return ops.pow(ops.sum(ops.pow(ops.abs(x), float(p)), axis=_rest_axes(x), keepdims=True), 1 / p)


@translates("MaxUnpool")
def max_unpool(
    x: Any, places: Any, output_shape: Sizes | None = None, *, kernel_shape: Counts, pads: Sizes | None = None,
    strides: Counts | None = None,
) -> Any:  # fmt: skip
    """Zeros with the elements of x at the places that a pooling gave."""
    rank = len(kernel_shape)
    before, after = (pads or [0] * 2 * rank)[:rank], (pads or [0] * 2 * rank)[rank:]
    inferred = [
        (size - 1) * s + k - b - a
        for size, s, k, b, a in zip(shape_of(x)[2:], strides or [1] * rank, kernel_shape, before, after, strict=True)
    ]
    # Places count in the shape that follows from the windows, also where a larger result is asked for.
    shape = (*shape_of(x)[:2], *inferred)
    flat = ops.full((dims.product(shape),), 0, dtype_of(x))
    made = ops.reshape(ops.scatter(flat, ops.reshape(places, (-1,)), ops.reshape(x, (-1,))), shape)
    if output_shape is None:
        return made
    return ops.pad(made, [(0, want - have) for want, have in zip(output_shape, shape, strict=True)])
