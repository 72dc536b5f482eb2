"""Selection without a branch for each element: by arithmetic on the bits of the numbers.

NumPy's own way (`where`, `copyto(..., where=)`) takes ten to twenty times as long when the condition is random, as the
mask of a ReLU is: the processor cannot foresee it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def select(condition: Array, x: Array, y: Array, out: Array = None) -> Array:
    """x where the condition holds, else y: `where(condition, x, y)`. `out` may be an operand."""
    bits = _BITS.get(x.dtype.itemsize) if _alike(condition, x, y) else None
    if bits is None:
        return _copied(condition, x, y, out)
    if out is None:
        whole = condition.shape == y.shape and not x.shape  # the gradient of a ReLU
        out = np.empty(y.shape if whole else np.broadcast_shapes(condition.shape, x.shape, y.shape), x.dtype)
    target, kept, other = out.view(bits), x.view(bits), y.view(bits)
    if kept.ndim == 0 and not kept:  # zeros, as in the gradient of a ReLU: half of the work
        np.multiply(other, np.logical_not(condition), target)
    elif other.ndim == 0 and not other:
        np.multiply(kept, condition, target)
    else:
        np.bitwise_xor(np.multiply(np.bitwise_xor(kept, other), condition), other, target)
    return out


def _alike(condition: Array, x: Array, y: Array) -> bool:
    arrays = type(condition) is type(x) is type(y) is np.ndarray
    return arrays and x.dtype == y.dtype and condition.dtype == np.bool_


def _copied(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """The same for mixed dtypes, and for those that are wider than an integer."""
    if out is None:
        return np.where(condition, x, y)
    np.copyto(out, y)
    np.copyto(out, x, where=np.asarray(condition, bool))
    return out
