"""Functions that move elements: borders, patches, and channels that become pixels."""

from __future__ import annotations

from typing import Any

from dynamic.nn.functional.common import Array
from graphs import dims, ops
from graphs.errors import ShapeError, located
from graphs.ops.shapes import shape_of
from graphs.ops.windows import Window, counts, per_axis, window_of
from graphs.torch.shapes import apart

__all__ = ["channel_shuffle", "fold", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

Pairs = list[tuple[int, int]]


# Borders ----------------------------------------------------------------------------------------------------------


def pad(input: Array, pad: Any, mode: str = "constant", value: float | None = None) -> Array:
    """x with a border: (before, after) of the last axis, then of the one before it, and so on.

    A negative size takes elements away. Raises ShapeError where nothing would be left.
    """
    if len(pad) % 2 or len(pad) > 2 * len(shape_of(input)):
        raise ShapeError(
            f"there are two widths for each of {len(shape_of(input))} axes or fewer, not {len(pad)}; add one"
        )
    if mode != "constant" and len(shape_of(input)) not in (len(pad) // 2 + 1, len(pad) // 2 + 2):
        raise ShapeError(
            f"{len(pad) // 2} axes go on beyond their ends, before them channels, and a batch; add an axis"
        )
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    widths = [(0, 0)] * (len(shape_of(input)) - len(pairs)) + pairs[::-1]
    border = [(max(before, 0), max(after, 0)) for before, after in widths]
    cut = [(max(-before, 0), max(-after, 0)) for before, after in widths]
    fill = 0 if value is None else value
    if mode == "circular":  # goes round what is left; the other modes see what will be taken away
        return apart(ops.pad(_cut(input, cut), border, fill, mode=mode), input)
    return apart(_cut(ops.pad(input, border, fill, mode=mode), cut), input)


def _cut(x: Array, widths: Pairs) -> Array:
    """Without so many elements at both ends of each axis."""
    if not any(before or after for before, after in widths):
        return x
    for size, (before, after) in zip(shape_of(x), widths, strict=True):
        if isinstance(size, int) and size < before + after:
            raise ShapeError(located(f"pad: {before + after} elements of an axis of {size} cannot go; take away fewer"))
    return x[tuple(slice(before, -after if after else None) for before, after in widths)]


# Patches ----------------------------------------------------------------------------------------------------------


def unfold(input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """Each window as a column: f[N, C, H, W] -> f[N, C * elements of a window, windows]; N may be missing.

    Raises ShapeError.
    """
    if len(shape_of(input)) == 3:
        return ops.squeeze(unfold(ops.expand_dims(input, 0), kernel_size, dilation, padding, stride), 0)
    if len(shape_of(input)) != 4:
        raise ShapeError(located(f"unfold: takes f[N, C, H, W] or f[C, H, W], not shape {shape_of(input)}"))
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
        raise ShapeError(located(f"fold: takes {expected} for an output of {tuple(sizes)}, not shape {shape}"))
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
        raise ShapeError(located(f"pixel_unshuffle: sizes {height} and {width} are no multiples of {r}; pad them"))
    parts = ops.reshape(input, (*batch, channels, height // r, r, width // r, r))
    order = (*range(count), count, count + 2, count + 4, count + 1, count + 3)
    shuffled = ops.reshape(ops.permute_dims(parts, order), (*batch, channels * r * r, height // r, width // r))
    return apart(shuffled, input)


def channel_shuffle(input: Array, groups: int) -> Array:
    """The channels of f[N, C, ...] dealt out: one of each group in turn (Zhang et al., 2018). Raises ShapeError."""
    batch, channels, *sizes = shape_of(input)
    if groups < 1 or not dims.same(channels % groups, 0):
        raise ShapeError(located(f"channel_shuffle: {channels} channels do not divide into {groups} groups"))
    parts = ops.reshape(input, (batch, groups, channels // groups, *sizes))
    return apart(ops.reshape(ops.moveaxis(parts, 1, 2), (batch, channels, *sizes)), input)


native_channel_shuffle = channel_shuffle
