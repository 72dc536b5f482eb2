"""PyTorch's functions that pick elements and write them to places.

Then checks of operands, where the ops accept more than PyTorch; and functions that write one tensor into a part of
another, and return the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import ops
from graphs.dims import same_shape
from graphs.errors import DTypeError, OptionError, OutOfRangeError, ShapeError, locate
from graphs.frontends.torch.names import name
from graphs.frontends.torch.reductions import count_nonzero
from graphs.frontends.torch.shapes import in_order, laid_in_rows, laid_like, layout_of
from graphs.frontends.torch.words import (
    as_row,
    cast,
    ndim_of,
    number,
    place,
    promote,
    refuse,
    result_dtype,
    shape_of,
    values_of,
    within,
)
from graphs.ops.shapes import axes_order, dtype_of
from graphs.promotion import is_scalar

# ---- along an axis -------------------------------------------------------------------------------


def _crop(x: Any, shape: Sequence[Any], but: int) -> Any:
    """Crop x to the sizes of an index along all axes but one."""
    key = tuple([slice(None) if axis == but else slice(size) for axis, size in enumerate(shape)])
    return x if shape_of(x) == tuple(shape) else x[key]


@name()
def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """The place along each axis of a shape, for numbers of elements in row-major order."""
    places, indices = list[Any](), ops.astype(indices, np.int64)
    for size in reversed(shape if isinstance(shape, (tuple, list)) else (shape,)):
        places.insert(0, ops.remainder(indices, size))
        indices = ops.floor_divide(indices, size)
    return tuple(places)


@name(pairs=True)
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """The elements along an axis at the places in an index of as many axes."""
    del sparse_grad
    axis = place(dim, ndim_of(input))
    check_index(input, axis, index)
    result = ops.take_along_axis(_crop(as_row(input), shape_of(as_row(index)), axis), as_row(index), axis=axis)
    return ops.reshape(result, shape_of(index))


@name()
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """The elements along an axis at the given indices, which broadcast; without an axis, of the flattened tensor."""
    check_places(indices)
    if dim is None:
        return ops.take(ops.reshape(input, (-1,)), ops.reshape(indices, (-1,)), axis=0)
    return ops.take_along_axis(input, indices, axis=place(dim, ndim_of(input)))


@name(in_place=True)
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """The input with the elements of `src` written to the places along an axis that `index` names."""
    axis, source = place(dim, ndim_of(input)), within(value if src is None else src, dtype_of(input))
    check_index(input, axis, index, source)
    if reduce is not None:
        if reduce not in _REDUCTIONS:
            raise OptionError(f"reduce is 'add' or 'multiply', not {reduce!r}; use scatter_reduce for others")
        if is_scalar(source):
            source = ops.broadcast_to(ops.astype(ops.asarray(source), dtype_of(input)), shape_of(index))
        return scatter_reduce(input, dim, index, source, _REDUCTIONS[reduce])
    if not ndim_of(input):
        raise ShapeError(locate("scatter: a tensor without axes has no places; reshape it to one axis"))
    key = [
        np.arange(size).reshape([-1 if i == a else 1 for i in range(ndim_of(index))])
        for a, size in enumerate(shape_of(index))
    ]
    places = tuple([index if a == axis else grid for a, grid in enumerate(key)])
    if not is_scalar(source):
        if dtype_of(source) != dtype_of(input):
            raise refuse(f"scatter of {dtype_of(source)} into {dtype_of(input)}", "convert one of them")
        source = source[tuple(map(slice, shape_of(index)))] if ndim_of(source) else source
    return ops.setitem(input, source, places)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@name(in_place=True)
@laid_in_rows
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """The input with the elements of `src` added at the places along an axis that `index` names."""
    return scatter_reduce(input, dim, index, src, "sum")


@name(in_place=True)
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """The input with the elements of `src` combined at their places by "sum", "prod", "mean", "amax" or "amin"."""
    if dtype_of(src) != dtype_of(input):
        raise refuse(f"scatter_reduce of {dtype_of(src)} into {dtype_of(input)}", "convert one of them")
    check_index(input, place(dim, ndim_of(input)), index, src)
    return ops.scatter_reduce(input, dim, index, src, reduce, include_self)


def _rows(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * place(dim, ndim_of(x)) + (index,)


@name(pairs=True)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of an axis that `index` names, in its order."""
    check_places(index)
    if ndim_of(index) > 1:
        raise OutOfRangeError("the index has one axis; use gather, or x[index]")
    result = ops.take(as_row(input), as_row(index), axis=place(dim, ndim_of(input)))
    return result if ndim_of(input) else ops.reshape(result, ())


@name(in_place=True)
@laid_in_rows
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """The input with `alpha * source` added to the slices of an axis that `index` names."""
    axis, x = place(dim, ndim_of(input)), as_row(input)
    check_source(input, axis, index, source)
    factor = int(number(alpha)) if dtype_of(input).kind in "iu" and is_scalar(number(alpha)) else alpha
    added = as_row(source) if is_scalar(alpha) and alpha == 1 else ops.multiply(as_row(source), factor)
    return ops.reshape(ops.add(x, ops.scatter_add(added, as_row(index), shape_of(x), axis)), shape_of(input))


@name(in_place=True)
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """The input with the slices of an axis that `index` names replaced by those of `source`."""
    axis, x = place(dim, ndim_of(input)), as_row(input)
    check_source(input, axis, index, source)
    return ops.reshape(ops.setitem(x, as_row(source), _rows(x, axis, as_row(index))), shape_of(input))


@name(in_place=True)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """The input with the slices of an axis that `index` names set to one value."""
    if not is_scalar(value) and ndim_of(value):
        raise ShapeError("index_fill writes one number; use index_copy for a tensor of many")
    check_places(index)
    x, value = as_row(input), within(value, dtype_of(input))
    return laid_like(ops.reshape(ops.setitem(x, value, _rows(x, dim, as_row(index))), shape_of(input)), input)


# ---- by a mask, or by a flat index ---------------------------------------------------------------


def _mask(mask: Any) -> Any:
    if dtype_of(mask).kind != "b":
        raise refuse(f"a mask of {dtype_of(mask)}", "convert with .bool() first")
    return mask


@name(in_place=True)
@laid_in_rows
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """The input with one value where the mask is true."""
    if not is_scalar(value) and ndim_of(value):
        raise ShapeError(locate("masked_fill: the value is a number or has no axes; use where"))
    dtype, value = dtype_of(input), number(value)
    content = value if is_scalar(value) else values_of(value)
    within(content.item() if isinstance(content, np.ndarray) else content, dtype)
    filled = np.asarray(value).astype(dtype) if is_scalar(value) else cast(value, dtype)
    return ops.where(_mask(mask), filled, input)


@name()
def masked_select(input: Any, mask: Any) -> Any:
    """The elements where the mask is true, in one axis."""
    x, chosen = ops.broadcast_arrays(input, _mask(mask))
    return x[chosen]


@name(in_place=True)
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """The input with the elements of `source`, in order, where the mask is true."""
    x, chosen = ops.broadcast_arrays(input, _mask(mask))
    return ops.setitem(x, ops.reshape(source, (-1,))[: int(count_nonzero(chosen))], chosen)


@name()
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """The elements of `input` where the condition is true, else of `other`; without these, the true places per axis."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if dtype_of(condition).kind != "b" and dtype_of(condition) != np.uint8:
        raise refuse(f"where by {dtype_of(condition)}", "convert with .bool() first")
    if all(is_scalar(x) or isinstance(x, np.generic) for x in (input, other)):
        input, other = number(input), number(other)
        dtype = result_dtype((input, other))
        return cast(ops.where(cast(condition, np.bool_), cast(ops.asarray(input), dtype), other), dtype)
    wanted = result_dtype((input, other))
    left, right = promote(*[x if wanted.kind == "f" else within(x, wanted) for x in (input, other)])
    return ops.where(cast(condition, np.bool_), left, right)


@name()
def take(input: Any, index: Any) -> Any:
    """The elements at row-major places."""
    check_places(index)
    return ops.reshape(ops.take(ops.reshape(input, (-1,)), ops.reshape(index, (-1,)), axis=0), shape_of(index))


@name()
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The places of nonzero elements: a row for each place, or an index tensor for each axis."""
    if as_tuple:
        return tuple(ops.nonzero(as_row(input)))
    return ops.argwhere(input)


@name()
def argwhere(input: Any) -> Any:
    """The places of nonzero elements, a row for each."""
    return nonzero(input)


# ---- checked, and written into a part ------------------------------------------------------------


def check_index(x: Any, axis: int, index: Any, source: Any = None) -> None:
    """Raise unless an int index has as many axes as x, and fits into x and the source along all axes but one."""
    check_places(index)
    is_one = source is None or is_scalar(source) or not ndim_of(source)
    tensors = [x] if is_one else [x, source]
    wanted = shape_of(as_row(index))
    if 0 in wanted:
        return
    for tensor, free in zip(tensors, (axis, None), strict=False):
        sizes = shape_of(as_row(tensor))
        if len(sizes) != len(wanted):
            raise ShapeError(f"an index of {len(wanted)} axes for a tensor of {len(sizes)}; give them as many")
        pairs = [pair for i, pair in enumerate(zip(wanted, sizes, strict=True)) if i != free]
        if any(isinstance(size, int) and isinstance(most, int) and size > most for size, most in pairs):
            raise ShapeError(
                f"an index of shape {wanted} does not lie in a tensor of shape {sizes}; give a smaller one"
            )


_PLACES = ("int32", "int64")


def check_places(index: Any) -> None:
    """Raise DTypeError unless an index is int32 or int64: a narrower one is a mask, or the sum of one wraps."""
    if dtype_of(index).name not in _PLACES:
        raise DTypeError(f"an index of {dtype_of(index)} names no places; convert with .long()")


def check_source(x: Any, axis: int, index: Any, source: Any) -> None:
    """Raise unless a source has the dtype and shape of x, but along one axis the length of the index."""
    if dtype_of(source) != dtype_of(x):
        raise DTypeError(f"a source of {dtype_of(source)} does not go into {dtype_of(x)}; convert one of them")
    check_places(index)
    if ndim_of(index) > 1:
        raise OutOfRangeError("the index is a vector; use flatten()")
    wanted = list(shape_of(as_row(x)))
    wanted[axis] = shape_of(as_row(index))[0]
    if not same_shape(shape_of(as_row(source)), wanted):
        raise OutOfRangeError(f"the source has the shape {tuple(wanted)}, a place for each index; expand or reshape it")


def part(x: Any, key: Any) -> Any:
    """x[key] as PyTorch reads it: an int drops its axis first, a list of lists is a tuple, and bytes are a mask."""
    return ops.index(x, key_of(key), ints_first=True, laid=_laid_as_parts)


def _laid_as_parts(result: Any, view: Any, indices: Sequence[Any], axis: int) -> Any:
    """What indices pick in memory as PyTorch lays it: by the axes that stay, and then by those of the indices."""
    memory = layout_of(view)
    if memory is None or memory.flags.c_contiguous:
        return result
    arrays, count = [np.asarray(values_of(x)) for x in indices], ndim_of(result) - memory.ndim + len(indices)
    after = memory.ndim - axis - len(indices)
    steps = (*memory.strides[:axis], *(0,) * count, *memory.strides[axis + len(indices) :])
    picked = [x[(None,) * axis + (..., *(None,) * after)] for x in np.broadcast_arrays(*arrays)]
    return in_order(result, axes_order(np.lib.stride_tricks.as_strided(memory, shape_of(result), steps), *picked))


def with_part(x: Any, value: Any, key: Any) -> Any:
    """A copy of x with `value` at x[key], as PyTorch reads it."""
    value = within(value, dtype_of(x)) if dtype_of(x).kind in "iu" else value  # a float becomes infinite, as there
    return ops.setitem(x, value, key_of(key), ints_first=True)


def key_of(key: Any) -> Any:
    """The key in NumPy's words: PyTorch reads a list as a tuple where it holds more than numbers."""
    if isinstance(key, list) and any(map(_is_more_than_a_number, key)):
        key = tuple(key)
    return tuple(map(mask_of, key)) if isinstance(key, tuple) else mask_of(key)


def _is_more_than_a_number(entry: Any) -> bool:
    is_array = hasattr(entry, "dtype") and not isinstance(entry, np.generic)
    return entry is None or entry is ... or is_array or isinstance(entry, (list, tuple, slice))


def mask_of(index: Any) -> Any:
    """An index; one of bytes as bools, since PyTorch takes it for a mask, and an int of an array as that int."""
    if not hasattr(index, "dtype"):
        return index
    if index.dtype == np.uint8:
        return ops.astype(index, np.bool_)
    if type(index) is np.ndarray:  # of any ints
        return int(index) if not index.ndim and index.dtype.kind in "iu" else index
    if index.dtype.kind in "iu" and index.dtype.itemsize < 4 and index.ndim:
        raise OutOfRangeError(locate(f"index: {index.dtype} names no places; convert with .long()"))
    return index


@name(in_place=True)
def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """The input with `values` written, or added, at the places that a tuple of indices or masks names."""
    if not hasattr(values, "dtype") or dtype_of(values) != dtype_of(input):
        raise DTypeError(f"index_put writes tensors of {dtype_of(input)} here; convert the values with .to(dtype)")
    key = tuple([slice(None) if index is None else mask_of(index) for index in indices])
    if not accumulate:
        return laid_like(ops.setitem(input, values, key), input)
    places = ops.index(np.arange(ops.reshape(input, (-1,)).shape[0]).reshape(shape_of(input)), key)
    return _add_at(input, places, ops.broadcast_to(values, shape_of(places)))


def _add_at(x: Any, places: Any, values: Any) -> Any:
    """Add values to x at row-major places."""
    flat = ops.reshape(x, (-1,))
    sums = ops.scatter_add(ops.reshape(values, (-1,)), ops.reshape(places, (-1,)), shape_of(flat), 0)
    return ops.reshape(ops.add(flat, sums), shape_of(x))
