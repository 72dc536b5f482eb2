"""Kernels of `where` and `scatter_add`, where NumPy's own way is many times as slow.

`where` is a choice without a branch for each element, by arithmetic on the bits of the numbers. NumPy's (`where`,
`copyto(..., where=)`) takes ten to twenty times as long when the condition is random, like the mask of a ReLU: the
processor cannot predict it. `scatter_add` adds whole slices, or to a flat array, where `np.add.at` takes elements of
rows one by one.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from graphs import promotion
from graphs.errors import OutOfRangeError
from graphs.op import Array
from graphs.ops.shapes import fill
from graphs.spec import broadcast_shapes

Shape = tuple[int, ...]

_FEW_SELECTED = 1024  # elements: so many NumPy chooses from as soon
_SMALL = 256  # elements: for so many, to set up the arithmetic takes longer than what the processor did not foresee
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def select(condition: Array, x: Array, y: Array, out: Array = None) -> Array:
    """x where the condition holds, else y: `where(condition, x, y)`. `out` may be an operand."""
    if out is not None and getattr(condition, "ndim", 0) == 0:  # one answer for all, as in the gradient of a loop
        chosen = x if condition else y
        if chosen is not out:
            np.copyto(out, chosen)
        return out
    if type(x) is not type(y) and np.size(condition) > _FEW_SELECTED:  # a number beside an array is of its dtype
        x, y = promotion.weak_to_array(x, (y,)), promotion.weak_to_array(y, (x,))
    bits = _BITS.get(x.dtype.itemsize) if _alike(condition, x, y) else None
    if bits is None or max(condition.size, x.size, y.size) <= _SMALL:
        return _where_by_copy(condition, x, y, out)
    if out is None:
        out = np.empty(_shape(condition.shape, x.shape, y.shape), x.dtype)
    target, kept, other = out.view(bits), x.view(bits), y.view(bits)
    if other.ndim == 0 and not other:  # zero, as in the gradient of a ReLU: half of the work
        np.multiply(kept, condition, target)
    elif kept.ndim == 0 and not kept:
        np.multiply(other, np.logical_not(condition), target)
    else:
        np.bitwise_xor(np.multiply(np.bitwise_xor(kept, other), condition), other, target)
    return out


def _shape(condition: Shape, x: Shape, y: Shape) -> Shape:
    """The shape that all three broadcast to; the usual cases, equal shapes or a scalar, take no call."""
    if condition == (x or y) and (y == condition or not (x and y)):
        return condition
    shape: Any = broadcast_shapes(condition, x, y)  # of numbers, as these are
    return shape


def _alike(condition: Array, x: Array, y: Array) -> bool:
    arrays = type(condition) is type(x) is type(y) is np.ndarray
    return arrays and x.dtype == y.dtype and condition.dtype == np.bool_


def _where_by_copy(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """`select` for few elements, for mixed dtypes, and for dtypes that are wider than any integer."""
    if out is None:
        return np.where(condition, x, y)
    holds = np.asarray(condition, bool)
    if np.may_share_memory(out, x):
        np.copyto(out, y, where=~holds)
    else:
        np.copyto(out, y)
        np.copyto(out, x, where=holds)
    return out


# Slices that are added at places --------------------------------------------------------------------------------------


def from_front(position: Array, size: int) -> Array:
    """Positions counted from the front. Raises OutOfRangeError outside: a flat index would name another element."""
    size = operator.index(size)  # a symbolic one is no number: a trace must hold the result
    position = np.asarray(position).astype(np.intp, copy=False)  # in which no product of sizes overflows
    least = position.min()
    if least < -size or position.max() >= size:
        raise outside(size)
    return position if least >= 0 else np.where(position < 0, position + size, position)


def axes_first(array: Array, axis: int, count: int = 1) -> Array:
    """`count` axes from `axis` on, moved to the front."""
    if axis == 0:
        return array
    return np.moveaxis(array, range(axis, axis + count), range(count))


def add_at_places(g: Array, indices: Array, *, shape: Shape, axis: int, out: Array = None) -> Array:
    """Zeros of `shape` with the slices of g added at `indices` along `axis`: the adjoint of take."""
    out = np.zeros(shape, g.dtype) if out is None else fill(shape, g.dtype, 0, out)
    if axis and _add_by_turns(out, axis, indices, g):
        return out
    if axis and indices.size and out.flags.c_contiguous:
        np.add.at(out.reshape(-1), flat_places(out.shape, indices.reshape(-1, 1), axis), g.reshape(-1))
    else:
        _add_rows(axes_first(out, axis), indices, axes_first(g, axis, indices.ndim))
    return out


def _add_by_turns(out: Array, axis: int, indices: Array, g: Array) -> bool:
    """Add slices of g along an axis, in turns with at most one for each slice of out; False where that would not pay.

    A turn is one sum of whole arrays, where np.add.at takes elements one by one: 3 to 5 times as fast for the gradient
    of an image that is upsampled by 2. Turns are as fast at slices of some elements, if there are few.
    """
    places = np.where(indices < 0, indices + out.shape[axis], indices).reshape(-1)
    if not places.size or places.min() < 0 or places.max() >= out.shape[axis]:
        return not places.size
    order = np.argsort(places, kind="stable")
    firsts = np.searchsorted(places[order], places[order])
    turns = np.arange(places.size) - firsts
    if turns.max() >= _MOST_TURNS:
        return False
    before = (slice(None),) * axis
    taken = [order[turns == turn] for turn in range(turns.max() + 1)]
    pairs = [(_even(places[each]), _even(each)) for each in taken]
    is_even = all(type(part) is slice for pair in pairs for part in pair)
    if not is_even and math.prod(out.shape[axis + 1 :]) < _SLICE:
        return False
    values = g.reshape(*out.shape[:axis], places.size, *out.shape[axis + 1 :])
    for target, source in pairs:
        out[(*before, target)] += values[(*before, source)]
    return True


def _even(indices: Array) -> Array | slice:
    """Evenly rising indices as a slice, which selects a view where indices copy; other indices unchanged."""
    steps = np.diff(indices)
    if not steps.size or steps[0] <= 0 or np.any(steps != steps[0]):
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]))


def _add_rows(rows: Array, indices: Array, values: Array) -> None:
    """rows[indices] += values, where an index that occurs twice adds twice. Raises OutOfRangeError."""
    if indices.size == 1:
        try:
            rows[indices.item()] += values.reshape(rows.shape[1:])
        except IndexError:
            raise outside(len(rows)) from None
        return
    width = math.prod(rows.shape[1:])
    if rows.ndim > MOST_AXES:
        merged = rows.reshape(len(rows), width)
        _add_rows(merged, indices, values.reshape(*indices.shape, width))
        rows[...] = merged.reshape(rows.shape)
        return
    if width <= 1 or not rows.flags.c_contiguous:
        np.add.at(rows, indices, values)
        return
    if indices.size <= _FEW:
        try:
            np.add.at(rows, indices, values)
        except IndexError:
            raise outside(len(rows)) from None
        return
    places = np.where(indices < 0, indices + len(rows), indices).reshape(-1)
    if np.any((places < 0) | (places >= len(rows))):
        raise outside(len(rows))
    if width >= _WIDE and values.size >= _MANY and len(places) >= 2 * len(rows) and values.dtype.kind == "f":
        _add_sums(rows.reshape(-1, width), places, values.reshape(-1, width))
        return
    # np.add.at is 3 to 20 times as fast on a flat array as on rows.
    np.add.at(rows.reshape(-1), (places.reshape(-1, 1) * width + np.arange(width)).reshape(-1), values.reshape(-1))


def _add_sums(rows: Array, places: Array, values: Array) -> None:
    """`rows[places] += values` for rows of zeros: whole rows are added up, in the order in which they come.

    The places that occur most often stand first. So the values that are the second of their place, or the third, go to
    the first rows of the sums.
    """
    count = len(places)
    ranked, order = np.divmod(np.sort(places * count + np.arange(count)), count)  # sooner than a stable argsort
    starts = np.flatnonzero(np.diff(ranked, prepend=-1))
    occurrences = np.diff(starts, append=count)
    by_count = np.argsort(-occurrences)
    starts, occurrences = starts[by_count], occurrences[by_count]
    sums = values.take(order[starts], 0, mode="clip")
    sums += 0  # as rows of zeros: -0.0 becomes 0.0
    so_often = (len(starts) - np.cumsum(np.bincount(occurrences))).tolist()  # how many places have more than k values
    turn = 1
    while (reached := so_often[turn]) > _FEW:
        sums[:reached] += values.take(order[starts[:reached] + turn], 0, mode="clip")
        turn += 1
    for place in range(reached):
        first = starts[place]
        np.add.reduce(values.take(order[first : first + occurrences[place]], 0), 0, out=sums[place])
    rows[ranked[starts]] = sums


_WIDE, _MANY = 32, 1 << 15  # elements of a row and of all: from here to sort the places of twice as many rows pays


MOST_AXES = 32  # that np.add.at takes: it ends the process where an array has more


_MOST_TURNS = 16


_SLICE = 16  # elements that lie in a row


_FEW = 16  # indices: their rows are added up sooner than their places in the flat array are found


def outside(size: int) -> OutOfRangeError:
    """The error for an index that is out of range for an axis."""
    return OutOfRangeError(f"an index is out of range for an axis of size {size}; use {-size} to {size - 1}")


def flat_places(shape: tuple[int, ...], indices: Array, axis: int) -> Array:
    """The row-major places of what `indices` [before, n, after] pick along an axis, from which they may be broadcast.

    Raises OutOfRangeError.
    """
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    starts = np.arange(before).reshape(-1, 1, 1) * (shape[axis] * after) + np.arange(after)
    places: Array = from_front(indices, shape[axis]) * after + starts
    return places.reshape(-1)
