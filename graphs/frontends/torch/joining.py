"""PyTorch's functions that join tensors, and that make matrices of diagonals and triangles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import linalg, ops
from graphs.dispatch import describe_operand
from graphs.errors import ArgumentError, ShapeError
from graphs.frontends.torch.names import name
from graphs.frontends.torch.shapes import apart, as_view, flatten, laid_in_rows, memory_of, reshape
from graphs.frontends.torch.words import cast, ndim_of, result_dtype, shape_of, sizes
from graphs.op import Op
from graphs.ops.shapes import dtype_of, store
from graphs.spec import spec_of

# ---- matrices ------------------------------------------------------------------------------------


@name()
def diag(input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
    return apart(ops.diag(input, diagonal), input)


@name()
def diagflat(input: Any, offset: int = 0) -> Any:
    """The matrix with all elements on its diagonal."""
    return ops.diag(flatten(input), offset)


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
    return ops.concat(kept, axis=dim if axis is None else axis)


@name(pairs=True)
def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Any:
    """Join tensors of one shape along a new axis."""
    return ops.stack(_alike(tensors), axis=dim if axis is None else axis)


@name()
def hstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the second axis, vectors along their only axis."""
    return ops.hstack(_alike(tensors))


@name("row_stack")
def vstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the first axis; vectors become rows."""
    return ops.vstack(_alike(tensors))


@name()
def dstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the third axis."""
    return cat([atleast_3d(x) for x in tensors], 2)


@name()
def column_stack(tensors: Sequence[Any]) -> Any:
    """Join tensors along the second axis; vectors become columns."""
    return cat([reshape(x, -1, 1) if ndim_of(x) < 2 else x for x in tensors], 1)


def _each(function: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return function(tensors[0])
    return tuple([function(x) for x in sizes(tensors)])


@name()
def atleast_1d(*tensors: Any) -> Any:
    """The tensors with at least one axis."""
    return _each(ops.atleast_1d, tensors)


@name()
def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least two axes."""
    return _each(ops.atleast_2d, tensors)


@name()
def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least three axes."""
    return _each(ops.atleast_3d, tensors)


@name()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Grids of coordinates, the first along the first axis unless `indexing` is "xy"."""
    vectors = [reshape(x, 1) if not ndim_of(x) else x for x in sizes(tensors)]
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
