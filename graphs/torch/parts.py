"""PyTorch's functions that write one tensor into a part of another, and give the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, OptionError, ShapeError
from graphs.ops.shapes import dtype_of
from graphs.torch.checks import check_source
from graphs.torch.words import as_row, axis_and_size, cast, ndim_of, place, shape_of, words

__all__ = ["diagonal_scatter", "index_put", "index_reduce", "put", "select_scatter", "slice_scatter"]


def _written(x: Any, source: Any, key: Sequence[Any]) -> Any:
    """`source` in the place of a part that has its shape. Raises ShapeError where it has not."""
    wanted = shape_of(x[tuple(key)])
    if shape_of(source) != wanted:
        raise ShapeError(f"a source of shape {shape_of(source)} for a part of shape {wanted}; reshape or expand it")
    return ops.setitem(x, cast(source, dtype_of(x)), tuple(key))


@words
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """With one place of an axis replaced, which `src` has not."""
    axis, _ = axis_and_size(input, dim)
    return _written(input, src, (*[slice(None)] * axis, index))


@words
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """With the places of an axis from `start` to `end` replaced, each `step`th."""
    if step < 1:
        raise OptionError(f"a step of {step} goes nowhere; use 1 or more")
    axis, _ = axis_and_size(input, dim)
    return _written(input, src, (*[slice(None)] * axis, slice(start, end, step)))


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """With the diagonal of two axes replaced; `src` has it as its last axis."""
    first, second = place(dim1, ndim_of(input)), place(dim2, ndim_of(input))
    if first == second:
        raise OptionError("a diagonal lies between two axes, not in one; give dim1 and dim2 that differ")
    moved = ops.moveaxis(input, (first, second), (-2, -1))
    rows, columns = shape_of(moved)[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    along = np.arange(count)
    key = (..., along + max(-offset, 0), along + max(offset, 0))
    return ops.moveaxis(_written(moved, src, key), (-2, -1), (first, second))


@words
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """With the rows of `source` joined to the places of an axis that an index names, by "prod", "mean" and so on."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise OptionError(f"there is no reduction {reduce!r}; use 'prod', 'mean', 'amax' or 'amin', or index_add")
    axis, x, rows = place(dim, ndim_of(input)), as_row(input), as_row(source)
    check_source(input, axis, index, source)
    places = ops.reshape(index, [-1 if i == axis else 1 for i in range(ndim_of(x))])
    result = ops.scatter_reduce(x, axis, ops.broadcast_to(places, shape_of(rows)), rows, reduce, include_self)
    return ops.reshape(result, shape_of(input))


def mask_of(index: Any) -> Any:
    """An index; bools for one of bytes, which PyTorch takes for a mask."""
    is_mask = hasattr(index, "dtype") and index.dtype == np.uint8
    return ops.astype(index, np.bool_) if is_mask else index


def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """With `values` at the places that a tuple of indices or masks names, or added there."""
    if not hasattr(values, "dtype") or dtype_of(values) != dtype_of(input):
        raise DTypeError(f"index_put writes tensors of {dtype_of(input)} here; convert the values with .to(dtype)")
    key = tuple([slice(None) if index is None else mask_of(index) for index in indices])
    if not accumulate:
        return ops.setitem(input, values, key)
    places = ops.index(np.arange(ops.reshape(input, (-1,)).shape[0]).reshape(shape_of(input)), key)
    return _added(input, places, ops.broadcast_to(values, shape_of(places)))


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """With the elements of `source` at places counted through all axes, or added there."""
    if dtype_of(source) != dtype_of(input):
        raise DTypeError(f"put writes tensors of {dtype_of(input)} here; convert the source with .to(dtype)")
    if accumulate:
        return _added(input, index, source)
    flat = ops.setitem(ops.reshape(input, (-1,)), ops.reshape(source, (-1,)), (ops.reshape(index, (-1,)),))
    return ops.reshape(flat, shape_of(input))


def _added(x: Any, places: Any, values: Any) -> Any:
    """With values added at places counted through all axes."""
    flat = ops.reshape(x, (-1,))
    sums = ops.scatter_add(ops.reshape(values, (-1,)), ops.reshape(places, (-1,)), shape_of(flat), 0)
    return ops.reshape(ops.add(flat, sums), shape_of(x))
