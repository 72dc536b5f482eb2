"""x[key] and its writing: keys of ints, slices, None, Ellipsis, arrays and masks, as in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, ShapeError
from graphs.op import Array, Op
from graphs.ops.creation import arange
from graphs.ops.elementwise import where
from graphs.ops.families import checked, composite
from graphs.ops.movement import broadcast_to, cast, moveaxis, reshape
from graphs.ops.picking import outside, scatter, take
from graphs.ops.shapes import as_operand, dtype_of, integral, new_shape, shape_of, stored
from graphs.ops.slicing import check_fits, complete_key, getitem, is_basic, result_shape
from graphs.ops.slicing import setitem as set_basic
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = ["flat_index", "index", "setitem"]


@composite
def index(x: Array, key: Any) -> Array:
    """x[key] with NumPy's meaning: basic indices, integer arrays, or a boolean mask.

    The axes of arrays that a slice, None or Ellipsis separates come first, as in NumPy. Raises OutOfRangeError for a
    position that an axis does not have, and ControlFlowError for a mask that is symbolic: the result's shape would
    depend on its values.
    """
    entries_given, lengths = _expanded_masks(key)
    x, entries_given = _flags_as_axes(x, entries_given)
    entries = complete_key(entries_given, len(shape_of(x)))
    if all(map(is_basic, entries)):
        return getitem(x, tuple(entries))
    _check_masks(entries, lengths, shape_of(x))
    view = getitem(x, tuple(e if is_basic(e) else slice(None) for e in entries))
    kept = [e for e in entries if e is None or isinstance(e, slice) or not is_basic(e)]  # an int drops its axis
    axes = [i for i, e in enumerate(kept) if not is_basic(e)]
    arrays = [kept[i] for i in axes]
    if not _side_by_side(entries_given):
        return _take_many(moveaxis(view, axes, range(len(axes))), arrays, 0)
    return _take_many(view, arrays, axes[0])


def _side_by_side(entries: Sequence[Any]) -> bool:
    """Whether nothing lies between the arrays of a key as it was given: an Ellipsis separates even if it is no axis.

    An int counts as an array here: x[0, :, array] has its axes first.
    """
    picked = [i for i, e in enumerate(entries) if e is not None and e is not Ellipsis and not isinstance(e, slice)]
    return picked == list(range(picked[0], picked[-1] + 1))


def _as_index(entry: Any) -> Any:
    return np.asarray(entry, dtype=np.intp if len(entry) == 0 else None) if isinstance(entry, list) else entry


def _expanded_masks(key: Any) -> tuple[tuple[Any, ...], dict[int, int]]:
    """The key with each boolean mask replaced by the integer arrays it stands for, and the mask's size by array.

    A mask without axes, which takes none of x, becomes a Python bool.
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
    """x with an axis of size 1 for each bool of the key, and the key with arrays that pick all or nothing of these."""
    if not any(isinstance(entry, bool) for entry in entries):
        return x, entries
    axes = [None if isinstance(e, bool) else e if e is Ellipsis else slice(None) for e in entries if e is not None]
    return getitem(x, tuple(axes)), tuple(np.zeros(int(e), np.intp) if isinstance(e, bool) else e for e in entries)


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
    if len(indices) == 1:
        return take(x, indices[0], axis=axis)
    shape = shape_of(x)
    sizes = shape[axis : axis + len(indices)]
    merged = reshape(x, (*shape[:axis], dims.product(sizes), *shape[axis + len(indices) :]))
    return take(merged, flat_index(*indices, sizes=sizes), axis=axis)


def _flat_index(*positions: Array, sizes: tuple[int, ...], out: Array = None) -> Array:
    """The place, among elements in row-major order, of each tuple of positions along axes of these `sizes`."""
    shape = np.broadcast_shapes(*(np.shape(position) for position in positions))
    flat: Array = np.zeros(shape, np.intp)
    for position, size in zip(positions, sizes, strict=True):
        if not flat.size:  # nothing is picked: as in NumPy, no position is looked at
            break
        flat = flat * size + _from_front(position, size)
    return flat if out is None else stored(flat, out)


def _from_front(position: Array, size: int) -> Array:
    """Positions counted from the front. One outside is refused: its flat index would be an element of another row."""
    size = operator.index(size)  # a symbolic one is no number: a trace must hold the result
    position = np.asarray(position).astype(np.intp, copy=False)  # in which no product of sizes overflows
    if position.min() < -size or position.max() >= size:
        raise outside(size)
    return np.where(position < 0, position + size, position)


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
    prepare=checked(
        lambda *positions, sizes: (tuple(map(as_operand, positions)), {"sizes": new_shape(sizes)}), _infer_flat
    ),
    cost=lambda *positions, sizes, out: out.size * len(positions) * 2,
    family="indexing",
)


@composite
def setitem(x: Array, value: Array, key: Any) -> Array:
    """A copy of x with `value` written at x[key]: basic indices, integer arrays, or a boolean mask.

    A mask that is symbolic takes a value that fits every element it selects, such as a number.
    """
    x, key = as_operand(x), _as_index(key)
    value = cast(as_operand(value), dtype_of(x))
    if hasattr(key, "dtype") and key.dtype.kind == "b":
        fitted = _fitted(value, shape_of(x)[len(shape_of(key)) :])
        if fitted is not None:
            return where(_over_last_axes(key, x), fitted, x)
    unmasked = _expanded_masks(key)[0]
    if all(map(is_basic, unmasked)):
        entries = complete_key(unmasked, len(shape_of(x)))
        return set_basic(x, _without_ones(value, len(result_shape(shape_of(x), entries))), entries)
    places = index(reshape(arange(dims.product(shape_of(x))), shape_of(x)), key)
    values = reshape(broadcast_to(_without_ones(value, len(shape_of(places))), shape_of(places)), (-1,))
    return reshape(scatter(reshape(x, (-1,)), reshape(places, (-1,)), values), shape_of(x))


def _without_ones(value: Array, ndim: int) -> Array:
    """A value without leading axes of size 1 that what it is written to does not have."""
    shape = shape_of(value)
    extra = max(0, len(shape) - ndim)
    return reshape(value, shape[extra:]) if extra and all(dims.same(s, 1) for s in shape[:extra]) else value


def _fitted(value: Array, shape: Shape) -> Array | None:
    """A value that is the same for every element of this shape that a mask selects; None when it is not."""
    value = _without_ones(value, len(shape))
    if len(shape_of(value)) > len(shape):
        return None
    check_fits(shape_of(value), shape)
    return value


def _over_last_axes(mask: Array, x: Array) -> Array:
    shape, picked = shape_of(x), shape_of(mask)
    for length, size in zip(picked, shape, strict=False):
        _check_mask(length, size)
    return reshape(mask, (*picked, *(1,) * (len(shape) - len(picked))))
