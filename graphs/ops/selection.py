"""Kernel of `where`: a choice without a branch for each element, by arithmetic on the bits of the numbers.

NumPy's own way (`where`, `copyto(..., where=)`) takes ten to twenty times as long when the condition is random, like
the mask of a ReLU: the processor cannot predict it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import promotion
from graphs.op import Array
from graphs.spec import broadcast_shapes

Shape = tuple[int, ...]

_FEW_SELECTED = 1024  # elements: so many NumPy chooses from as soon
_SMALL = 256  # elements: for so many, to set up the arithmetic takes longer than what the processor did not foresee
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def select(condition: Array, x: Array, y: Array, out: Array = None) -> Array:
    """x where the condition holds, else y: `where(condition, x, y)`. `out` may be an operand."""
    if out is not None and getattr(condition, "ndim", 0) == 0:  # one answer for all, as in the gradient of a loop
        chosen = x if condition else y
        if chosen is not out:
            np.copyto(out, chosen)
        return out
    if type(x) is not type(y) and np.size(condition) > _FEW_SELECTED:  # a number beside an array is of its dtype
        x, y = promotion.weak_to_array(x, (y,)), promotion.weak_to_array(y, (x,))
    bits = _BITS.get(x.dtype.itemsize) if _alike(condition, x, y) else None
    if bits is None or max(condition.size, x.size, y.size) <= _SMALL:
        return _where_by_copy(condition, x, y, out)
    if out is None:
        out = np.empty(_shape(condition.shape, x.shape, y.shape), x.dtype)
    target, kept, other = out.view(bits), x.view(bits), y.view(bits)
    if other.ndim == 0 and not other:  # zero, as in the gradient of a ReLU: half of the work
        np.multiply(kept, condition, target)
    elif kept.ndim == 0 and not kept:
        np.multiply(other, np.logical_not(condition), target)
    else:
        np.bitwise_xor(np.multiply(np.bitwise_xor(kept, other), condition), other, target)
    return out


def _shape(condition: Shape, x: Shape, y: Shape) -> Shape:
    """The shape that all three broadcast to; the usual cases, equal shapes or a scalar, take no call."""
    if condition == (x or y) and (y == condition or not (x and y)):
        return condition
    shape: Any = broadcast_shapes(condition, x, y)  # of numbers, as these are
    return shape


def _alike(condition: Array, x: Array, y: Array) -> bool:
    arrays = type(condition) is type(x) is type(y) is np.ndarray
    return arrays and x.dtype == y.dtype and condition.dtype == np.bool_


def _where_by_copy(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """`select` for few elements, for mixed dtypes, and for dtypes that are wider than any integer."""
    if out is None:
        return np.where(condition, x, y)
    holds = np.asarray(condition, bool)
    if np.may_share_memory(out, x):
        np.copyto(out, y, where=~holds)
    else:
        np.copyto(out, y)
        np.copyto(out, x, where=holds)
    return out
