"""Convolution (as in neural networks: the kernel is not flipped) over any number of axes, channels first.

One trilinear form, the sum over `conv(x, weight) * g`, has three adjoints: `convolution` is linear in x and weight,
`convolution_input` carries g back to x, and `convolution_weight` carries g back to the weight. Each one's gradients
are the other two, so that they differentiate to any order.

    x         [batch, channels, *sizes]
    weight    [features, channels / groups, *window sizes]
    g         [batch, features, *counts]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops import convolution_kernels as kernels
from graphs.ops.elementwise import add
from graphs.ops.families import check_specs, composite
from graphs.ops.movement import expand_dims, reshape, squeeze
from graphs.ops.shapes import as_operand, check_groups, new_shape, shape_of
from graphs.ops.windows import Padding, PerAxis, Window, check_window, counts, per_axis, window_of
from graphs.spec import TensorSpec

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "convolution_input", "convolution_weight",
]  # fmt: skip


# Specs ------------------------------------------------------------------------------------------------------------


def _result_dtype(x: TensorSpec, y: TensorSpec) -> np.dtype[Any]:
    return np.result_type(x.dtype, y.dtype)


def _check_same(what: str, got: Size, expected: Size) -> None:
    if not dims.same(got, expected):
        raise ShapeError(f"{what} {got}, expected {expected}; check the axes: batch, channels, sizes")


def _check_axes(window: Window, *operands: TensorSpec) -> None:
    if any(x.ndim != len(window) + 2 for x in operands):
        raise ShapeError(f"{len(window)} sizes to convolve take {len(window) + 2} axes: batch, channels, sizes")


def _check_taps(window: Window, weight: TensorSpec) -> None:
    for got, (length, *_) in zip(weight.shape[2:], window, strict=True):
        _check_same("weights along an axis of the window", got, length)


def _infer(x: TensorSpec, weight: TensorSpec, *, window: Window, groups: int) -> TensorSpec:
    _check_axes(window, x, weight)
    check_groups(x.shape[1], groups)
    check_groups(weight.shape[0], groups)
    _check_same("the weight is for channels", weight.shape[1] * groups, x.shape[1])
    _check_taps(window, weight)
    return TensorSpec((x.shape[0], weight.shape[0], *counts(x.shape[2:], window)), _result_dtype(x, weight))


def _infer_input(g: TensorSpec, weight: TensorSpec, *, sizes: Shape, window: Window, groups: int) -> TensorSpec:
    _check_axes(window, g, weight)
    check_groups(weight.shape[0], groups)
    _check_same("the weight has features", weight.shape[0], g.shape[1])
    _check_taps(window, weight)
    for got, expected in zip(g.shape[2:], counts(sizes, window), strict=True):
        _check_same("windows along an axis", got, expected)
    return TensorSpec((g.shape[0], weight.shape[1] * groups, *sizes), _result_dtype(g, weight))


def _infer_weight(x: TensorSpec, g: TensorSpec, *, window: Window, groups: int) -> TensorSpec:
    _check_axes(window, x, g)
    check_groups(x.shape[1], groups)
    check_groups(g.shape[1], groups)
    _check_same("examples in the batch", g.shape[0], x.shape[0])
    for got, expected in zip(g.shape[2:], counts(x.shape[2:], window), strict=True):
        _check_same("windows along an axis", got, expected)
    return TensorSpec((g.shape[1], x.shape[1] // groups, *(part[0] for part in window)), _result_dtype(x, g))


# Each of the three ops multiplies and adds once for each result of the convolution, channel of its group, and tap.


def _cost(x: TensorSpec, weight: TensorSpec, *, out: TensorSpec, **_: Any) -> Size:
    return out.size * dims.product(weight.shape[1:]) * 2


def _cost_input(g: TensorSpec, weight: TensorSpec, *, out: TensorSpec, **_: Any) -> Size:
    return g.size * dims.product(weight.shape[1:]) * 2


def _cost_weight(x: TensorSpec, g: TensorSpec, *, out: TensorSpec, **_: Any) -> Size:
    return g.size * dims.product(out.shape[1:]) * 2


# Ops --------------------------------------------------------------------------------------------------------------


def _prepare(x: Array, y: Array, /, window: Window, groups: int = 1) -> Prepared:
    return (as_operand(x), as_operand(y)), {"window": check_window(window), "groups": groups}


def _prepare_input(g: Array, weight: Array, /, sizes: Shape, window: Window, groups: int = 1) -> Prepared:
    return (as_operand(g), as_operand(weight)), {
        "sizes": new_shape(sizes), "window": check_window(window), "groups": groups
    }  # fmt: skip


convolution: Op = Op(
    "convolution",
    kernels.convolution,
    _infer,
    rules=(
        lambda g, x_shape, y, window, groups: convolution_input(g, y, x_shape[2:], window, groups),
        lambda g, x, window, groups: convolution_weight(x, g, window, groups),
    ),
    prepare=check_specs(_prepare, _infer),
    cost=_cost,
    family="linalg",
)
convolution_input: Op = Op(
    "convolution_input",
    kernels.convolution_input,
    _infer_input,
    rules=(
        lambda g, y, window, groups: convolution(g, y, window, groups),
        lambda g, x, window, groups: convolution_weight(g, x, window, groups),
    ),
    prepare=check_specs(_prepare_input, _infer_input),
    cost=_cost_input,
    family="linalg",
)
convolution_weight: Op = Op(
    "convolution_weight",
    kernels.convolution_weight,
    _infer_weight,
    rules=(
        lambda g, x_shape, y, window, groups: convolution_input(y, g, x_shape[2:], window, groups),
        lambda g, x, window, groups: convolution(x, g, window, groups),
    ),
    prepare=check_specs(_prepare, _infer_weight),
    cost=_cost_weight,
    family="linalg",
)

# PyTorch's functions ----------------------------------------------------------------------------------------------


@composite
def conv1d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """x f[N, C, L] with weight f[F, C / groups, K] (and bias f[F]) -> f[N, F, M]; the batch axis may be missing.

    `padding` is a number, ((before, after),), "same" or "valid". Raises ShapeError.
    """
    return _conv(1, x, weight, bias, window_of(_window_sizes(1, weight), stride, padding, dilation), groups)


@composite
def conv2d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """x f[N, C, H, W] with weight f[F, C / groups, K, L] (and bias f[F]) -> f[N, F, P, Q]; N may be missing.

    `stride`, `padding` and `dilation` are a number or one per axis; `padding` may also be ((before, after), ...),
    "same" or "valid". Raises ShapeError.
    """
    return _conv(2, x, weight, bias, window_of(_window_sizes(2, weight), stride, padding, dilation), groups)


@composite
def conv3d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """Convolution over three axes: x f[N, C, D, H, W] with weight f[F, C / groups, J, K, L]. Raises ShapeError."""
    return _conv(3, x, weight, bias, window_of(_window_sizes(3, weight), stride, padding, dilation), groups)


def _window_sizes(rank: int, weight: Array) -> list[int]:
    shape = shape_of(weight)
    if len(shape) != rank + 2:
        raise ShapeError(f"the weight has {rank + 2} axes (features, channels / groups, sizes), not {len(shape)}")
    sizes = [size for size in shape[2:] if isinstance(size, int)]
    if len(sizes) != rank:
        raise ShapeError(f"the weight's own sizes are numbers, not {shape[2:]}; only the input's may be symbolic")
    return sizes


def _conv(rank: int, x: Array, weight: Array, bias: Array, window: Window, groups: int) -> Array:
    return _with_batch(rank, x, bias, lambda batched: convolution(batched, weight, window, groups))


def _with_batch(rank: int, x: Array, bias: Array, call: Callable[[Array], Array]) -> Array:
    """Call a function on x with a batch axis, which is removed from the result if x has none; then add the bias."""
    ndim = len(shape_of(x))
    if ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"takes {rank + 2} axes (batch, channels, sizes), or {rank + 1} without the batch, not {ndim}")
    result = call(x if ndim == rank + 2 else expand_dims(x, 0))
    if bias is not None:
        result = add(result, reshape(bias, (-1, *(1,) * rank)))
    return result if ndim == rank + 2 else squeeze(result, 0)


@composite
def conv_transpose1d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: PerAxis = 0,
    output_padding: PerAxis = 0, groups: int = 1, dilation: PerAxis = 1,
) -> Array:  # fmt: skip
    """x f[N, C, L] with weight f[C, F / groups, K] (and bias f[F]) -> f[N, F, M]: the adjoint of `conv1d`.

    M is (L - 1) * stride - 2 * padding + dilation * (K - 1) + 1 + output_padding; the batch axis may be missing.
    Raises ShapeError.
    """
    return _transpose_convolution(1, x, weight, bias, (stride, padding, dilation), output_padding, groups)


@composite
def conv_transpose2d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: PerAxis = 0,
    output_padding: PerAxis = 0, groups: int = 1, dilation: PerAxis = 1,
) -> Array:  # fmt: skip
    """x f[N, C, H, W] with weight f[C, F / groups, K, L] (and bias f[F]) -> f[N, F, P, Q]: the adjoint of `conv2d`.

    Sizes as in `conv_transpose1d`. Each option is a number or one per axis. Raises ShapeError.
    """
    return _transpose_convolution(2, x, weight, bias, (stride, padding, dilation), output_padding, groups)


@composite
def conv_transpose3d(
    x: Array, weight: Array, bias: Array = None, stride: PerAxis = 1, padding: PerAxis = 0,
    output_padding: PerAxis = 0, groups: int = 1, dilation: PerAxis = 1,
) -> Array:  # fmt: skip
    """The adjoint of `conv3d`: x f[N, C, D, H, W] with weight f[C, F / groups, J, K, L]. Raises ShapeError."""
    return _transpose_convolution(3, x, weight, bias, (stride, padding, dilation), output_padding, groups)


def _transpose_convolution(
    rank: int, x: Array, weight: Array, bias: Array, options: tuple[Any, Any, Any], output_padding: PerAxis, groups: int
) -> Array:
    stride, padding, dilation = options
    if isinstance(padding, str):
        raise ShapeError(f"padding is a number, or one for each axis, not {padding!r}; conv knows names")
    window = _ending_later(window_of(_window_sizes(rank, weight), stride, padding, dilation), output_padding)

    def call(batched: Array) -> Array:
        _check_same("the weight is for channels", shape_of(weight)[0], shape_of(batched)[1])
        spread = tuple(_spread(size, part) for size, part in zip(shape_of(batched)[2:], window, strict=True))
        return convolution_input(batched, weight, spread, window, groups)

    return _with_batch(rank, x, bias, call)


def _ending_later(window: Window, output_padding: PerAxis) -> Window:
    """The window with less padding after the elements, by `output_padding`, so that the result is that much longer."""
    extra = per_axis(output_padding, len(window), "output_padding", 0)
    for more, (_, stride, _, _, dilation) in zip(extra, window, strict=True):
        if more >= max(stride, dilation):
            raise ShapeError(f"an output_padding of {more} is less than the stride or the dilation; pad the result")
    return tuple((k, s, b, a - more, d) for more, (k, s, b, a, d) in zip(extra, window, strict=True))


def _spread(count: Size, part: tuple[int, int, int, int, int]) -> Size:
    """The smallest size of an axis on which `count` windows fit. Raises ShapeError where it is below 1."""
    length, stride, before, after, dilation = part
    size = (count - 1) * stride + dilation * (length - 1) + 1 - before - after
    if isinstance(size, int) and size < 1:
        raise ShapeError(f"a padding of {before} leaves {size} elements of an axis; use less")
    return size
