"""Windows that slide over the last axes of an array: the common base of convolution and pooling.

A window is described axis by axis: `((size, stride, before, after, dilation), ...)`. A *tap* is one position in the
window. Kernels work tap by tap on slices of whole arrays; the slices leave the padding out, so that no array is ever
padded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from graphs.dims import Dim, Shape, Size
from graphs.errors import ShapeError

Window = tuple[tuple[int, int, int, int, int], ...]
Index = tuple[Any, ...]
Taps = Sequence[tuple[int, Index, Index]]
PerAxis = int | Sequence[int]
Padding = int | str | Sequence[int | Sequence[int]]


def window_of(sizes: Sequence[int], stride: PerAxis, padding: Padding, dilation: PerAxis) -> Window:
    """The window of these sizes.

    `stride` and `dilation` are one number, or one per axis. `padding` is the same, or a pair (before, after) per axis,
    or "valid" (none), or "same" (the result has the input's sizes; an odd element of padding comes after).
    Raises ShapeError when the options contradict each other.
    """
    rank = len(sizes)
    strides, dilations = per_axis(stride, rank, "stride", 1), per_axis(dilation, rank, "dilation", 1)
    pads = _paddings(sizes, strides, padding, dilations)
    return tuple((k, s, b, a, d) for k, s, (b, a), d in zip(sizes, strides, pads, dilations, strict=True))


def per_axis(value: Any, rank: int, what: str, least: int) -> tuple[int, ...]:
    """One number for each axis. Raises ShapeError for a wrong count of numbers, or a number below `least`."""
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(values) != rank or not all(isinstance(v, int) and v >= least for v in values):
        raise ShapeError(f"{what} is {least} or more, one number or one for each of {rank} axes, not {value!r}")
    return values


def _paddings(
    sizes: Sequence[int], strides: tuple[int, ...], padding: Any, dilations: tuple[int, ...]
) -> Sequence[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding == "same":
        if set(strides) - {1}:
            raise ShapeError("padding 'same' needs a stride of 1; give the padding as numbers")
        totals = [d * (k - 1) for k, d in zip(sizes, dilations, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, str):
        raise ShapeError(f"padding is a number, a number or a pair per axis, 'same' or 'valid', not {padding!r}")
    amounts = padding if isinstance(padding, int) else [p if isinstance(p, int) else tuple(p) for p in padding]
    if isinstance(amounts, list) and len(amounts) == len(sizes) and all(isinstance(p, tuple) for p in amounts):
        pairs = [per_axis(p, 2, "padding", 0) for p in amounts]
        return [(before, after) for before, after in pairs]
    return [(p, p) for p in per_axis(amounts, len(sizes), "padding", 0)]


def check_window(window: Any) -> Window:
    """Return a window in the form described above. Raises ShapeError for any other value.

    Padding after the elements may be negative: then the last elements are in no window.
    """
    parts = window if isinstance(window, tuple) else ()
    numbers = [part for part in parts if isinstance(part, tuple) and len(part) == 5 and {*map(type, part)} == {int}]
    if not parts or len(numbers) < len(parts) or any(min(k, s, d) < 1 or b < 0 for k, s, b, _, d in numbers):
        raise ShapeError(f"a window has (size, stride, before, after, dilation) for each axis, not {window!r}")
    return window


def counts(sizes: Sequence[Size], window: Window) -> Shape:
    """How many windows fit along each axis of these sizes. Raises ShapeError where no window fits."""
    return tuple(_count(size, part) for size, part in zip(sizes, window, strict=True))


def _count(size: Size, part: tuple[int, int, int, int, int]) -> Size:
    length, stride, before, after, dilation = part
    reach = dilation * (length - 1) + 1
    padded = size + (before + after)
    if not isinstance(padded, Dim) and padded < reach:
        raise ShapeError(
            f"a window over {reach} elements does not fit a padded size of {padded}; pad, or use a smaller"
        )
    return (padded - reach) // stride + 1


@functools.lru_cache(maxsize=256)
def taps(sizes: tuple[int, ...], window: Window) -> tuple[tuple[int, Index, Index], ...]:
    """For each tap in row-major order: its number, the windows where it is no padding, and the elements there."""
    axes = [list(_axis_taps(size, part)) for size, part in zip(sizes, window, strict=True)]
    return tuple(
        (number, (..., *(there for there, _ in pairs)), (..., *(here for _, here in pairs)))
        for number, pairs in enumerate(itertools.product(*axes))
    )


def is_whole(there: Index, shape: Shape) -> bool:
    """Whether the window slices of a tap, as `taps` gives them, cover all windows."""
    slices = there[1:]
    return all(part == slice(0, count) for part, count in zip(slices, shape[len(shape) - len(slices) :], strict=True))


@functools.lru_cache(maxsize=256)
def is_tiled(sizes: tuple[int, ...], window: Window) -> bool:
    """Whether each element is in exactly one window."""
    return all(
        (before, dilation) == (0, 1) and length == stride and _count(size, part) * length == size
        for size, part in zip(sizes, window, strict=True)
        for length, stride, before, _, dilation in (part,)
    )


def _axis_taps(size: int, part: tuple[int, int, int, int, int]) -> Iterator[tuple[slice, slice]]:
    length, stride, before, _, dilation = part
    count = _count(size, part)
    for tap in range(length):
        offset = tap * dilation - before
        first = max(0, -(offset // stride))  # the first window whose tap is at 0 or later
        end = min(count, -((offset - size) // stride))  # and the first whose tap is past the end
        if end <= first:
            yield slice(0, 0), slice(0, 0)
        else:
            start = first * stride + offset
            yield slice(first, end), slice(start, start + (end - first - 1) * stride + 1, stride)
