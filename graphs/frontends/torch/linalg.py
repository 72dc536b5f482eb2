"""`torch.linalg`: the functions of `graphs.linalg` with PyTorch's parameters and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import dims, linalg, ops
from graphs.errors import OptionError, ShapeError
from graphs.frontends.numpy import functions as numpy_linalg
from graphs.frontends.torch import joining
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.shapes import laid_in_rows
from graphs.frontends.torch.systems import (
    cholesky_ex,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    solve,
    solve_triangular,
)
from graphs.frontends.torch.words import as_dtype, axes_of, axis_words, cast, refuse
from graphs.linalg import cholesky, det, inv, matmul, matrix_power, qr, slogdet, svd, svdvals
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.solving import matrix_exp, mirror_lower

__all__ = [
    "cholesky", "cholesky_ex", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "lu", "lu_factor",
    "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "vecdot", "vector_norm",
]  # fmt: skip

_REMEDIES = {
    "eig": "eigenvalues are complex, which tensors do not hold; use eigh for symmetric matrices",
    "eigvals": "eigenvalues are complex, which tensors do not hold; use eigvalsh for symmetric matrices",
    "householder_product": "use qr, which gives the whole factor",
    "ldl_factor": "use cholesky, or lu_factor",
    "ldl_factor_ex": "use cholesky_ex, or lu_factor",
    "ldl_solve": "use cholesky_solve, or lu_solve",
    "vander": "write x[..., None] ** torch.arange(n)",
    "multi_dot": "write the product with @, the smaller one in brackets",
    **dict.fromkeys(("solve_ex", "inv_ex", "lu_factor_ex"), "use the function without _ex, and catch LinAlgError"),
    "cond": "use the ends of svdvals, and divide",
    **dict.fromkeys(("tensorinv", "tensorsolve"), "reshape the tensors to matrices, and use inv or solve"),
}


def __getattr__(name: str) -> Any:
    """Raise AttributeError with a replacement."""
    raise AttributeError(f"linalg has no {name!r}: {_REMEDIES.get(name, 'docs/torch.md says what is there')}")


_norm = axis_words(numpy_linalg.norm)
vecdot = axis_words(linalg.vecdot)


@laid_in_rows
def cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The cross product along an axis of size 3; the other axes broadcast."""
    if len(shape_of(input)) != len(shape_of(other)):
        raise ShapeError("both have as many axes; add one with unsqueeze")
    return linalg.cross(input, other, axis=dim)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803
    """The diagonal of two axes, as the last axis of the result."""
    return joining.diagonal(A, offset, dim1, dim2)


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: N803
    """The norm of vectors or of matrices, or of all elements by default, computed in `dtype` where that is given."""
    return _norm(_in_dtype(A, dtype), ord, dim=dim, keepdim=keepdim)


def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of vectors along axes, or of all elements by default, computed in `dtype` where that is given."""
    return linalg.vector_norm(_in_dtype(x, dtype), axis=axes_of(x, dim), keepdims=keepdim, ord=ord)


def matrix_norm(
    A: Any,  # noqa: N803
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of the matrices along two axes: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return numpy_linalg.norm(_in_dtype(A, dtype), ord, axis=dim, keepdims=keepdim)


def _in_dtype(x: Any, dtype: Any) -> Any:
    """The operand in a dtype of floats that has its digits, or itself. Raises DTypeError for another."""
    if dtype is None:
        return x
    wanted = as_dtype(dtype)
    if wanted.kind != "f" or np.promote_types(wanted, dtype_of(x)) != wanted:
        raise refuse(f"a norm of {dtype_of(x)} in {wanted}", "name a dtype of floats that is as wide")
    return cast(x, wanted)


# ---- symmetric matrices, and ranks ---------------------------------------------------------------


def _from_triangle(A: Any, UPLO: str) -> Any:  # noqa: N803
    """Make symmetric matrices from one triangle; both triangles get the gradient, as in PyTorch."""
    if UPLO not in ("L", "U"):
        raise OptionError(f"UPLO is 'L' or 'U', the triangle that is read, not {UPLO!r}; choose one")
    whole = mirror_lower(ops.stop_gradient(A if UPLO == "L" else ops.matrix_transpose(A)))
    return ops.add(ops.subtract(A, ops.stop_gradient(A)), whole)


def eigh(A: Any, UPLO: str = "L") -> linalg.EighResult:  # noqa: N803
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors; one triangle is read."""
    return linalg.eigh(_from_triangle(A, UPLO))


def eigvalsh(A: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """The eigenvalues of symmetric matrices, ascending; one triangle is read."""
    return linalg.eigvalsh(_from_triangle(A, UPLO))


def pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:  # noqa: N803
    """The Moore-Penrose inverse; singular values below the larger of `atol` and `rtol` times the largest count as 0.

    `rtol` is by default the larger size times the spacing of floats at 1, and 0 beside an `atol`. A symmetric matrix
    is read from one triangle if `hermitian`.
    """
    share = rcond if rtol is None else rtol
    share = 0.0 if share is None and atol is not None else share
    x = _from_triangle(A, "L") if hermitian else A
    return linalg.pinv(x, rtol=None if share is None else float(share), atol=float(atol or 0.0))


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None  # noqa: N803
) -> Any:  # fmt: skip
    """How many singular values exceed the larger of `atol` and `rtol` times the largest.

    `rtol` is by default the larger size times the spacing of floats at 1, and 0 beside an `atol` (also called `tol`).
    """
    least = tol if atol is None else atol
    values = ops.abs(eigvalsh(A)) if hermitian else linalg.svdvals(A)
    if dims.same(shape_of(values)[-1], 0):
        return ops.sum(values, axis=-1, dtype=np.int64)
    share = rtol
    if share is None:
        size: Any = dims.maximum(*shape_of(A)[-2:])
        share = 0.0 if least is not None else ops.multiply(size, float(np.finfo(dtype_of(A)).eps))
    bound = ops.multiply(ops.max(values, axis=-1), share)
    bound = bound if least is None else ops.maximum(bound, least)
    return ops.count_nonzero(ops.greater(values, ops.expand_dims(bound, -1)), axis=-1)


# ---- products ------------------------------------------------------------------------------------


guard(globals(), __all__)
