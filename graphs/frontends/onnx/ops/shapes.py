"""Ops that move or pick elements. Then ops that make values of numbers and shapes alone."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from graphs import dims, ops
from graphs.dims import Dim, Size
from graphs.errors import OptionError, OutOfRangeError, ShapeError
from graphs.frontends.onnx import table
from graphs.frontends.onnx.table import Constant, Count, Counts, Decider, Floats, Sizes, translates
from graphs.ops.manipulation import astype
from graphs.ops.shapes import dtype_of, positive_axis, shape_of
from graphs.spec import broadcast_shapes


@translates("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return table.array_of(list(shape_of(x)[start:end]))


@translates("Size")
def size(x: Any) -> Any:
    return table.array_of(dims.product(shape_of(x)))


@translates("Reshape")
def reshape(x: Any, shape: Sizes, *, allowzero: bool = False) -> Any:
    """Reshape; a 0 keeps the size of an axis, unless `allowzero`."""
    have = shape_of(x)
    if any(isinstance(s, int) and s < -1 for s in shape) or (
        not allowzero and any(_is(s, 0) for s in shape[len(have) :])
    ):
        raise ShapeError(f"{[*shape]} is no shape for {[*have]}; give sizes, 0 for one that stays and -1 for the rest")
    wanted = [s if allowzero or not _is(s, 0) else have[axis] for axis, s in enumerate(shape)]
    return ops.reshape(x, wanted)


def _is(size: Size, number: int) -> bool:
    return isinstance(size, int) and size == number


@translates("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    have = shape_of(x)
    at = axis if axis >= 0 else axis + len(have)
    if not 0 <= at <= len(have):
        raise OutOfRangeError(f"axis {axis} is out of range for {len(have)} axes; use {-len(have)} to {len(have)}")
    return ops.reshape(x, (dims.product(have[:at]), dims.product(have[at:])))


@translates("Transpose")
def transpose(x: Any, *, perm: Sizes | None = None) -> Any:
    return ops.permute_dims(x, None if perm is None else tuple(perm))


@translates("Squeeze")
def squeeze(x: Any, axes: Sizes | None = None) -> Any:
    """Remove the axes; without axes all of size 1. Raises ShapeError for a symbolic size that might be 1."""
    if axes is None:
        for axis, size in enumerate(shape_of(x)):
            if isinstance(size, Dim) and not dims.same(dims.maximum(size, 2), size):
                raise ShapeError(f"whether axis {axis} of size {size} goes is unknown; name the axes, or give the size")
    return ops.squeeze(x, None if axes is None else table.whole(axes))


@translates("Unsqueeze")
def unsqueeze(x: Any, axes: Sizes) -> Any:
    return ops.expand_dims(x, table.whole(axes))


@translates("Expand")
def expand(x: Any, shape: Sizes) -> Any:
    return ops.broadcast_to(x, broadcast_shapes(shape_of(x), tuple(shape)))


@translates("Tile")
def tile(x: Any, repeats: Sizes) -> Any:
    return ops.tile(x, table.whole(repeats))


@translates("Concat")
def concat(*values: Any, axis: int) -> Any:
    return ops.concat([value if hasattr(value, "dtype") else np.asarray(value) for value in values], axis=axis)


@translates("Split")
def split(
    x: Any, split: Sizes | None = None, *, axis: int = 0, num_outputs: Count | None = None, outputs: int
) -> tuple[Any, ...]:
    """Split x into parts of these sizes, or of one size, where the last may be smaller."""
    at = positive_axis(axis, len(shape_of(x)))
    if len(split) != outputs if split is not None else num_outputs not in (None, outputs):
        raise ShapeError(
            f"{len(split) if split is not None else num_outputs} parts for {outputs} outputs; make them equal"
        )
    return tuple(cut(x, at, split if split is not None else _even(shape_of(x)[at], outputs)))


def _even(whole: Size, count: int) -> list[Size]:
    """`count` parts of one size, the last smaller if need be; symbolic sizes end as slices do."""
    each = (whole + count - 1) // count
    if not isinstance(whole, int):
        return [each if not dims.same(whole // count * count, whole) else whole // count] * count
    return [min(each, max(0, whole - each * part)) for part in range(count)]


def cut(x: Any, axis: int, parts: Sizes) -> list[Any]:
    """The parts of x of these sizes, one after the other along an axis."""
    whole = shape_of(x)[axis]
    numbers = [part for part in parts if isinstance(part, int)]
    if min(numbers, default=0) < 0 or (isinstance(whole, int) and len(numbers) == len(parts) and sum(numbers) != whole):
        raise ShapeError(f"parts of {[*parts]} do not make up a size of {whole}; give some that do")
    first: Size = 0
    pieces = []
    for part in parts:
        pieces.append(ops.getitem(x, (*(slice(None),) * axis, slice(first, first + part))))
        first = first + part
    return pieces


@translates("Slice")
def slice_axes(x: Any, starts: Sizes, ends: Sizes, axes: Sizes | None = None, steps: Sizes | None = None) -> Any:
    key = table.slices(len(shape_of(x)), starts, ends, axes, steps)
    return ops.getitem(x, tuple(map(_clip_slice, key, shape_of(x))))


def _clip_slice(part: slice, size: Size) -> slice:
    """A backwards slice with ends beyond the axis, made a valid Python slice."""
    if not isinstance(size, int) or not isinstance(part.step, int) or part.step > 0:
        return part
    start = max(part.start, -size) if isinstance(part.start, int) else part.start
    stop = None if isinstance(part.stop, int) and part.stop < -size else part.stop
    return slice(start, stop, part.step)


@translates("Pad")
def pad(x: Any, pads: Sizes, value: Any = None, axes: Sizes | None = None, *, mode: str = "constant") -> Any:
    """Pad x; `pads` are the widths before all axes, then those after; a negative width removes elements."""
    ndim = len(shape_of(x))
    at = [axis % ndim for axis in (range(ndim) if axes is None else axes)]
    widths: list[tuple[Any, Any]] = [(0, 0)] * ndim
    for axis, before, after in zip(at, pads[: len(at)], pads[len(at) :], strict=True):
        widths[axis] = before, after
    if any(_is_negative(width) for pair in widths for width in pair):
        x = ops.getitem(x, tuple(slice(max(0, -before), -max(0, -after) or None) for before, after in widths))
        widths = [(max(0, before), max(0, after)) for before, after in widths]
    if mode != "constant":
        return ops.pad(x, widths, mode=mode)
    fill: Any = 0 if value is None else table.numbers(value)[0]
    return ops.pad(x, widths, fill)


def _is_negative(width: Size) -> bool:
    return isinstance(width, int) and width < 0


@translates("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: Count, mode: Literal["DCR", "CRD"] = "DCR") -> Any:
    """Move channels to blocks of pixels; the channel varies slowest ("CRD") or fastest ("DCR")."""
    n, c, h, w = shape_of(x)
    block = blocksize
    inner = c // (block * block)
    if mode == "DCR":
        parts = ops.permute_dims(ops.reshape(x, (n, block, block, inner, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = ops.permute_dims(ops.reshape(x, (n, inner, block, block, h, w)), (0, 1, 4, 2, 5, 3))
    return ops.reshape(parts, (n, inner, h * block, w * block))


@translates("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: Count, mode: Literal["DCR", "CRD"] = "DCR") -> Any:
    """Move blocks of pixels to channels; the channel varies slowest ("CRD") or fastest ("DCR")."""
    n, c, h, w = shape_of(x)
    block = blocksize
    parts = ops.reshape(x, (n, c, h // block, block, w // block, block))
    moved = ops.permute_dims(parts, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return ops.reshape(moved, (n, c * block * block, h // block, w // block))


@translates("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """Reverse the first elements of each sequence, as many as its length."""
    rows = ops.moveaxis(x, (batch_axis, time_axis), (0, 1))
    steps, until = ops.arange(shape_of(rows)[1]), ops.expand_dims(lengths, 1)
    order = ops.where(ops.less(steps, until), ops.subtract(ops.subtract(until, 1), steps), steps)
    order = ops.reshape(order, (*shape_of(order), *(1,) * (len(shape_of(x)) - 2)))
    return ops.moveaxis(ops.take_along_axis(rows, order, axis=1), (0, 1), (batch_axis, time_axis))


@translates("Col2Im")
def columns_to_image(
    x: Any, image: Sizes, block: Sizes, *, dilations: Counts | None = None, pads: Sizes | None = None,
    strides: Counts | None = None,
) -> Any:  # fmt: skip
    """Add blocks, the columns of x [N, C * block, L], at the places where a convolution would read them."""
    rank = len(image)
    ones = [1] * rank
    before, after = (pads or [0] * 2 * rank)[:rank], (pads or [0] * 2 * rank)[rank:]
    window = tuple(zip(block, strides or ones, before, after, dilations or ones, strict=True))
    count, channels = dims.product(block), shape_of(x)[1]
    blocks = [(size + b + a - d * (k - 1) - 1) // s + 1 for size, (k, s, b, a, d) in zip(image, window, strict=True)]
    columns = ops.reshape(x, (shape_of(x)[0], channels, *blocks))
    unit = np.tile(np.eye(int(count)).reshape(int(count), 1, *block), (int(channels // count), *[1] * (rank + 1)))
    return ops.convolution_input(columns, unit.astype(dtype_of(x)), tuple(image), window, channels // count)


@translates("Constant", since=1)
def constant(
    *, value: Constant | None = None, value_float: float | None = None, value_floats: Floats | None = None,
    value_int: int | None = None, value_ints: Sizes | None = None,
) -> Any:  # fmt: skip
    """The one value that is given. Raises OptionError for none or several."""
    present = sum(entry is not None for entry in (value, value_float, value_floats, value_int, value_ints))
    if present != 1:
        raise OptionError(f"{present} values; give one")
    if value is not None:
        return value
    floats = value_float if value_floats is None else value_floats
    if floats is not None:
        return np.asarray(floats, np.float32)
    return np.asarray(value_int if value_ints is None else value_ints, np.int64)


@translates("ConstantOfShape")
def constant_of_shape(shape: Sizes, *, value: Constant | None = None) -> Any:
    element = np.zeros(1, np.float32) if value is None else value
    return ops.full(tuple(shape), element.item(), element.dtype)


@translates("EyeLike")
def eye_like(x: Any, *, dtype: np.dtype[Any] | None = None, k: int = 0) -> Any:
    rows, columns = table.whole(shape_of(x))
    return ops.eye(rows, columns, k=k, dtype=dtype or dtype_of(x))


@translates("Range")
def numbers_from(start: Decider, limit: Decider, delta: Decider) -> Any:
    """A range; floats are computed from their distance to the start, as in ONNX, so that no rounding adds up."""
    first, end, step = (bound.item() for bound in (start, limit, delta))
    if isinstance(first, float):
        return np.arange(np.maximum(np.ceil((end - first) / step), 0), dtype=start.dtype) * step + first
    kinds = [bound.dtype for bound in (start, limit, delta) if bound.dtype != object]  # sizes are int64
    return ops.astype(ops.arange(first, end, step), kinds[0] if kinds else np.int64)


@translates("OneHot")
def one_hot(indices: Any, depth: Sizes, values: Any, *, axis: int = -1) -> Any:
    """`values` are the off and the on value; a negative index counts from the end."""
    (count,) = depth
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"a depth of {count}; give 1 or more")
    places = ops.astype(indices, np.int64)
    there = ops.equal(ops.expand_dims(ops.remainder(places, count), -1), ops.arange(count))
    inside = ops.logical_and(ops.greater_equal(places, -count), ops.less(places, count))
    chosen = ops.where(ops.logical_and(there, ops.expand_dims(inside, -1)), values[1], values[0])
    return ops.moveaxis(chosen, -1, axis)


# Picking --------------------------------------------------------------------------------------------------------------


@translates("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    if isinstance(indices, np.ndarray) and not indices.shape:  # one place, which is known: a view
        at = positive_axis(axis, len(shape_of(x)))
        return ops.getitem(x, (*(slice(None),) * at, int(indices)))
    return ops.take(x, indices, axis=axis)


@translates("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    # Crop x to the sizes of the indices along all axes but one.
    have, wanted = shape_of(x), shape_of(indices)
    at = positive_axis(axis, len(have))
    key = tuple(
        slice(None) if i == at or dims.same(have[i], wanted[i]) else slice(0, wanted[i]) for i in range(len(have))
    )
    return ops.take_along_axis(x if key == (slice(None),) * len(have) else ops.getitem(x, key), indices, axis=axis)


@translates("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """x at the index tuples along the last axis of `indices`; the first `batch_dims` axes are shared."""
    return ops.index(x, _key(indices, shape_of(x), batch_dims))


def _key(indices: Any, shape: Any, batch_dims: int = 0) -> tuple[Any, ...]:
    """The index arrays for the index tuples along the last axis, after arrays for the batch axes."""
    axes = len(shape_of(indices)) - 1
    batch = [
        ops.reshape(ops.arange(shape[axis]), [-1 if i == axis else 1 for i in range(axes)])
        for axis in range(batch_dims)
    ]
    return (*batch, *(ops.getitem(indices, (..., i)) for i in range(int(shape_of(indices)[-1]))))


Reduction = Literal["none", "add", "mul", "max", "min"]
_JOINS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@translates("ScatterElements", "Scatter", since=9)
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: Reduction = "none") -> Any:
    at = positive_axis(axis, len(shape_of(x)))
    if reduction != "none":
        return ops.scatter_reduce(x, at, indices, updates, _JOINS[reduction])
    places = [
        ops.reshape(ops.arange(size), [-1 if i == j else 1 for j in range(len(shape_of(indices)))])
        for i, size in enumerate(shape_of(indices))
    ]
    return ops.setitem(x, updates, tuple(indices if i == at else place for i, place in enumerate(places)))


@translates("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: Reduction = "none") -> Any:
    """x with `updates` written, or combined, at the index tuples along the last axis."""
    key = _key(indices, shape_of(x))
    if reduction == "none":
        return ops.setitem(x, updates, key)
    every = ops.reshape(ops.arange(dims.product(shape_of(x))), shape_of(x))
    places = ops.reshape(ops.index(every, key), (-1,))
    joined = ops.scatter_reduce(ops.reshape(x, (-1,)), 0, places, ops.reshape(updates, (-1,)), _JOINS[reduction])
    return ops.reshape(joined, shape_of(x))


@translates("Compress")
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    places = np.nonzero(table.numbers(condition))[0]
    return ops.take(ops.reshape(x, (-1,)), places) if axis is None else ops.take(x, places, axis=axis)


@translates("NonZero")
def nonzero(x: Any) -> Any:
    return ops.stack([astype(places, np.int64) for places in ops.nonzero(x)])


@translates("TopK")
def top(x: Any, k: Sizes, *, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """The k largest or smallest elements, always in order, and their indices."""
    at = positive_axis(axis, len(shape_of(x)))
    size = shape_of(x)[at]
    if _is_number(k[0]) and (k[0] < 0 or (_is_number(size) and k[0] > size)):
        raise ShapeError(f"the first {k[0]} of {size} elements; give a number from 0 to {size}")
    order = ops.argsort(x, axis=at, descending=largest)
    places = ops.getitem(order, (*(slice(None),) * at, slice(0, k[0])))
    return ops.take_along_axis(x, places, axis=at), astype(places, np.int64)


def _is_number(size: Any) -> bool:
    return isinstance(size, int)


@translates("Unique")
def unique(x: Any, *, axis: int | None = None, sorted: bool = True, outputs: int) -> tuple[Any, ...]:
    """The distinct values or slices, the index of each first occurrence, the inverse indices, and the counts."""
    values = np.asarray(x)
    distinct, first, which, counts = np.unique(
        values, axis=axis, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    which = which.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        distinct = np.take(distinct, order, axis=0 if axis is None else axis)
        which, first, counts = np.argsort(order)[which], first[order], counts[order]
    return (distinct, first, which, counts)[:outputs]


@translates("CumSum")
def running_sum(x: Any, axis: Sizes, *, exclusive: bool = False, reverse: bool = False) -> Any:
    return _running(ops.cumulative_sum, 0, x, axis, exclusive, reverse)


@translates("CumProd")
def running_product(x: Any, axis: Sizes, *, exclusive: bool = False, reverse: bool = False) -> Any:
    return _running(ops.cumulative_prod, 1, x, axis, exclusive, reverse)


def _running(function: Any, nothing: int, x: Any, axis: Sizes, exclusive: bool, reverse: bool) -> Any:
    """A running sum or product along an axis, from its end if `reverse`, without the element itself if `exclusive`."""
    at = positive_axis(int(axis[0]), len(shape_of(x)))
    turned = ops.flip(x, axis=at) if reverse else x
    if exclusive:
        widths = [(int(i == at), 0) for i in range(len(shape_of(x)))]
        turned = ops.pad(ops.getitem(turned, (*(slice(None),) * at, slice(0, -1))), widths, nothing)
    result = astype(function(turned, axis=at), dtype_of(x))
    return ops.flip(result, axis=at) if reverse else result


@translates("TensorScatter")
def write_along(
    past: Any, update: Any, write_indices: Any = None, *, axis: int = -2, mode: Literal["linear", "circular"] = "linear"
) -> Any:
    """Write new entries into a cache along an axis, from each example's index on; "circular" wraps around."""
    at = positive_axis(axis, len(shape_of(past)))
    shape, count = shape_of(update), shape_of(update)[at]
    start = np.zeros(int(shape[0]), np.int64) if write_indices is None else write_indices
    steps = ops.reshape(ops.arange(count), [-1 if i == at else 1 for i in range(len(shape))])
    places = ops.add(ops.reshape(start, (-1, *(1,) * (len(shape) - 1))), steps)
    if mode == "circular":
        places = ops.remainder(places, shape_of(past)[at])
    return scatter_elements(past, ops.broadcast_to(places, shape), update, axis=at)
