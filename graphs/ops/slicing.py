"""Basic indexing (ints, slices, None, Ellipsis) as a view, and its adjoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Dim, Shape, Size
from graphs.errors import ControlFlowError, OutOfRangeError, ShapeError
from graphs.op import Array, Op, Prepared, SliceCotangent
from graphs.ops.families import check_specs, movement
from graphs.ops.shapes import as_operand, new_shape, shape_of
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = ["getitem", "place"]

BasicIndex = int | slice | Dim | None
Key = tuple[BasicIndex, ...]


def is_basic(index: Any) -> bool:
    """Whether an index selects by position alone, not by the values of an array."""
    return (
        index is None
        or index is Ellipsis
        or (isinstance(index, (int, slice, Dim, np.integer)) and not isinstance(index, bool))
    )


def complete_key(key: Any, ndim: int) -> tuple[Any, ...]:
    """A key with one entry per axis (None adds an axis) and without Ellipsis.

    Raises OutOfRangeError for a key that is too long.
    """
    entries = key if isinstance(key, tuple) else (key,)
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise ShapeError("an index holds at most one Ellipsis; write the others as :")
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if used > ndim:
        raise OutOfRangeError(f"{used} indices for {ndim} axes; remove {used - ndim}")
    at = dots[0] if dots else len(entries)
    return (*entries[:at], *[slice(None)] * (ndim - used), *entries[at + len(dots) :])


def _prepare(x: Array, /, key: Any) -> Prepared:
    x = as_operand(x)
    return (x,), {"key": _basic_key(key, len(shape_of(x)))}


def _basic_key(key: Any, ndim: int) -> Key:
    entries = complete_key(key, ndim)
    if not all(map(is_basic, entries)):
        raise ShapeError("takes ints, slices, None and Ellipsis; index with arrays through take or x[...]")
    return tuple(int(e) if isinstance(e, np.integer) else e for e in entries)


def _infer(x: TensorSpec, *, key: Key) -> TensorSpec:
    return TensorSpec(result_shape(x.shape, key), x.dtype)


def result_shape(shape: Shape, key: Key) -> Shape:
    """The shape that a complete key of basic indices selects. Raises OutOfRangeError."""
    return tuple(_result_sizes(shape, key))


def _result_sizes(shape: Shape, key: Key) -> Iterator[Size]:
    axis = 0
    for entry in key:
        if entry is None:
            yield 1
            continue
        if isinstance(entry, slice):
            yield sliced_size(entry, shape[axis])
        else:
            size = shape[axis]
            if isinstance(entry, int) and isinstance(size, int) and not -size <= entry < size:
                raise OutOfRangeError(
                    f"index {entry} is out of range for axis {axis} of size {size}; use {-size} to {size - 1}"
                )
        axis += 1


def sliced_size(part: slice, size: Size) -> Size:
    """How many elements a slice selects from an axis, also of a symbolic size."""
    if not any(isinstance(v, Dim) for v in (part.start, part.stop, part.step, size)):
        return len(range(*part.indices(size)))
    if part == slice(None, None, -1):
        return size
    step = 1 if part.step is None else part.step
    if step <= 0:
        raise ShapeError(f"a step of {step} on the symbolic size {size} is not supported; slice a fixed size")
    start = 0 if part.start is None else _from_start(part.start, size)
    stop = size if part.stop is None else _from_start(part.stop, size)
    if stop is part.stop:  # counted from the start, and so perhaps beyond the end
        stop = dims.minimum(stop, size)
    return (dims.maximum(stop - start, 0) + step - 1) // step


def _from_start(position: Size, size: Size) -> Size:
    """A position counted from the start of an axis; one counted from the end is converted, and is at least 0.

    A position counted from the start stays as it is, so that equal slices have equal sizes: B - 1 for [1:] and [:-1].
    """
    try:
        return position if position >= 0 else dims.maximum(position + size, 0)
    except ControlFlowError:
        raise ShapeError(f"cannot tell whether the slice position {position} is negative; start from 0") from None


def start_within(position: Size, size: Size) -> Size:
    """The place where a slice with a positive step begins, from 0 to the size."""
    start = _from_start(position, size)
    return dims.minimum(start, size) if start is position else start


def _getitem(x: Array, *, key: Key, out: Array = None) -> Array:
    """x[key] for ints, slices, None and Ellipsis, without copying."""
    view = x[*key, ...]  # with the Ellipsis a view even where one element is left
    if out is None:
        return view
    np.copyto(out, view)
    return out


def _place(g: Array, *, shape: Shape, key: Key, out: Array = None) -> Array:
    """Zeros of `shape` with `g` written at `key`: the adjoint of getitem."""
    if out is None:
        out = np.zeros(shape, g.dtype)
    else:
        out[...] = 0
    out[key] = g
    return out


def _prepare_place(g: Array, /, shape: Any, key: Any) -> Prepared:
    sizes = new_shape(shape)
    return (as_operand(g),), {"shape": sizes, "key": _basic_key(key, len(sizes))}


def _infer_place(g: TensorSpec, *, shape: Shape, key: Key) -> TensorSpec:
    selected = result_shape(shape, key)
    if not dims.same_shape(g.shape, selected):
        raise ShapeError(f"what is placed has the shape of its place, {selected}; broadcast or slice it")
    return TensorSpec(shape, g.dtype)


def _setitem(x: Array, value: Array, *, key: Key, out: Array = None) -> Array:
    """A copy of x with `value` written at a basic index: x[key] = value without changing x."""
    if out is None:
        out = np.array(x)
    else:
        np.copyto(out, x)
    out[key] = value
    return out


def _infer_setitem(x: TensorSpec, value: TensorSpec, *, key: Key) -> TensorSpec:
    check_fits(value.shape, _infer(x, key=key).shape)
    return x


def check_fits(shape: Shape, selected: Shape) -> None:
    """Raise ShapeError unless a value of this shape broadcasts to the selected shape."""
    if not dims.same_shape(broadcast_shapes(shape, selected), selected):
        raise ShapeError(f"a value of shape {shape} does not fit the selected {selected}; broadcast or slice it")


def cut(x: Array, axis: int, start: Size | None, stop: Size | None) -> Array:
    """The entries of x from `start` to before `stop` along an axis."""
    return getitem(x, (*(slice(None),) * axis, slice(start, stop)))


def add_at(held: Array, g: Array, key: Key, *, own: bool) -> Array:
    """An array with `g` added at a basic index: `held` itself, changed in place, if the caller owns it; else a copy."""
    whole = held if own else np.array(held)
    part = whole[*key, ...]
    np.add(part, g, out=part)
    return whole


getitem: Op = movement(
    "getitem", _getitem, _infer, lambda g, x_shape, key: SliceCotangent(g, x_shape, key), prepare=_prepare, view=True
)
place: Op = movement(
    "place",
    _place,
    _infer_place,
    lambda g, key: getitem(g, key),
    prepare=check_specs(_prepare_place, _infer_place),
)
setitem: Op = movement(
    "setitem",
    _setitem,
    _infer_setitem,
    lambda g, key: setitem(g, 0, key),
    lambda g, key: getitem(g, key),
    prepare=lambda x, value, /, key: ((as_operand(x), value), _prepare(x, key)[1]),
    broadcasts=True,
    overwrites=(0,),
    layout="any",
)
