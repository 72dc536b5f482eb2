"""PyTorch's functions that join and repeat tensors, make matrices of diagonals and triangles, and views by steps."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import linalg, ops
from graphs.dims import product
from graphs.dispatch import describe_operand
from graphs.errors import ArgumentError, ShapeError, locate
from graphs.frontends.torch.names import name, name_each
from graphs.frontends.torch.shapes import (
    apart,
    as_view,
    flatten,
    has_channels_last,
    laid_in_rows,
    layout_of,
    like_images,
    memory_of,
    reshape,
)
from graphs.frontends.torch.words import as_row, axis_and_size, cast, ndim_of, place, result_dtype, shape_of, sizes
from graphs.op import Op
from graphs.ops.shapes import dtype_of, owner_of, store
from graphs.spec import TensorSpec, spec_of

# ---- matrices ------------------------------------------------------------------------------------


@name()
def diag(input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
    return like_images(apart(ops.diag(input, diagonal), input))


@name(pairs=True)
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis of the result."""
    matrices = ops.moveaxis(input, (dim1, dim2), (-2, -1))
    memory = memory_of(matrices)
    if memory is None or memory.flags.c_contiguous:
        return as_view(linalg.diagonal(matrices, offset=offset), input)
    return _diagonal.apply((matrices,), {"offset": offset})


def _diagonal_view(x: Any, *, offset: int, out: Any = None) -> Any:
    """The diagonal of the last two axes as a view, for any memory order."""
    view = np.diagonal(x, offset, -2, -1)
    view.flags.writeable = x.flags.writeable
    return store(view, out)


def _diagonal_cotangent(g: Any, x_shape: Any, offset: int) -> Any:
    rows = np.arange(shape_of(g)[-1]) + max(-offset, 0)
    return ops.setitem(ops.zeros(x_shape, dtype=dtype_of(g)), g, (..., rows, rows + offset))


_diagonal = Op(
    "diagonal",
    _diagonal_view,
    lambda x, *, offset: spec_of(np.diagonal(np.broadcast_to(np.zeros((), x.dtype), x.shape), offset, -2, -1)),
    rules=(_diagonal_cotangent,),
    cost=0,
    family="movement",
    view=True,
    listed=False,
)


@name()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices that have the last axis of the input as their diagonals."""
    size = shape_of(input)[-1] + abs(offset)
    rows, columns = np.arange(size)[:, None], np.arange(size)
    place_ = np.clip(rows - max(-offset, 0), 0, shape_of(input)[-1] - 1)
    spread = ops.where(columns - rows == offset, ops.take(input, place_.reshape(-1), axis=-1)[..., None], 0)
    return ops.moveaxis(cast(spread, dtype_of(input)), (-2, -1), (dim1, dim2))


@name(in_place=True)
@laid_in_rows
def tril(input: Any, diagonal: int = 0) -> Any:
    """The elements on and below a diagonal, and 0 for the others."""
    return ops.tril(input, k=diagonal)


@name(in_place=True)
@laid_in_rows
def triu(input: Any, diagonal: int = 0) -> Any:
    """The elements on and above a diagonal, and 0 for the others."""
    return ops.triu(input, k=diagonal)


@name()
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one."""
    blocks = [ops.atleast_2d(x) for x in _alike(tensors)]
    width, left, rows = sum(shape_of(b)[1] for b in blocks), 0, []
    for block in blocks:
        right = width - left - shape_of(block)[1]
        rows.append(ops.pad(block, ((0, 0), (left, right))))
        left += shape_of(block)[1]
    return cat(rows)


# ---- views by steps -------------------------------------------------------------------------------


def _gather_windows(x: Any, axis: int, size: int, step: int) -> Any:
    """The windows as a copy, for a trace."""
    places = _places(shape_of(x), axis, size, step)
    windows = ops.take(x, places.T.reshape(-1), axis=axis)
    shape = shape_of(windows)
    return ops.moveaxis(ops.reshape(windows, (*shape[:axis], *places.T.shape, *shape[axis + 1 :])), axis + 1, -1)


def _places(shape: Sequence[Any], axis: int, size: int, step: int) -> Any:
    """The index along the axis for each place of each window: i[size, windows]."""
    return np.arange(size)[:, None] + np.arange(0, shape[axis] - size + 1, step)


def _in_place(x: Any, *, axis: int, size: int, step: int, out: Any = None) -> Any:
    """The windows as a view."""
    every = np.lib.stride_tricks.sliding_window_view(x, size, axis, writeable=x.flags.writeable)
    return store(every[(slice(None),) * axis + (slice(None, None, step),)], out)


def _scatter_windows(g: Any, x_shape: Any, axis: int, size: int, step: int) -> Any:
    places = _places(x_shape, axis, size, step)
    return ops.scatter_add(ops.moveaxis(g, -1, axis), places, x_shape, axis)


_windows = Op(
    "unfold",
    _in_place,
    lambda x, *, axis, size, step: spec_of(
        _in_place(np.broadcast_to(np.zeros((), x.dtype), x.shape), axis=axis, size=size, step=step)
    ),
    rules=(_scatter_windows,),
    cost=0,
    family="movement",
    view=True,
    listed=False,
)


@name()
def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Windows of `size` elements along an axis, `step` apart; the last axis runs within a window."""
    x = as_row(input)
    axis, length = axis_and_size(x, dimension)
    if not 0 <= size <= length or step < 1:
        raise ShapeError(
            f"windows of {size}, {step} apart, do not lie in an axis of {length}; take fewer, 1 apart or more"
        )
    options = {"axis": axis, "size": size, "step": step}
    sections = _gather_windows(x, **options) if memory_of(x) is None else _windows.apply((x,), options)
    return as_view(sections if ndim_of(input) else ops.reshape(sections, (size,)), input)


@name(in_place="shape")
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Elements of the tensor's memory by steps along each axis, from a place in it: by default its first element.

    In a trace, elements of a tensor that lies row by row. Raises ShapeError for what lies outside.
    """
    sizes, steps = tuple(map(operator.index, size)), tuple(map(operator.index, stride))
    if len(sizes) != len(steps) or any(number < 0 for number in (*sizes, *steps)):
        raise ShapeError(f"{len(steps)} steps for {len(sizes)} sizes; give one for each, of 0 or more")
    memory = memory_of(input)
    if memory is None:
        places = _elements(input, sizes, steps, storage_offset)
        return as_view(ops.reshape(ops.take(ops.reshape(input, (-1,)), places.reshape(-1)), sizes), input)
    owner, own = owner_of(memory), tuple([step // memory.itemsize for step in memory.strides])
    before = (_address(memory) - _address(owner)) // memory.itemsize
    start = before if storage_offset is None else operator.index(storage_offset)
    last = start + sum((count - 1) * step for count, step in zip(sizes, steps, strict=True))
    count = owner.nbytes // memory.itemsize
    if all(sizes) and not 0 <= start <= last < count:
        raise ShapeError(f"places {start} to {last} are not all in memory of {count} elements; take fewer")
    return _strided.apply((input,), {"sizes": sizes, "steps": steps, "start": start - before, "own": own})


def _places_of(sizes: Sequence[int], steps: Sequence[int]) -> Any:
    """The place of each element in memory, from that of the first."""
    along = [np.arange(size) * step for size, step in zip(sizes, steps, strict=True)]
    return functools.reduce(np.add.outer, along, np.array(0))


def _elements(input: Any, sizes: tuple[int, ...], steps: tuple[int, ...], storage_offset: Any) -> Any:
    """The row-major numbers of the input's elements that `as_strided` shows. Raises ShapeError for other memory."""
    memory = memory_of(input)
    if memory is None and not input.is_contiguous():
        raise ShapeError("this tensor lies in memory in another order; call contiguous() first")
    places = _places_of(sizes, steps)
    before, numbers = 0, np.arange(int(product(shape_of(input))))
    if memory is not None:
        before = (_address(memory) - _address(owner_of(memory))) // memory.itemsize
        own = _places_of(memory.shape, [step // memory.itemsize for step in memory.strides]).reshape(-1)
        numbers = np.full(own.max() + 1 if own.size else 0, -1)
        numbers[own] = np.arange(own.size)
    places = places + (0 if storage_offset is None else operator.index(storage_offset) - before)
    if places.size and not (places.min() >= 0 and places.max() < numbers.size and (numbers[places] >= 0).all()):
        raise ShapeError("steps lead to memory that is none of this tensor's; take fewer, or begin elsewhere")
    return numbers[places]


def _address(memory: Any) -> int:
    return memory.__array_interface__["data"][0]


class _Memory:
    """What NumPy makes an array of: memory, which `base` holds, from an address on and by steps."""

    __slots__ = ("__array_interface__", "base")

    def __init__(self, base: Any, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        data = _address(base) + start, not base.flags.writeable
        self.base, self.__array_interface__ = base, {**base.__array_interface__, "data": data}
        self.__array_interface__.update(shape=shape, strides=strides)


def _strided_view(x: Any, *, sizes: Any, steps: Any, start: int, own: Any, out: Any = None) -> Any:
    """Elements of the memory of an array, by steps from a place that is counted from its first element."""
    width = x.itemsize
    return store(np.asarray(_Memory(x, start * width, sizes, tuple([step * width for step in steps]))), out)


def _strided_cotangent(g: Any, x_shape: Any, sizes: Any, steps: Any, start: int, own: Any) -> Any:
    """The cotangents of places in memory, as the input reads them: what it shows twice has half of it each time."""
    seen, places = _places_of(sizes, steps) + start, _places_of(x_shape, own)
    first = min(seen.min(initial=0), places.min(initial=0))
    count = max(seen.max(initial=0), places.max(initial=0)) - first + 1
    total = ops.scatter_add(ops.reshape(g, (-1,)), seen.reshape(-1) - first, (count,), 0)
    shares = np.maximum(np.bincount(places.reshape(-1) - first, minlength=count), 1)
    if shares.max() > 1:
        total = ops.divide(total, ops.astype(shares, dtype_of(g)))
    return ops.reshape(ops.take(total, places.reshape(-1) - first), x_shape)


_strided = Op(
    "as_strided",
    _strided_view,
    lambda x, *, sizes, steps, start, own: TensorSpec(sizes, x.dtype),
    rules=(_strided_cotangent,),
    cost=0,
    family="movement",
    view=True,
    listed=False,
)


# ---- several tensors -----------------------------------------------------------------------------


def _alike(tensors: Sequence[Any]) -> list[Any]:
    """Convert tensors to one dtype. Raises ArgumentError for a value that is no tensor, ShapeError for no values."""
    tensors = list(tensors)
    if not tensors:
        raise ShapeError("takes one tensor or more; pass a list of them")
    for x in tensors:
        if not hasattr(x, "dtype"):
            raise ArgumentError(f"takes tensors, not {describe_operand(x)}; leave it out, or use torch.tensor")
    if len({dtype_of(x) for x in tensors}) > 1:
        wanted = result_dtype(tensors)
        return [cast(x, wanted) for x in tensors]
    return tensors


@name("concat", "concatenate", pairs=True)
def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Any:
    """Join tensors along an existing axis; empty vectors among them are left out."""
    converted = _alike(tensors)
    kept = [x for x in converted if shape_of(x) != (0,)] or converted[:1]
    return _join_images(ops.concat(kept, axis=dim if axis is None else axis), kept)


def _join_images(result: Any, tensors: Sequence[Any]) -> Any:
    """The result with its channels last where all tensors have them so."""
    return like_images(result, *tensors) if all(has_channels_last(layout_of(x)) for x in tensors) else result


@name(pairs=True)
def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Any:
    """Join tensors of one shape along a new axis."""
    listed, at = _alike(tensors), dim if axis is None else axis
    result = ops.stack(listed, axis=at)
    at, shape = at % ndim_of(result), shape_of(result)
    if at < len(shape) - 1 and all(has_channels_last(layout_of(x)) for x in listed):  # as PyTorch does
        return ops.reshape(cat(listed, at), shape)
    return result


@name(pairs=True)
def repeat(input: Any, *repeats: Any) -> Any:
    """Repeat the tensor along each axis; new axes come first."""
    times = sizes(repeats)
    if len(times) < ndim_of(input):
        raise ShapeError(locate(f"repeat: {len(times)} numbers for {ndim_of(input)} axes; give one for each axis"))
    return apart(ops.tile(input, times), input)


@name(pairs=True)
def tile(input: Any, *dims: Any) -> Any:
    """Repeat the tensor along each axis, with NumPy's rule for fewer repetitions than axes."""
    return apart(ops.tile(input, sizes(dims)), input)


@name()
def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Repeat each element, or each slice along an axis."""
    del output_size
    times = (
        repeats
        if isinstance(repeats, int) or not ndim_of(repeats) or shape_of(repeats) != (1,)
        else ops.reshape(repeats, ())
    )
    x = flatten(input) if dim is None else input
    return apart(ops.repeat(x, _whole(times), axis=place(0 if dim is None else dim, ndim_of(x))), input)


def _whole(times: Any) -> Any:
    return times if isinstance(times, int) or ndim_of(times) else int(times)


@name()
def hstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the second axis, vectors along their only axis."""
    return _join_images(ops.hstack(alike := _alike(tensors)), alike)


@name("row_stack")
def vstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the first axis; vectors become rows."""
    return _join_images(ops.vstack(alike := _alike(tensors)), alike)


@name()
def dstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the third axis."""
    return cat([atleast_3d(x) for x in tensors], 2)


@name()
def column_stack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the second axis; vectors become columns."""
    return cat([reshape(x, -1, 1) if ndim_of(x) < 2 else x for x in tensors], 1)


def _of_each(function: Any) -> Any:
    """The function of one tensor as one of several, which gives a tuple for them."""

    def of_tensors(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
            return function(tensors[0])
        return tuple([function(x) for x in sizes(tensors)])

    return of_tensors


atleast_1d, atleast_2d, atleast_3d = name_each(
    _of_each, atleast_1d=ops.atleast_1d, atleast_2d=ops.atleast_2d, atleast_3d=ops.atleast_3d
)


@name()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Grids of coordinates, the first along the first axis unless `indexing` is "xy"."""
    vectors = [reshape(x, 1) if not ndim_of(x) else x for x in sizes(tensors)]
    if any(ndim_of(x) > 1 for x in vectors):
        raise ShapeError("a grid is made of vectors, or of numbers without axes; use ravel()")
    return tuple(ops.meshgrid(*vectors, indexing=indexing)) if len(vectors) > 1 else (reshape(vectors[0], -1),)


@name()
def cartesian_prod(*tensors: Any) -> Any:
    """All choices of one element from each vector, as rows."""
    return tensors[0] if len(tensors) == 1 else stack([flatten(x) for x in meshgrid(*tensors)], 1)


@name()
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of r elements of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(shape_of(input)[0]), r)), np.int64).reshape(-1, r)
    return reshape(ops.take(input, rows.reshape(-1), axis=0), *rows.shape)
