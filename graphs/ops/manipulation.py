"""Functions that rearrange arrays, made of ops: repeat, tile, broadcast_arrays, meshgrid, tril, triu, diff, astype.

Then NumPy's functions that reshape, join and turn arrays: vstack, atleast_2d, diag, rot90 and the like.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims, dispatch
from graphs.dims import Dim, Shape, Size
from graphs.errors import ControlFlowError, ShapeError
from graphs.op import Array
from graphs.ops import movement
from graphs.ops.creation import arange
from graphs.ops.dtypes import check_device
from graphs.ops.elementwise import (
    equal,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    not_equal,
    remainder,
    subtract,
    where,
)
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.linalg import diagonal
from graphs.ops.movement import astype as _astype
from graphs.ops.movement import broadcast_to, concat, expand_dims, flip, permute_dims, reshape
from graphs.ops.shapes import as_operand, dtype_of, last_two, positive_axis, shape_of
from graphs.ops.slicing import cut
from graphs.spec import broadcast_shapes

__all__ = [
    "append", "astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "diag", "diff", "fliplr",
    "flipud", "hstack", "meshgrid", "pad", "ravel", "repeat", "rot90", "tile", "tril", "triu", "vstack",
]  # fmt: skip


def astype(x: Array, dtype: npt.DTypeLike, /, *, copy: bool = True, device: Any = None) -> Array:
    """The values converted to another dtype; x itself when it has that dtype and `copy` is False."""
    check_device(device)
    return x if not copy and dtype_of(x) == np.dtype(dtype) else _astype(x, dtype)


@composite
def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Array:
    """Repeat each element along an axis (of the flat array by default): `repeats` times, or as an array of counts says.

    Raises ControlFlowError for symbolic counts: the result's size would depend on their values.
    """
    x = as_operand(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    at = positive_axis(axis, len(shape_of(x)))
    if isinstance(repeats, (int, np.integer, Dim)):
        times = repeats if isinstance(repeats, Dim) else int(repeats)
        shape = shape_of(x)
        before, size, after = shape[:at], shape[at], shape[at + 1 :]
        wide = broadcast_to(expand_dims(x, at + 1), (*before, size, times, *after))
        return reshape(wide, (*before, size * times, *after))
    counts = _known_counts(repeats)
    size = operator.index(shape_of(x)[at])  # a symbolic size cannot be matched with counts
    if counts.ndim > 1 or counts.size not in (1, size):
        raise ShapeError(f"{counts.shape} counts for an axis of size {size}; give one, or one for each element")
    return take(x, np.repeat(np.arange(size), counts), axis=at)


def _known_counts(repeats: Array) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(repeats)
    except ControlFlowError:
        raise ControlFlowError(
            "the size of the result depends on the values of `repeats`, which are unknown while a graph is traced; "
            "pass an int, or an array that is known, or gather with graphs.take"
        ) from None


@composite
def tile(x: Array, repetitions: int | Sequence[int], /) -> Array:
    """Repeat the whole array along each axis; fewer repetitions than axes count from the last axis."""
    x = as_operand(x)
    times: tuple[Size, ...] = (repetitions,) if isinstance(repetitions, (int, Dim)) else tuple(repetitions)
    rank = max(len(times), len(shape_of(x)))
    shape = (1,) * (rank - len(shape_of(x))) + shape_of(x)
    times = (1,) * (rank - len(times)) + times
    pairs = list(zip(times, shape, strict=True))
    apart = reshape(x, [s for size in shape for s in (1, size)])
    wide = broadcast_to(apart, [s for pair in pairs for s in pair])
    return reshape(wide, [n * size for n, size in pairs])


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """The arrays, each broadcast to their common shape."""
    shape = broadcast_shapes(*map(shape_of, arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate matrices from vectors: with `ij` axis i belongs to vector i, `xy` swaps the first two axes."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}; choose one")
    vectors = [reshape(a, (-1,)) for a in arrays]
    count = len(vectors)
    apart = [expand_dims(v, [a for a in range(count) if a != i]) if count > 1 else v for i, v in enumerate(vectors)]
    grids = broadcast_arrays(*apart)
    if indexing == "xy" and count > 1:
        return tuple(permute_dims(grid, [1, 0, *range(2, count)]) for grid in grids)
    return grids


@composite
def tril(x: Array, /, k: int = 0) -> Array:
    """The last two axes with zeros above the k-th diagonal (k > 0 lies above the main diagonal)."""
    rows, columns = _positions(x)
    return where(less_equal(columns, rows + k), x, np.zeros((), dtype_of(x)))


@composite
def triu(x: Array, /, k: int = 0) -> Array:
    """The last two axes with zeros below the k-th diagonal (k > 0 lies above the main diagonal)."""
    rows, columns = _positions(x)
    return where(greater_equal(columns, rows + k), x, np.zeros((), dtype_of(x)))


def _positions(x: Array) -> tuple[Array, Array]:
    """The numbers of the rows, as a column, and the numbers of the columns, as a row."""
    rows, columns = last_two(shape_of(x))
    return expand_dims(arange(rows), 1), arange(columns)


@composite
def diff(x: Array, /, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """Differences of neighbours along an axis, taken `n` times; for bools, whether neighbours differ."""
    if n < 0:
        raise ShapeError(f"differences are taken 0 or more times, not {n}; change n")
    x = as_operand(x)
    at = positive_axis(axis, len(shape_of(x)))
    parts = [_row(p, x, at) for p in (prepend, x, append) if p is not None]
    x = concat(parts, axis=at) if len(parts) > 1 else x
    for _ in range(n):
        compare = not_equal if dtype_of(x).kind == "b" else subtract
        x = compare(cut(x, at, 1, None), cut(x, at, None, -1))
    return x


def _row(part: Array, x: Array, axis: int) -> Array:
    """An array to put before or after x: a scalar becomes one element along `axis`, broadcast over the other axes."""
    if shape_of(part) != ():
        return part
    shape: Shape = tuple(1 if a == axis else s for a, s in enumerate(shape_of(x)))
    if dispatch.interpreter_of(part) is None:
        part = np.asarray(part, dtype_of(x)) if isinstance(part, (int, float)) else np.asarray(part)
    return broadcast_to(part, shape)


def ravel(x: Array, /) -> Array:
    """All elements along one axis."""
    return reshape(x, (-1,))


def _each(arrays: tuple[Array, ...], change: Any) -> Any:
    """Change each array: one result for one array, a tuple for several."""
    changed = tuple(change(as_operand(x)) for x in arrays)
    return changed[0] if len(arrays) == 1 else changed


def atleast_1d(*arrays: Array) -> Any:
    """Arrays with at least one axis: a scalar gets one. A tuple for several arrays."""
    return _each(arrays, _with_one)


def atleast_2d(*arrays: Array) -> Any:
    """Arrays with at least 2 axes, new ones in front. A tuple for several arrays."""
    return _each(arrays, _with_two)


def atleast_3d(*arrays: Array) -> Any:
    """Arrays with at least 3 axes: a vector gets one on each side, a matrix one behind. A tuple for several arrays."""
    return _each(arrays, _with_three)


def _with_one(x: Array) -> Array:
    return x if shape_of(x) else reshape(x, (1,))


def _with_two(x: Array) -> Array:
    return x if len(shape_of(x)) > 1 else expand_dims(_with_one(x), 0)


def _with_three(x: Array) -> Array:
    return x if len(shape_of(x)) > 2 else expand_dims(_with_two(x), -1)


def vstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along the first axis; vectors become rows."""
    return concat([_with_two(as_operand(x)) for x in arrays], axis=0)


def hstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along the second axis, vectors along their only axis."""
    parts = [_with_one(as_operand(x)) for x in arrays]
    return concat(parts, axis=0 if parts and len(shape_of(parts[0])) == 1 else 1)


@composite
def append(x: Array, values: Array, /, axis: int | None = None) -> Array:
    """Join the values to the end of x along an axis; both are flattened by default."""
    parts = as_operand(x), as_operand(values)
    return concat(list(map(ravel, parts)), axis=0) if axis is None else concat(list(parts), axis=axis)


@composite
def diag(x: Array, /, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix whose k-th diagonal is a vector. k > 0 lies above the main one."""
    x = as_operand(x)
    if len(shape_of(x)) == 2:
        return diagonal(x, offset=k)
    if len(shape_of(x)) != 1:
        raise ShapeError(f"takes a vector or a matrix, not {len(shape_of(x))} axes; use linalg.diagonal")
    places = arange(shape_of(x)[0])
    square = where(equal(expand_dims(places, 1), places), x, np.zeros((), dtype_of(x)))
    above, below = max(k, 0), max(-k, 0)
    return movement.pad(square, [(below, above), (above, below)]) if k else square


def flipud(x: Array, /) -> Array:
    """The rows in the opposite order."""
    return flip(x, axis=0)


def fliplr(x: Array, /) -> Array:
    """The columns in the opposite order."""
    return flip(x, axis=1)


@composite
def rot90(x: Array, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotate x k times by a right angle, from the first of two axes towards the second."""
    ndim = len(shape_of(x))
    first, second = (positive_axis(a, ndim) for a in axes)
    if first == second:
        raise ShapeError(f"axes {tuple(axes)} are one; name two")
    order = list(range(ndim))
    order[first], order[second] = second, first
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return flip(x, axis=(first, second))
    return permute_dims(flip(x, axis=second), order) if k % 4 == 1 else flip(permute_dims(x, order), axis=second)


# Padding --------------------------------------------------------------------------------------------------------------


@composite
def pad(x: Array, /, pad_width: Any, value: float = 0, mode: str = "constant") -> Array:
    """x with a border: one (before, after) pair per axis, or one number for all.

    `mode` "constant" fills the border with `value`. The other modes fill it with elements of x, repeated if need be:
    "edge" or "replicate" the nearest, "wrap" or "circular" elements from the other end, "reflect" elements mirrored at
    the nearest, and "symmetric" elements mirrored at the edge. Names and meanings are NumPy's and PyTorch's. Raises
    ShapeError.
    """
    if mode == "constant":
        return movement.pad(x, pad_width, value)
    if mode not in _PLACES:
        raise ShapeError(f"mode is one of 'constant', {', '.join(map(repr, _PLACES))}, not {mode!r}; choose one")
    if value != 0:
        raise ShapeError(f"mode {mode!r} takes no value; leave it out, or use mode 'constant'")
    (x,), attrs = movement.prepare_pad(x, pad_width)
    for axis, (before, after) in enumerate(attrs["pad_width"]):
        if before or after:
            x = take(x, _places(shape_of(x)[axis], before, after, mode), axis=axis)
    return x


def _places(size: Size, before: int, after: int, mode: str) -> Array:
    """For each place of a padded axis, the index of the element of x there."""
    if dims.same(size, 0):
        raise ShapeError(f"an axis of size 0 has nothing to pad with in mode {mode!r}; use mode 'constant'")
    return _PLACES[mode](subtract(arange(before + size + after), before), size)


def _edge(places: Array, size: Size) -> Array:
    return minimum(maximum(places, 0), size - 1)


def _reflect(places: Array, size: Size) -> Array:
    there_and_back = dims.maximum(2 * size - 2, 1)
    turned = remainder(places, there_and_back)
    return where(less(turned, size), turned, subtract(there_and_back, turned))


def _symmetric(places: Array, size: Size) -> Array:
    turned = remainder(places, 2 * size)
    return where(less(turned, size), turned, subtract(2 * size - 1, turned))


_PLACES: dict[str, Callable[[Array, Size], Array]] = {
    "edge": _edge,
    "replicate": _edge,
    "reflect": _reflect,
    "symmetric": _symmetric,
    "wrap": remainder,
    "circular": remainder,
}
