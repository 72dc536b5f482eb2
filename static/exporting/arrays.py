"""How ops are written that move elements, reduce, pick, sort or multiply matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.dims import Dim, Size
from graphs.ir import Node
from static.exporting.writer import OnnxWriter, UnwritableError, writes

END = np.iinfo(np.int64).max
BEGIN = np.iinfo(np.int64).min

# Shapes -------------------------------------------------------------------------------------------------------------


@writes("reshape")
def reshape(w: OnnxWriter, node: Node, x: str) -> str:
    return w.reshaped(x, node.shape)


@writes("permute_dims")
def permute_dims(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Transpose", x, perm=[*node.attrs["axes"]]) if node.shape else x


@writes("broadcast_to")
def broadcast_to(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Expand", x, w.shape(node.shape))


@writes("concat")
def concat(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Concat", *w.typed(node, names, node.dtype), axis=node.attrs["axis"])


@writes("flip")
def flip(w: OnnxWriter, node: Node, x: str) -> str:
    axes = node.attrs["axis"]
    axes = [axes] if isinstance(axes, int) else [*axes]
    return reversed_along(w, x, axes)


def reversed_along(w: OnnxWriter, x: str, axes: Sequence[int]) -> str:
    """The elements in the opposite order along some axes."""
    count = len(axes)
    return (
        x
        if not count
        else w("Slice", x, w.ints([END] * count), w.ints([BEGIN] * count), w.ints(axes), w.ints([-1] * count))
    )


@writes("pad")
def pad(w: OnnxWriter, node: Node, x: str) -> str:
    widths = node.attrs["pad_width"]
    if not widths:
        return x
    pads = w.shape([*(before for before, _ in widths), *(after for _, after in widths)])
    return w("Pad", x, pads, w.constant(node.attrs["value"], node.dtype))


@writes("getitem")
def getitem(w: OnnxWriter, node: Node, x: str) -> str:
    """A Slice, without the axes that an int takes away, and with those that None adds."""
    key = node.attrs["key"]
    along = list(enumerate(entry for entry in key if entry is not None))
    cuts = [(axis, *_bounds(entry)) for axis, entry in along if entry != slice(None)]
    if cuts:
        axes, starts, ends, steps = zip(*cuts, strict=True)
        x = w("Slice", x, w.shape(starts), w.shape(ends), w.ints(axes), w.ints(steps))
    gone = [axis for axis, entry in along if not isinstance(entry, slice)]
    if gone:
        x = w("Squeeze", x, w.ints(gone))
    new = _new_axes(key)
    return w("Unsqueeze", x, w.ints(new)) if new else x


def _bounds(entry: Any) -> tuple[Size, Size, int]:
    """Start, end and step of a slice, or of the one element that an int picks."""
    if not isinstance(entry, slice):
        return entry, END if _is(entry, -1) else entry + 1, 1
    step = 1 if entry.step is None else entry.step
    first, last = (0, END) if step > 0 else (END, BEGIN)
    return first if entry.start is None else entry.start, last if entry.stop is None else entry.stop, step


def _is(size: Size, number: int) -> bool:
    return not isinstance(size, Dim) and size == number


def _new_axes(key: Sequence[Any]) -> list[int]:
    """The places of the axes that None adds, among those of the result."""
    kept = [entry for entry in key if entry is None or isinstance(entry, slice)]
    return [place for place, entry in enumerate(kept) if entry is None]


@writes("place")
def place(w: OnnxWriter, node: Node, g: str) -> str:
    """Zeros around g along each axis that the key cuts; between its elements too where the step is not 1."""
    key, shape = node.attrs["key"], node.attrs["shape"]
    new = _new_axes(key)
    if new:
        g = w("Squeeze", g, w.ints(new))
    along = [entry for entry in key if entry is not None]
    gone = [axis for axis, entry in enumerate(along) if not isinstance(entry, slice)]
    if gone:
        g = w("Unsqueeze", g, w.ints(gone))
    sizes = _sizes_along(node, along, new)
    for axis, (entry, size, length) in enumerate(zip(along, shape, sizes, strict=False)):
        if entry != slice(None):
            g = _placed(w, g, axis, entry, size, length, node)
    return g


def _sizes_along(node: Node, along: Sequence[Any], new: Sequence[int]) -> list[Size]:
    """How many elements of g lie along each axis of the result."""
    have = iter(size for place, size in enumerate(node.inputs[0].shape) if place not in new)
    return [next(have) if isinstance(entry, slice) else 1 for entry in along]


def _placed(w: OnnxWriter, g: str, axis: int, entry: Any, size: Size, length: Size, node: Node) -> str:
    start, _, step = _bounds(entry)
    if step == 1:
        before = start + size if isinstance(start, int) and start < 0 else start
        return _padded(w, g, len(node.shape), axis, before, size - before - length, node)
    if isinstance(size, Dim) or isinstance(length, Dim):
        raise UnwritableError(f"a step of {step} on the symbolic size {size} is not written; give it as a number")
    rows = np.full(size, length)  # a row of zeros, behind those of g
    rows[entry] = np.arange(length)
    return w("Gather", _padded(w, g, len(node.shape), axis, 0, 1, node), w.ints(rows), axis=axis)


def _padded(w: OnnxWriter, x: str, ndim: int, axis: int, before: Size, after: Size, node: Node) -> str:
    pads: list[Size] = [0 for _ in range(2 * ndim)]
    pads[axis], pads[ndim + axis] = before, after
    return w("Pad", x, w.shape(pads), w.scalar(0, node))


@writes("setitem")
def setitem(w: OnnxWriter, node: Node, x: str, value: str) -> str:
    """The value, broadcast, chosen where the key points."""
    if any(isinstance(size, Dim) for size in node.shape):
        raise UnwritableError(f"setitem ({node.source}): on a symbolic size it is not written; give sizes as numbers")
    places = np.full(node.shape, -1)
    chosen = np.empty(node.shape)[node.attrs["key"]].shape
    if 0 in chosen:
        return x
    places[node.attrs["key"]] = np.arange(int(np.prod(chosen))).reshape(chosen)
    (value,) = w.typed(node, (x, value), node.dtype)[1:]
    rows = w.reshaped(w("Expand", value, w.ints(chosen)), (-1,))
    picked = w("Gather", rows, w.ints(np.maximum(places, 0).ravel()), axis=0)
    return w("Where", w.constant(places >= 0), w.reshaped(picked, node.shape), x)


@writes("full")
def full(w: OnnxWriter, node: Node) -> str:
    return w.zeros(node.shape, node.dtype, node.attrs["value"])


@writes("arange")
def arange(w: OnnxWriter, node: Node) -> str:
    start, stop, step = (node.attrs[name] for name in ("start", "stop", "step"))
    bounds = start, stop, step
    if not any(isinstance(value, Dim) for value in bounds):
        return w.constant(np.arange(*bounds, dtype=node.dtype))
    numbers = [w("Squeeze", w.size(value)) for value in bounds]
    return w.cast(w("Range", *numbers), node.dtype)


# Reductions ---------------------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}


@writes(*_REDUCTIONS)
def reduction(w: OnnxWriter, node: Node, x: str) -> str:
    (x,) = w.typed(node, [x], wide(node.dtype))
    return narrowed(w, reduced(w, _REDUCTIONS[node.op.name], x, node), node)


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers of one are added: ONNX has no sums of small integers."""
    return np.dtype(np.int64) if dtype.kind in "iu" and dtype.itemsize < 4 else dtype


def narrowed(w: OnnxWriter, name: str, node: Node) -> str:
    """A result that was computed in a wide dtype, in that of its node."""
    return name if wide(node.dtype) == node.dtype else w.cast(name, node.dtype)


def reduced(w: OnnxWriter, op: str, x: str, node: Node) -> str:
    """A reduction of x over the axes of a node: over none x itself."""
    axes = w.ints(node.attrs["axis"])
    return w(op, x, axes, keepdims=int(node.attrs["keepdims"]), noop_with_empty_axes=1)


@writes("any", "all")
def quantified(w: OnnxWriter, node: Node, x: str) -> str:
    """Whether there are some that hold, or none that do not: of nothing too."""
    flags = x if node.inputs[0].dtype == np.bool_ else w.cast(x, np.bool_)
    if node.op.name == "any":
        return w.cast(reduced(w, "ReduceSum", w.cast(flags, np.int64), node), np.bool_)
    return w("Not", w.cast(reduced(w, "ReduceSum", w.cast(w("Not", flags), np.int64), node), np.bool_))


@writes("argmax", "argmin")
def place_of_extreme(w: OnnxWriter, node: Node, x: str) -> str:
    op = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    axis, keepdims = node.attrs["axis"], int(node.attrs["keepdims"])
    values = w.cast(x, np.int32) if node.inputs[0].dtype == np.bool_ else x
    if axis is None:
        return w.reshaped(w(op, w.reshaped(values, (-1,)), axis=0, keepdims=0), node.shape)
    return w(op, values, axis=axis if isinstance(axis, int) else axis[0], keepdims=keepdims)


@writes("cumulative_sum")
def cumulative_sum(w: OnnxWriter, node: Node, x: str) -> str:
    (x,) = w.typed(node, [x], wide(node.dtype))
    return narrowed(w, w("CumSum", x, w.constant(node.attrs["axis"], np.int64)), node)


# Picking and sorting ------------------------------------------------------------------------------------------------


def places(w: OnnxWriter, node: Node, name: str) -> str:
    """Indices as ONNX takes them: of int64."""
    return name if node.dtype in (np.int64, np.int32) else w.cast(name, np.int64)


@writes("take")
def take(w: OnnxWriter, node: Node, x: str, indices: str) -> str:
    return w("Gather", x, places(w, node.inputs[1], indices), axis=node.attrs["axis"])


@writes("take_along_axis")
def take_along_axis(w: OnnxWriter, node: Node, x: str, indices: str) -> str:
    return w("GatherElements", x, places(w, node.inputs[1], indices), axis=node.attrs["axis"])


@writes("add_along_axis")
def add_along_axis(w: OnnxWriter, node: Node, g: str, indices: str) -> str:
    zeros = w.zeros(node.shape, node.dtype)
    there = places(w, node.inputs[1], indices)
    return w("ScatterElements", zeros, there, g, axis=node.attrs["axis"], reduction="add")


@writes("scatter_add")
def scatter_add(w: OnnxWriter, node: Node, g: str, indices: str) -> str:
    """Rows added at their places along the first axis, to which the axis is moved."""
    axis = node.attrs["axis"]
    first = [axis, *(a for a in range(len(node.shape)) if a != axis)]
    zeros = w.zeros([node.shape[a] for a in first], node.dtype)
    return _scattered(w, node, zeros, indices, g, axis, "add")


@writes("scatter")
def scatter(w: OnnxWriter, node: Node, x: str, indices: str, values: str) -> str:
    axis = node.attrs["axis"]
    first = [axis, *(a for a in range(len(node.shape)) if a != axis)]
    (values,) = w.typed(node, (x, indices, values), node.dtype)[2:]
    return _scattered(w, node, w("Transpose", x, perm=first), indices, values, axis, "none")


def _scattered(w: OnnxWriter, node: Node, rows: str, indices: str, values: str, axis: int, join: str) -> str:
    """Rows with values written, or added, at the indices; then the first axis is again where it was."""
    source = node.inputs[1]
    count = len(source.shape)
    ndim = len(node.shape)
    order = [*range(axis, axis + count), *range(axis), *range(axis + count, ndim - 1 + count)]
    moved = values if order == sorted(order) else w("Transpose", values, perm=order)
    there = w("Unsqueeze", places(w, source, indices), w.ints([count]))
    made = w("ScatterND", rows, there, moved, reduction=join)
    back = [*range(1, axis + 1), 0, *range(axis + 1, ndim)]
    return made if axis == 0 else w("Transpose", made, perm=back)


@writes("sort", "argsort")
def sort(w: OnnxWriter, node: Node, x: str) -> str:
    axis = node.attrs["axis"]
    count = w.size(node.shape[axis])
    values, order = w("TopK", x, count, outputs=2, axis=axis, largest=int(node.attrs["descending"]), sorted=1)
    return values if node.op.name == "sort" else order


@writes("searchsorted")
def searchsorted(w: OnnxWriter, node: Node, x: str, y: str) -> str:
    """How many are less, or no more."""
    dtype = np.result_type(*(source.dtype for source in node.inputs))
    x, y = w.typed(node, (x, y), dtype)
    before = w("Less" if node.attrs["side"] == "left" else "LessOrEqual", x, w("Unsqueeze", y, w.ints([-1])))
    return w("ReduceSum", w.cast(before, np.int64), w.ints([-1]), keepdims=0)


@writes("flat_index")
def flat_index(w: OnnxWriter, node: Node, *names: str) -> str:
    """The place among elements row by row; negative positions count from the end."""
    total = w.constant(0, np.int64)
    for name, source, size in zip(names, node.inputs, node.attrs["sizes"], strict=True):
        there = name if source.dtype == np.int64 else w.cast(name, np.int64)
        length = w("Squeeze", w.size(size))
        total = w("Add", w("Mul", total, length), w("Mod", there, length))
    return total


# Products -----------------------------------------------------------------------------------------------------------


@writes("matmul")
def matmul(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("MatMul", *w.typed(node, names, node.dtype))


@writes("det")
def det(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Det", x)


@writes("softmax", "log_softmax")
def softmax(w: OnnxWriter, node: Node, x: str) -> str:
    axes = node.attrs["axis"]
    if len(axes) != 1:
        raise UnwritableError(f"{node.op.name} ({node.source}): over {len(axes)} axes it is not written; reshape them")
    return w("Softmax" if node.op.name == "softmax" else "LogSoftmax", x, axis=axes[0])
