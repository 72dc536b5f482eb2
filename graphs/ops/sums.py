"""Sums over rows and along rows, by BLAS where possible: products with a vector of ones.

`np.add.reduce` starts anew for each row, which takes as long as adding dozens of numbers: the gradient of a bias, or a
mean along short rows, takes three to eight times as long as reading the array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.ops.shapes import HALF

Array = Any

MANY = 4096  # numbers: fewer are added up before it is found out how they lie
_SHORTEST, _LONGEST = 16, 4096  # rows that BLAS adds up sooner, and rounds no more often than NumPy its blocks of 128
_ONES = {dtype.num: np.ones(_LONGEST, dtype) for dtype in (np.dtype(np.float32), np.dtype(np.float64))}


def sum_sorted_axes(x: Array, axis: Any, dtype: Any = None, out: Array = None, keepdims: bool = False) -> Array:
    """`np.add.reduce` over sorted axes, except that a sum of -0.0 alone may be 0.0."""
    if x.dtype.num == HALF and (dtype is None or dtype == x.dtype):  # not `in`: to NumPy None is float64
        wide = np.add.reduce(x, axis, np.float32, keepdims=keepdims)  # type: ignore[call-overload]
        return round_to_dtype(wide, x.dtype, out)
    if x.size < MANY or x.ndim < 2 or not axis or type(axis) is not tuple or not _is_plain(x, dtype):
        return np.add.reduce(x, axis, dtype, out, keepdims)  # type: ignore[call-overload]
    count, length = len(axis), x.shape[-1]  # the two usual cases first, since to look for more takes as long as they do
    if axis[-1] == count - 1 and count < x.ndim:
        return in_shape(_over_rows(x, count), (1,) * count * keepdims + x.shape[count:], out)
    if count == 1 and axis[0] == x.ndim - 1 and _SHORTEST <= length <= _LONGEST:
        return np.vecdot(x, _ONES[x.dtype.num][:length], out, keepdims=keepdims)  # type: ignore[call-overload]
    # The sum over some (or none) of the first axes and some of the last axes.
    before = next((i for i, place in enumerate(axis) if place != i), len(axis))
    after = len(axis) - before
    length = math.prod(x.shape[x.ndim - after :])
    is_outer = len(axis) < x.ndim and axis[before:] == tuple(range(x.ndim - after, x.ndim))
    if not is_outer or not _SHORTEST <= length <= _LONGEST:
        return np.add.reduce(x, axis, dtype, out, keepdims)  # type: ignore[call-overload]
    shape = (1,) * before * keepdims + x.shape[before : x.ndim - after] + (1,) * after * keepdims
    rows = _along_rows(x, after, length)
    return in_shape(_over_rows(rows, before) if before else rows, shape, out)


def round_to_dtype(x: Array, dtype: np.dtype[Any], out: Array = None) -> Array:
    """Round a result of a wider dtype to `dtype`, into `out` where there is one."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="same_kind")
    return out


def _along_rows(x: Array, count: int, length: int) -> Array:
    """The sum over the last `count` axes, which hold rows of `length` elements."""
    # Each row by itself, so that its bits do not depend on the number of rows.
    rows: Array = np.vecdot(x.reshape(*x.shape[: x.ndim - count], length), _ONES[x.dtype.num][:length])
    return rows


def _is_plain(x: Array, dtype: Any) -> bool:
    """Whether BLAS can read the array without a copy, and the sum is in the array's dtype."""
    kind = x.dtype
    return kind.num in _ONES and (dtype is None or dtype == kind) and x.flags.c_contiguous


def _over_rows(x: Array, count: int) -> Array:
    """The sum over the first `count` axes, as a flat array."""
    number = math.prod(x.shape[:count])
    ones = _ONES[x.dtype.num][:number] if number <= _LONGEST else np.ones(number, x.dtype)
    flat: Array = ones.dot(x if x.ndim == 2 else x.reshape(number, math.prod(x.shape[count:])))
    return flat


def in_shape(result: Array, shape: tuple[int, ...], out: Array) -> Array:
    """Reshape a result to `shape`, and copy it into `out` where there is one."""
    if result.shape != shape:
        result = result.reshape(shape)
    if out is None:
        return result
    np.copyto(out, result)
    return out
