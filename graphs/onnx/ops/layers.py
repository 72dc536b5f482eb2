"""Layers of neural networks: convolutions, normalisations, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.dims import Size
from graphs.errors import OptionError, ShapeError
from graphs.onnx.sizes import Sizes, whole
from graphs.onnx.table import AutoPad, Count, Counts, translates
from graphs.ops.shapes import shape_of
from graphs.ops.windows import Window

# Windows ------------------------------------------------------------------------------------------------------------


def window_of(
    sizes: Sizes, have: Sizes, strides: Counts | None, pads: Sizes | None, dilations: Counts | None, auto_pad: AutoPad
) -> Window:
    """The window of these sizes over axes of the sizes that they have.

    `pads` is what lies before each axis, then what lies after; with "SAME_UPPER" or "SAME_LOWER" it is what makes as
    many windows as strides fit, the odd one after or before.
    """
    rank = len(sizes)
    ones = [1] * rank
    before, after = whole((pads or [0] * 2 * rank)[:rank]), whole((pads or [0] * 2 * rank)[rank:])
    parts = list(zip(sizes, strides or ones, dilations or ones, strict=True))
    if auto_pad.startswith("SAME"):
        totals = [_same(size, *part) for size, part in zip(have, parts, strict=True)]
        larger, smaller = tuple(-(-total // 2) for total in totals), tuple(total // 2 for total in totals)
        before, after = (smaller, larger) if auto_pad == "SAME_UPPER" else (larger, smaller)
    return tuple((k, s, b, a, d) for (k, s, d), b, a in zip(parts, before, after, strict=True))  # type: ignore[misc]


def _same(size: Size, length: Size, stride: Size, dilation: Size) -> int:
    """How much padding makes ceil(size / stride) windows."""
    reach = (length - 1) * dilation + 1
    if stride == 1:
        return int(reach) - 1
    if not isinstance(size, int):
        raise ShapeError(f"auto_pad over a size of {size} with a stride of {stride} is not known; give pads")
    return int(max(0, (-(-size // stride) - 1) * stride + reach - size))


@translates("Conv")
def convolution(
    x: Any, weight: Any, bias: Any = None, *, auto_pad: AutoPad = "NOTSET", dilations: Counts | None = None,
    group: Count = 1, kernel_shape: Counts | None = None, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    lengths = _lengths(weight, kernel_shape)
    window = window_of(lengths, shape_of(x)[2:], strides, pads, dilations, auto_pad)
    return _biased(ops.convolution(x, weight, window, group), bias)


def _lengths(weight: Any, kernel_shape: Sizes | None) -> Sizes:
    """The sizes of the windows of a weight, which `kernel_shape` may say again."""
    lengths = shape_of(weight)[2:]
    if kernel_shape is not None and not dims.same_shape(lengths, tuple(kernel_shape)):
        raise ShapeError(f"kernel_shape is {[*kernel_shape]}, and the weight has {[*lengths]}; make them equal")
    return lengths


def _biased(x: Any, bias: Any) -> Any:
    return x if bias is None else ops.add(x, per_channel(bias, x))


def per_channel(values: Any, x: Any) -> Any:
    """f[C] as it broadcasts along the channels of f[N, C, ...]."""
    return ops.reshape(values, (-1, *(1,) * (len(shape_of(x)) - 2)))


@translates("ConvTranspose")
def transposed_convolution(
    x: Any, weight: Any, bias: Any = None, *, auto_pad: AutoPad = "NOTSET", dilations: Counts | None = None,
    group: Count = 1, kernel_shape: Counts | None = None, output_padding: Sizes | None = None,
    output_shape: Sizes | None = None, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    """The adjoint of a convolution; the sizes of the result are given, or follow from the padding."""
    have, lengths = shape_of(x)[2:], _lengths(weight, kernel_shape)
    rank = len(have)
    ones = [1] * rank
    steps, gaps, extra = strides or ones, dilations or ones, output_padding or [0] * rank
    spread = [
        (size - 1) * s + d * (k - 1) + 1 + more
        for size, s, d, k, more in zip(have, steps, gaps, lengths, extra, strict=True)
    ]
    if auto_pad.startswith("SAME"):
        output_shape = output_shape or [size * s for size, s in zip(have, steps, strict=True)]
    if output_shape:
        totals = [_whole(full - want) for full, want in zip(spread, output_shape[-rank:], strict=True)]
        small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
        pads = [*small, *large] if auto_pad == "SAME_UPPER" else [*large, *small]
        output_shape = output_shape[-rank:]
    before, after = (pads or [0] * 2 * rank)[:rank], (pads or [0] * 2 * rank)[rank:]
    wanted = output_shape or [full - b - a for full, b, a in zip(spread, before, after, strict=True)]
    window: Any = tuple(zip(lengths, steps, before, after, gaps, strict=True))
    # What output_padding adds behind is as much less padding there: no window begins in it.
    window = tuple((k, s, b, a - more, d) for (k, s, b, a, d), more in zip(window, extra, strict=True))
    return _biased(ops.convolution_input(x, weight, tuple(wanted), window, group), bias)


def _whole(size: Size) -> int:
    return size.__index__()


# Normalisation ------------------------------------------------------------------------------------------------------


@translates("BatchNormalization")
def batch_normalization(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: bool = False, outputs: int,
) -> Any:  # fmt: skip
    if not training_mode:
        return ops.batch_norm(x, scale, shift, mean, variance, epsilon)
    own = ops.batch_statistics(x)
    running = [
        ops.add(ops.multiply(old, momentum), ops.multiply(new, 1 - momentum))
        for old, new in zip((mean, variance), own, strict=True)
    ]
    return (ops.batch_norm(x, scale, shift, eps=epsilon), *running)[:outputs]


@translates("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, shift: Any, *, epsilon: float = 1e-5) -> Any:
    return ops.instance_norm(x, scale, shift, eps=epsilon)


@translates("GroupNormalization", since=21)
def group_normalization(
    x: Any, scale: Any, shift: Any, *, num_groups: Count, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    return ops.group_norm(x, num_groups, scale, shift, eps=epsilon)


@translates("LayerNormalization")
def layer_normalization(
    x: Any, scale: Any, shift: Any = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, outputs: int
) -> Any:
    """Over the axes from `axis` on; also the mean, and the inverse of the spread."""
    ndim = len(shape_of(x))
    over = tuple(range(axis % ndim, ndim))
    mean = ops.mean(x, axis=over, keepdims=True)
    centred = ops.subtract(x, mean)
    inverse = _inverse_spread(centred, over, epsilon)
    scaled = ops.multiply(ops.multiply(centred, inverse), scale)
    return (scaled if shift is None else ops.add(scaled, shift), mean, inverse)[:outputs]


def _inverse_spread(x: Any, over: tuple[int, ...], epsilon: float) -> Any:
    return ops.divide(1, ops.sqrt(ops.add(ops.mean(ops.square(x), axis=over, keepdims=True), epsilon)))


@translates("RMSNormalization")
def root_mean_square_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    ndim = len(shape_of(x))
    return ops.multiply(ops.multiply(x, _inverse_spread(x, tuple(range(axis % ndim, ndim)), epsilon)), scale)


@translates("LRN")
def local_response(x: Any, *, size: Count, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """x divided by a power of the mean square of the channels around."""
    before = (size - 1) // 2
    window = ((size, 1, before, size - 1 - before, 1),)
    around = ops.moveaxis(ops.window_sum(ops.moveaxis(ops.square(x), 1, -1), window=window), -1, 1)
    return ops.divide(x, ops.pow(ops.add(ops.multiply(around, alpha / size), bias), beta))


@translates("Dropout")
def dropout(x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, outputs: int) -> Any:
    """Unchanged, unless in training: then by the seed, 0 where the model has none."""
    rate = 0.5 if ratio is None else float(np.asarray(ratio).item())
    if not 0 <= rate < 1:
        raise OptionError(f"the ratio is {rate}; give one from 0 to less than 1")
    if training_mode is None or not np.asarray(training_mode).item() or rate == 0:
        return (x, ops.full(shape_of(x), True, np.bool_))[:outputs]
    kept = ops.bernoulli(ops.random_key(seed or 0), 1 - rate, shape_of(x))
    return (ops.where(kept, ops.divide(x, 1 - rate), 0), kept)[:outputs]


@translates("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: Sizes | None = None) -> Any:
    over: Any = tuple([0, 2, 3] if axes is None else axes)
    spread = ops.std(x, axis=over, keepdims=True)
    return ops.divide(ops.subtract(x, ops.mean(x, axis=over, keepdims=True)), ops.add(spread, 1e-9))
