"""Elements picked and put by arrays of places, and what depends on the order of values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from graphs import dims, ops
from graphs.errors import ShapeError
from graphs.frontends.onnx import table
from graphs.frontends.onnx.table import Sizes, translates
from graphs.ops.manipulation import astype
from graphs.ops.shapes import dtype_of, positive_axis, shape_of


@translates("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    if isinstance(indices, np.ndarray) and not indices.shape:  # one place, which is known: a view
        at = positive_axis(axis, len(shape_of(x)))
        return ops.getitem(x, (*(slice(None),) * at, int(indices)))
    return ops.take(x, indices, axis=axis)


@translates("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return ops.take_along_axis(_fitted(x, indices, axis), indices, axis=axis)


def _fitted(x: Any, indices: Any, axis: int) -> Any:
    """x as long as the indices along all axes but one."""
    have, wanted = shape_of(x), shape_of(indices)
    at = positive_axis(axis, len(have))
    key = tuple(
        slice(None) if i == at or dims.same(have[i], wanted[i]) else slice(0, wanted[i]) for i in range(len(have))
    )
    return x if key == (slice(None),) * len(have) else ops.getitem(x, key)


@translates("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """x at the tuples along the last axis of the indices; the first `batch_dims` axes of both are the same."""
    return ops.index(x, _key(indices, shape_of(x), batch_dims))


def _key(indices: Any, shape: Any, batch_dims: int = 0) -> tuple[Any, ...]:
    """The index arrays that the tuples along the last axis stand for, after those of the axes of the batch."""
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
    """x with the updates written, or joined, at the tuples along the last axis of the indices."""
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
    """The first of the sorted elements, and their places; where they need not be in order, they are nevertheless."""
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
    """The distinct values or slices, where each is first, which each element is, and how often each occurs."""
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
    """Along the axis, or from its end; `exclusive` of the element itself."""
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
    """A cache with new entries along an axis, from the place of each example on; `circular` goes on at the front."""
    at = positive_axis(axis, len(shape_of(past)))
    shape, count = shape_of(update), shape_of(update)[at]
    start = np.zeros(int(shape[0]), np.int64) if write_indices is None else write_indices
    steps = ops.reshape(ops.arange(count), [-1 if i == at else 1 for i in range(len(shape))])
    places = ops.add(ops.reshape(start, (-1, *(1,) * (len(shape) - 1))), steps)
    if mode == "circular":
        places = ops.remainder(places, shape_of(past)[at])
    return scatter_elements(past, ops.broadcast_to(places, shape), update, axis=at)
