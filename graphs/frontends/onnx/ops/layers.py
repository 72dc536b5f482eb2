"""Layers of neural networks: convolutions, normalisations, dropout.

Then losses over classes: scores f[N, C, ...] and labels i[N, ...]; and recurrent layers, as scans over the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphs import dims, ops
from graphs.dims import Size
from graphs.errors import OptionError, ShapeError
from graphs.frontends.onnx.table import AutoPad, Count, Counts, Sizes, Texts, translates, whole
from graphs.ops.losses import reduce_losses
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.windows import Window

# Windows ------------------------------------------------------------------------------------------------------------


def window_of(
    sizes: Sizes, have: Sizes, strides: Counts | None, pads: Sizes | None, dilations: Counts | None, auto_pad: AutoPad
) -> Window:
    """The window of `sizes` over axes of sizes `have`.

    `pads` are the paddings before all axes, then those after. "SAME_UPPER" and "SAME_LOWER" compute the padding that
    gives as many windows as strides fit, with an odd element after or before.
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
    """The padding that gives ceil(size / stride) windows. Raises ShapeError for a symbolic size."""
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
    return _add_bias(ops.convolution(x, weight, window, group), bias)


def _lengths(weight: Any, kernel_shape: Sizes | None) -> Sizes:
    """The window sizes of a weight. Raises ShapeError where `kernel_shape` disagrees."""
    lengths = shape_of(weight)[2:]
    if kernel_shape is not None and not dims.same_shape(lengths, tuple(kernel_shape)):
        raise ShapeError(f"kernel_shape is {[*kernel_shape]}, and the weight has {[*lengths]}; make them equal")
    return lengths


def _add_bias(x: Any, bias: Any) -> Any:
    return x if bias is None else ops.add(x, per_channel(bias, x))


def per_channel(values: Any, x: Any) -> Any:
    """f[C] reshaped to broadcast along the channels of f[N, C, ...]."""
    return ops.reshape(values, (-1, *(1,) * (len(shape_of(x)) - 2)))


@translates("ConvTranspose")
def transposed_convolution(
    x: Any, weight: Any, bias: Any = None, *, auto_pad: AutoPad = "NOTSET", dilations: Counts | None = None,
    group: Count = 1, kernel_shape: Counts | None = None, output_padding: Sizes | None = None,
    output_shape: Sizes | None = None, pads: Sizes | None = None, strides: Counts | None = None,
) -> Any:  # fmt: skip
    """The adjoint of a convolution; the sizes of the result are `output_shape`, or follow from the padding."""
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
    # An output_padding is less padding at the end: no window begins there.
    window = tuple((k, s, b, a - more, d) for (k, s, b, a, d), more in zip(window, extra, strict=True))
    return _add_bias(ops.convolution_input(x, weight, tuple(wanted), window, group), bias)


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
    """Normalise over the axes from `axis` on; further outputs are the mean and the inverse spread."""
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
    """Divide x by a power of the mean square of neighbouring channels."""
    before = (size - 1) // 2
    window = ((size, 1, before, size - 1 - before, 1),)
    around = ops.moveaxis(ops.window_sum(ops.moveaxis(ops.square(x), 1, -1), window=window), -1, 1)
    return ops.divide(x, ops.pow(ops.add(ops.multiply(around, alpha / size), bias), beta))


@translates("Dropout")
def dropout(x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, outputs: int) -> Any:
    """Return x, or in training mode drop elements at random, by the seed or by 0."""
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


@translates("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    x: Any, labels: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    """Minus the log probability of each label, times the weight of its class; the mean divides by the weights."""
    counted = None if ignore_index is None else ops.not_equal(labels, ignore_index)
    places = labels if counted is None else ops.where(counted, labels, 0)
    picked = ops.squeeze(ops.take_along_axis(x, ops.expand_dims(places, 1), axis=1), 1)
    shares = ops.full_like(picked, 1) if weight is None else ops.take(weight, places)
    if counted is not None:
        shares = ops.where(counted, shares, np.zeros((), dtype_of(x)))
    return reduce_losses(ops.multiply(ops.negative(picked), shares), reduction, shares)


@translates("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    x: Any, labels: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean", outputs: int
) -> Any:
    """The negative log likelihood of log softmax(x); the logarithms are the second output."""
    logs = ops.log_softmax(x, axis=1)
    loss = negative_log_likelihood(logs, labels, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs)[:outputs]


Direction = Literal["forward", "reverse", "bidirectional"]
State = tuple[Any, ...]
Cell = Callable[
    ..., State
]  # (x, state, one direction's weights, functions) -> the next state, its first part the output

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Relu": ops.relu,
    "Sigmoid": ops.sigmoid,
    "Softplus": ops.softplus,
    "Tanh": ops.tanh,
}


def _recurrent(
    cell: Cell, x: Any, weights: list[Any], lengths: Any, states: list[Any], *, functions: list[str], direction: str,
    layout: int, width: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Outputs of all steps, [T, directions, N, H], and the last states; with `layout` 1 the batch axis is first."""
    for name in functions:
        if name not in FUNCTIONS:
            raise OptionError(f"the activation {name} is not here; use one of {', '.join(FUNCTIONS)}")
    if layout:
        x = ops.moveaxis(x, 0, 1)
    batch = shape_of(x)[1]
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    count = len(functions) // len(backwards)
    outputs, ends = [], []
    for number, reverse in enumerate(backwards):
        own = [None if weight is None else weight[number] for weight in weights]
        chosen = [FUNCTIONS[name] for name in functions[number * count : (number + 1) * count]]
        start = tuple(
            ops.full((batch, width), 0, dtype_of(x)) if s is None else s[:, number] if layout else s[number]
            for s in states
        )
        end, ys = _scan_direction(cell, x, lengths, start, own, chosen, reverse)
        outputs.append(ys)
        ends.append(end)
    axis = 1 if layout else 0
    last = [ops.stack(parts, axis=axis) for parts in zip(*ends, strict=True)]
    together = ops.stack(outputs, axis=1)
    return (ops.permute_dims(together, (2, 0, 1, 3)) if layout else together, *last)


def _scan_direction(
    cell: Cell, x: Any, lengths: Any, start: State, weights: list[Any], functions: list[Any], reverse: bool
) -> tuple[State, Any]:
    """Run one direction. Beyond the length of a sequence its state stays, and its output is 0."""

    def step(state: State, at: tuple[Any, Any]) -> tuple[State, Any]:
        here, time = at
        following = cell(here, state, weights, functions)
        if lengths is None:
            return following, following[0]
        inside = ops.expand_dims(ops.less(time, lengths), -1)
        kept = tuple(ops.where(inside, new, old) for new, old in zip(following, state, strict=True))
        return kept, ops.where(inside, following[0], 0)

    return ops.scan(step, start, (x, ops.arange(shape_of(x)[0])), reverse=reverse)


def _gates(count: int, x: Any, hidden: Any, w: Any, r: Any, b: Any) -> list[Any]:
    """The sums before the activations of gates: x and the hidden state times their weights, plus the biases."""
    width = shape_of(r)[-1]
    product = ops.add(ops.matmul(x, ops.matrix_transpose(w)), ops.matmul(hidden, ops.matrix_transpose(r)))
    if b is not None:
        product = ops.add(product, ops.add(b[: count * width], b[count * width :]))
    return [product[:, gate * width : (gate + 1) * width] for gate in range(count)]


def _simple(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
    (gate,) = _gates(1, x, state[0], *weights)
    return (functions[0](gate),)


def _lstm(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
    *plain, peepholes = weights
    hidden, cell = state
    i, o, f, c = _gates(4, x, hidden, *plain)
    squash, inner, outer = functions
    width = shape_of(hidden)[-1]
    if peepholes is not None:
        i = ops.add(i, ops.multiply(peepholes[:width], cell))
        f = ops.add(f, ops.multiply(peepholes[2 * width :], cell))
    following = ops.add(ops.multiply(squash(f), cell), ops.multiply(squash(i), inner(c)))
    if peepholes is not None:
        o = ops.add(o, ops.multiply(peepholes[width : 2 * width], following))
    return ops.multiply(squash(o), outer(following)), following


def _gru(reset_late: bool) -> Cell:
    """Make a GRU cell; with `reset_late` the reset gate multiplies the hidden state's product, not the state."""

    def cell(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
        (hidden,), (w, r, b), (squash, inner) = state, weights, functions
        width = shape_of(r)[-1]
        bias = np.zeros(6 * int(width), dtype_of(r)) if b is None else b
        wx = ops.add(ops.matmul(x, ops.matrix_transpose(w)), bias[: 3 * width])
        rh = ops.add(ops.matmul(hidden, ops.matrix_transpose(r[: 2 * width])), bias[3 * width : 5 * width])
        update = squash(ops.add(wx[:, :width], rh[:, :width]))
        reset = squash(ops.add(wx[:, width : 2 * width], rh[:, width:]))
        recurrent, late = ops.matrix_transpose(r[2 * width :]), bias[5 * width :]
        if reset_late:
            inside = ops.multiply(reset, ops.add(ops.matmul(hidden, recurrent), late))
        else:
            inside = ops.add(ops.matmul(ops.multiply(reset, hidden), recurrent), late)
        fresh = inner(ops.add(wx[:, 2 * width :], inside))
        return (ops.add(ops.multiply(ops.subtract(1, update), fresh), ops.multiply(update, hidden)),)

    return cell


def _directions(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


@translates("RNN")
def simple(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, *, hidden_size: Count,
    direction: Direction = "forward", layout: int = 0, activations: Texts | None = None,
) -> Any:  # fmt: skip
    names = activations or ["Tanh"] * _directions(direction)
    return _recurrent(
        _simple, x, [w, r, b], lengths, [hidden], functions=names, direction=direction, layout=layout,
        width=hidden_size,
    )  # fmt: skip


@translates("LSTM")
def lstm(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, cell: Any = None,
    peepholes: Any = None, *, hidden_size: Count, direction: Direction = "forward", layout: int = 0,
    activations: Texts | None = None,
) -> Any:  # fmt: skip
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * _directions(direction)
    return _recurrent(
        _lstm, x, [w, r, b, peepholes], lengths, [hidden, cell], functions=names, direction=direction, layout=layout,
        width=hidden_size,
    )  # fmt: skip


@translates("GRU")
def gru(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, *, hidden_size: Count,
    direction: Direction = "forward", layout: int = 0, activations: Texts | None = None,
    linear_before_reset: bool = False,
) -> Any:  # fmt: skip
    names = activations or ["Sigmoid", "Tanh"] * _directions(direction)
    return _recurrent(
        _gru(linear_before_reset), x, [w, r, b], lengths, [hidden], functions=names, direction=direction,
        layout=layout, width=hidden_size,
    )  # fmt: skip
