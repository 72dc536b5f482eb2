"""The functions of `numpy.linalg` in the table of NumPy functions, with NumPy's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import linalg, ops
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.shapes import as_operand, dtype_of


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of all elements, of vectors along one axis, or of matrices along two axes, as in NumPy.

    Raises ShapeError for an `ord` without `axis` where x has more than 2 axes.
    """
    x = as_operand(x)
    x = x if dtype_of(x).kind == "f" else ops.astype(x, np.float64)  # the absolute value of an int may wrap
    axes: Any = tuple(range(np.ndim(x))) if axis is None else np.atleast_1d(axis).tolist()
    if ord is None or len(axes) == 1:
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: {len(axes)} axes have no norm of order {ord!r}; name one, or two for matrices")
    result = linalg.matrix_norm(ops.moveaxis(x, axes, (-2, -1)), ord="fro" if ord == "f" else ord)
    return ops.expand_dims(result, axis=[a % np.ndim(x) for a in axes]) if keepdims else result


def _svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The SVD; `hermitian` changes nothing, as it only promises that the matrices are symmetric."""
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def _qr(a: Array, mode: str = "reduced") -> Any:
    return linalg.qr(a).R if mode == "r" else linalg.qr(a, mode=mode)


def _lower_or_upper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to accept `UPLO`, which changes nothing: the matrix must be symmetric."""

    def call(a: Array, UPLO: str = "L") -> Any:  # noqa: N803  (NumPy's name)
        if UPLO.upper() not in ("L", "U"):
            raise ValueError("UPLO argument must be 'L' or 'U'")
        return function(a)

    return call


def _pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    return linalg.pinv(a, rtol=rcond if rtol is None else rtol)


def _matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: N803
    if tol is not None:
        return ops.count_nonzero(ops.greater(linalg.svdvals(A), tol), axis=-1)
    return linalg.matrix_rank(A, rtol=rtol)


_SAME = """
    solve inv det slogdet cholesky svdvals matrix_power matrix_norm vector_norm cross matmul matrix_transpose outer
    tensordot vecdot trace diagonal
"""

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np.linalg, name): getattr(linalg, name) for name in _SAME.split()},
    np.linalg.pinv: _pinv,
    np.linalg.svd: _svd,
    np.linalg.qr: _qr,
    np.linalg.eigh: _lower_or_upper(linalg.eigh),
    np.linalg.eigvalsh: _lower_or_upper(linalg.eigvalsh),
    np.linalg.matrix_rank: _matrix_rank,
    np.linalg.norm: norm,
}
