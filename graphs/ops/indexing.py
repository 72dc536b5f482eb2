"""Indexing by arrays: take, take_along_axis, their adjoints, and the general x[key]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import dims, dispatch
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, ShapeError
from graphs.op import Attrs, Op
from graphs.ops.creation import arange, full
from graphs.ops.elementwise import add, greater_equal, less, multiply, where
from graphs.ops.families import composite, movement
from graphs.ops.movement import broadcast_to, cast, moveaxis, reshape
from graphs.ops.shapes import as_operand, as_shape, dtype_of, integral, positive_axis, shape_of
from graphs.ops.slicing import complete_key, getitem, is_basic
from graphs.ops.slicing import setitem as set_basic
from graphs.spec import TensorSpec, broadcast_shapes

Array = Any
Prepared = tuple[tuple[Any, ...], Attrs]


def _prepare_take(x: Array, indices: Array, /, axis: int = 0) -> Prepared:
    x = as_operand(x)
    return (x, as_operand(indices)), {"axis": positive_axis(axis, len(shape_of(x)))}


def _infer_take(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    integral(indices, "indices")
    return TensorSpec([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]], x.dtype)


def _front(array: Array, axis: int, count: int = 1) -> Array:
    """`count` axes from `axis` on, moved to the front."""
    return np.moveaxis(array, range(axis, axis + count), range(count))


def _scatter_add(g: Array, indices: Array, *, shape: Shape, axis: int, out: Array = None) -> Array:
    """Zeros of `shape` with the slices of g added at `indices` along `axis`: the adjoint of take."""
    if out is None:
        out = np.zeros(shape, g.dtype)
    else:
        out[...] = 0
    rows = _front(out, axis)
    values = _front(g, axis, indices.ndim)
    _add_rows(rows, indices, values)
    return out


def _add_rows(rows: Array, indices: Array, values: Array) -> None:
    """rows[indices] += values, each index as often as it occurs."""
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
            raise _outside(rows) from None
        return
    # np.add.at is 3 to 20 times as fast on a flat array as on rows.
    starts = np.where(indices < 0, indices + len(rows), indices).reshape(-1, 1) * width
    if np.any((starts < 0) | (starts >= rows.size)):
        raise _outside(rows)
    np.add.at(rows.reshape(-1), (starts + np.arange(width)).reshape(-1), values.reshape(-1))


_MOST_AXES = 32  # that np.add.at takes: it ends the process where an array has more
_FEW = 16  # indices: their rows are added up sooner than their places in the flat array are found


def _outside(rows: Array) -> ShapeError:
    size = len(rows)
    return ShapeError(f"an index is out of range for an axis of size {size}; use {-size} to {size - 1}")


take: Op = movement(
    "take",
    lambda x, indices, *, axis, out=None: np.take(x, indices, axis=axis, out=out),
    _infer_take,
    lambda g, y, x_shape, axis: scatter_add(g, y, x_shape, axis),
    None,
    prepare=_prepare_take,
    arity=2,
    doc="The slices of x at integer `indices` along one axis; negative indices count from the end.",
)
scatter_add: Op = movement(
    "scatter_add",
    _scatter_add,
    lambda g, indices, *, shape, axis: TensorSpec(shape, g.dtype),
    lambda g, y, axis: take(g, y, axis),
    None,
    prepare=lambda g, indices, /, shape, axis: ((g, indices), {"shape": as_shape(shape), "axis": axis}),
    arity=2,
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
    if out is None:
        out = np.array(x)
    else:
        np.copyto(out, x)
    _front(out, axis)[indices] = _front(values, axis, indices.ndim)
    return out


scatter: Op = movement(
    "scatter",
    _scatter,
    _infer_scatter,
    lambda g, y, z_shape, axis: scatter(g, y, full(z_shape, 0, g.dtype), axis),
    None,
    lambda g, y, axis: take(g, y, axis),
    prepare=_prepare_scatter,
    broadcasts=True,  # the cotangent of the values is cast back to their dtype
    arity=3,
)


def _prepare_along(x: Array, indices: Array, /, axis: int = -1) -> Prepared:
    """The sizes of x and the indices broadcast, except along the axis itself."""
    (x, indices), attrs = _prepare_take(x, indices, axis=axis)
    at, shape, picked = attrs["axis"], shape_of(x), shape_of(indices)
    if len(shape) != len(picked):
        return (x, indices), attrs  # which `infer` refuses, as it does sizes that do not broadcast
    try:
        others = broadcast_shapes((*shape[:at], 1, *shape[at + 1 :]), (*picked[:at], 1, *picked[at + 1 :]))
    except ShapeError:
        return (x, indices), attrs
    return tuple(_widened(a, (*others[:at], shape_of(a)[at], *others[at + 1 :])) for a in (x, indices)), attrs


def _widened(x: Array, shape: Shape) -> Array:
    return x if dims.same_shape(shape_of(x), shape) else broadcast_to(x, shape)


def _infer_along(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    integral(indices, "indices")
    others = [i for i in range(x.ndim) if i != axis]
    if indices.ndim != x.ndim or not all(dims.same(indices.shape[i], x.shape[i]) for i in others):
        raise ShapeError(f"indices have the shape of x except along axis {axis}; broadcast them first")
    return TensorSpec(indices.shape, x.dtype)


def _take_along(x: Array, indices: Array, *, axis: int, out: Array = None) -> Array:
    """Elements picked along one axis by an array of indices of as many axes; the other axes broadcast."""
    picked = x[_along(x.shape, indices, axis)]
    if out is None:
        return picked
    np.copyto(out, picked)
    return out


def _add_along(g: Array, indices: Array, *, shape: Shape, axis: int, out: Array = None) -> Array:
    """Zeros of `shape` with g added at `indices` along `axis`: the adjoint of take_along_axis."""
    if out is None:
        out = np.zeros(shape, g.dtype)
    else:
        out[...] = 0
    if out.ndim > _MOST_AXES:
        parts = [_in_three(array, axis) for array in (g, indices)]
        merged = _add_along(*parts, shape=_in_three(out, axis).shape, axis=1)
        out[...] = merged.reshape(shape)
        return out
    key = _along(indices.shape, indices, axis)
    if indices.shape[axis] == 1:  # no place occurs twice: writing there takes a third of the time that adding does
        out[key] = g
    else:
        np.add.at(out, key, g)
    return out


def _in_three(array: Array, axis: int) -> Array:
    """An array whose axes before and after one of them are one each."""
    before, after = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    return array.reshape(before, array.shape[axis], after)


def _along(shape: tuple[int, ...], indices: Array, axis: int) -> tuple[Array, ...]:
    """The key of the elements at `indices` along one axis, and at their own place along the others of `shape`."""
    last = len(shape) - 1
    return tuple(
        [indices if i == axis else np.arange(size).reshape((-1, *(1,) * (last - i))) for i, size in enumerate(shape)]
    )


take_along_axis: Op = movement(
    "take_along_axis",
    _take_along,
    _infer_along,
    lambda g, y, x_shape, axis: add_along_axis(g, y, x_shape, axis),
    None,
    prepare=_prepare_along,
    arity=2,
)
add_along_axis: Op = movement(
    "add_along_axis",
    _add_along,
    lambda g, indices, *, shape, axis: TensorSpec(shape, g.dtype),
    lambda g, y, axis: take_along_axis(g, y, axis),
    None,
    prepare=lambda g, indices, /, shape, axis: ((g, indices), {"shape": as_shape(shape), "axis": axis}),
    arity=2,
)


@composite
def index(x: Array, key: Any) -> Array:
    """x[key] with NumPy's meaning: basic indices, integer arrays, or a boolean mask.

    The axes of arrays separated by slices come first, as in NumPy. Raises ControlFlowError for a mask that is
    symbolic: the result's shape would depend on its values.
    """
    expanded, lengths = _expanded_masks(key)
    entries = complete_key(expanded, len(shape_of(x)))
    if all(map(is_basic, entries)):
        return getitem(x, tuple(entries))
    _check_masks(entries, lengths, shape_of(x))
    view = getitem(x, tuple(e if is_basic(e) else slice(None) for e in entries))
    kept = [e for e in entries if e is None or isinstance(e, slice) or not is_basic(e)]  # an int drops its axis
    axes = [i for i, e in enumerate(kept) if not is_basic(e)]
    arrays = [kept[i] for i in axes]
    if not _side_by_side(entries):
        return _take_many(moveaxis(view, axes, range(len(axes))), arrays, 0)
    return _take_many(view, arrays, axes[0])


def _side_by_side(entries: Sequence[Any]) -> bool:
    """Whether no slice lies between arrays. An int counts as an array here: x[0, :, array] has its axes first."""
    picked = [i for i, e in enumerate(entries) if e is not None and not isinstance(e, slice)]
    return picked == list(range(picked[0], picked[-1] + 1))


def _as_index(entry: Any) -> Any:
    return np.asarray(entry, dtype=np.intp if len(entry) == 0 else None) if isinstance(entry, list) else entry


def _expanded_masks(key: Any) -> tuple[tuple[Any, ...], dict[int, int]]:
    """The key with each boolean mask replaced by the integer arrays it stands for, and the mask's size by array."""
    result: list[Any] = []
    lengths: dict[int, int] = {}
    for entry in map(_as_index, key if isinstance(key, tuple) else (key,)):
        if is_basic(entry) or dtype_of(entry) != np.bool_:
            result.append(entry)
            continue
        mask = _concrete_mask(entry)
        positions = np.nonzero(mask)
        lengths.update(zip(map(id, positions), mask.shape, strict=True))
        result.extend(positions)
    return tuple(result), lengths


def _check_masks(entries: Sequence[Any], lengths: dict[int, int], shape: Shape) -> None:
    for entry, size in zip((e for e in entries if e is not None), shape, strict=True):
        _check_mask(lengths.get(id(entry), size), size)


def _check_mask(length: Size, size: Size) -> None:
    if not dims.same(length, size):
        raise ShapeError(f"a mask of {length} for an axis of size {size}; make them equal")


def _concrete_mask(mask: Array) -> Array:
    try:
        return np.asarray(mask)
    except ControlFlowError:
        raise ControlFlowError(
            "the shape of x[mask] depends on the mask's values, which are unknown while a graph is traced; "
            "use graphs.where(mask, x, 0), which keeps the shape"
        ) from None


def _take_many(x: Array, indices: Sequence[Array], axis: int) -> Array:
    """x indexed by several integer arrays on neighbouring axes, through one flat index."""
    shape = shape_of(x)
    sizes = shape[axis : axis + len(indices)]
    if len(indices) == 1:
        return take(x, indices[0], axis=axis)
    flat = _wrapped(indices[0], sizes[0])
    for position, size in zip(indices[1:], sizes[1:], strict=True):
        flat = add(multiply(flat, size), _wrapped(position, size))
    merged = reshape(x, (*shape[:axis], dims.product(sizes), *shape[axis + len(indices) :]))
    return take(merged, flat, axis=axis)


def _wrapped(position: Array, size: Size) -> Array:
    _refuse_outside(position, size)
    return where(less(position, 0), add(position, size), position)


def _refuse_outside(position: Array, size: Size) -> None:
    # Only values that are known now can be checked; a flat index out of its row would land in the next one.
    if dispatch.interpreter_of(position) is None and isinstance(size, int):
        inside = greater_equal(position, -size) & less(position, size)
        if not np.all(inside):
            raise ShapeError(f"an index is out of range for an axis of size {size}; use {-size} to {size - 1}")


@composite
def setitem(x: Array, value: Array, key: Any) -> Array:
    """A copy of x with `value` written at x[key]: basic indices, integer arrays, or a boolean mask.

    A mask that is symbolic takes a value that fits every element it selects, such as a number.
    """
    x, key = as_operand(x), _as_index(key)
    value = cast(as_operand(value), dtype_of(x))
    if hasattr(key, "dtype") and key.dtype.kind == "b" and _fits_all(value, key, x):
        return where(_over_last_axes(key, x), value, x)
    entries = complete_key(_expanded_masks(key)[0], len(shape_of(x)))
    if all(map(is_basic, entries)):
        return set_basic(x, value, tuple(entries))
    places = index(reshape(arange(dims.product(shape_of(x))), shape_of(x)), key)
    values = reshape(broadcast_to(value, shape_of(places)), (-1,))
    return reshape(scatter(reshape(x, (-1,)), reshape(places, (-1,)), values), shape_of(x))


def _fits_all(value: Array, mask: Array, x: Array) -> bool:
    """Whether a value is the same for every element a mask of the first axes selects."""
    return len(shape_of(value)) <= len(shape_of(x)) - len(shape_of(mask))


def _over_last_axes(mask: Array, x: Array) -> Array:
    shape, picked = shape_of(x), shape_of(mask)
    for length, size in zip(picked, shape, strict=False):
        _check_mask(length, size)
    return reshape(mask, (*picked, *(1,) * (len(shape) - len(picked))))


__all__ = ["add_along_axis", "index", "scatter", "scatter_add", "setitem", "take", "take_along_axis"]
