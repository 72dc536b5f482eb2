"""NumPy's ways to bring arrays into a shape, to join and to turn them: vstack, atleast_2d, diag, rot90 and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.creation import arange
from graphs.ops.elementwise import equal, where
from graphs.ops.families import composite
from graphs.ops.linalg import diagonal
from graphs.ops.movement import concat, expand_dims, flip, pad, permute_dims, reshape
from graphs.ops.shapes import as_operand, dtype_of, positive_axis, shape_of

__all__ = [
    "append", "atleast_1d", "atleast_2d", "atleast_3d", "diag", "fliplr", "flipud", "hstack", "ravel", "rot90",
    "vstack",
]  # fmt: skip


def ravel(x: Array, /) -> Array:
    """All elements along one axis."""
    return reshape(x, (-1,))


def _each(arrays: tuple[Array, ...], change: Any) -> Any:
    """One array changed, or a tuple of several."""
    changed = tuple(change(as_operand(x)) for x in arrays)
    return changed[0] if len(arrays) == 1 else changed


def atleast_1d(*arrays: Array) -> Any:
    """Arrays, with an axis where there is none; of several a tuple."""
    return _each(arrays, _with_one)


def atleast_2d(*arrays: Array) -> Any:
    """Arrays, with axes in front where there are fewer than 2; of several a tuple."""
    return _each(arrays, _with_two)


def atleast_3d(*arrays: Array) -> Any:
    """Arrays, with axes where there are fewer than 3: of a vector one on each side, else behind; of several a tuple."""
    return _each(arrays, _with_three)


def _with_one(x: Array) -> Array:
    return x if shape_of(x) else reshape(x, (1,))


def _with_two(x: Array) -> Array:
    return x if len(shape_of(x)) > 1 else expand_dims(_with_one(x), 0)


def _with_three(x: Array) -> Array:
    return x if len(shape_of(x)) > 2 else expand_dims(_with_two(x), -1)


def vstack(arrays: Sequence[Array], /) -> Array:
    """Arrays one below the other, along the first axis; vectors are rows."""
    return concat([_with_two(as_operand(x)) for x in arrays], axis=0)


def hstack(arrays: Sequence[Array], /) -> Array:
    """Arrays beside each other, along the second axis; vectors one after the other."""
    parts = [_with_one(as_operand(x)) for x in arrays]
    return concat(parts, axis=0 if parts and len(shape_of(parts[0])) == 1 else 1)


@composite
def append(x: Array, values: Array, /, axis: int | None = None) -> Array:
    """The values after those of x along an axis; both flat by default."""
    parts = as_operand(x), as_operand(values)
    return concat(list(map(ravel, parts)), axis=0) if axis is None else concat(list(parts), axis=axis)


@composite
def diag(x: Array, /, k: int = 0) -> Array:
    """The k-th diagonal of a matrix as a vector; of a vector, the matrix with that diagonal. k > 0 lies above."""
    x = as_operand(x)
    if len(shape_of(x)) == 2:
        return diagonal(x, offset=k)
    if len(shape_of(x)) != 1:
        raise ShapeError(f"takes a vector or a matrix, not {len(shape_of(x))} axes; use linalg.diagonal")
    places = arange(shape_of(x)[0])
    square = where(equal(expand_dims(places, 1), places), x, np.zeros((), dtype_of(x)))
    above, below = max(k, 0), max(-k, 0)
    return pad(square, [(below, above), (above, below)]) if k else square


def flipud(x: Array, /) -> Array:
    """The rows in the opposite order."""
    return flip(x, axis=0)


def fliplr(x: Array, /) -> Array:
    """The columns in the opposite order."""
    return flip(x, axis=1)


@composite
def rot90(x: Array, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """x turned k times by a right angle, from the first of two axes towards the second."""
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
