"""Convolution, pooling and resizing with PyTorch's names and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic.nn.functional.common import Array, refuse
from graphs import ops
from graphs.ops.shapes import shape_of

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d",
    "avg_pool2d", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "interpolate", "max_pool1d", "max_pool2d",
    "upsample",
]  # fmt: skip


def _named(op: Callable[..., Array], function: Callable[..., Array]) -> Callable[..., Array]:
    """The function under the name and with the docstring of its op."""
    function.__name__ = op.__name__
    function.__doc__ = op.__doc__
    return function


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
        return op(input, weight, bias, _plain(stride), _plain(padding), _plain(dilation), groups)

    return _named(op, convolution)


def _plain(value: Any) -> Any:
    """One number where a tuple has one alone."""
    return value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value


conv1d = _convolution(ops.conv1d)
conv2d = _convolution(ops.conv2d)


def _transposed(op: Callable[..., Array]) -> Callable[..., Array]:
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
        sizes = [_plain(value) for value in (stride, padding, output_padding)]
        return op(input, weight, bias, *sizes, groups, _plain(dilation))

    return _named(op, convolution)


conv_transpose1d = _transposed(ops.conv_transpose1d)
conv_transpose2d = _transposed(ops.conv_transpose2d)


# Pooling ----------------------------------------------------------------------------------------------------------


def _largest(op: Callable[..., Array]) -> Callable[..., Array]:
    def pool(
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Array:
        refuse(op.__name__, "find them by argmax", return_indices=(return_indices, False))
        sizes = [_plain(value) for value in (kernel_size, stride, padding, dilation)]
        return _batched(op, input, *sizes, ceil_mode)

    return _named(op, pool)


def _batched(op: Callable[..., Array], x: Array, *args: Any) -> Array:
    """The op of f[N, C, ...], where the batch axis may be missing."""
    if len(shape_of(x)) > (2 if op in (ops.max_pool1d, ops.avg_pool1d) else 3):
        return op(x, *args)
    return ops.squeeze(op(ops.expand_dims(x, 0), *args), 0)


max_pool1d = _largest(ops.max_pool1d)
max_pool2d = _largest(ops.max_pool2d)


def avg_pool1d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window of f[N, C, L], or f[C, L]."""
    sizes = [_plain(value) for value in (kernel_size, stride, padding)]
    return _batched(ops.avg_pool1d, input, *sizes, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of f[N, C, H, W], or f[C, H, W]."""
    refuse("avg_pool2d", "multiply the result", divisor_override=(divisor_override, None))
    sizes = [_plain(value) for value in (kernel_size, stride, padding)]
    return _batched(ops.avg_pool2d, input, *sizes, ceil_mode, count_include_pad)


def _adaptive(x: Array, output_size: Any, axes: tuple[int, ...], reduce: Callable[..., Array]) -> Array:
    """Each axis in as many windows as asked for, which overlap where the size is no multiple."""
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * len(axes)
    for axis, count in reversed(list(zip(axes, wanted, strict=True))):  # so that the first of equals is PyTorch's
        size = shape_of(x)[axis]
        if count is None or count == size:
            continue
        parts = []
        for i in range(count):
            first, end = i * size // count, -(-(i + 1) * size // count)
            part = x[(..., slice(first, end), *(slice(None),) * (-1 - axis))]
            parts.append(reduce(part, axis=axis, keepdims=True))
        x = parts[0] if count == 1 else ops.concat(parts, axis=axis)
    return x


def adaptive_avg_pool1d(input: Array, output_size: Any) -> Array:
    """The means of `output_size` windows along the last axis."""
    return _adaptive(input, output_size, (-1,), ops.mean)


def adaptive_avg_pool2d(input: Array, output_size: Any) -> Array:
    """The means of `output_size` windows along the last two axes."""
    return _adaptive(input, output_size, (-2, -1), ops.mean)


def _first_max(x: Array, axis: int, keepdims: bool) -> Array:
    """The largest along an axis, of which the first alone has a gradient."""
    place = ops.argmax(x, axis=axis, keepdims=keepdims)
    return ops.take_along_axis(x, place, axis=axis)


def adaptive_max_pool1d(input: Array, output_size: Any, return_indices: bool = False) -> Array:
    """The largest of `output_size` windows along the last axis."""
    refuse("adaptive_max_pool1d", "find them by argmax", return_indices=(return_indices, False))
    return _adaptive(input, output_size, (-1,), _first_max)


def adaptive_max_pool2d(input: Array, output_size: Any, return_indices: bool = False) -> Array:
    """The largest of `output_size` windows along the last two axes."""
    refuse("adaptive_max_pool2d", "find them by argmax", return_indices=(return_indices, False))
    return _adaptive(input, output_size, (-2, -1), _first_max)


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
    refuse("interpolate", "leave it out", antialias=(antialias, False))
    return ops.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def upsample(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Array:
    """interpolate under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)
