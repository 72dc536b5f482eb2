"""Pooling: windows of the last axes become one element each. Then resizing, and Fourier transforms."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from graphs import dims, ops
from graphs.dims import Dim
from graphs.errors import OptionError, ShapeError
from graphs.frontends.onnx.ops.layers import window_of
from graphs.frontends.onnx.table import AutoPad, Count, Counts, Sizes, translates, whole
from graphs.frontends.torch.sampling import grid_sample
from graphs.ops.neural import cubic_weight, linear_weight, resizing
from graphs.ops.pooling import places_of
from graphs.ops.shapes import dtype_of, positive_axis, shape_of
from graphs.ops.windows import Window


def _window_of(
    x: Any,
    lengths: Sizes,
    strides: Counts | None,
    pads: Sizes | None,
    dilations: Counts | None,
    auto_pad: AutoPad,
    up: bool,
) -> tuple[Window, Window]:
    """The window, and for `ceil_mode` the window with more padding at the end, so that the last window fits."""
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
    """The largest of each window, and its place in x, row by row or column by column."""
    _, whole = _window_of(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    peak = ops.window_max(x, window=whole)
    if outputs == 1:
        return peak
    sizes = shape_of(x)[2:]
    places = places_of(x, peak, whole)
    if storage_order:
        # Convert row-major places to places with the first axis fastest.
        result: Any = np.zeros((), np.int64)
        for axis in reversed(range(len(sizes))):
            along = ops.remainder(ops.floor_divide(places, dims.product(sizes[axis + 1 :])), sizes[axis])
            result = ops.add(result, ops.multiply(along, dims.product(sizes[:axis])))
        places = result
    batch = dims.product(shape_of(x)[:2])
    first = ops.reshape(ops.multiply(ops.arange(batch), dims.product(sizes)), (*shape_of(x)[:2], *(1,) * len(sizes)))
    return peak, ops.add(places, first)


@translates("AveragePool")
def average_pool(
    x: Any, *, kernel_shape: Counts, auto_pad: AutoPad = "NOTSET", ceil_mode: bool = False,
    count_include_pad: bool = False, dilations: Counts | None = None, pads: Sizes | None = None,
    strides: Counts | None = None,
) -> Any:  # fmt: skip
    """The mean of each window; padding counts as zeros or not at all, and elements beyond it never count."""
    window, whole = _window_of(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
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
    _, whole = _window_of(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
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
    """Zeros with the elements of x at the places from a max pooling."""
    rank = len(kernel_shape)
    before, after = (pads or [0] * 2 * rank)[:rank], (pads or [0] * 2 * rank)[rank:]
    inferred = [
        (size - 1) * s + k - b - a
        for size, s, k, b, a in zip(shape_of(x)[2:], strides or [1] * rank, kernel_shape, before, after, strict=True)
    ]
    # Places refer to the shape that follows from the windows, also if a larger result is asked for.
    shape = (*shape_of(x)[:2], *inferred)
    flat = ops.full((dims.product(shape),), 0, dtype_of(x))
    made = ops.reshape(ops.scatter(flat, ops.reshape(places, (-1,)), ops.reshape(x, (-1,))), shape)
    if output_shape is None:
        return made
    return ops.pad(made, [(0, want - have) for want, have in zip(output_shape, shape, strict=True)])


# Resizing -------------------------------------------------------------------------------------------------------------


Array = np.ndarray[Any, Any]
Mode = Literal["nearest", "linear", "cubic"]
Transformation = Literal[
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Policy = Literal["stretch", "not_larger", "not_smaller"]


@translates("Resize")
def resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Sizes | None = None, *, mode: Mode = "nearest",
    coordinate_transformation_mode: Transformation = "half_pixel", nearest_mode: Rounding = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, exclude_outside: bool = False, extrapolation_value: float = 0.0,
    antialias: bool = False, axes: Sizes | None = None, keep_aspect_ratio_policy: Policy = "stretch",
) -> Any:  # fmt: skip
    """Resize x along some axes, to `sizes` or by `scales`."""
    ndim = len(shape_of(x))
    at = [axis % ndim for axis in (range(ndim) if axes is None else whole(axes))]
    if scales is not None and np.any(np.asarray(scales) <= 0):
        raise OptionError(f"the scales are {np.asarray(scales).tolist()}; give some that are more than 0")
    shape = [shape_of(x)[axis] for axis in at]
    if sizes is None:
        left = [isinstance(size, Dim) and factor == 1 for size, factor in zip(shape, scales, strict=True)]
    else:
        left = [isinstance(size, Dim) and dims.same(size, want) for size, want in zip(shape, sizes, strict=True)]
        sizes = [1 if stays else want for stays, want in zip(left, sizes, strict=True)]
    # A symbolic size, such as that of the batch, stays as it is; any other axis needs a number.
    have = [1 if stays else int(size) for stays, size in zip(left, shape, strict=True)]
    factors, wanted = _factors_and_sizes(have, scales, sizes, keep_aspect_ratio_policy)
    crop = None if roi is None or not np.size(roi) else np.asarray(roi, np.float64)
    for number, axis in enumerate(at):
        window = (0.0, 1.0) if crop is None else (float(crop[number]), float(crop[number + len(at)]))
        places = _places(coordinate_transformation_mode, have[number], wanted[number], factors[number], window)
        if wanted[number] == have[number] and np.array_equal(places, np.arange(have[number])):
            continue
        if mode == "nearest":
            x = ops.take(x, _nearest(places, have[number], nearest_mode), axis=axis)
        else:
            width = min(factors[number], 1) if antialias else 1.0
            kernel = linear_weight if mode == "linear" else cubic_weight(cubic_coeff_a)
            matrix = resizing(places, have[number], kernel, width, exclude_outside)
            x = ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), matrix.astype(dtype_of(x)).T), -1, axis)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            outside = (places < 0) | (places > have[number] - 1)
            shape = [-1 if i == axis else 1 for i in range(len(shape_of(x)))]
            x = ops.where(outside.reshape(shape), np.asarray(extrapolation_value, dtype_of(x)), x)
    return x


def _factors_and_sizes(have: list[int], scales: Any, sizes: Any, policy: str) -> tuple[list[float], list[int]]:
    """The factor and the output size of each axis."""
    if sizes is None:
        factors = np.asarray(scales).tolist()
        return factors, [math.floor(size * factor) for size, factor in zip(have, factors, strict=True)]
    factors = [want / size for want, size in zip(sizes, have, strict=True)]
    if policy == "stretch":
        return factors, [int(size) for size in sizes]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [factor] * len(have), [math.floor(size * factor + 0.5) for size in have]


def _places(mode: str, have: int, want: int, factor: float, window: tuple[float, float]) -> Array:
    """The position of each output element among those of x; a whole number is an element's own position."""
    i = np.arange(want, dtype=np.float64)
    if mode == "asymmetric":
        return i / factor
    if mode == "align_corners":
        length = factor * have
        return i * (have - 1) / (length - 1) if length > 1 else np.zeros(want)
    if mode == "tf_crop_and_resize":
        start, end = window
        step = (end - start) * (have - 1) / (want - 1) if want > 1 else 0.0
        return start * (have - 1) + i * step if want > 1 else np.full(1, 0.5 * (start + end) * (have - 1))
    if mode == "pytorch_half_pixel" and want == 1:
        return np.full(1, -0.5)
    centres = (i + 0.5) / factor - 0.5
    if mode == "half_pixel_symmetric":
        adjusted = want / (factor * have)
        return have / 2 * (1 - adjusted) + centres
    return centres


def _nearest(places: Array, have: int, mode: str) -> Array:
    halves = places - np.floor(places) == 0.5
    rounded = {
        "round_prefer_floor": np.where(halves, np.floor(places), np.floor(places + 0.5)),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[mode]
    return np.clip(rounded, 0, have - 1).astype(np.int64)


_MODES = {"linear": "bilinear", "cubic": "bicubic"}  # as they are called from opset 20 on


@translates("GridSample")
def sample(x: Any, grid: Any, *, align_corners: bool = False, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    return grid_sample(x, grid, _MODES.get(mode, mode), padding_mode, align_corners)


@translates("DFT", since=20)
def fourier(
    x: Any, length: Sizes | None = None, axis: Sizes | None = None, *, inverse: bool = False, onesided: bool = False
) -> Any:
    """The Fourier transform along an axis, cut or padded to `length`; the last axis is 1 (real) or 2 (complex)."""
    at = -2 if axis is None else int(axis[0])
    if positive_axis(at, len(shape_of(x))) == len(shape_of(x)) - 1:
        raise ShapeError(f"axis {at} has the parts of a number; use one before it")
    if length is not None and isinstance(length[0], int) and length[0] < 1:
        raise ShapeError(f"a length of {length[0]}; give 1 or more")
    return _fourier(x, length, at, inverse, onesided)


def _fourier(x: Any, length: Sizes | None, axis: int, inverse: bool, onesided: bool) -> Any:
    at = axis % len(shape_of(x))
    rows = ops.moveaxis(x, at, -2)  # [..., count, 1 or 2]
    if inverse and onesided:
        half = int(shape_of(rows)[-2])
        count = 2 * (half - 1) if length is None else int(length[0])
        whole = _mirror_half(_of_length(rows, count // 2 + 1), count)
        return _fourier(ops.moveaxis(whole, -2, at), [count], at, True, False)[..., :1]
    count = int(shape_of(rows)[-2] if length is None else length[0])
    rows = _of_length(rows, count)
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(count // 2 + 1 if onesided else count)) / count
    scale = 1 / count if inverse else 1.0
    cos, sin = (np.asarray(f(angles) * scale, dtype_of(x)) for f in (np.cos, np.sin))
    sin = -sin if not inverse else sin
    parts = [rows[..., part] for part in range(int(shape_of(rows)[-1]))]
    real, imaginary = ops.matmul(parts[0], cos), ops.matmul(parts[0], sin)
    if len(parts) == 2:
        real = ops.subtract(real, ops.matmul(parts[1], sin))
        imaginary = ops.add(imaginary, ops.matmul(parts[1], cos))
    return ops.moveaxis(ops.stack([real, imaginary], axis=-1), -2, at)


def _mirror_half(half: Any, count: int) -> Any:
    """Complete a transform of real numbers from its first half: the others are conjugates."""
    rest = ops.flip(half[..., 1 : count - count // 2, :], axis=-2)
    return ops.concat([half, ops.multiply(rest, np.asarray([1, -1], dtype_of(half)))], axis=-2)


def _of_length(rows: Any, count: int) -> Any:
    have = int(shape_of(rows)[-2])
    if have >= count:
        return rows[..., :count, :]
    widths = [(0, count - have if axis == len(shape_of(rows)) - 2 else 0) for axis in range(len(shape_of(rows)))]
    return ops.pad(rows, widths)


@translates("STFT")
def short_fourier(
    signal: Any, step: Sizes, window: Any = None, length: Sizes | None = None, *, onesided: bool = True
) -> Any:
    """Fourier transforms of frames of a signal [N, T, 1 or 2], `step` apart, each times the window."""
    count = int(shape_of(window)[0] if length is None else length[0])
    starts = np.arange(0, int(shape_of(signal)[1]) - count + 1, int(step[0]))
    frames = ops.take(signal, starts[:, None] + np.arange(count), axis=1)  # [N, frames, count, 1 or 2]
    weighted = frames if window is None else ops.multiply(frames, ops.expand_dims(window, -1))
    return _fourier(weighted, None, 2, False, onesided)
