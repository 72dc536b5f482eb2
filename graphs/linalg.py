"""The linear algebra extension of the array API standard: `graphs.linalg.solve` and the like, for both engines.

All functions take matrices along the last two axes, and any number of axes before these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import graphs.ops.lu  # noqa: F401  (its ops are registered: a saved graph may hold them)
from graphs import dims
from graphs.errors import LinAlgError, ShapeError
from graphs.op import Array
from graphs.ops.elementwise import abs as _abs
from graphs.ops.elementwise import greater, multiply, where
from graphs.ops.factoring import (
    EighResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    eigh,
    eigvalsh,
    qr,
    slogdet,
    svd,
    svdvals,
)
from graphs.ops.families import composite
from graphs.ops.linalg import cross, diagonal, matmul, outer, tensordot, trace, vecdot, vector_norm
from graphs.ops.movement import expand_dims, matrix_transpose
from graphs.ops.reductions import max as _max
from graphs.ops.reductions import min as _min
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import as_operand, dtype_of, shape_of
from graphs.ops.solving import cholesky, det, inv, matrices, matrix_exp, pinv, solve, square
from graphs.ops.sorting import count_nonzero
from graphs.spec import spec_of

__all__ = [
    "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det", "diagonal",
    "eigh", "eigvalsh", "inv", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Fall back to `numpy.linalg` for names that the standard lacks. Raises AttributeError for other names."""
    if name.startswith("_") or not hasattr(np.linalg, name):
        raise AttributeError(f"graphs.linalg has no {name!r}, and neither has numpy.linalg")
    return getattr(np.linalg, name)


@composite
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """A norm of matrices: "fro" (or None), "nuc", 1, -1, 2, -2, inf or -inf, as in NumPy.

    "nuc", 2 and -2 are the sum, the largest and the smallest of singular values; ties share the gradient equally.
    The gradient of "fro" where the norm is 0 is 0.
    """
    x = as_operand(x)
    matrices(spec_of(x))
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in _OF_SINGULAR_VALUES:
        result = _OF_SINGULAR_VALUES[ord](svdvals(x), axis=-1)
        return expand_dims(result, (-2, -1)) if keepdims else result
    if ord not in _OF_SUMS:
        raise ShapeError(f"there is no norm {ord!r} of matrices; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    choose, axis = _OF_SUMS[ord]
    return choose(_sum(_abs(x), axis=axis, keepdims=True), axis=(-2, -1), keepdims=keepdims)


_OF_SINGULAR_VALUES: dict[Any, Any] = {"nuc": _sum, 2: _max, -2: _min}
_OF_SUMS: dict[Any, Any] = {1: (_max, -2), -1: (_min, -2), math.inf: (_max, -1), -math.inf: (_min, -1)}


@composite
def matrix_power(x: Array, n: int, /) -> Array:
    """Square matrices times themselves, n factors; for n < 0 of their inverses. Raises LinAlgError as `inv` does."""
    x = as_operand(x)
    size, spec = square(spec_of(x)), spec_of(x)
    if n == 0:
        return where(np.asarray(True), np.eye(size.__index__(), dtype=spec.dtype), x)  # with a history, of gradient 0
    base, left, result = (x if n > 0 else inv(x)), abs(n), None
    while left:
        if left % 2:
            result = base if result is None else matmul(result, base)
        left //= 2
        base = matmul(base, base) if left else base
    return result


@composite
def matrix_rank(x: Array, /, *, rtol: float | None = None) -> Array:
    """How many singular values exceed `rtol` (default: the larger size times the float epsilon) times the largest."""
    x = as_operand(x)
    values = svdvals(x)
    if dims.same(values.shape[-1], 0):
        return _sum(values, axis=-1, dtype=np.int64)
    share = multiply(dims.maximum(*shape_of(x)[-2:]), float(np.finfo(dtype_of(x)).eps)) if rtol is None else rtol
    return count_nonzero(greater(values, multiply(_max(values, axis=-1, keepdims=True), share)), axis=-1)
