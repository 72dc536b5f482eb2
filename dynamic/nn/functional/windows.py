"""Convolution, pooling and resizing with PyTorch's names and options, over one, two or three axes.

Functions that move elements: borders, patches, and channels that become pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamic.nn.functional.common import Array, check_dtypes, check_indices
from graphs import dims, ops
from graphs.errors import DTypeError, ShapeError, locate
from graphs.frontends.torch import functions as torch
from graphs.frontends.torch.shapes import apart, laid_as_images, laid_like, like_images
from graphs.frontends.torch.words import within
from graphs.ops.neural import output_sizes
from graphs.ops.pooling import max_pool_with_places
from graphs.ops.shapes import as_count, dtype_of, shape_of
from graphs.ops.windows import Window, counts, per_axis, window_of

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "interpolate", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample",
]  # fmt: skip


def _name_after(op: Callable[..., Array], function: Callable[..., Array], count: int = 1) -> Callable[..., Array]:
    """Give a function of `count` images the name and docstring of its op, and images as its result."""
    function.__name__ = op.__name__
    function.__doc__ = op.__doc__
    return laid_as_images(function, count)


def _plain(value: Any) -> Any:
    """The number in a tuple of one; other values unchanged."""
    return value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value


def _convolution(op: Callable[..., Array]) -> Callable[..., Array]:
    def convolution(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Array:
        check_dtypes(input, weight, bias)
        return op(input, weight, bias, _plain(stride), _plain(padding), _plain(dilation), groups)

    return _name_after(op, convolution, 2)


def _transpose_convolution(op: Callable[..., Array]) -> Callable[..., Array]:
    def convolution(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Array:
        check_dtypes(input, weight, bias)
        sizes = [_plain(value) for value in (stride, padding, output_padding)]
        return op(input, weight, bias, *sizes, groups, _plain(dilation))

    return _name_after(op, convolution, 2)


conv1d, conv2d, conv3d = map(_convolution, (ops.conv1d, ops.conv2d, ops.conv3d))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(
    _transpose_convolution, (ops.conv_transpose1d, ops.conv_transpose2d, ops.conv_transpose3d)
)


# Pooling ----------------------------------------------------------------------------------------------------------


def _stride(value: Any) -> Any:
    """The stride; None, which means the window size, for an empty tuple."""
    return None if isinstance(value, (tuple, list)) and not value else _plain(value)


def _largest(rank: int, op: Callable[..., Array]) -> Callable[..., Any]:
    def pool(
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if any(dims.same(size, 0) for size in shape_of(input)[-rank - 1 :]):
            raise ShapeError("channels and sizes are 1 or more, and the batch alone may be empty; check the shape")
        sizes = _plain(kernel_size), _stride(stride), _plain(padding), _plain(dilation), ceil_mode
        return max_pool_with_places(rank, input, *sizes) if return_indices else op(input, *sizes)

    return _name_after(op, pool)


max_pool1d, max_pool2d, max_pool3d = map(_largest, (1, 2, 3), (ops.max_pool1d, ops.max_pool2d, ops.max_pool3d))


def _whole(means: Array, x: Array) -> Array:
    """Cast means to the dtype of x: in int64 rounded to 0. Raises DTypeError for other ints, and for bools."""
    dtype = dtype_of(x)
    if dtype.kind == "f":
        return means
    if dtype != np.int64:
        raise DTypeError(locate(f"the mean of {dtype} in windows; convert with .float() first"))
    return ops.astype(ops.trunc(means), dtype)


def avg_pool1d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window of f[N, C, L], or f[C, L]."""
    size, step, border = _plain(kernel_size), _stride(stride), _plain(padding)
    return _whole(ops.avg_pool1d(input, size, step, border, ceil_mode, count_include_pad), input)


def _mean(op: Callable[..., Array], images: int) -> Callable[..., Array]:
    def pool(
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        sizes = _plain(kernel_size), _stride(stride), _plain(padding)
        return _whole(op(input, *sizes, ceil_mode, count_include_pad, divisor_override), input)

    return _name_after(op, pool, images)


avg_pool2d, avg_pool3d = _mean(ops.avg_pool2d, 1), _mean(ops.avg_pool3d, 0)


def _power_mean(
    name: str, rank: int, mean: Callable[..., Array], largest: Callable[..., Array]
) -> Callable[..., Array]:
    def pool(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
        if math.isinf(norm_type):
            sign = math.copysign(1, norm_type)  # the least is what is largest the other way round
            return torch.mul(largest(torch.mul(torch.abs(input), sign), kernel_size, stride, 0, 1, ceil_mode), sign)
        means = mean(torch.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
        means = ops.where(ops.equal(means, 0), 0, means)  # where the root is infinitely steep
        count = math.prod(per_axis(_plain(kernel_size), rank, "kernel_size", 1))
        return torch.pow(torch.mul(means, count), 1 / norm_type)

    pool.__name__ = name
    pool.__doc__ = "The root of the sum of powers in each window: the p-norm of what is positive."
    return pool


lp_pool1d = _power_mean("lp_pool1d", 1, avg_pool1d, max_pool1d)
lp_pool2d = _power_mean("lp_pool2d", 2, avg_pool2d, max_pool2d)
lp_pool3d = _power_mean("lp_pool3d", 3, avg_pool3d, max_pool3d)


Reduce = Callable[[list[Array], int], list[Array]]  # arrays reduced together along an axis, whose size becomes 1


def _adaptive(arrays: list[Array], output_size: Any, rank: int, reduce: Reduce) -> list[Array]:
    """Reduce each of the last axes to `output_size` windows, which overlap where the size is no multiple."""
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(shape_of(arrays[0])) not in (rank + 1, rank + 2):
        raise ShapeError(f"takes {rank + 2} axes (batch, channels, sizes), or {rank + 1} without the batch; add one")
    if len(wanted) != rank or any(count is not None and as_count(count, "a size") < 0 for count in wanted):
        raise ShapeError(f"output_size is one number or {rank} of them, not {output_size!r}; None keeps a size")
    for axis, count in reversed(list(zip(range(-rank, 0), wanted, strict=True))):  # the first of equals is PyTorch's
        size = shape_of(arrays[0])[axis]
        if count is None or count == size:
            continue
        parts = []
        for i in range(count):
            first, end = i * size // count, -(-(i + 1) * size // count)
            window = (..., slice(first, end), *(slice(None),) * (-1 - axis))
            parts.append(reduce([x[window] for x in arrays], axis))
        arrays = [column[0] if count == 1 else ops.concat(column, axis=axis) for column in zip(*parts, strict=True)]
    return arrays


def _adaptive_mean(rank: int) -> Callable[..., Array]:
    def pool(input: Array, output_size: Any) -> Array:
        return apart(_adaptive([input], output_size, rank, _means)[0], input)

    pool.__name__ = f"adaptive_avg_pool{rank}d"
    pool.__doc__ = f"The means of `output_size` windows along each of the last axes, {rank} of them."
    return laid_as_images(pool, rank < 3)


def _means(arrays: list[Array], axis: int) -> list[Array]:
    return [ops.mean(x, axis=axis, keepdims=True) for x in arrays]


def _first_max(arrays: list[Array], axis: int) -> list[Array]:
    """Select from all arrays the place where the first array is largest along an axis; a tie takes the first place."""
    place = ops.argmax(arrays[0], axis=axis, keepdims=True)
    return [ops.take_along_axis(x, place, axis=axis) for x in arrays]


def _adaptive_max(rank: int) -> Callable[..., Any]:
    def pool(input: Array, output_size: Any, return_indices: bool = False) -> Any:
        if not return_indices:
            return apart(_adaptive([input], output_size, rank, _first_max)[0], input)
        shape = shape_of(input)
        sizes = shape[len(shape) - rank :]  # the places lie in these, row by row
        places = ops.add(ops.zeros_like(input, dtype=np.int64), ops.reshape(ops.arange(dims.product(sizes)), sizes))
        largest, places = _adaptive([input, places], output_size, rank, _first_max)
        return apart(largest, input), places

    pool.__name__ = f"adaptive_max_pool{rank}d"
    pool.__doc__ = f"The largest of `output_size` windows along each of the last axes, {rank} of them."
    return laid_as_images(pool, rank < 3)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_mean, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max, (1, 2, 3))


def _unpool(rank: int) -> Callable[..., Array]:
    def unpool(
        input: Array, indices: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Array:
        if len(shape_of(input)) not in (rank + 1, rank + 2) or shape_of(input) != shape_of(indices):
            shapes = f"shapes {shape_of(input)} and {shape_of(indices)}"
            raise ShapeError(f"takes {rank + 2} axes (batch, channels, sizes), and as many indices, not {shapes}")
        lead, counts = shape_of(input)[:-rank], shape_of(input)[-rank:]
        lengths = per_axis(_plain(kernel_size), rank, "kernel_size", 1)
        steps = per_axis(_stride(stride) or lengths, rank, "stride", 1)
        border = per_axis(_plain(padding), rank, "padding", 0)
        sizes = [(n - 1) * s - 2 * b + k for n, s, b, k in zip(counts, steps, border, lengths, strict=True)]
        sizes = sizes if output_size is None else list(output_size)[-rank:]
        check_indices("max_unpool", indices, dims.product(sizes))
        places, values = (ops.reshape(x, (*lead, dims.product(counts))) for x in (indices, input))
        empty = ops.zeros((*lead, dims.product(sizes)), dtype_of(input))
        put = torch.scatter(empty, -1, places, ops.stop_gradient(values))
        return ops.reshape(ops.add(put, _changes(values, places, shape_of(empty))), (*lead, *sizes))

    unpool.__name__ = f"max_unpool{rank}d"
    unpool.__doc__ = "The largest elements of windows put where they were, by their indices; 0 elsewhere."
    return unpool


def _changes(values: Array, places: Array, shape: Any) -> Array:
    """A value of 0 that gives each value the gradient at its place, even if a later value overwrote it."""
    finite = ops.where(ops.isfinite(values), values, 0)
    return ops.add_along_axis(ops.subtract(finite, ops.stop_gradient(finite)), places, shape, len(shape) - 1)


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool, (1, 2, 3))


# Resizing ---------------------------------------------------------------------------------------------------------


@laid_as_images
def interpolate(
    input: Array,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """x f[N, C, ...] with other sizes of its last axes."""
    if mode == "area":
        sizes, _ = output_sizes(shape_of(input)[2:], size, scale_factor)
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[len(sizes) - 1](input, sizes)
    return ops.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


def upsample(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Array:
    """interpolate under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


Pairs = list[tuple[int, int]]


# Borders ----------------------------------------------------------------------------------------------------------


def pad(input: Array, pad: Any, mode: str = "constant", value: float | None = None) -> Array:
    """x with a border: (before, after) of the last axis, then of the one before it, and so on.

    A negative width removes elements. Raises ShapeError where nothing would be left.
    """
    if len(pad) % 2 or len(pad) > 2 * len(shape_of(input)):
        raise ShapeError(
            f"there are two widths for each of {len(shape_of(input))} axes or fewer, not {len(pad)}; add one"
        )
    if mode != "constant" and len(shape_of(input)) not in (len(pad) // 2 + 1, len(pad) // 2 + 2):
        raise ShapeError(
            f"{len(pad) // 2} axes go on beyond their ends, before them channels, and a batch; add an axis"
        )
    if not any(pad):
        return apart(input, input, order="K")
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    widths = [(0, 0)] * (len(shape_of(input)) - len(pairs)) + pairs[::-1]
    border = [(max(before, 0), max(after, 0)) for before, after in widths]
    cut = [(max(-before, 0), max(-after, 0)) for before, after in widths]
    if value is not None and value < 0 and dtype_of(input).kind == "u":
        raise DTypeError(f"a border of {value} in {dtype_of(input)}, which has no numbers below 0; use .int() first")
    fill = 0 if value is None else within(value, dtype_of(input))
    if mode == "circular":  # goes round what is left; the other modes see what will be taken away
        return like_images(apart(ops.pad(_cut(input, cut), border, fill, mode=mode), input), input)
    if mode == "constant" and not any(map(sum, border)):
        return laid_like(apart(_cut(input, cut), input), input)
    return like_images(apart(_cut(ops.pad(input, border, fill, mode=mode), cut), input), input)


def _cut(x: Array, widths: Pairs) -> Array:
    """x without `widths` elements at both ends of each axis."""
    if not any(before or after for before, after in widths):
        return x
    for size, (before, after) in zip(shape_of(x), widths, strict=True):
        if isinstance(size, int) and size < before + after:
            raise ShapeError(locate(f"pad: {before + after} elements of an axis of {size} cannot go; take away fewer"))
    return x[tuple(slice(before, -after if after else None) for before, after in widths)]


# Patches ----------------------------------------------------------------------------------------------------------


def unfold(input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """Each window as a column: f[N, C, H, W] -> f[N, C * elements of a window, windows]; N may be missing.

    Raises ShapeError.
    """
    if len(shape_of(input)) == 3:
        return ops.squeeze(unfold(ops.expand_dims(input, 0), kernel_size, dilation, padding, stride), 0)
    if len(shape_of(input)) != 4:
        raise ShapeError(locate(f"unfold: takes f[N, C, H, W] or f[C, H, W], not shape {shape_of(input)}"))
    window = _window(kernel_size, dilation, padding, stride)
    batch, channels, *sizes = shape_of(input)
    x = ops.pad(input, [(0, 0), (0, 0), *((before, after) for _, _, before, after, _ in window)])
    for axis, places in reversed(list(enumerate(_places(sizes, window)))):
        x = ops.take(x, places, axis=2 + axis)
    columns = ops.permute_dims(x, _TAPS_FIRST)
    taps = dims.product(shape_of(columns)[2:4])
    return ops.reshape(columns, (batch, channels * taps, dims.product(shape_of(columns)[4:])))


def fold(
    input: Array, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Array:
    """Columns added where `unfold` took them: f[N, C * elements of a window, windows] -> f[N, C, H, W].

    N may be missing. Raises ShapeError for columns that `unfold` does not make of such an output.
    """
    if len(shape_of(input)) == 2:
        return ops.squeeze(fold(ops.expand_dims(input, 0), output_size, kernel_size, dilation, padding, stride), 0)
    window = _window(kernel_size, dilation, padding, stride)
    sizes = per_axis(output_size, 2, "output_size", 1)
    taps, windows = [part[0] for part in window], counts(sizes, window)
    count, places = dims.product(taps), _places(sizes, window)
    shape = shape_of(input)
    if len(shape) != 3 or shape[1] % count or not dims.same(shape[2], dims.product(windows)):
        expected = f"f[N, C * {count}, {dims.product(windows)}]"
        raise ShapeError(locate(f"fold: takes {expected} for an output of {tuple(sizes)}, not shape {shape}"))
    channels = shape[1] // count
    x = ops.permute_dims(ops.reshape(input, (shape[0], channels, *taps, *windows)), _TAPS_FIRST)  # its own inverse
    borders = [(before, after) for _, _, before, after, _ in window]
    for axis, (size, (before, after)) in enumerate(zip(sizes, borders, strict=True)):
        at = 2 + axis
        summed = (*shape_of(x)[:at], size + before + after, *shape_of(x)[at + 2 :])
        x = ops.scatter_add(x, places[axis], summed, at)
    return _cut(x, [(0, 0), (0, 0), *borders])


_TAPS_FIRST = 0, 1, 2, 4, 3, 5  # [N, C, taps, windows, taps, windows] as [N, C, taps, taps, windows, windows]


def _window(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Window:
    return window_of(per_axis(kernel_size, 2, "kernel_size", 1), stride, padding, dilation)


def _places(sizes: Any, window: Window) -> list[Array]:
    """For each axis, which element of the padded input is at each tap of each window: i[taps, windows]."""
    return [
        ops.add(ops.expand_dims(ops.multiply(ops.arange(length), dilation), 1), ops.multiply(ops.arange(count), stride))
        for count, (length, stride, _, _, dilation) in zip(counts(sizes, window), window, strict=True)
    ]


# Channels ---------------------------------------------------------------------------------------------------------


def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """f[..., C * r * r, H, W] -> f[..., C, H * r, W * r] (Shi et al., 2016)."""
    *batch, channels, height, width = shape_of(input)
    r, count = upscale_factor, len(shape_of(input)) - 3
    parts = ops.reshape(input, (*batch, channels // (r * r), r, r, height, width))
    order = (*range(count), count, count + 3, count + 1, count + 4, count + 2)
    shuffled = ops.reshape(ops.permute_dims(parts, order), (*batch, channels // (r * r), height * r, width * r))
    return apart(shuffled, input)


def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """f[..., C, H * r, W * r] -> f[..., C * r * r, H, W]: what pixel_shuffle turns back. Raises ShapeError."""
    *batch, channels, height, width = shape_of(input)
    r, count = downscale_factor, len(shape_of(input)) - 3
    if r < 1 or any(not dims.same(size % r, 0) for size in (height, width)):
        raise ShapeError(locate(f"pixel_unshuffle: sizes {height} and {width} are no multiples of {r}; pad them"))
    parts = ops.reshape(input, (*batch, channels, height // r, r, width // r, r))
    order = (*range(count), count, count + 2, count + 4, count + 1, count + 3)
    shuffled = ops.reshape(ops.permute_dims(parts, order), (*batch, channels * r * r, height // r, width // r))
    return apart(shuffled, input)


@laid_as_images
def channel_shuffle(input: Array, groups: int) -> Array:
    """The channels of f[N, C, ...] dealt out: one of each group in turn (Zhang et al., 2018). Raises ShapeError."""
    batch, channels, *sizes = shape_of(input)
    if groups < 1 or not dims.same(channels % groups, 0):
        raise ShapeError(locate(f"channel_shuffle: {channels} channels do not divide into {groups} groups"))
    parts = ops.reshape(input, (batch, groups, channels // groups, *sizes))
    return apart(ops.reshape(ops.moveaxis(parts, 1, 2), (batch, channels, *sizes)), input)


native_channel_shuffle = channel_shuffle
