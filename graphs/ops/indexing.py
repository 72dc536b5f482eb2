"""Indexing: reading x[key] and writing to it, with ints, slices, None, Ellipsis, arrays and masks, as in NumPy.

Below these: elements picked by index arrays along one axis, and their adjoints: take, scatter and take_along_axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.creation import arange, full
from graphs.ops.elementwise import equal, where
from graphs.ops.families import check_specs, composite, movement
from graphs.ops.movement import broadcast_to, cast, moveaxis, reshape
from graphs.ops.selection import MOST_AXES, add_at_places, axes_first, flat_places, from_front
from graphs.ops.shapes import as_operand, dtype_of, fill, integral, new_shape, positive_axis, shape_of, store
from graphs.ops.slicing import check_fits, complete_key, getitem, is_basic, result_shape
from graphs.ops.slicing import setitem as set_basic
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = ["add_along_axis", "flat_index", "index", "scatter", "scatter_add", "setitem", "take", "take_along_axis"]


@composite
def index(
    x: Array, key: Any, *, ints_first: bool = False, laid: Callable[..., Array] = lambda result, *_: result
) -> Array:
    """x[key] with NumPy's meaning: basic indices, integer arrays, or a boolean mask.

    Axes of index arrays that a slice, None or Ellipsis separates come first, and an int is such an array, as in NumPy:
    x[0, :, array] has the axes of the array first. With `ints_first` an int drops its axis before the arrays are looked
    at, as in PyTorch, and an Ellipsis that stands for no axis separates nothing. What arrays pick is given to
    `laid(result, view, arrays, axis)`, with the view that they pick from at this axis, whose result is returned.

    Raises OutOfRangeError for a position that an axis does not have, and ControlFlowError for a symbolic mask: the
    result's shape would depend on its values.
    """
    entries_given, lengths = _expanded_masks(key)
    x, entries_given = _flags_as_axes(x, entries_given)
    entries = complete_key(entries_given, len(shape_of(x)))
    if all(map(is_basic, entries)):
        return getitem(x, tuple(entries))
    shape = shape_of(x)
    for entry, size in zip((e for e in entries if e is not None), shape, strict=True):
        _check_mask(lengths.get(id(entry), size), size)
    view = getitem(x, tuple(e if is_basic(e) else slice(None) for e in entries))
    kept = [e for e in entries if e is None or isinstance(e, slice) or not is_basic(e)]  # an int drops its axis
    axes = [i for i, e in enumerate(kept) if not is_basic(e)]
    if ints_first and any(shape_of(kept[i]) for i in axes):
        for i in reversed(axes):
            if not shape_of(kept[i]):
                view = take(view, kept.pop(i), axis=i)
        axes = [i for i, e in enumerate(kept) if not is_basic(e)]
    arrays = [kept[i] for i in axes]
    are_neighbours = axes[-1] - axes[0] < len(axes) if ints_first else _side_by_side(entries_given)
    if not are_neighbours:
        view, axes = moveaxis(view, axes, range(len(axes))), [0]
    return laid(_take_many(view, arrays, axes[0]), view, arrays, axes[0])


def _side_by_side(entries: Sequence[Any]) -> bool:
    """Whether the index arrays of a key are neighbours: an Ellipsis separates them even if it stands for no axis.

    An int counts as an array here: x[0, :, array] has the axes of the arrays first.
    """
    picked = [i for i, e in enumerate(entries) if e is not None and e is not Ellipsis and not isinstance(e, slice)]
    return picked == list(range(picked[0], picked[-1] + 1))


def _as_index(entry: Any) -> Any:
    return np.asarray(entry, dtype=np.intp if len(entry) == 0 else None) if isinstance(entry, list) else entry


def _expanded_masks(key: Any) -> tuple[tuple[Any, ...], dict[int, int]]:
    """The key with each boolean mask replaced by its integer arrays, and the axis size of each by the array's id.

    A 0-d mask, which selects along no axis of x, becomes a Python bool.
    """
    result: list[Any] = []
    lengths: dict[int, int] = {}
    for entry in map(_as_index, key if isinstance(key, tuple) else (key,)):
        if is_basic(entry) or dtype_of(entry) != np.bool_:
            result.append(entry)
            continue
        mask = _concrete_mask(entry)
        positions: Sequence[Any] = np.nonzero(mask) if mask.ndim else (bool(mask),)
        lengths.update(zip(map(id, positions), mask.shape, strict=False))
        result.extend(positions)
    return tuple(result), lengths


def _flags_as_axes(x: Array, entries: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """x with an axis of size 1 for each bool of the key, and the key with arrays that pick all or none of that axis."""
    if not any(isinstance(entry, bool) for entry in entries):
        return x, entries
    axes = [None if isinstance(e, bool) else e if e is Ellipsis else slice(None) for e in entries if e is not None]
    return getitem(x, tuple(axes)), tuple(np.zeros(int(e), np.intp) if isinstance(e, bool) else e for e in entries)


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
    """Index x with several integer arrays on neighbouring axes, through one flat index."""
    if len(indices) == 1:
        return take(x, indices[0], axis=axis)
    shape = shape_of(x)
    sizes = shape[axis : axis + len(indices)]
    merged = reshape(x, (*shape[:axis], dims.product(sizes), *shape[axis + len(indices) :]))
    return take(merged, flat_index(*indices, sizes=sizes), axis=axis)


def _flat_index(*positions: Array, sizes: tuple[int, ...], out: Array = None) -> Array:
    """The row-major place of each tuple of positions along axes of these `sizes`."""
    flat: Array
    try:
        flat = np.ravel_multi_index(positions, sizes)
    except (TypeError, ValueError):  # for positions that are counted from the end, or outside, or of unsigned integers
        flat = np.zeros(np.broadcast_shapes(*(np.shape(position) for position in positions)), np.intp)
        for position, size in zip(positions, sizes, strict=True):
            if not flat.size:  # nothing is picked: as in NumPy, no position is looked at
                break
            flat = flat * size + from_front(position, size)
    return flat if out is None else store(flat, out)


def _infer_flat(*positions: TensorSpec, sizes: Shape) -> TensorSpec:
    if len(positions) != len(sizes):
        raise ShapeError(f"{len(positions)} positions along {len(sizes)} axes; give one for each")
    for position in positions:
        integral(position, "indices")
    return TensorSpec(broadcast_shapes(*(position.shape for position in positions)), np.intp)


flat_index: Op = Op(
    "flat_index",
    _flat_index,
    _infer_flat,
    prepare=check_specs(
        lambda *positions, sizes: (tuple(map(as_operand, positions)), {"sizes": new_shape(sizes)}), _infer_flat
    ),
    cost=lambda *positions, sizes, out: out.size * len(positions) * 2,
    family="indexing",
)


@composite
def setitem(x: Array, value: Array, key: Any, *, ints_first: bool = False) -> Array:
    """A copy of x with `value` written at x[key]: basic indices, integer arrays, or a boolean mask.

    `ints_first` is that of `index`. With a symbolic mask, `value` must fit every element that the mask selects, as a
    number does.
    """
    x, key = as_operand(x), _as_index(key)
    value = cast(as_operand(value), dtype_of(x))
    if hasattr(key, "dtype") and key.dtype.kind == "b":
        fitted = _uniform_value(value, shape_of(x)[len(shape_of(key)) :])
        if fitted is not None:
            shape, picked = shape_of(x), shape_of(key)
            for length, size in zip(picked, shape, strict=False):
                _check_mask(length, size)
            return where(reshape(key, (*picked, *(1,) * (len(shape) - len(picked)))), fitted, x)
    unmasked = _expanded_masks(key)[0]
    if all(map(is_basic, unmasked)):
        entries = complete_key(unmasked, len(shape_of(x)))
        return set_basic(x, _without_ones(value, len(result_shape(shape_of(x), entries))), entries)
    places = index(reshape(arange(dims.product(shape_of(x))), shape_of(x)), key, ints_first=ints_first)
    values = reshape(broadcast_to(_without_ones(value, len(shape_of(places))), shape_of(places)), (-1,))
    return reshape(scatter(reshape(x, (-1,)), reshape(places, (-1,)), values), shape_of(x))


def _without_ones(value: Array, ndim: int) -> Array:
    """The value without leading axes of size 1 that exceed `ndim` axes."""
    shape = shape_of(value)
    extra = max(0, len(shape) - ndim)
    return reshape(value, shape[extra:]) if extra and all(dims.same(s, 1) for s in shape[:extra]) else value


def _uniform_value(value: Array, shape: Shape) -> Array | None:
    """A value that is the same for every element of this shape that a mask selects; None for any other value."""
    value = _without_ones(value, len(shape))
    if len(shape_of(value)) > len(shape):
        return None
    check_fits(shape_of(value), shape)
    return value


def _prepare_take(x: Array, indices: Array, /, axis: int = 0) -> Prepared:
    x = as_operand(x)
    return (x, as_operand(indices)), {"axis": positive_axis(axis, len(shape_of(x)))}


def _infer_take(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    integral(indices, "indices")
    return TensorSpec([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]], x.dtype)


def _take(x: Array, indices: Array, *, axis: int, out: Array = None) -> Array:
    """The slices of x at `indices`; NumPy makes them aside, and copies them, unless it may take any index."""
    if out is None:
        return np.take(x, indices, axis=axis)
    places = np.asarray(indices)
    size = x.shape[axis] if places.size else 0
    is_inside = size and -size <= places.min() and places.max() < size
    return np.take(x, indices, axis=axis, out=out, mode="wrap" if is_inside else "raise")


take: Op = movement(
    "take",
    _take,
    _infer_take,
    lambda g, y, x_shape, axis: scatter_add(g, y, x_shape, axis),
    None,
    prepare=check_specs(_prepare_take, _infer_take),
    doc="The slices of x at integer `indices` along one axis; negative indices count from the end.",
    zero_safe=True,
    gathers=True,
    fails="raises",
)


def _infer_scatter_add(g: TensorSpec, indices: TensorSpec, *, shape: Shape, axis: int) -> TensorSpec:
    result = TensorSpec(shape, g.dtype)
    slices = _infer_take(result, indices, axis=axis).shape
    if not dims.same_shape(g.shape, slices):
        raise ShapeError(f"what is added has the shape of the slices it goes to, {slices}; broadcast it first")
    return result


scatter_add: Op = movement(
    "scatter_add",
    add_at_places,
    _infer_scatter_add,
    lambda g, y, axis: take(g, y, axis),
    None,
    prepare=check_specs(
        lambda g, indices, /, shape, axis: (
            (as_operand(g), as_operand(indices)),
            {"shape": new_shape(shape), "axis": positive_axis(axis, len(new_shape(shape)))},
        ),
        _infer_scatter_add,
    ),
    zero_safe=True,
    fails="raises",
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
    """A copy of x with `values` in place of its slices at integer `indices` along an axis; the last duplicate wins."""
    out = np.array(x) if out is None else store(x, out)
    axes_first(out, axis)[indices] = axes_first(values, axis, indices.ndim)
    return out


scatter: Op = movement(
    "scatter",
    _scatter,
    _infer_scatter,
    lambda g, y, z_shape, axis: scatter(g, y, full(z_shape, 0, g.dtype), axis),
    None,
    lambda g, y, axis: _of_the_last(g, y, axis),
    prepare=check_specs(_prepare_scatter, _infer_scatter),
    broadcasts=True,  # the cotangent of the values is cast back to their dtype
    zero_safe=True,
    fails="raises",
)


def _of_the_last(g: Array, indices: Array, axis: int) -> Array:
    """The cotangent of scattered values: 0 for a value that a later one of the same index overwrote."""
    picked, shape = take(g, indices, axis), shape_of(indices)
    if all(dims.same(size, 1) for size in shape):
        return picked
    numbers = reshape(arange(dims.product(shape)), shape)
    last = scatter(full(shape_of(g)[axis], 0, numbers.dtype), indices, numbers)
    after = (1,) * (len(shape_of(g)) - axis - 1)
    return where(reshape(equal(take(last, indices), numbers), (*shape, *after)), picked, 0)


def _prepare_along(x: Array, indices: Array, /, axis: int = -1) -> Prepared:
    """x and the indices broadcast to each other, except along the axis itself. Raises ShapeError for unequal ranks."""
    (x, indices), attrs = _prepare_take(x, indices, axis=axis)
    at, shape, picked = attrs["axis"], shape_of(x), shape_of(indices)
    if len(shape) != len(picked):
        raise ShapeError(f"x has {len(shape)} axes and indices {len(picked)}; give them as many")
    try:
        others = broadcast_shapes((*shape[:at], 1, *shape[at + 1 :]), (*picked[:at], 1, *picked[at + 1 :]))
    except ShapeError:
        return (x, indices), attrs  # which `infer` and the kernel refuse
    return tuple(
        _broadcast_if_needed(a, (*others[:at], shape_of(a)[at], *others[at + 1 :])) for a in (x, indices)
    ), attrs


def _broadcast_if_needed(x: Array, shape: Shape) -> Array:
    return x if dims.same_shape(shape_of(x), shape) else broadcast_to(x, shape)


def infer_along(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    """The spec of elements picked along an axis. Raises ShapeError where other axes of the indices have other sizes."""
    integral(indices, "indices")
    others = [i for i in range(x.ndim) if i != axis]
    if indices.ndim != x.ndim or not all(dims.same(indices.shape[i], x.shape[i]) for i in others):
        raise ShapeError(f"indices have the shape of x except along axis {axis}; broadcast them first")
    return TensorSpec(indices.shape, x.dtype)


def _take_along(x: Array, indices: Array, *, axis: int, out: Array = None) -> Array:
    """Elements picked along one axis by an array of indices of as many axes; the other axes broadcast."""
    if _is_flat(x, indices):
        places = flat_places(x.shape, _in_three(indices, axis), axis)
        return x.reshape(-1).take(places.reshape(indices.shape), out=out, mode="wrap")
    picked = x[places_along(x.shape, indices, axis)]
    return picked if out is None else store(picked, out)


def _is_flat(x: Array, indices: Array) -> bool:
    """Whether elements are found sooner by one place each in the memory of x than by an index for each axis."""
    return bool(indices.size >= _MANY and x.flags.c_contiguous)


_MANY = 1024  # indices


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
    out = np.zeros(shape, g.dtype) if out is None else fill(shape, g.dtype, 0, out)
    if out.ndim > MOST_AXES:
        parts = [_in_three(array, axis) for array in (g, indices)]
        merged = _add_along(*parts, shape=_in_three(out, axis).shape, axis=1)
        out[...] = merged.reshape(shape)
        return out
    if _is_flat(out, indices) and indices.shape[axis] > 1:
        np.add.at(out.reshape(-1), flat_places(out.shape, _in_three(indices, axis), axis), g.reshape(-1))
        return out
    key = places_along(indices.shape, indices, axis)
    if indices.shape[axis] == 1:  # no place occurs twice: writing there takes a third of the time that adding does
        out[key] = g
    else:
        np.add.at(out, key, g)
    return out


def _in_three(array: Array, axis: int) -> Array:
    """The array as three axes: the axes before `axis` merged, `axis`, and the axes after it merged."""
    before, after = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    return array.reshape(before, array.shape[axis], after)


def places_along(shape: tuple[int, ...], indices: Array, axis: int) -> tuple[Array, ...]:
    """The NumPy key that selects `indices` along one axis, and along the others of `shape` each element's own place."""
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
    fails="raises",
)
add_along_axis: Op = movement(
    "add_along_axis",
    _add_along,
    _infer_add_along,
    lambda g, y, axis: take_along_axis(g, y, axis),
    None,
    prepare=check_specs(_prepare_add_along, _infer_add_along),
    zero_safe=True,
    fails="raises",
)
