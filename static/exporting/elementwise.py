"""Rules that write ops which work element by element, then convolutions and ops over windows.

A convolution is Conv; its two gradients are ConvTranspose, and a Conv with the batch as channels. Windows are Gathers:
a constant has the index of each tap of each window among the elements, and the index after the last is the padding.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from graphs.dims import Dim
from graphs.ir import Node
from graphs.ops.shapes import lowest
from graphs.ops.windows import Window, counts, taps
from static.exporting.writer import RULES, OnnxWriter, Refusal


def same(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    """Write an op that ONNX has too, on operands in the dtype of the result."""
    return w(op, *w.typed(names, node.dtype))


def write_rounding(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    return w(op, w.cast(x, node.dtype)) if node.dtype.kind == "f" else x


@RULES.for_op("negative")
def negative(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Sub", w.scalar(0, node), x) if node.dtype.kind == "u" else w("Neg", w.cast(x, node.dtype))


@RULES.for_op("reciprocal")
def reciprocal(w: OnnxWriter, node: Node, x: str) -> str:
    return (
        w("Reciprocal", w.cast(x, node.dtype))
        if node.dtype.kind == "f"
        else w("Div", w.scalar(1, node), w.cast(x, node.dtype))
    )


@RULES.for_op("relu")
def relu(w: OnnxWriter, node: Node, x: str) -> str:
    return x if node.dtype.kind in "ub" else w("Relu", w.cast(x, node.dtype))


def write_comparison(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op, *_together(w, *names))


def _together(w: OnnxWriter, *names: str) -> list[str]:
    """Return the operands of a comparison in their common dtype."""
    return w.typed(names, np.result_type(*(w.dtypes[name] for name in names)))


@RULES.for_op("not_equal")
def not_equal(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Not", w("Equal", *_together(w, *names)))


def is_special(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    """Write whether numbers are NaN or infinite, which an integer never is."""
    return w("Not", w("Equal", x, x)) if w.dtypes[x].kind != "f" else w(op, x)


@RULES.for_op("isfinite")
def isfinite(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Equal", x, x) if w.dtypes[x].kind != "f" else w("Not", w("Or", w("IsNaN", x), w("IsInf", x)))


def logical(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op, *w.typed(names, np.bool_))


def bitwise(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op if node.dtype == np.bool_ else f"Bitwise{op}", *w.typed(names, node.dtype))


@RULES.for_op("positive", "identity", "stop_gradient", "astype")
def pass_through(w: OnnxWriter, node: Node, x: str) -> str:
    return x


@RULES.for_op("square")
def square(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", x, x)


@RULES.for_op("where")
def where(w: OnnxWriter, node: Node, test: str, x: str, y: str) -> str:
    return w("Where", w.cast(test, np.bool_), *w.typed((x, y), node.dtype))


@RULES.for_op("clip")
def clip(w: OnnxWriter, node: Node, *names: str) -> str:
    x, low, high = w.typed(names, node.dtype)
    return w("Min", w("Max", x, low), high)


@RULES.for_op("floor_divide")
def floor_divide(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write x less its remainder, divided by y and rounded to a whole number; the plain quotient for y = 0."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Div", w("Sub", x, w("Mod", x, y)), y)
    rest, below = _rest(w, x, y)
    whole = w("Round", w("Div", w("Sub", x, rest), y))
    down = w("Where", below, w("Sub", whole, w.scalar(1, node)), whole)
    zero, quotient = w.scalar(0, node), w("Div", x, y)
    signed = w("Where", w("Equal", down, zero), w("Mul", quotient, zero), down)
    return w("Where", w("Equal", y, zero), quotient, signed)


@RULES.for_op("remainder")
def remainder(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the remainder with the sign of the divisor, which ONNX's Mod gives for integers only."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Mod", x, y)
    rest, below = _rest(w, x, y)
    return w("Where", below, w("Add", rest, y), rest)


def _rest(w: OnnxWriter, x: str, y: str) -> tuple[str, str]:
    """Return the remainder of x with the sign of x, and whether its sign differs from that of y."""
    rest, zero = w("Mod", x, y, fmod=1), w.constant(0, w.dtypes[x])
    sides = w("Xor", w("Less", rest, zero), w("Less", y, zero))
    return rest, w("And", w("Not", w("Equal", rest, zero)), sides)


@RULES.for_op("trunc")
def trunc(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", w("Sign", x), w("Floor", w("Abs", x))) if node.dtype.kind == "f" else x


def log_to_a_base(base: float, w: OnnxWriter, node: Node, x: str) -> str:
    return w("Div", w("Log", w.cast(x, node.dtype)), w.scalar(math.log(base), node))


@RULES.for_op("log1p")
def log1p(w: OnnxWriter, node: Node, x: str) -> str:
    """Write log(u) * x / (u - 1) with u = 1 + x, in which rounding errors of u cancel (Kahan); log(u) for x > 1."""
    x = w.cast(x, node.dtype)
    unit = w.scalar(1, node)
    u = w("Add", x, unit)
    exact, far = w("Equal", u, unit), w("Greater", x, unit)
    log = w("Log", u)
    near = w("Div", w("Mul", log, x), w("Where", exact, unit, w("Sub", u, unit)))
    return w("Where", exact, x, w("Where", far, log, near))


@RULES.for_op("expm1")
def expm1(w: OnnxWriter, node: Node, x: str) -> str:
    """Write (u - 1) * x / log(u) with u = exp(x), in which rounding errors of u cancel; u - 1 far from 0."""
    x = w.cast(x, node.dtype)
    unit = w.scalar(1, node)
    u = w("Exp", x)
    less = w("Sub", u, unit)
    near = w("Less", w("Abs", x), w.scalar(0.5, node))
    exact = w("Equal", u, unit)
    safe = w("And", near, w("Not", exact))
    close = w("Div", w("Mul", less, x), w("Log", w("Where", safe, u, w.scalar(2, node))))
    return w("Where", exact, x, w("Where", near, close, less))


@RULES.for_op("logaddexp")
def logaddexp(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the larger plus log(1 + exp(-distance)); equal infinities give that infinity."""
    x, y = w.typed(names, node.dtype)
    distance = w("Abs", w("Sub", x, y))
    gap = w("Where", w("Equal", x, y), w.scalar(0, node), distance)
    return w("Add", w("Max", x, y), w("Softplus", w("Neg", gap)))


@RULES.for_op("hypot")
def hypot(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the hypotenuse scaled by the longer side, so that no square overflows; infinite where a side is."""
    x, y = (w("Abs", name) for name in w.typed(names, node.dtype))
    longer, shorter, unit = w("Max", x, y), w("Min", x, y), w.scalar(1, node)
    part = w("Div", shorter, w("Where", w("Equal", longer, w.scalar(0, node)), unit, longer))
    length = w("Mul", longer, w("Sqrt", w("Add", unit, w("Mul", part, part))))
    return w("Where", w("Or", w("IsInf", x), w("IsInf", y)), w.scalar(math.inf, node), length)


def extreme_but_nan(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(names, node.dtype)
    extreme = w(op, x, y)
    if node.dtype.kind != "f":
        return extreme
    return w("Where", w("IsNaN", x), y, w("Where", w("IsNaN", y), x, extreme))


def shift(direction: str, w: OnnxWriter, node: Node, *names: str) -> str:
    """Write BitShift, which takes only unsigned numbers; a shift by a negative count or by all bits gives 0.

    A negative number is shifted to the right as the complement of its shifted complement.
    """
    x, y = w.typed(names, node.dtype)
    unsigned = np.dtype(f"u{node.dtype.itemsize}")
    inside = w("And", w("GreaterOrEqual", y, w.scalar(0, node)), w("Less", y, w.scalar(8 * node.dtype.itemsize, node)))
    some = w.cast(inside, node.dtype)
    amount = w.cast(w("Mul", y, some), unsigned)
    signed = direction == "RIGHT" and node.dtype.kind == "i"
    negative = w("Less", x, w.scalar(0, node)) if signed else ""
    bits = w("Where", negative, w("BitwiseNot", x), x) if signed else x
    moved = w("Mul", w.cast(w("BitShift", w.cast(bits, unsigned), amount, direction=direction), node.dtype), some)
    return w("Where", negative, w("BitwiseNot", moved), moved) if signed else moved


RULES.enter({
    "abs": partial(same, "Abs"), "acos": partial(same, "Acos"), "acosh": partial(same, "Acosh"),
    "add": partial(same, "Add"), "asin": partial(same, "Asin"), "asinh": partial(same, "Asinh"),
    "atan": partial(same, "Atan"), "atanh": partial(same, "Atanh"), "cos": partial(same, "Cos"),
    "cosh": partial(same, "Cosh"), "divide": partial(same, "Div"), "erf": partial(same, "Erf"),
    "exp": partial(same, "Exp"), "log": partial(same, "Log"), "maximum": partial(same, "Max"),
    "minimum": partial(same, "Min"), "multiply": partial(same, "Mul"), "pow": partial(same, "Pow"),
    "sigmoid": partial(same, "Sigmoid"), "sign": partial(same, "Sign"), "sin": partial(same, "Sin"),
    "sinh": partial(same, "Sinh"), "sqrt": partial(same, "Sqrt"), "subtract": partial(same, "Sub"),
    "tan": partial(same, "Tan"), "tanh": partial(same, "Tanh"),
    "ceil": partial(write_rounding, "Ceil"), "floor": partial(write_rounding, "Floor"),
    "round": partial(write_rounding, "Round"),
    "equal": partial(write_comparison, "Equal"), "greater": partial(write_comparison, "Greater"),
    "greater_equal": partial(write_comparison, "GreaterOrEqual"), "less": partial(write_comparison, "Less"),
    "less_equal": partial(write_comparison, "LessOrEqual"),
    "isnan": partial(is_special, "IsNaN"), "isinf": partial(is_special, "IsInf"),
    "logical_and": partial(logical, "And"), "logical_or": partial(logical, "Or"),
    "logical_xor": partial(logical, "Xor"), "logical_not": partial(logical, "Not"),
    "bitwise_and": partial(bitwise, "And"), "bitwise_or": partial(bitwise, "Or"),
    "bitwise_xor": partial(bitwise, "Xor"), "bitwise_invert": partial(bitwise, "Not"),
    "log2": partial(log_to_a_base, 2.0), "log10": partial(log_to_a_base, 10.0),
    "fmax": partial(extreme_but_nan, "Max"), "fmin": partial(extreme_but_nan, "Min"),
    "bitwise_left_shift": partial(shift, "LEFT"), "bitwise_right_shift": partial(shift, "RIGHT"),
})  # fmt: skip


# Windows --------------------------------------------------------------------------------------------------------------


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
