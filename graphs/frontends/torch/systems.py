"""PyTorch's solvers of systems of equations, and their factorizations: triangular, LU, Cholesky and least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphs import dims, linalg, ops
from graphs.errors import LinAlgError, OptionError, ShapeError
from graphs.frontends.torch.names import name
from graphs.frontends.torch.words import cast, ndim_of, shape_of
from graphs.ops.factoring import triangle
from graphs.ops.lu import factors_of, leading_definite, packed_lu, permutation_matrix, permutation_of, pivots_of
from graphs.ops.shapes import dtype_of

EVERY = slice(None)


class LUFactors(NamedTuple):
    """Both triangles in one matrix, and the row, from 1 on, that each row was swapped with."""

    LU: Any
    pivots: Any


class LU(NamedTuple):
    """The permutation and the triangles: P @ L @ U."""

    P: Any
    L: Any
    U: Any


class CholeskyAndInfo(NamedTuple):
    """Triangular factors, and `info`: the size of the first leading block that is not positive definite, or 0."""

    L: Any
    info: Any


class LeastSquares(NamedTuple):
    """The result of `lstsq`."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class TriangularSolution(NamedTuple):
    """The result of `triangular_solve`."""

    solution: Any
    cloned_coefficient: Any


def _square(A: Any) -> None:  # noqa: N803  (PyTorch's names, here and below)
    shape = shape_of(A)
    if len(shape) < 2 or not dims.same(*shape[-2:]):
        raise ShapeError(f"takes square matrices, not the shape {shape}; use lstsq for others")


def _solve_either_side(A: Any, B: Any, *, left: bool = True) -> Any:  # noqa: N803
    """The X with A @ X = B, or with X @ A = B; B may be a batch of vectors, of the shape of A without its last axis."""
    if not left:
        return ops.matrix_transpose(linalg.solve(ops.matrix_transpose(A), ops.matrix_transpose(B)))
    if _are_vectors(A, B):
        return ops.squeeze(linalg.solve(A, ops.expand_dims(B, -1)), -1)
    return linalg.solve(A, B)


def _are_vectors(A: Any, B: Any) -> bool:  # noqa: N803
    return ndim_of(B) == 1 or dims.same_shape(shape_of(B), shape_of(A)[:-1])


def solve(A: Any, B: Any, *, left: bool = True) -> Any:  # noqa: N803
    """The X with A @ X = B, or with X @ A = B; B may be a batch of vectors, of the shape of A without its last axis.

    Raises LinAlgError where A is singular.
    """
    return _solve_either_side(A, B, left=left)


# ---- triangles -----------------------------------------------------------------------------------


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:  # noqa: N803
    """The X with A @ X = B, or with X @ A = B, reading one triangle of A; `unitriangular` takes its diagonal as ones.

    Raises LinAlgError where the diagonal has a 0.
    """
    _square(A)
    return _solve_either_side(triangle(A, upper=upper, unit=unitriangular), B, left=left)


@name()
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False  # noqa: N803
) -> TriangularSolution:  # fmt: skip
    """`solve_triangular` with its operands exchanged; returns the solution and a copy of the matrix."""
    matrix = triangle(A, upper=upper, unit=unitriangular)
    solution = linalg.solve(ops.matrix_transpose(matrix) if transpose else matrix, input)
    cloned = ops.identity(ops.broadcast_to(A, (*shape_of(solution)[:-2], *shape_of(A)[-2:])))
    return TriangularSolution(solution, cloned)


@name()
def cholesky_solve(input: Any, L: Any, upper: bool = False) -> Any:  # noqa: N803
    """The X with A @ X = input, from the triangle of the Cholesky factors of A."""
    _square(L)
    read = ops.add(ops.subtract(L, ops.stop_gradient(L)), ops.stop_gradient(triangle(L, upper=upper)))
    lower = ops.matrix_transpose(read) if upper else read  # the gradient is of the whole matrix, as PyTorch's
    return linalg.solve(ops.matrix_transpose(lower), linalg.solve(lower, input))


@name()
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """The inverse of A, from the triangle of its Cholesky factors."""
    _square(input)
    return cholesky_solve(np.eye(shape_of(input)[-1], dtype=dtype_of(input)), input, upper)


def _nothing(x: Any, dtype: Any = None) -> Any:
    """A vector without elements, of the same kind of value as x."""
    return cast(ops.reshape(x, (-1,))[:0], dtype or dtype_of(x))


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> CholeskyAndInfo:  # noqa: N803
    """The Cholesky factors, and where a matrix is not positive definite: there `info` is above 0, and L is NaN."""
    _square(A)
    size = shape_of(A)[-1]
    leading = leading_definite(ops.stop_gradient(A))
    info = cast(ops.where(ops.equal(leading, size), 0, ops.add(leading, 1)), np.int32)
    if check_errors and bool(ops.any(ops.not_equal(info, 0))):
        raise LinAlgError(f"a matrix is not positive definite: info is {info}; add a multiple of the identity")
    failed = ops.expand_dims(ops.not_equal(info, 0), (-2, -1))
    safe = ops.where(failed, np.eye(size, dtype=dtype_of(A)), A)
    lower = ops.where(failed, np.nan, linalg.cholesky(safe))
    return CholeskyAndInfo(ops.matrix_transpose(lower) if upper else lower, info)


# ---- LU ------------------------------------------------------------------------------------------


def _only_pivoted(pivot: bool) -> None:
    if not pivot:
        raise OptionError("LU factors without pivoting are not there, as on PyTorch's CPU; leave pivot out")


def _smaller(A: Any) -> Any:  # noqa: N803
    return dims.minimum(*shape_of(A)[-2:])


def lu_factor(A: Any, *, pivot: bool = True) -> LUFactors:  # noqa: N803
    """Both triangles in one matrix, and the row, from 1 on, that each row was swapped with, for `lu_solve`."""
    _only_pivoted(pivot)
    packed = packed_lu(A)
    return LUFactors(factors_of(packed), cast(ops.add(pivots_of(packed, _smaller(A)), 1), np.int32))


def lu(A: Any, *, pivot: bool = True) -> LU:  # noqa: N803
    """P, L and U with P @ L @ U = A: a permutation, a lower triangle with ones on its diagonal, and an upper one."""
    return lu_unpack(*lu_factor(A, pivot=pivot))


@name()
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> LU:  # noqa: N803
    """P, L and U from compact factors; a factor that is not asked for is empty."""
    rows, columns = shape_of(LU_data)[-2:]
    least, none = dims.minimum(rows, columns), _nothing(LU_data)
    order = permutation_of(ops.subtract(LU_pivots, 1), size=rows)
    return LU(
        permutation_matrix(order, dtype_of(LU_data)) if unpack_pivots else none,
        triangle(LU_data[..., :, :least], upper=False, unit=True) if unpack_data else none,
        triangle(LU_data[..., :least, :], upper=True) if unpack_data else none,
    )


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:  # noqa: N803
    """The X with A @ X = B, or with X @ A = B, from the compact factors of A, or of its transpose if `adjoint`."""
    permutation, lower, upper = lu_unpack(LU, pivots)
    right = B if left else ops.matrix_transpose(B)
    turned = ops.matrix_transpose
    if adjoint is left:  # the transpose of the factors: that of a solution from the right is one too
        between = linalg.solve(turned(upper), right)
        solution = ops.matmul(permutation, linalg.solve(turned(lower), between))
    else:
        between = linalg.solve(lower, ops.matmul(turned(permutation), right))
        solution = linalg.solve(upper, between)
    return solution if left else turned(solution)


# ---- least squares -------------------------------------------------------------------------------

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:  # noqa: N803
    """The X of least norm that minimises the norm of A @ X - B; B may be a batch of vectors.

    A named tuple: the solution; the sums of squared residuals where there are more equations than unknowns (not for the
    driver "gelsy", which is the default); the rank (not for "gels"); the singular values (for "gelsd" and "gelss").
    Fields that are not computed are empty. In PyTorch the sums are also empty where a matrix lacks full rank.
    """
    if driver not in (None, *DRIVERS):
        raise OptionError(f"there is no driver {driver!r}; use one of {', '.join(DRIVERS)}")
    is_vector = _are_vectors(A, B)
    right = ops.expand_dims(B, -1) if is_vector else B
    solution = ops.matmul(linalg.pinv(A, rtol=rcond), right)
    rows, columns = shape_of(A)[-2:]
    none = _nothing(A)
    is_over = isinstance(rows, int) and isinstance(columns, int) and rows > columns and driver not in (None, "gelsy")
    left = ops.sum(ops.square(ops.subtract(ops.matmul(A, solution), right)), axis=-2) if is_over else none
    constant = ops.stop_gradient(A)
    return LeastSquares(
        ops.squeeze(solution, -1) if is_vector else solution,
        ops.squeeze(left, -1) if is_vector and is_over else left,
        _nothing(A, np.int64) if driver == "gels" else linalg.matrix_rank(constant, rtol=rcond),
        linalg.svdvals(constant) if driver in ("gelsd", "gelss") else none,
    )
