"""The kernels of convolution in NumPy: products of matrices, with operands that are unfolded as little as possible.

Unfolded over all its axes, each window of x is a column of channels * taps numbers, and a convolution is one product.
But that copies an element as often as there are taps. Unfolded over all axes but the first, it is copied as often as a
row of the window has taps, and each row of the window is a product with a *shifted* part of the same copy, which is no
copy itself. Rows that lie a stride apart are made neighbours, so that a shift is a plain slice.

    columns   [groups, channels / groups * taps, examples * windows]           all axes: few windows
    strips    [examples, stride, channels * taps of a row, rows * windows of a row]       all axes but the first
    lines     [examples, rows, channels * taps of a row, windows of a row]                the same, rows outermost

In lines, what a row of windows meets lies together, and all rows of the window are terms of one product. There is a
small product for each row of windows: lines are for a BLAS that does not pack small operands.

Where a row of the window has too few terms for a product, strips are unfolded over all axes after one of size 1.

Where each channel has a window of its own (depthwise), its window is spread to a band matrix, whose columns are some
neighbouring windows of a row. Then x is copied only as often as there are rows of the window, and a little more.

    bands     [channels, examples * rows of windows * runs of a row, rows of the window * elements that a run meets]

A few examples are unfolded at a time, so that a copy is still in the cache of a core when it is multiplied.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from graphs.dims import Shape
from graphs.op import Array, Kernel
from graphs.ops.linalg import UNPACKED, UNPACKED_RESULT
from graphs.ops.scans import round_to_dtype
from graphs.ops.shapes import SINGLE, is_half
from graphs.ops.windows import Window, counts, taps

UNFOLDED = 1 << 20
"""Bytes of unfolded input at a time, as measured: with fewer the calls take longer than the cache saves."""
FEWEST_TERMS = 16
FEWEST_WINDOWS = 64
"""A product over fewer terms, or with fewer columns, is slower for each multiplication than a copy is."""
CHANNELS, FEATURES = 32, 8
"""So many channels of a gradient, and features of a cotangent, are transposed at a time."""
SHORTEST_LINE, SHORTEST_PART = 16, 48
"""A line, or a part of a strip, of fewer windows takes longer to call than not to pack gains."""

Part = tuple[int, int, int, int, int]
Sizes = tuple[int, ...]


def _in_single(kernel: Kernel) -> Kernel:
    """Wrap a kernel to compute float16 in float32."""

    @functools.wraps(kernel)
    def wider(x: Array, y: Array, *, out: Array = None, **options: Any) -> Array:
        dtype = np.result_type(x, y)
        if not is_half(dtype):
            return kernel(x, y, out=out, **options)
        return round_to_dtype(kernel(x.astype(SINGLE), y.astype(SINGLE), **options), dtype, out)

    return wider


@_in_single
def convolution(x: Array, weight: Array, *, window: Window, groups: int, out: Array = None) -> Array:
    """The convolution of x [N, C, *sizes] with weight [F, C / groups, *window] -> [N, F, *counts]."""
    windows, features = counts(x.shape[2:], window), weight.shape[0] // groups
    if out is None:
        out = np.empty((x.shape[0], weight.shape[0], *windows), np.result_type(x, weight))
    if _is_depthwise(x, out, window, groups) and _by_bands(x, weight, window, out):
        return out
    if math.prod(windows) < FEWEST_WINDOWS:
        matrix = _matrix(weight, groups)
        for block, columns in _columns(x, window, groups):
            target = out[block].swapaxes(0, 1)
            target[...] = np.matmul(matrix, columns).reshape(target.shape)
        return out
    result = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    if at_once := _rows_at_once(weight.shape, windows, window, groups):
        matrices = _join_rows(_rows(weight, window[0][0], groups), at_once)
        blocks = _lines(x, window, groups, at_once)
        targets = result.reshape(len(x), groups, features, windows[0], math.prod(windows[1:])).swapaxes(2, 3)
    else:
        x, window = _by_rows(x, window, groups)
        matrices = list(_rows(weight, window[0][0], groups))
        blocks = _strips(x, window, groups)
        targets = result.reshape(len(x), groups, features, math.prod(windows))
    for block, operands in blocks:
        target = targets[block]
        np.matmul(matrices[0], operands[0], out=target)
        for matrix, operand in zip(matrices[1:], operands[1:], strict=True):
            target += np.matmul(matrix, operand)
    if result is not out:
        out[...] = result
    return out


@_in_single
def convolution_weight(x: Array, g: Array, *, window: Window, groups: int, out: Array = None) -> Array:
    """x and g [N, F, *counts] -> [F, C / groups, *window]: the adjoint of convolution in the weight."""
    if out is None:
        out = np.empty((g.shape[1], x.shape[1] // groups, *(part[0] for part in window)), np.result_type(x, g))
    features, terms = g.shape[1] // groups, math.prod(out.shape[1:])
    if _is_depthwise(x, g, window, groups) and _weight_by_bands(x, g, window, out):
        return out
    if math.prod(g.shape[2:]) < FEWEST_WINDOWS:
        matrix = np.zeros((groups, features, terms), out.dtype)
        for block, columns in _columns(x, window, groups):
            matrix += np.matmul(_by_feature(g[block], groups), columns.swapaxes(1, 2))
        out[...] = matrix.reshape(out.shape)
        return out
    x, window = _by_rows(x, window, groups)
    length, windows = window[0][0], math.prod(g.shape[2:])
    totals = np.zeros((length, groups, terms // length, features), out.dtype)
    part = _part(windows, totals[0, 0].size)
    is_turned = UNPACKED_RESULT < totals[0, 0].size <= UNPACKED // part
    for block, shifted in _strips(x, window, groups):
        cotangents = _in_parts(g[block].reshape(-1, groups, features, windows), part).swapaxes(-1, -2)
        cotangents = _turn_round(cotangents) if is_turned else cotangents
        for total, strip in zip(totals, shifted, strict=True):
            total += np.add.reduce(np.matmul(_in_parts(strip, part), cotangents), (0, 2))
    return _features_first(totals.reshape(length, groups, out.shape[1], -1, features), out)


def _features_first(by_row: Array, out: Array) -> Array:
    """Write [rows, groups, channels, taps of a row, features] as a weight, some channels at a time.

    So that the lines of the cache from which one feature is read are still there for the next.
    """
    laid = by_row.transpose(1, 4, 2, 0, 3)
    target = out.reshape(laid.shape) if out.flags.c_contiguous else np.empty(laid.shape, out.dtype)
    for start in range(0, laid.shape[2], CHANNELS):
        part = slice(start, start + CHANNELS)
        target[:, :, part] = laid[:, :, part]
    if not out.flags.c_contiguous:
        out[...] = target.reshape(out.shape)
    return out


@_in_single
def convolution_input(
    g: Array, weight: Array, *, sizes: tuple[int, ...], window: Window, groups: int, out: Array = None
) -> Array:
    """g [N, F, *counts] and weight -> [N, C, *sizes]: the adjoint of convolution in x, a transposed convolution."""
    if out is None:
        out = np.empty((g.shape[0], weight.shape[1] * groups, *sizes), np.result_type(g, weight))
    if _is_convolution(g, weight, window, groups):
        # The adjoint in x: a convolution of g with the weight turned round, for each residue of the strides.
        turned = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).swapaxes(1, 2)
        turned = turned.reshape(groups * weight.shape[1], weight.shape[0] // groups, *weight.shape[2:])
        axes = [list(_residues(*sizes_and_part)) for sizes_and_part in zip(sizes, g.shape[2:], window, strict=True)]
        if any(part[1] > 1 for part in window):
            out[...] = 0  # elements that no tap meets
        for residues in itertools.product(*axes):
            elements, met, parts = zip(*residues, strict=True)
            flipped = np.flip(turned[(..., *met)], tuple(range(2, turned.ndim)))
            convolution(g, flipped, window=parts, groups=groups, out=out[(..., *elements)])
        return out
    out[...] = 0
    channels, taps_of = out.shape[1], math.prod(part[0] for part in window)
    matrix = _matrix(weight, groups).swapaxes(1, 2)
    for block in _blocks(g.shape[0], channels * taps_of * math.prod(g.shape[2:]) * out.itemsize, UNFOLDED):
        target = out[block].swapaxes(0, 1)
        columns = np.matmul(matrix, _by_feature(g[block], groups))
        columns = columns.reshape(channels, taps_of, *target.shape[1:2], *g.shape[2:])
        for tap, there, here in taps(sizes, window):
            target[here] += columns[:, tap][there]
    return out


# Which way ----------------------------------------------------------------------------------------------------------


def _by_rows(x: Array, window: Window, groups: int) -> tuple[Array, Window]:
    """x and the window with a first axis to shift along; the other axes are to unfold over.

    The first axis is x's own, or an added axis of size 1 where a row of the window has too few terms.
    """
    if x.shape[1] // groups * math.prod(part[0] for part in window[1:]) >= FEWEST_TERMS:
        return x, window
    return x[:, :, np.newaxis], ((1, 1, 0, 0, 1), *window)


def _rows_at_once(weight: Sizes, windows: Shape, window: Window, groups: int) -> int:
    """The rows of the window that are terms of one product of a line; 0 where strips are better.

    Lines are for strips that BLAS packs, and where a row of the window has too few terms. With fewer than half of the
    rows at once, adding the products takes longer than not to pack gains.
    """
    width: Any = math.prod(windows[1:])
    length, terms = weight[2], weight[1] * math.prod(weight[3:])
    most = UNPACKED // max(1, weight[0] // groups * terms * width)
    if width < SHORTEST_LINE or length == 1 or window[0][4] > 1 or (terms >= FEWEST_TERMS and most >= windows[0]):
        return 0
    return math.ceil(length / math.ceil(length / most)) if 2 * most >= length else 0


def _part(windows: int, result: int) -> int:
    """The windows of a part of a strip which BLAS does not pack, for so large a product; all where no cut gives one."""
    most = min(windows, UNPACKED // max(1, result))
    return next((size for size in range(most, SHORTEST_PART - 1, -1) if windows % size == 0), windows)


def _turn_round(x: Array) -> Array:
    """[..., windows, features] in row-major order from a transposed view.

    It reads few features at a time, since rows that lie a power of two apart share their places in the cache.
    """
    out = np.empty(x.shape, x.dtype)
    for start in range(0, x.shape[-1], FEATURES):
        out[..., start : start + FEATURES] = x[..., start : start + FEATURES]
    return out


def _in_parts(x: Array, part: int) -> Array:
    """[examples, groups, rows, windows] as [examples, groups, parts, rows, windows of a part]."""
    return x.reshape(*x.shape[:3], -1, part).swapaxes(2, 3)


def _is_convolution(g: Array, weight: Array, window: Window, groups: int) -> bool:
    """Whether to compute the adjoint as convolutions of g, one per residue of the strides, not as a sum of columns.

    The convolutions copy g as often as the first axis has strides and a row has taps. Adding a column is two reads and
    a write.
    """
    features, length, stride = weight.shape[0] // groups, *window[0][:2]
    is_many = math.prod(g.shape[2:]) >= FEWEST_WINDOWS or (stride == 1 and _is_depthwise(g, g, window, groups))
    return is_many and features * stride <= 2 * weight.shape[1] * length


# All axes -----------------------------------------------------------------------------------------------------------


def _blocks(batch: int, bytes_each: int, limit: int) -> Iterator[slice]:
    step = max(1, limit // max(1, bytes_each))
    return (slice(start, start + step) for start in range(0, batch, step))


def _columns(x: Array, window: Window, groups: int) -> Iterator[tuple[slice, Array]]:
    """Blocks of the batch, each with its columns [groups, channels / groups * taps, examples * windows]."""
    batch, channels, *sizes = x.shape
    size, windows = math.prod(part[0] for part in window), counts(sizes, window)
    buffer: Array = None
    for block in _blocks(batch, channels * size * math.prod(windows) * x.itemsize, UNFOLDED):
        part = x[block].swapaxes(0, 1)
        if buffer is None or buffer.shape[2] != part.shape[1]:
            buffer = np.zeros((channels, size, part.shape[1], *windows), x.dtype)
        for tap, there, here in taps(tuple(sizes), window):
            buffer[:, tap][there] = part[here]
        yield block, buffer.reshape(groups, channels // groups * size, math.prod(buffer.shape[2:]))


def _by_feature(g: Array, groups: int) -> Array:
    """[examples, features, *counts] as [groups, features / groups, examples * windows]."""
    turned = g.swapaxes(0, 1)
    return turned.reshape(groups, g.shape[1] // groups, math.prod(turned.shape[1:]))


def _matrix(weight: Array, groups: int) -> Array:
    """The weight as [groups, features / groups, channels / groups * taps]."""
    return weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))


# All axes but the first ---------------------------------------------------------------------------------------------


def _strips(x: Array, window: Window, groups: int) -> Iterator[tuple[slice, list[Array]]]:
    """Blocks of the batch, each with a view of x for every row of the window; all views are of one copy.

    A view is [examples, groups, channels / groups * taps of a row, windows]. Only the last block may have fewer
    examples. The copy is x unfolded over a window that is as long as its stride along the first axis.
    """
    batch, channels, *sizes = x.shape
    if all(part[:4] == (1, 1, 0, 0) for part in window):  # a window is one element: there is nothing to unfold
        for block in _blocks(batch, channels * math.prod(sizes) * x.itemsize, UNFOLDED):
            yield block, [x[block].reshape(-1, groups, channels // groups, math.prod(sizes))]
        return
    (length, stride, before, _, dilation), *others = window
    windows = counts(sizes, window)
    rows = (length - 1) * dilation // stride + windows[0]
    strip = ((stride, stride, before, rows * stride - sizes[0] - before, 1), *others)
    in_row, width = math.prod(part[0] for part in others), math.prod(windows[1:])
    buffer: Array = None
    for block in _blocks(batch, channels * in_row * stride * rows * width * x.itemsize, UNFOLDED):
        part = x[block]
        if buffer is None or len(buffer) != len(part):
            buffer = np.zeros((len(part), stride, channels, in_row, rows, *windows[1:]), x.dtype)
        for tap, there, here in taps(tuple(sizes), strip):
            phase, column = divmod(tap, in_row)
            buffer[:, phase, :, column][there] = part[here]
        flat = buffer.reshape(len(part), stride, groups, channels // groups * in_row, rows * width)
        starts = ((row * dilation % stride, row * dilation // stride * width) for row in range(length))
        yield block, [flat[:, phase, ..., start : start + windows[0] * width] for phase, start in starts]


def _lines(x: Array, window: Window, groups: int, at_once: int) -> Iterator[tuple[slice, list[Array]]]:
    """Blocks of the batch, each with a view of x for every `at_once` rows of the window; all views are of one copy.

    A view is [examples, groups, rows of windows, rows at once * channels / groups * taps of a row, windows of a row].
    """
    batch, channels, *sizes = x.shape
    (length, stride, before, _, _), *others = window
    windows = counts(sizes, window)
    rows = (windows[0] - 1) * stride + length
    line = ((1, 1, before, rows - sizes[0] - before, 1), *others)
    in_row, width = math.prod(part[0] for part in others), math.prod(windows[1:])
    terms = channels // groups * in_row
    buffer: Array = None
    for block in _blocks(batch, rows * channels * in_row * width * x.itemsize, UNFOLDED):
        part = x[block].reshape(-1, groups, channels // groups, *sizes)
        if buffer is None or len(buffer) != len(part):
            buffer = np.zeros((len(part), groups, rows, channels // groups, in_row, *windows[1:]), x.dtype)
            laid = np.moveaxis(buffer, 2, 4)
        for tap, there, here in taps(tuple(sizes), line):
            laid[:, :, :, tap][there] = part[here]
        example, group, row = buffer.strides[:3]
        views = []
        for start in range(0, length, at_once):
            shape = (len(part), groups, windows[0], min(at_once, length - start) * terms, width)
            strides = (example, group, stride * row, width * x.itemsize, x.itemsize)
            views.append(np.ndarray(shape, x.dtype, buffer, start * row, strides))
        yield block, views


def _join_rows(rows: Array, at_once: int) -> list[Array]:
    """Rows of a weight as matrices [groups, 1, features / groups, rows at once * terms of a row]."""
    parts = (rows[start : start + at_once] for start in range(0, len(rows), at_once))
    return [part.transpose(1, 2, 0, 3).reshape(*part.shape[1:2], 1, part.shape[2], -1) for part in parts]


def _rows(weight: Array, length: int, groups: int) -> Array:
    """The weight as [length, groups, features / groups, channels / groups * taps of a row], of `length` rows."""
    channels = weight.shape[1]
    by_row = weight.reshape(groups, weight.shape[0] // groups, channels, length, math.prod(weight.shape[2:]) // length)
    first = np.ascontiguousarray(by_row.transpose(3, 0, 1, 2, 4))
    return first.reshape(*first.shape[:3], channels * first.shape[4])


class _Residue(NamedTuple):
    """The elements of an axis at one offset between two strides, and the taps that meet them.

    `part` is the window of the convolution of cotangents that gives the gradient of these elements.
    """

    elements: slice
    taps: slice
    part: Part


def _residues(size: int, count: int, part: Part) -> Iterator[_Residue]:
    """The residues of an axis of `size` elements and `count` windows that some tap meets.

    Tap t of window p meets the padded element p * stride + t * dilation. The padded elements r, r + stride, ... are met
    by the taps t0, t0 + step, ..., each `spread` windows before the last.
    """
    length, stride, before, _, dilation = part
    step, spread = stride // math.gcd(stride, dilation), dilation // math.gcd(stride, dilation)
    for first in range(min(stride, size)):
        residue, place = (first + before) % stride, (first + before) // stride
        start = next((tap for tap in range(min(step, length)) if tap * dilation % stride == residue), None)
        if start is None:
            continue
        met, elements = len(range(start, length, step)), len(range(first, size, stride))
        reach = (met - 1) * spread
        ahead = reach + start * dilation // stride - place
        after = elements - count - ahead + reach
        yield _Residue(slice(first, None, stride), slice(start, None, step), (met, 1, ahead, after, spread))


# Depthwise ------------------------------------------------------------------------------------------------------------

_RUN = 16  # windows of a row side by side: a product of fewer is slow, and one of more has more zeros
_BANDS = 1 << 20  # bytes of bands at a time, as measured: fewer take longer to lay out
_FEWEST, _FEWEST_TAPS = 1 << 12, 3  # elements of a batch, and taps of a row: fewer take longer to lay out


class _Runs(NamedTuple):
    """How a row of windows is cut: into `number` runs of `length` windows, each of which meets `reach` elements."""

    number: int
    length: int
    reach: int


def _is_depthwise(x: Array, y: Array, window: Window, groups: int) -> bool:
    """Whether each channel of x has a window, and a channel of y, of its own: of some taps, and much to do."""
    is_much = min(x.size, y.size) >= _FEWEST and window[-1][0] >= _FEWEST_TAPS
    return is_much and x.shape[1] == y.shape[1] == groups > 1 and x.dtype == y.dtype and x.dtype.kind == "f"


def _runs(windows: int, part: Part) -> _Runs:
    length, stride, _, _, dilation = part
    count = max(1, round(windows / _RUN))
    run = -(-windows // count)
    return _Runs(count, run, (run - 1) * stride + dilation * (length - 1) + 1)


def _by_bands(x: Array, weight: Array, window: Window, out: Array) -> bool:
    """Write the convolution; False where it is not finite, since a band has zeros where a window has nothing."""
    windows, runs = out.shape[2:], _runs(out.shape[-1], window[-1])
    bands = np.zeros((len(weight), math.prod(weight.shape[2:-1]) * runs.reach, runs.length), out.dtype)
    _diagonals(bands, runs, window[-1])[...] = weight.reshape(len(weight), -1, weight.shape[-1], 1)
    for channels, rows in _rows_of_runs(x, windows, window, runs):
        product = np.matmul(rows, bands[channels]).reshape(len(rows), len(x), *windows[:-1], runs.number * runs.length)
        out[:, channels] = product[..., : windows[-1]].swapaxes(0, 1)
    return bool(np.isfinite(out).all())


def _weight_by_bands(x: Array, g: Array, window: Window, out: Array) -> bool:
    """Write the convolution's adjoint in the weight; False where it is not finite."""
    windows, runs = g.shape[2:], _runs(g.shape[-1], window[-1])
    for channels, rows in _rows_of_runs(x, windows, window, runs):
        part = g[:, channels].swapaxes(0, 1)
        if runs.number * runs.length != windows[-1]:
            part = np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, runs.number * runs.length - windows[-1])])
        bands = np.matmul(rows.swapaxes(1, 2), part.reshape(len(part), -1, runs.length))
        out[channels] = np.add.reduce(_diagonals(bands, runs, window[-1]), -1).reshape(out[channels].shape)
    return bool(np.isfinite(out).all())


def _rows_of_runs(x: Array, windows: tuple[int, ...], window: Window, runs: _Runs) -> Iterator[tuple[slice, Array]]:
    """Some channels at a time, each with its bands: the elements that a run of windows meets, one after another."""
    *others, (_, stride, *_) = window
    padded = [(n - 1) * part[1] + part[4] * (part[0] - 1) + 1 for n, part in zip(windows, others, strict=False)]
    padded.append((runs.number - 1) * runs.length * stride + runs.reach)
    ends = [min(full, size + part[2]) for full, size, part in zip(padded, x.shape[2:], window, strict=True)]
    firsts = [max(0, part[2]) for part in window]
    there: Any = (..., *map(slice, firsts, ends))
    here: Any = (..., *[slice(i - part[2], j - part[2]) for i, j, part in zip(firsts, ends, window, strict=True)])
    taken = math.prod(part[0] for part in others) * runs.reach
    each = len(x) * math.prod(windows[:-1]) * runs.number
    for channels in _blocks(x.shape[1], each * taken * x.itemsize, _BANDS):
        block = x[:, channels].swapaxes(0, 1)
        buffer = np.zeros((*block.shape[:2], *padded), x.dtype)
        buffer[there] = block[here]
        channel, example, *steps, step = buffer.strides
        shape = (*block.shape[:2], *windows[:-1], runs.number, *[part[0] for part in others], runs.reach)
        apart = [size * part[1] for size, part in zip(steps, others, strict=True)]
        down = [size * part[4] for size, part in zip(steps, others, strict=True)]
        strides = (channel, example, *apart, step * runs.length * stride, *down, step)
        laid = np.ascontiguousarray(np.ndarray(shape, x.dtype, buffer, 0, strides))
        yield channels, laid.reshape(len(block), each, taken)


def _diagonals(bands: Array, runs: _Runs, part: Part) -> Array:
    """The weights [channels, rows, taps, windows of a run] within bands [channels, rows * reach, windows of a run]."""
    length, stride, _, _, dilation = part
    rows, line = bands.shape[1] // runs.reach, runs.length * bands.itemsize
    strides = (bands.strides[0], runs.reach * line, dilation * line, stride * line + bands.itemsize)
    return np.ndarray((len(bands), rows, length, runs.length), bands.dtype, bands, 0, strides)
