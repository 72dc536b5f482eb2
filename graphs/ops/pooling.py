"""Pooling over windows of the last axes, with PyTorch's rules for padding and ties.

`window_max` keeps the largest element of each window. Its gradient goes to the *first* of equal elements, as in
PyTorch, or to the last NaN if there is one. `window_argmax` gives the tap of the maximum, `window_place` puts a value
at a tap and `window_pick` reads it: the last two are each other's gradient. So are `window_sum` and `window_spread`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.op import Array, Infer, Kernel, Op, Prepared, Vjp
from graphs.ops.creation import arange, ones
from graphs.ops.elementwise import add, divide, floor_divide, multiply, remainder, subtract
from graphs.ops.families import check_specs, composite
from graphs.ops.movement import astype, in_single, reshape
from graphs.ops.shapes import as_operand, dtype_of, fill, lowest, new_shape, shape_of
from graphs.ops.windows import (
    Padding,
    PerAxis,
    Taps,
    Window,
    check_window,
    counts,
    is_tiled,
    is_whole,
    taps,
    window_of,
)
from graphs.spec import TensorSpec

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "window_argmax",
    "window_max", "window_pick", "window_place", "window_spread", "window_sum",
]  # fmt: skip


def _sizes(array: Array, window: Window) -> tuple[int, ...]:
    return tuple(array.shape[array.ndim - len(window) :])


def _windowed_shape(shape: Shape, window: Window) -> Shape:
    rank = len(window)
    if len(shape) < rank:
        raise ShapeError(f"windows over {rank} axes need as many, got {len(shape)}; add one with expand_dims")
    return (*shape[: len(shape) - rank], *counts(shape[len(shape) - rank :], window))


# Kernels ----------------------------------------------------------------------------------------------------------


def _start_result(x: Array, window: Window, value: Any, out: Array) -> tuple[Array, Taps]:
    """A result that holds the elements at the first tap, or `value` where a window lacks it; and the remaining taps."""
    shape, each = _windowed_shape(x.shape, window), taps(_sizes(x, window), window)
    (_, there, here), *others = each
    if not is_whole(there, shape):
        return fill(shape, x.dtype, value, out), each
    out = np.empty(shape, x.dtype) if out is None else out
    out[...] = x[here]
    return out, others


def _window_sum(x: Array, *, window: Window, out: Array = None) -> Array:
    """The sum of each window over the last axes: [..., *sizes] -> [..., *counts]."""
    out, others = _start_result(x, window, 0, out)
    for _, there, here in others:
        out[there] += x[here]
    return out


def _window_spread(g: Array, *, sizes: tuple[int, ...], window: Window, out: Array = None) -> Array:
    """Each value added to every element of its window: the adjoint of window_sum."""
    out, add_to = _gathering(g, sizes, window, out)
    for _, there, here in taps(sizes, window):
        add_to(out[here], g[there])
    return out


def _gathering(
    g: Array, sizes: tuple[int, ...], window: Window, out: Array
) -> tuple[Array, Callable[[Array, Array], Any]]:
    """The result array, and the function that adds window values to its elements: a copy if windows are disjoint."""
    shape = (*g.shape[: g.ndim - len(sizes)], *sizes)
    if is_tiled(sizes, window):
        return np.empty(shape, g.dtype) if out is None else out, np.copyto
    return fill(shape, g.dtype, 0, out), _add_to


def _add_to(target: Array, values: Array) -> None:
    target += values


def _window_max(x: Array, *, window: Window, out: Array = None) -> Array:
    """The largest element of each window: [..., *sizes] -> [..., *counts]; the first of a tie gets the gradient."""
    out, others = _start_result(x, window, lowest(x.dtype), out)
    for _, there, here in others:
        target = out[there]
        np.maximum(target, x[here], out=target)
    return out


def _tap_dtype(window: Window) -> np.dtype[Any]:
    return np.min_scalar_type(math.prod(part[0] for part in window))


def _window_argmax(x: Array, peak: Array, *, window: Window, out: Array = None) -> Array:
    """The first tap of each window of x that equals its maximum, or the last NaN; the largest int for padding alone."""
    kind = _tap_dtype(window)
    each = taps(_sizes(x, window), window)
    last, there, _ = each[-1]
    is_left = is_whole(there, peak.shape)  # the maximum is at the last tap, then, where it is at none before
    out = fill(peak.shape, kind, last if is_left else np.iinfo(kind).max, out)
    for number, there, _ in [] if is_left else each:
        out[there] = number
    for number, there, here in each[:-1] if is_left else each:
        # The tap's number where it is the maximum and the largest number elsewhere: bits are faster than a mask.
        candidate = np.negative((x[here] != peak[there]).astype(kind)) | kind.type(number)
        np.minimum(out[there], candidate, out=out[there])
    if np.isnan(peak).any():
        for number, there, here in each:
            np.copyto(out[there], number, where=np.isnan(x[here]))
    return out


def _select_tap(values: Array, tap: Array, number: int) -> Array:
    """The values where the tap `number` was chosen, else zero; on bits, since infinity times zero is NaN."""
    bits = values.view(f"u{values.itemsize}")
    return np.multiply(bits, tap == number, dtype=bits.dtype).view(values.dtype)


def _window_place(g: Array, tap: Array, *, sizes: tuple[int, ...], window: Window, out: Array = None) -> Array:
    """Each value of g added at the chosen tap of its window: the adjoint of window_pick."""
    out, add_to = _gathering(g, sizes, window, out)
    for number, there, here in taps(sizes, window):
        add_to(out[here], _select_tap(g[there], tap[there], number))
    return out


def _window_pick(x: Array, tap: Array, *, window: Window, out: Array = None) -> Array:
    """The element of each window of x at its chosen tap."""
    out = fill(tap.shape, x.dtype, 0, out)
    for number, there, here in taps(_sizes(x, window), window):
        out[there] += _select_tap(x[here], tap[there], number)
    return out


# Ops --------------------------------------------------------------------------------------------------------------


def _to_windows(name: str, kernel: Kernel, infer: Infer, *rules: Vjp, copies: bool = False) -> Op:
    """Make an op from elements to windows; its cost is one operation for each tap of each window."""

    def prepare(x: Array, /, *others: Array, window: Window) -> Prepared:
        return tuple(map(as_operand, (x, *others))), {"window": check_window(window)}

    def cost(*_: TensorSpec, out: TensorSpec, window: Window) -> Size:
        return out.size * math.prod(part[0] for part in window)

    return Op(
        name,
        kernel,
        infer,
        rules=rules,
        prepare=check_specs(prepare, infer),
        cost=cost,
        family="window",
        zero_safe=True,
        copies=copies,
    )


def _to_elements(name: str, kernel: Kernel, *rules: Vjp) -> Op:
    """Make an op from windows to elements: the adjoint of an op from elements to windows."""

    def prepare(g: Array, /, *others: Array, sizes: Shape, window: Window) -> Prepared:
        return tuple(map(as_operand, (g, *others))), {"sizes": new_shape(sizes), "window": check_window(window)}

    def infer(g: TensorSpec, *taps: TensorSpec, sizes: Shape, window: Window) -> TensorSpec:
        result = TensorSpec((*g.shape[: max(g.ndim - len(window), 0)], *sizes), g.dtype)
        windows = _infer(result, window=window)
        for operand, dtype in [(g, g.dtype), *((tap, _tap_dtype(window)) for tap in taps)]:
            _check_of_windows(operand, windows.shape, dtype)
        return result

    def cost(g: TensorSpec, *_: TensorSpec, out: TensorSpec, sizes: Shape, window: Window) -> Size:
        return g.size * math.prod(part[0] for part in window)

    return Op(
        name, kernel, infer, rules=rules, prepare=check_specs(prepare, infer), cost=cost, family="window",
        arity=len(rules),
        zero_safe=True,
    )  # fmt: skip


def _sizes_of(shape: Shape, window: Window) -> Shape:
    return shape[len(shape) - len(window) :]


def _infer(x: TensorSpec, *, window: Window) -> TensorSpec:
    return TensorSpec(_windowed_shape(x.shape, window), x.dtype)


def _check_of_windows(operand: TensorSpec, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Raise ShapeError unless an operand has this shape, of one element per window, and this dtype."""
    if not dims.same_shape(operand.shape, shape) or operand.dtype != dtype:
        raise ShapeError(f"what there is of each window is {TensorSpec(shape, dtype)}, not {operand}; check the window")


def _infer_argmax(x: TensorSpec, peak: TensorSpec, *, window: Window) -> TensorSpec:
    windows = _infer(x, window=window)
    _check_of_windows(peak, windows.shape, x.dtype)
    return TensorSpec(windows.shape, _tap_dtype(window))


def _infer_pick(x: TensorSpec, tap: TensorSpec, *, window: Window) -> TensorSpec:
    windows = _infer(x, window=window)
    _check_of_windows(tap, windows.shape, _tap_dtype(window))
    return windows


def _max_rule(g: Array, x: Array, x_shape: Shape, out: Array, window: Window) -> Array:
    tap = window_argmax(x, out, window=window)
    return window_place(g, tap, sizes=_sizes_of(x_shape, window), window=window)


window_sum: Op = _to_windows(
    "window_sum",
    _window_sum,
    _infer,
    lambda g, x_shape, window: window_spread(g, sizes=_sizes_of(x_shape, window), window=window),
)
window_spread: Op = _to_elements("window_spread", _window_spread, lambda g, window: window_sum(g, window=window))
window_max: Op = _to_windows("window_max", _window_max, _infer, _max_rule, copies=True)
window_argmax: Op = _to_windows("window_argmax", _window_argmax, _infer_argmax)
window_place: Op = _to_elements(
    "window_place", _window_place, lambda g, y, window: window_pick(g, y, window=window), None
)
window_pick: Op = _to_windows(
    "window_pick",
    _window_pick,
    _infer_pick,
    lambda g, y, x_shape, window: window_place(g, y, sizes=_sizes_of(x_shape, window), window=window),
    None,
)

# PyTorch's functions ----------------------------------------------------------------------------------------------


def _pooling(x: Array, rank: int, size: PerAxis, stride: PerAxis | None, padding: Padding, dilation: PerAxis) -> Window:
    shape = shape_of(x)
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"takes {rank + 2} axes (batch, channels, sizes), or {rank + 1} without the batch")
    sizes = (size,) * rank if isinstance(size, int) else tuple(size)
    if len(sizes) != rank or min(sizes) < 1:
        raise ShapeError(f"the window has a size of 1 or more for each of {rank} axes, not {size!r}")
    window = window_of(sizes, sizes if stride is None else stride, padding, dilation)
    if any(max(before, after) > length // 2 for length, _, before, after, _ in window):
        raise ShapeError("the padding is at most half of the window; otherwise some windows hold nothing else")
    return window


def _beyond(shape: Shape, window: Window, ceil_mode: bool) -> tuple[int, ...]:
    """How many elements the last window along each axis may reach beyond the padding, with `ceil_mode`; else 0."""
    return tuple(_rest(s, part) if ceil_mode else 0 for s, part in zip(_sizes_of(shape, window), window, strict=True))


def _rest(size: Size, part: tuple[int, int, int, int, int]) -> int:
    length, stride, before, after, dilation = part
    if stride == 1:
        return 0  # every window that begins inside ends inside, or is none
    if not isinstance(size, int):
        raise ShapeError(f"with ceil_mode the windows over a size of {size} are not known; use a stride of 1, or pad")
    padded = size + before + after
    reach = dilation * (length - 1) + 1
    last = -(-(padded - reach) // stride) * stride  # where the last window begins
    if last >= size + before:  # in the padding at the end: no window then
        last -= stride
    return max(0, last + reach - padded)


def _longer(window: Window, beyond: Sequence[int]) -> Window:
    return tuple((k, s, b, a + more, d) for (k, s, b, a, d), more in zip(window, beyond, strict=True))


@composite
def max_pool1d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """The largest of each window of `size` elements, `stride` (by default `size`) apart: f[N, C, L] -> f[N, C, M].

    The batch axis may be missing. The padding is less than any number, and at most half of the window. With
    `ceil_mode` a last window may reach beyond the padding. The gradient goes to the first of equal elements. Raises
    ShapeError.
    """
    return _maximum(x, _pooling(x, 1, size, stride, padding, dilation), ceil_mode)


@composite
def max_pool2d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """The largest of each window, as `max_pool1d` over two axes: f[N, C, H, W] -> f[N, C, P, Q].

    The gradient goes to the first of equal elements. Raises ShapeError.
    """
    return _maximum(x, _pooling(x, 2, size, stride, padding, dilation), ceil_mode)


@composite
def max_pool3d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """The largest of each window, as `max_pool1d` over three axes: f[N, C, D, H, W] -> f[N, C, O, P, Q]."""
    return _maximum(x, _pooling(x, 3, size, stride, padding, dilation), ceil_mode)


@composite
def avg_pool1d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """The mean of each window of `size` elements, `stride` (by default `size`) apart: f[N, C, L] -> f[N, C, M].

    The batch axis may be missing. The padding counts as zeros, or with `count_include_pad=False` not at all. With
    `ceil_mode` a last window may reach beyond the padding; elements beyond it never count. Raises ShapeError.
    """
    return _average(x, _pooling(x, 1, size, stride, padding, 1), ceil_mode, count_include_pad)


@composite
def avg_pool2d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: int | None = None,
) -> Array:  # fmt: skip
    """The mean of each window, as `avg_pool1d` over two axes: f[N, C, H, W] -> f[N, C, P, Q].

    With a `divisor` the result is the sum divided by `divisor`. Raises ShapeError.
    """
    return _average(x, _pooling(x, 2, size, stride, padding, 1), ceil_mode, count_include_pad, divisor)


@composite
def avg_pool3d(
    x: Array, size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: int | None = None,
) -> Array:  # fmt: skip
    """The mean of each window, as `avg_pool2d` over three axes: f[N, C, D, H, W] -> f[N, C, O, P, Q]."""
    return _average(x, _pooling(x, 3, size, stride, padding, 1), ceil_mode, count_include_pad, divisor)


def _maximum(x: Array, window: Window, ceil_mode: bool) -> Array:
    return window_max(x, window=_longer(window, _beyond(shape_of(x), window, ceil_mode)))


def max_pool_with_places(
    rank: int, x: Array, size: PerAxis, stride: PerAxis | None, padding: Padding, dilation: PerAxis, ceil_mode: bool
) -> tuple[Array, Array]:
    """The results of `max_pool1d` to `max_pool3d`, and the row-major place of each in the last axes, as int64."""
    window = _pooling(x, rank, size, stride, padding, dilation)
    whole = _longer(window, _beyond(shape_of(x), window, ceil_mode))
    peak = window_max(x, window=whole)
    return peak, places_of(x, peak, whole)


def places_of(x: Array, peak: Array, window: Window) -> Array:
    """The row-major place of the maximum of each window in the last axes of x, as int64."""
    tap: Array = astype(window_argmax(x, peak, window=window), np.int64)
    place: Array = np.zeros((), np.int64)
    lengths, sizes = [part[0] for part in window], _sizes_of(shape_of(x), window)
    rank = len(window)
    for axis, (length, step, before, _, gap) in enumerate(window):
        along = remainder(floor_divide(tap, math.prod(lengths[axis + 1 :])), length)
        first = subtract(multiply(arange(shape_of(peak)[axis - rank]), step), before)
        here = add(reshape(first, (-1, *(1,) * (rank - 1 - axis))), multiply(along, gap))
        place = add(multiply(place, sizes[axis]), here)
    return place


@in_single
def _average(x: Array, window: Window, ceil_mode: bool, count_include_pad: bool, divisor: int | None = None) -> Array:
    if divisor == 0:
        raise ShapeError("the divisor of a mean is not 0; leave it out to divide by the size of the window")
    beyond = _beyond(shape_of(x), window, ceil_mode)
    whole = _longer(window, beyond)
    total = window_sum(x, window=whole)
    if divisor is not None:
        return divide(total, divisor)
    if not any(beyond) and (count_include_pad or not any(before or after for _, _, before, after, _ in window)):
        return divide(total, math.prod(part[0] for part in window))
    sizes = _sizes_of(shape_of(x), window)
    if count_include_pad:  # the padding is as if it were elements; only what lies beyond is none
        sizes = tuple(size + before + after for size, (_, _, before, after, _) in zip(sizes, window, strict=True))
        whole = tuple((k, s, 0, more, d) for (k, s, _, _, d), more in zip(window, beyond, strict=True))
    return divide(total, window_sum(ones(sizes, dtype_of(x)), window=whole))
