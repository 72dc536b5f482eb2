"""Rules that write ops which move elements, reduce, pick, sort or multiply matrices; and control flow.

Branches are nested Ifs and loops are Loops, whose bodies see the values around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import GraphProto

from graphs import dims
from graphs.dims import Dim, Size
from graphs.ir import Graph, Node
from graphs.ops.slicing import start_within
from graphs.spec import TensorSpec
from static.exporting.writer import RULES, Names, OnnxWriter, Refusal

END = np.iinfo(np.int64).max
BEGIN = np.iinfo(np.int64).min

# Shapes -------------------------------------------------------------------------------------------------------------


@RULES.for_op("reshape")
def reshape(w: OnnxWriter, node: Node, x: str) -> str:
    return w.write_reshape(x, node.shape)


@RULES.for_op("permute_dims")
def permute_dims(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Transpose", x, perm=[*node.attrs["axes"]]) if node.shape else x


@RULES.for_op("broadcast_to")
def broadcast_to(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Expand", x, w.shape(node.shape))


@RULES.for_op("concat")
def concat(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Concat", *w.typed(names, node.dtype), axis=node.attrs["axis"])


@RULES.for_op("flip")
def flip(w: OnnxWriter, node: Node, x: str) -> str:
    axes = node.attrs["axis"]
    axes = [axes] if isinstance(axes, int) else [*axes]
    return reverse_axes(w, x, axes)


def reverse_axes(w: OnnxWriter, x: str, axes: Sequence[int]) -> str:
    """Write x with its elements in the opposite order along some axes."""
    count = len(axes)
    return (
        x
        if not count
        else w("Slice", x, w.ints([END] * count), w.ints([BEGIN] * count), w.ints(axes), w.ints([-1] * count))
    )


@RULES.for_op("pad")
def pad(w: OnnxWriter, node: Node, x: str) -> str:
    widths = node.attrs["pad_width"]
    if not widths:
        return x
    pads = w.shape([*(before for before, _ in widths), *(after for _, after in widths)])
    return w("Pad", x, pads, w.constant(node.attrs["value"], node.dtype))


@RULES.for_op("getitem")
def getitem(w: OnnxWriter, node: Node, x: str) -> str:
    """Write a Slice, a Gather for each axis that an int removes, and an Unsqueeze for None."""
    key = node.attrs["key"]
    along = list(enumerate(entry for entry in key if entry is not None))
    cuts = [
        (axis, *_bounds(entry, node.inputs[0].shape[axis]))
        for axis, entry in along
        if isinstance(entry, slice) and entry != slice(None)
    ]
    if cuts:
        axes, starts, ends, steps = zip(*cuts, strict=True)
        x = w("Slice", x, w.shape(starts), w.shape(ends), w.ints(axes), w.ints(steps))
    for axis, entry in reversed(along):
        if not isinstance(entry, slice):
            x = w("Gather", x, w.number(entry), axis=axis)
    new = _new_axes(key)
    return w("Unsqueeze", x, w.ints(new)) if new else x


def _bounds(part: slice, size: Size) -> tuple[Size, Size, int]:
    """Return start, end and step of a slice; ONNX moves a start beyond the axis to its end, on either side."""
    if not dims.is_symbolic((part, size)):
        chosen = range(*part.indices(size))
        return (chosen.start, chosen.stop if chosen.stop >= 0 else BEGIN, chosen.step) if chosen else (0, 0, 1)
    step = 1 if part.step is None else part.step
    first, last = (0, END) if step > 0 else (END, BEGIN)
    return first if part.start is None else part.start, last if part.stop is None else part.stop, step


def _new_axes(key: Sequence[Any]) -> list[int]:
    """Return the axes of the result that None adds."""
    kept = [entry for entry in key if entry is None or isinstance(entry, slice)]
    return [place for place, entry in enumerate(kept) if entry is None]


@RULES.for_op("place")
def place(w: OnnxWriter, node: Node, g: str) -> str:
    """Write zeros around g along each axis that the key cuts; between its elements too where the step is not 1."""
    key, shape = node.attrs["key"], node.attrs["shape"]
    new = _new_axes(key)
    if new:
        g = w("Squeeze", g, w.ints(new))
    along = [entry for entry in key if entry is not None]
    gone = [axis for axis, entry in enumerate(along) if not isinstance(entry, slice)]
    if gone:
        g = w("Unsqueeze", g, w.ints(gone))
    # The number of elements of g along each axis of the result.
    have = iter(size for place, size in enumerate(node.inputs[0].shape) if place not in new)
    sizes = [next(have) if isinstance(entry, slice) else 1 for entry in along]
    for axis, (entry, size, length) in enumerate(zip(along, shape, sizes, strict=False)):
        if entry != slice(None):
            g = _place_entry(w, g, axis, entry, size, length, node)
    return g


def _place_entry(w: OnnxWriter, g: str, axis: int, entry: Any, size: Size, length: Size, node: Node) -> str:
    if not isinstance(entry, slice):
        before = entry + size if isinstance(entry, int) and entry < 0 else entry
        if dims.is_symbolic((before, size)):  # how much is around it may be negative, for all that a reader knows
            # Zeros along an axis of this size, with g at one position.
            along = w("Range", *map(w.number, (0, size, 1)))
            there = w("Equal", w.write_reshape(along, [size, *[1] * (len(node.shape) - 1 - axis)]), w.number(before))
            return w("Where", there, g, w.scalar(0, node))
        return _pad_axis(w, g, len(node.shape), axis, before, size - 1 - before, node)
    start, _, step = _bounds(entry, size)
    if step == 1:
        before = start_within(start, size)
        return _pad_axis(w, g, len(node.shape), axis, before, size - before - length, node)
    if isinstance(size, Dim) or isinstance(length, Dim):
        raise Refusal(f"a step of {step} on the symbolic size {size} is not written; give it as a number")
    rows = np.full(size, length)  # the index of a row of zeros behind those of g
    rows[entry] = np.arange(length)
    return w("Gather", _pad_axis(w, g, len(node.shape), axis, 0, 1, node), w.ints(rows), axis=axis)


def _pad_axis(w: OnnxWriter, x: str, ndim: int, axis: int, before: Size, after: Size, node: Node) -> str:
    pads: list[Size] = [0 for _ in range(2 * ndim)]
    pads[axis], pads[ndim + axis] = before, after
    return w("Pad", x, w.shape(pads), w.scalar(0, node))


@RULES.for_op("setitem")
def setitem(w: OnnxWriter, node: Node, x: str, value: str) -> str:
    """Write the value, broadcast, in the positions that the key selects."""
    if any(isinstance(size, Dim) for size in node.shape):
        raise Refusal("on a symbolic size it is not written; give sizes as numbers")
    places = np.full(node.shape, -1)
    chosen = np.empty(node.shape)[node.attrs["key"]].shape
    if 0 in chosen:
        return x
    places[node.attrs["key"]] = np.arange(int(np.prod(chosen))).reshape(chosen)
    rows = w.write_reshape(w("Expand", w.cast(value, node.dtype), w.ints(chosen)), (-1,))
    picked = w("Gather", rows, w.ints(np.maximum(places, 0).ravel()), axis=0)
    return w("Where", w.constant(places >= 0), w.write_reshape(picked, node.shape), x)


@RULES.for_op("full")
def full(w: OnnxWriter, node: Node) -> str:
    return w.zeros(node.shape, node.dtype, node.attrs["value"])


@RULES.for_op("arange")
def arange(w: OnnxWriter, node: Node) -> str:
    start, stop, step = (node.attrs[name] for name in ("start", "stop", "step"))
    bounds = start, stop, step
    if not any(isinstance(value, Dim) for value in bounds):
        return w.constant(np.arange(*bounds, dtype=node.dtype))
    return w("Range", *map(w.number, bounds))


# Reductions ---------------------------------------------------------------------------------------------------------


def reduction(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    return write_reduction(w, op, w.cast(x, node.dtype), node)


def write_reduction(w: OnnxWriter, op: str, x: str, node: Node) -> str:
    """Write a reduction of x over the axes of a node; over no axes it is x itself."""
    axes = w.ints(node.attrs["axis"])
    return w(op, x, axes, keepdims=int(node.attrs["keepdims"]), noop_with_empty_axes=1)


@RULES.for_op("any")
def any_of(w: OnnxWriter, node: Node, x: str) -> str:
    """Write whether any element is true; False for no elements."""
    return w.cast(write_reduction(w, "ReduceSum", w.cast(w.cast(x, np.bool_), np.int64), node), np.bool_)


@RULES.for_op("all")
def all_of(w: OnnxWriter, node: Node, x: str) -> str:
    """Write whether all elements are true: no element is false."""
    return w("Not", any_of(w, node, w("Not", w.cast(x, np.bool_))))


def place_of_extreme(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    axis, keepdims = node.attrs["axis"], int(node.attrs["keepdims"])
    if axis is None:
        return w.write_reshape(w(op, w.write_reshape(x, (-1,)), axis=0, keepdims=0), node.shape)
    return w(op, x, axis=axis if isinstance(axis, int) else axis[0], keepdims=keepdims)


@RULES.for_op("cumulative_sum")
def cumulative_sum(w: OnnxWriter, node: Node, x: str) -> str:
    return w("CumSum", w.cast(x, node.dtype), w.constant(node.attrs["axis"], np.int64))


# Picking and sorting ------------------------------------------------------------------------------------------------


def places(w: OnnxWriter, name: str) -> str:
    """Write indices in a dtype that ONNX takes: int32 stays, all others become int64."""
    return name if w.dtypes[name] == np.int32 else w.cast(name, np.int64)


@RULES.for_op("take")
def take(w: OnnxWriter, node: Node, x: str, indices: str) -> str:
    return w("Gather", x, places(w, indices), axis=node.attrs["axis"])


@RULES.for_op("take_along_axis")
def take_along_axis(w: OnnxWriter, node: Node, x: str, indices: str) -> str:
    return w("GatherElements", x, places(w, indices), axis=node.attrs["axis"])


@RULES.for_op("add_along_axis")
def add_along_axis(w: OnnxWriter, node: Node, g: str, indices: str) -> str:
    zeros = w.zeros(node.shape, node.dtype)
    there = places(w, indices)
    return w("ScatterElements", zeros, there, g, axis=node.attrs["axis"], reduction="add")


@RULES.for_op("scatter_add")
def scatter_add(w: OnnxWriter, node: Node, g: str, indices: str) -> str:
    """Write the addition of rows at their positions along the first axis; the axis is moved there and back."""
    axis = node.attrs["axis"]
    first = [axis, *(a for a in range(len(node.shape)) if a != axis)]
    zeros = w.zeros([node.shape[a] for a in first], node.dtype)
    return _scatter_rows(w, node, zeros, indices, g, axis, "add")


@RULES.for_op("scatter")
def scatter(w: OnnxWriter, node: Node, x: str, indices: str, values: str) -> str:
    axis = node.attrs["axis"]
    first = [axis, *(a for a in range(len(node.shape)) if a != axis)]
    rows = w("Transpose", x, perm=first)
    return _scatter_rows(w, node, rows, indices, w.cast(values, node.dtype), axis, "none")


def _scatter_rows(w: OnnxWriter, node: Node, rows: str, indices: str, values: str, axis: int, join: str) -> str:
    """Write values over, or add them to, rows at the indices; then move the first axis back to its place."""
    source = node.inputs[1]
    count = len(source.shape)
    ndim = len(node.shape)
    order = [*range(axis, axis + count), *range(axis), *range(axis + count, ndim - 1 + count)]
    moved = values if order == sorted(order) else w("Transpose", values, perm=order)
    there = w("Unsqueeze", places(w, indices), w.ints([count]))
    made = w("ScatterND", rows, there, moved, reduction=join)
    back = [*range(1, axis + 1), 0, *range(axis + 1, ndim)]
    return made if axis == 0 else w("Transpose", made, perm=back)


def sort(output: int, w: OnnxWriter, node: Node, x: str) -> str:
    axis = node.attrs["axis"]
    count = w.size(node.shape[axis])
    made: list[str] = w("TopK", x, count, outputs=2, axis=axis, largest=int(node.attrs["descending"]), sorted=1)
    return made[output]


@RULES.for_op("searchsorted")
def searchsorted(w: OnnxWriter, node: Node, x: str, y: str) -> str:
    """Write the count of elements that are less, or not greater; NaN is greater than any number."""
    dtype = np.result_type(*(source.dtype for source in node.inputs))
    x, y = w.cast(x, dtype), w("Unsqueeze", w.cast(y, dtype), w.ints([-1]))
    left = node.attrs["side"] == "left"
    before = w("Less" if left else "LessOrEqual", x, y)
    if dtype.kind == "f":
        last = w("IsNaN", y)
        before = w("Or", before, w("And", last, w("Not", w("IsNaN", x))) if left else last)
    return w("ReduceSum", w.cast(before, np.int64), w.ints([-1]), keepdims=0)


@RULES.for_op("flat_index")
def flat_index(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the row-major index of positions; negative positions count from the end."""
    total = w.constant(0, np.int64)
    for name, size in zip(names, node.attrs["sizes"], strict=True):
        length = w.number(size)
        total = w("Add", w("Mul", total, length), w("Mod", w.cast(name, np.int64), length))
    return total


# Products -----------------------------------------------------------------------------------------------------------


@RULES.for_op("matmul")
def matmul(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("MatMul", *w.typed(names, node.dtype))


@RULES.for_op("det")
def det(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Det", x)


def softmax(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    axes = node.attrs["axis"]
    if len(axes) != 1:
        raise Refusal(f"over {len(axes)} axes it is not written; reshape them")
    return w(op, x, axis=axes[0])


RULES.enter({
    "sum": partial(reduction, "ReduceSum"), "mean": partial(reduction, "ReduceMean"),
    "prod": partial(reduction, "ReduceProd"), "max": partial(reduction, "ReduceMax"),
    "min": partial(reduction, "ReduceMin"), "argmax": partial(place_of_extreme, "ArgMax"),
    "argmin": partial(place_of_extreme, "ArgMin"), "sort": partial(sort, 0), "argsort": partial(sort, 1),
    "softmax": partial(softmax, "Softmax"), "log_softmax": partial(softmax, "LogSoftmax"),
})  # fmt: skip


_NUMBER, _FLAG = TensorSpec((), np.int64), TensorSpec((), np.bool_)


# Control flow ---------------------------------------------------------------------------------------------------------


@RULES.for_op("part")
def part(w: OnnxWriter, node: Node, names: Names) -> Names:
    return names[node.attrs["number"]]


@RULES.for_op("switch")
def switch(w: OnnxWriter, node: Node, index: str, *operands: str) -> Names:
    """Write nested Ifs: each asks whether the index picks its branch or a later one."""
    return _write_choice(w, node.attrs["branches"], index, operands, 0)


def _write_choice(
    w: OnnxWriter, branches: Sequence[Graph], index: str, operands: Sequence[str], number: int
) -> list[str]:
    first, *rest = branches
    if not rest:
        return w.write_again(first, operands)
    specs = [output.spec for output in first.outputs]
    dtype = w.dtypes[index]
    later = index if dtype == np.bool_ else w("Greater", index, w.constant(number, dtype))
    names = w(
        "If",
        later,
        outputs=len(specs),
        then_branch=w.body(lambda: (specs, _write_choice(w, rest, index, operands, number + 1))),
        else_branch=w.body(lambda: (specs, w.write_again(first, operands))),
    )
    return names if isinstance(names, list) else [names]


Turn = Callable[[str, list[str]], tuple[str, list[str], list[str]]]  # (number, state) -> (goes on, state, rows)


def _loop(
    w: OnnxWriter, limit: str, going: str, state: Sequence[str], specs: Sequence[TensorSpec],
    rows: Sequence[TensorSpec], turn: Turn,
) -> list[str]:  # fmt: skip
    """Write a Loop over a state of these specs; return the last state, then each turn's rows, stacked."""
    body = _body(w, specs, rows, turn)
    names = w("Loop", limit, going, *state, outputs=len(specs) + len(rows), body=body)
    return names if isinstance(names, list) else [names]


def _body(w: OnnxWriter, specs: Sequence[TensorSpec], rows: Sequence[TensorSpec], turn: Turn) -> GraphProto:
    number, going, *state = (w.name(stem) for stem in ("turn", "going", *["state"] * len(specs)))

    def write() -> tuple[list[TensorSpec], list[str]]:
        onwards, following, made = turn(number, list(state))
        return [_FLAG, *specs, *rows], [onwards, *following, *made]

    named = zip([number, going, *state], [_NUMBER, _FLAG, *specs], strict=True)
    return w.body(write, [w.takes(name, spec) for name, spec in named])


@RULES.for_op("while_loop")
def while_loop(w: OnnxWriter, node: Node, *names: str) -> Names:
    """Write a while loop as a Loop; with `save` it also stacks the state before each turn, for the gradient."""
    carry, condition, body = node.attrs["carry"], node.attrs["condition"], node.attrs["body"]
    start, outer = names[:carry], names[carry:]
    specs = [source.spec for source in node.inputs[:carry]]

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        following = w.write_again(body, [*state, *outer])
        (onwards,) = w.write_again(condition, [*following, *outer])
        return onwards, following, state if node.attrs["save"] else []

    (going,) = w.write_again(condition, names)
    results = _loop(w, "", going, start, specs, specs if node.attrs["save"] else [], turn)
    return [*results[:carry], results[carry:]]


@RULES.for_op("while_loop_gradient")
def while_loop_gradient(w: OnnxWriter, node: Node, history: list[str], *names: str) -> Names:
    """Write a Loop of one turn per saved state, read from the last to the first, or from the first to the last."""
    carry, step, reverse = node.attrs["carry"], node.attrs["step"], node.attrs["reverse"]
    start, outer = names[:carry], names[carry:]
    count = w("Squeeze", w("Shape", history[0], start=0, end=1))
    last = w("Sub", count, w.constant(1, np.int64))

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        row = w("Sub", last, number) if reverse else number
        saved = [w("Gather", rows, row, axis=0) for rows in history]
        return w.constant(True), w.write_again(step, [*state, *saved, *outer]), []

    return _loop(w, count, "", start, [source.spec for source in node.inputs[1 : 1 + carry]], [], turn)


@RULES.for_op("scan")
def scan(w: OnnxWriter, node: Node, *names: str) -> Names:
    attrs, body = node.attrs, node.attrs["body"]
    carry, xs, save, reverse, length = (attrs[key] for key in ("carry", "xs", "save", "reverse", "length"))
    start, sequences, outer = names[:carry], names[carry : carry + xs], names[carry + xs :]
    specs = [source.spec for source in node.inputs[:carry]]
    rows = [TensorSpec(spec.shape[1:], spec.dtype) for spec in attrs["rows"]]
    count = w.number(length)
    last = w("Sub", count, w.constant(1, np.int64))

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        row = w("Sub", last, number) if reverse else number
        slices = [w("Gather", x, row, axis=0) for x in sequences]
        results = w.write_again(body, [*state, *slices, *outer])
        return w.constant(True), results[:carry], [*results[carry:], *(state if save else [])]

    results = _loop(w, count, "", start, specs, rows, turn)
    stacked = [reverse_axes(w, name, [0]) for name in results[carry:]] if reverse else results[carry:]
    return [*results[:carry], *stacked]
