"""Elements picked by arrays along one axis, and their adjoints: take, scatter and take_along_axis."""

from __future__ import annotations

import math

import numpy as np

from graphs import dims
from graphs.dims import Shape
from graphs.errors import OutOfRangeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.creation import arange, full
from graphs.ops.elementwise import equal, where
from graphs.ops.families import checked, movement
from graphs.ops.movement import broadcast_to, reshape
from graphs.ops.shapes import as_operand, filled, integral, new_shape, positive_axis, shape_of, stored
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = ["add_along_axis", "scatter", "scatter_add", "take", "take_along_axis"]


def _prepare_take(x: Array, indices: Array, /, axis: int = 0) -> Prepared:
    x = as_operand(x)
    return (x, as_operand(indices)), {"axis": positive_axis(axis, len(shape_of(x)))}


def _infer_take(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    integral(indices, "indices")
    return TensorSpec([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]], x.dtype)


def _front(array: Array, axis: int, count: int = 1) -> Array:
    """`count` axes from `axis` on, moved to the front."""
    if axis == 0:
        return array
    return np.moveaxis(array, range(axis, axis + count), range(count))


def _scatter_add(g: Array, indices: Array, *, shape: Shape, axis: int, out: Array = None) -> Array:
    """Zeros of `shape` with the slices of g added at `indices` along `axis`: the adjoint of take."""
    out = np.zeros(shape, g.dtype) if out is None else filled(shape, g.dtype, 0, out)
    if axis == 0 or not _add_by_turns(out, axis, indices, g):
        _add_rows(_front(out, axis), indices, _front(g, axis, indices.ndim))
    return out


def _add_by_turns(out: Array, axis: int, indices: Array, g: Array) -> bool:
    """Add slices of g along an axis, in each turn at most one to a slice of out; False where the turns would be many.

    A turn is one sum of whole arrays, where np.add.at takes elements one by one: 5 to 7 times as fast for the gradient
    of an image that is twice as large.
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
    values = g.reshape(*out.shape[:axis], places.size, *out.shape[axis + 1 :])
    for turn in range(turns.max() + 1):
        taken = order[turns == turn]
        out[(*before, _even(places[taken]))] += values[(*before, _even(taken))]
    return True


def _even(indices: Array) -> Array | slice:
    """Indices as a slice where they rise evenly: a view, where indices copy."""
    steps = np.diff(indices)
    if not steps.size or steps[0] <= 0 or np.any(steps != steps[0]):
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]))


def _add_rows(rows: Array, indices: Array, values: Array) -> None:
    """rows[indices] += values, each index as often as it occurs."""
    if indices.size == 1:
        try:
            rows[indices.item()] += values.reshape(rows.shape[1:])
        except IndexError:
            raise outside(len(rows)) from None
        return
    width = math.prod(rows.shape[1:])
    if rows.ndim > _MOST_AXES:
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
    # np.add.at is 3 to 20 times as fast on a flat array as on rows.
    starts = np.where(indices < 0, indices + len(rows), indices).reshape(-1, 1) * width
    if np.any((starts < 0) | (starts >= rows.size)):
        raise outside(len(rows))
    np.add.at(rows.reshape(-1), (starts + np.arange(width)).reshape(-1), values.reshape(-1))


_MOST_AXES = 32  # that np.add.at takes: it ends the process where an array has more
_MOST_TURNS = 16
_FEW = 16  # indices: their rows are added up sooner than their places in the flat array are found


def outside(size: int) -> OutOfRangeError:
    """The error of an index that an axis does not have."""
    return OutOfRangeError(f"an index is out of range for an axis of size {size}; use {-size} to {size - 1}")


take: Op = movement(
    "take",
    lambda x, indices, *, axis, out=None: np.take(x, indices, axis=axis, out=out),
    _infer_take,
    lambda g, y, x_shape, axis: scatter_add(g, y, x_shape, axis),
    None,
    prepare=checked(_prepare_take, _infer_take),
    doc="The slices of x at integer `indices` along one axis; negative indices count from the end.",
    zero_safe=True,
    gathers=True,
)


def _infer_scatter_add(g: TensorSpec, indices: TensorSpec, *, shape: Shape, axis: int) -> TensorSpec:
    result = TensorSpec(shape, g.dtype)
    slices = _infer_take(result, indices, axis=axis).shape
    if not dims.same_shape(g.shape, slices):
        raise ShapeError(f"what is added has the shape of the slices it goes to, {slices}; broadcast it first")
    return result


scatter_add: Op = movement(
    "scatter_add",
    _scatter_add,
    _infer_scatter_add,
    lambda g, y, axis: take(g, y, axis),
    None,
    prepare=checked(
        lambda g, indices, /, shape, axis: (
            (as_operand(g), as_operand(indices)),
            {"shape": new_shape(shape), "axis": positive_axis(axis, len(new_shape(shape)))},
        ),
        _infer_scatter_add,
    ),
    zero_safe=True,
)


def _prepare_scatter(x: Array, indices: Array, values: Array, /, axis: int = 0) -> Prepared:
    (x, indices), attrs = _prepare_take(x, indices, axis=axis)
    return (x, indices, as_operand(values)), attrs


def _infer_scatter(x: TensorSpec, indices: TensorSpec, values: TensorSpec, *, axis: int) -> TensorSpec:
    target = _infer_take(x, indices, axis=axis).shape
    if not dims.same_shape(values.shape, target):
        raise ShapeError(f"values have the shape of what they replace, {target}; broadcast them first")
    return x


def _scatter(x: Array, indices: Array, values: Array, *, axis: int, out: Array = None) -> Array:
    """A copy of x with `values` in place of its slices at integer `indices` along an axis; the last of equals wins."""
    out = np.array(x) if out is None else stored(x, out)
    _front(out, axis)[indices] = _front(values, axis, indices.ndim)
    return out


scatter: Op = movement(
    "scatter",
    _scatter,
    _infer_scatter,
    lambda g, y, z_shape, axis: scatter(g, y, full(z_shape, 0, g.dtype), axis),
    None,
    lambda g, y, axis: _of_the_last(g, y, axis),
    prepare=checked(_prepare_scatter, _infer_scatter),
    broadcasts=True,  # the cotangent of the values is cast back to their dtype
    zero_safe=True,
)


def _of_the_last(g: Array, indices: Array, axis: int) -> Array:
    """The cotangent of scattered values: 0 for those that a later one of the same index was written over."""
    picked, shape = take(g, indices, axis), shape_of(indices)
    if all(dims.same(size, 1) for size in shape):
        return picked
    numbers = reshape(arange(dims.product(shape)), shape)
    last = scatter(full(shape_of(g)[axis], 0, numbers.dtype), indices, numbers)
    after = (1,) * (len(shape_of(g)) - axis - 1)
    return where(reshape(equal(take(last, indices), numbers), (*shape, *after)), picked, 0)


def _prepare_along(x: Array, indices: Array, /, axis: int = -1) -> Prepared:
    """The sizes of x and the indices broadcast, except along the axis itself. Raises ShapeError for other axes."""
    (x, indices), attrs = _prepare_take(x, indices, axis=axis)
    at, shape, picked = attrs["axis"], shape_of(x), shape_of(indices)
    if len(shape) != len(picked):
        raise ShapeError(f"x has {len(shape)} axes and indices {len(picked)}; give them as many")
    try:
        others = broadcast_shapes((*shape[:at], 1, *shape[at + 1 :]), (*picked[:at], 1, *picked[at + 1 :]))
    except ShapeError:
        return (x, indices), attrs  # which `infer` and the kernel refuse
    return tuple(_widened(a, (*others[:at], shape_of(a)[at], *others[at + 1 :])) for a in (x, indices)), attrs


def _widened(x: Array, shape: Shape) -> Array:
    return x if dims.same_shape(shape_of(x), shape) else broadcast_to(x, shape)


def infer_along(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    """The spec of elements picked along an axis. Raises ShapeError for indices of other sizes along the others."""
    integral(indices, "indices")
    others = [i for i in range(x.ndim) if i != axis]
    if indices.ndim != x.ndim or not all(dims.same(indices.shape[i], x.shape[i]) for i in others):
        raise ShapeError(f"indices have the shape of x except along axis {axis}; broadcast them first")
    return TensorSpec(indices.shape, x.dtype)


def _take_along(x: Array, indices: Array, *, axis: int, out: Array = None) -> Array:
    """Elements picked along one axis by an array of indices of as many axes; the other axes broadcast."""
    picked = x[places_along(x.shape, indices, axis)]
    return picked if out is None else stored(picked, out)


def _prepare_add_along(g: Array, indices: Array, /, shape: Shape, axis: int) -> Prepared:
    sizes = new_shape(shape)
    return (as_operand(g), as_operand(indices)), {"shape": sizes, "axis": positive_axis(axis, len(sizes))}


def _infer_add_along(g: TensorSpec, indices: TensorSpec, *, shape: Shape, axis: int) -> TensorSpec:
    result = TensorSpec(shape, g.dtype)
    if not dims.same_shape(g.shape, infer_along(result, indices, axis=axis).shape):
        raise ShapeError(f"what is added has the shape of its indices, {indices.shape}; broadcast it first")
    return result


def _add_along(g: Array, indices: Array, *, shape: Shape, axis: int, out: Array = None) -> Array:
    """Zeros of `shape` with g added at `indices` along `axis`: the adjoint of take_along_axis."""
    out = np.zeros(shape, g.dtype) if out is None else filled(shape, g.dtype, 0, out)
    if out.ndim > _MOST_AXES:
        parts = [_in_three(array, axis) for array in (g, indices)]
        merged = _add_along(*parts, shape=_in_three(out, axis).shape, axis=1)
        out[...] = merged.reshape(shape)
        return out
    key = places_along(indices.shape, indices, axis)
    if indices.shape[axis] == 1:  # no place occurs twice: writing there takes a third of the time that adding does
        out[key] = g
    else:
        np.add.at(out, key, g)
    return out


def _in_three(array: Array, axis: int) -> Array:
    """An array whose axes before and after one of them are one each."""
    before, after = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    return array.reshape(before, array.shape[axis], after)


def places_along(shape: tuple[int, ...], indices: Array, axis: int) -> tuple[Array, ...]:
    """The key of the elements at `indices` along one axis, and at their own place along the others of `shape`."""
    last = len(shape) - 1
    return tuple(
        [indices if i == axis else np.arange(size).reshape((-1, *(1,) * (last - i))) for i, size in enumerate(shape)]
    )


take_along_axis: Op = movement(
    "take_along_axis",
    _take_along,
    infer_along,
    lambda g, y, x_shape, axis: add_along_axis(g, y, x_shape, axis),
    None,
    prepare=_prepare_along,
    zero_safe=True,
    gathers=True,
)
add_along_axis: Op = movement(
    "add_along_axis",
    _add_along,
    _infer_add_along,
    lambda g, y, axis: take_along_axis(g, y, axis),
    None,
    prepare=checked(_prepare_add_along, _infer_add_along),
    zero_safe=True,
)
