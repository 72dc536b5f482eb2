"""Rules that write convolutions and ops over windows.

A convolution is Conv; its two gradients are ConvTranspose, and a Conv with the batch as channels. Windows are Gathers:
a constant has the index of each tap of each window among the elements, and the index after the last is the padding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.dims import Dim
from graphs.ir import Node
from graphs.ops.shapes import lowest
from graphs.ops.windows import Window, counts, taps
from static.exporting.writer import RULES, OnnxWriter, Refusal


def _options(window: Window) -> dict[str, Any]:
    lengths, strides, before, after, gaps = (list(part) for part in zip(*window, strict=True))
    if min(*before, *after, 0) < 0:
        raise Refusal("a window with less than no padding is not written; cut the input instead")
    return {"kernel_shape": lengths, "strides": strides, "pads": [*before, *after], "dilations": gaps}


@RULES.for_op("convolution")
def convolution(w: OnnxWriter, node: Node, *names: str) -> str:
    operands = w.typed(names, node.dtype)
    return w("Conv", *operands, group=node.attrs["groups"], **_options(node.attrs["window"]))


@RULES.for_op("convolution_input")
def convolution_input(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write ConvTranspose; elements at the end of an axis that no window reaches are its output_padding."""
    window, have = node.attrs["window"], node.inputs[0].shape[2:]
    rest = []
    for count, size, (length, stride, before, after, gap) in zip(have, node.attrs["sizes"], window, strict=True):
        over = size - ((count - 1) * stride + gap * (length - 1) + 1 - before - after)
        if not isinstance(over, int):
            raise Refusal(f"a size of {size} for {count} windows is not written; give numbers")
        rest.append(over)
    operands = w.typed(names, node.dtype)
    return w("ConvTranspose", *operands, group=node.attrs["groups"], output_padding=rest, **_options(window))


@RULES.for_op("convolution_weight")
def convolution_weight(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write a Conv of the input, with examples as channels, and the cotangent as weight; strides and dilations swap."""
    x, g = w.typed(names, node.dtype)
    groups, window = node.attrs["groups"], node.attrs["window"]
    batch, channels, *sizes = node.inputs[0].shape
    windows = list(node.inputs[1].shape[2:])
    rank = len(sizes)
    axes = range(3, 3 + rank)
    parted = w.write_reshape(x, (batch, groups, channels // groups, *sizes))
    rows = w.write_reshape(w("Transpose", parted, perm=[2, 1, 0, *axes]), (channels // groups, groups * batch, *sizes))
    kernel = w("Transpose", g, perm=[1, 0, *range(2, 2 + rank)])
    swapped = tuple((0, gap, before, after, stride) for _, stride, before, after, gap in window)
    options = _options(swapped) | {"kernel_shape": windows}
    if any(isinstance(count, Dim) for count in windows):
        del options["kernel_shape"]
    made = w("Conv", rows, kernel, group=groups, **options)  # [channels / groups, features, lengths or more]
    lengths = [part[0] for part in window]
    cut = w("Slice", made, w.ints([0] * rank), w.ints(lengths), w.ints(range(2, 2 + rank)))
    return w("Transpose", cut, perm=[1, 0, *range(2, 2 + rank)])


# Windows ------------------------------------------------------------------------------------------------------------


def _sizes(node: Node, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the sizes that windows slide over, as numbers. Raises Refusal for symbolic ones."""
    sizes = node.attrs.get("sizes") or shape[len(shape) - len(node.attrs["window"]) :]
    if any(isinstance(size, Dim) for size in sizes):
        raise Refusal(f"windows over {sizes} are not written; give numbers")
    return tuple(sizes)


def _places(sizes: tuple[int, ...], window: Window) -> np.ndarray[Any, Any]:
    """Return [windows, taps]: the row-major index of each tap of each window, the number of elements for padding."""
    flat = np.arange(math.prod(sizes)).reshape(sizes)
    along = counts(sizes, window)
    places = np.full((*along, math.prod(part[0] for part in window)), flat.size)
    for number, there, here in taps(sizes, window):
        places[(*there[1:], number)] = flat[here[1:]]
    return places.reshape(-1, places.shape[-1])


def _gather_windows(w: OnnxWriter, node: Node, x: str, filler: Any) -> str:
    """Write x as [..., windows, taps]."""
    source = node.inputs[0]
    sizes = _sizes(node, source.shape)
    leading = source.shape[: len(source.shape) - len(sizes)]
    rows = w.write_reshape(x, (*leading, math.prod(sizes)))
    pads = [0] * (2 * len(leading) + 1)
    padded = w("Pad", rows, w.ints([*pads, 1]), w.constant(filler, source.dtype))
    return w("Gather", padded, w.constant(_places(sizes, node.attrs["window"])), axis=len(leading))


def _spread(w: OnnxWriter, node: Node, values: str) -> str:
    """Write the sum of values [..., windows, taps] at the elements where their taps lie."""
    sizes = _sizes(node, node.shape)
    places = _places(sizes, node.attrs["window"])
    leading = node.shape[: len(node.shape) - len(sizes)]
    zeros = w.zeros((*leading, math.prod(sizes) + 1), node.dtype)
    flat = (*leading, places.size)
    there = w("Expand", w.ints(places.ravel()), w.shape(flat))
    made = w("ScatterElements", zeros, there, w.write_reshape(values, flat), axis=-1, reduction="add")
    inside = w("Slice", made, w.ints([0]), w.ints([math.prod(sizes)]), w.ints([len(leading)]))
    return w.write_reshape(inside, node.shape)


def _by_window(w: OnnxWriter, node: Node, g: str) -> str:
    """Write a value per window with an added axis for taps."""
    shape = node.inputs[0].shape
    leading = shape[: len(shape) - len(node.attrs["window"])]
    windows = math.prod(counts(_sizes(node, node.shape), node.attrs["window"]))
    return w.write_reshape(g, (*leading, windows, 1))


def _taps(node: Node) -> int:
    return math.prod(part[0] for part in node.attrs["window"])


@RULES.for_op("window_max")
def window_max(w: OnnxWriter, node: Node, x: str) -> str:
    window = node.attrs["window"]
    if len(node.shape) == len(window) + 2 and len(window) <= 3 and node.dtype.kind == "f":
        return w("MaxPool", x, **_options(window))
    peaks = w("ReduceMax", _gather_windows(w, node, x, lowest(node.dtype)), w.ints([-1]), keepdims=0)
    return w.write_reshape(peaks, node.shape)


@RULES.for_op("window_sum")
def window_sum(w: OnnxWriter, node: Node, x: str) -> str:
    return w.write_reshape(w("ReduceSum", _gather_windows(w, node, x, 0), w.ints([-1]), keepdims=0), node.shape)


@RULES.for_op("window_spread")
def window_spread(w: OnnxWriter, node: Node, g: str) -> str:
    values = _by_window(w, node, g)
    tapped = w("Mul", values, w.constant(np.ones(_taps(node), node.dtype)))
    return _spread(w, node, tapped)


@RULES.for_op("window_argmax")
def window_argmax(w: OnnxWriter, node: Node, x: str, peak: str) -> str:
    first = w("ArgMax", _gather_windows(w, node, x, lowest(node.inputs[0].dtype)), axis=-1, keepdims=0)
    return w.cast(w.write_reshape(first, node.shape), node.dtype)


@RULES.for_op("window_place")
def window_place(w: OnnxWriter, node: Node, g: str, tap: str) -> str:
    chosen = w("Equal", w.cast(_by_window(w, node, tap), np.int64), w.ints(range(_taps(node))))
    values = w("Where", chosen, _by_window(w, node, g), w.scalar(0, node))
    return _spread(w, node, values)


@RULES.for_op("window_pick")
def window_pick(w: OnnxWriter, node: Node, x: str, tap: str) -> str:
    shape = node.shape[: len(node.shape) - len(node.attrs["window"])]
    windows = math.prod(counts(_sizes(node, node.inputs[0].shape), node.attrs["window"]))
    there = w.write_reshape(w.cast(tap, np.int64), (*shape, windows, 1))
    return w.write_reshape(w("GatherElements", _gather_windows(w, node, x, 0), there, axis=-1), node.shape)
