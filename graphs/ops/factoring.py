"""Factoring matrices: eigh, svd and qr, over the last two axes.

An op returns one array. Here that array holds all factors, one below the other, so that LAPACK runs once, in either
engine and however many of the factors are read; the results are views of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.errors import NotDifferentiableError, ShapeError
from graphs.op import Array, Op
from graphs.ops.creation import arange
from graphs.ops.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less_equal,
    logical_and,
    multiply,
    subtract,
    where,
)
from graphs.ops.families import composite
from graphs.ops.linalg import matmul, transpose_matrix
from graphs.ops.movement import concat, expand_dims, matrix_transpose, pad
from graphs.ops.shapes import as_operand
from graphs.ops.slicing import getitem
from graphs.ops.solving import (
    cubic_cost,
    matrices,
    mirror_lower,
    signed_log_det,
    solve_matrices,
    solver,
    square,
    symmetric,
)
from graphs.spec import TensorSpec, spec_of


def _rows(x: Array, start: Any, stop: Any = None) -> Array:
    return getitem(x, (..., slice(start, stop), slice(None)))


def _row(x: Array, at: int) -> Array:
    return getitem(x, (..., at, slice(None)))


def _diagonal_places(x: Array) -> Array:
    places = arange(x.shape[-1])
    return equal(places, expand_dims(places, 1))


def _quotient(x: Array, y: Array) -> Array:
    """x / y, and 0 where both are 0: a value that nothing depends on has gradient 0, not NaN."""
    return divide(x, where(logical_and(equal(x, 0), equal(y, 0)), 1, y))


# Slogdet: two numbers of each matrix ------------------------------------------------------------------------------


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


@composite
def slogdet(x: Array, /) -> SlogdetResult:
    """The sign of the determinant of square matrices, and the logarithm of its absolute value: a named tuple.

    For a singular matrix they are 0 and -inf, and the gradient raises LinAlgError. The sign has no gradient.
    """
    both = signed_log_det(x)
    return SlogdetResult(getitem(both, (..., 0)), getitem(both, (..., 1)))


# Eigenvalues of symmetric matrices --------------------------------------------------------------------------------


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


def _eigh(x: Array, out: Array) -> Array:
    out[..., 0, :], out[..., 1:, :] = np.linalg.eigh(symmetric(x))
    return out


def _infer_eigh(x: TensorSpec) -> TensorSpec:
    size = square(x)
    return TensorSpec((*x.shape[:-2], size + 1, size), x.dtype)


def _eigh_rule(g: Array, out: Array) -> Array:
    """The VJP of eigh: Giles, Collected matrix derivative results (2008), section 3.1; the result is made symmetric."""
    values, vectors = _row(out, 0), _rows(out, 1)
    apart = subtract(expand_dims(values, -2), expand_dims(values, -1))
    turns = matmul(transpose_matrix(vectors), _rows(g, 1))
    same = _diagonal_places(apart)
    inner = where(same, expand_dims(_row(g, 0), -2), _quotient(where(same, 0, turns), apart))
    whole = matmul(matmul(vectors, inner), transpose_matrix(vectors))
    return multiply(add(whole, transpose_matrix(whole)), 0.5)


packed_eigh: Op = solver(
    "eigh",
    _eigh,
    _infer_eigh,
    _eigh_rule,
    flops=lambda x: cubic_cost(x) * 9,
    doc="The eigenvalues of symmetric matrices, ascending, in a first row; below it the eigenvectors, as columns.",
)


@composite
def eigh(x: Array, /) -> EighResult:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors, as columns: a named tuple.

    Both triangles count: the matrix that is decomposed is (x + x.mT) / 2, so that the gradient is symmetric. The
    gradient of eigenvalues always exists. That of eigenvectors divides by differences of eigenvalues, and is NaN or
    infinite where two are equal; it has a meaning only for results that do not depend on the signs of the eigenvectors.
    """
    both = packed_eigh(x)
    return EighResult(_row(both, 0), _rows(both, 1))


# Singular values --------------------------------------------------------------------------------------------------


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _svd(x: Array, out: Array) -> Array:
    u, out[..., 0, :], vh = np.linalg.svd(x, full_matrices=False)
    out[..., 1 : 1 + x.shape[-2], :] = u
    out[..., 1 + x.shape[-2] :, :] = np.swapaxes(vh, -1, -2)
    return out


def _infer_svd(x: TensorSpec) -> TensorSpec:
    rows, columns = matrices(x)
    return TensorSpec((*x.shape[:-2], rows + columns + 1, dims.minimum(rows, columns)), x.dtype)


def _svd_rule(g: Array, x_shape: Any, out: Array) -> Array:
    """The VJP of svd: Townsend, Differentiating the singular value decomposition (2016)."""
    cut = x_shape[-2] + 1
    s, u, v = _row(out, 0), _rows(out, 1, cut), _rows(out, cut)
    row, column = expand_dims(s, -2), expand_dims(s, -1)
    apart = multiply(subtract(row, column), add(row, column))
    same = _diagonal_places(apart)
    inner_u, outer_u = _rotations(_rows(g, 1, cut), u, row, apart, same)
    inner_v, outer_v = _rotations(_rows(g, cut), v, row, apart, same)
    inner = add(multiply(inner_u, row), multiply(column, inner_v))
    whole = matmul(matmul(u, where(same, expand_dims(_row(g, 0), -2), inner)), transpose_matrix(v))
    if outer_u is not None:
        whole = add(whole, matmul(outer_u, transpose_matrix(v)))
    return whole if outer_v is None else add(whole, matmul(u, transpose_matrix(outer_v)))


def _rotations(g: Array, vectors: Array, s: Array, apart: Array, same: Array) -> tuple[Array, Array | None]:
    """Split a cotangent of singular vectors: rotations among the vectors, and rotations out of the space they span.

    The second part is None where the vectors span the whole space.
    """
    turns = matmul(transpose_matrix(vectors), g)
    # The transpose is added after the division. Subtracting it before would cancel the terms of equal singular
    # values, and give a wrong result that seems right.
    inner = _quotient(where(same, 0, turns), apart)
    inner = add(inner, transpose_matrix(inner))
    if dims.same(*vectors.shape[-2:]):
        return inner, None
    return inner, _quotient(subtract(g, matmul(vectors, turns)), s)


packed_svd: Op = solver(
    "svd",
    _svd,
    _infer_svd,
    _svd_rule,
    flops=lambda x: x.size * dims.minimum(*x.shape[-2:]) * 22,
    doc="The singular values of matrices, descending, in a first row, and below it the columns of U, then those of V.",
)


def _complement(x: Array, out: Array) -> Array:
    np.copyto(out, np.linalg.qr(x, "complete")[0][..., x.shape[-1] :])
    return out


def _infer_complement(x: TensorSpec) -> TensorSpec:
    rows, columns = matrices(x)
    return TensorSpec((*x.shape[:-1], rows - columns), x.dtype)


def _complement_rule(g: Array, x: Array) -> Array:
    if dims.same(g.shape[-1], 0):
        return multiply(x, 0)
    raise NotDifferentiableError(
        "the last columns of a full basis are any that fit, and have no gradient; leave them out: "
        "svd(x, full_matrices=False), qr(x, mode='reduced')"
    )


complement: Op = solver(
    "complement",
    _complement,
    _infer_complement,
    _complement_rule,
    flops=lambda x: x.size * x.shape[-2] * 4,
    doc="Columns that make orthonormal ones a square matrix; asking for their gradient is an error.",
)


def _complete_basis(x: Array) -> Array:
    """Orthonormal columns, completed to a square matrix."""
    return x if dims.same(*x.shape[-2:]) else concat([x, complement(x)], axis=-1)


@composite
def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """U, S and Vh with U * S @ Vh = x, the singular values in S descending: a named tuple.

    With `full_matrices` U and Vh are square; else they have as many columns and rows as x has singular values. The
    gradient of singular values always exists. That of U and Vh divides by differences of squares of singular values,
    and is NaN or infinite where two are equal; it has a meaning only for results that do not depend on the signs of
    singular vectors. The vectors that make U and Vh square have no gradient: asking for it raises
    NotDifferentiableError.
    """
    x = as_operand(x)
    cut = matrices(spec_of(x))[0] + 1
    whole = packed_svd(x)
    u, v = _rows(whole, 1, cut), _rows(whole, cut)
    if full_matrices:
        u, v = _complete_basis(u), _complete_basis(v)
    return SVDResult(u, _row(whole, 0), matrix_transpose(v))


@composite
def svdvals(x: Array, /) -> Array:
    """The singular values of matrices, descending."""
    return _row(packed_svd(x), 0)


@composite
def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of symmetric matrices, ascending."""
    return _row(packed_eigh(x), 0)


# Orthogonal and triangular ----------------------------------------------------------------------------------------


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


def _qr(x: Array, out: Array) -> Array:
    columns = x.shape[-1]
    out[..., columns:, :], out[..., :columns, :] = np.linalg.qr(x)
    return out


def _infer_qr(x: TensorSpec) -> TensorSpec:
    rows, columns = matrices(x)
    if is_wide(rows, columns):
        raise ShapeError(f"{rows} by {columns} is wider than high; use linalg.qr")
    return TensorSpec((*x.shape[:-2], rows + columns, columns), x.dtype)


def is_wide(rows: Size, columns: Size) -> bool:
    """Whether there are certainly more columns than rows; False for sizes that cannot be compared."""
    return not dims.same(rows, columns) and dims.same(dims.minimum(rows, columns), rows)


def _qr_rule(g: Array, x_shape: Any, out: Array) -> Array:
    """The VJP of qr: Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2010), section 3."""
    cut = x_shape[-1]
    r, q = _rows(out, 0, cut), _rows(out, cut)
    turns = subtract(matmul(r, transpose_matrix(_rows(g, 0, cut))), matmul(transpose_matrix(_rows(g, cut)), q))
    return transpose_matrix(solve_matrices(r, transpose_matrix(add(_rows(g, cut), matmul(q, mirror_lower(turns))))))


packed_qr: Op = solver(
    "qr",
    _qr,
    _infer_qr,
    _qr_rule,
    flops=lambda x: x.size * x.shape[-1] * 4,
    rule_fails=True,
    doc="The factors of matrices with at least as many rows as columns: R, and below it Q.",
)


@composite
def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Q and R with Q @ R = x, the columns of Q orthonormal and R upper triangular: a named tuple.

    With the mode "reduced" Q has as many columns as the smaller size of x, with "complete" it is square. The gradient
    needs the first columns of x to be independent, and raises LinAlgError otherwise. The columns that make Q square
    have no gradient, and asking for it raises NotDifferentiableError. For a matrix with more columns than rows the
    first, square part is factored (Roberts and Roberts, arXiv 2009.10071).
    """
    if mode not in ("reduced", "complete"):
        raise ShapeError(f"there is no mode {mode!r}; use 'reduced' or 'complete'")
    x = as_operand(x)
    rows, columns = matrices(spec_of(x))
    if is_wide(rows, columns):
        q, r = _factors(getitem(x, (..., slice(0, rows))), rows)
        rest = getitem(x, (..., slice(rows, None)))
        return QRResult(q, concat([r, matmul(matrix_transpose(q), rest)], axis=-1))
    q, r = _factors(x, columns)
    if mode == "reduced" or dims.same(rows, columns):
        return QRResult(q, r)
    return QRResult(_complete_basis(q), pad(r, [(0, 0)] * (len(x.shape) - 2) + [(0, rows - columns), (0, 0)]))


def _factors(x: Array, columns: Any) -> QRResult:
    both = packed_qr(x)
    return QRResult(_rows(both, columns), _rows(both, 0, columns))


def part(x: Array, rows: slice, columns: slice) -> Array:
    """Some rows and columns of matrices."""
    return getitem(x, (..., rows, columns))


def triangle(x: Array, *, upper: bool, strict: bool = False, unit: bool = False) -> Array:
    """Keep one triangle of matrices and set the rest to 0; `strict` leaves the diagonal out, `unit` sets it to 1."""
    rows, columns = expand_dims(arange(x.shape[-2]), 1), arange(x.shape[-1])
    if strict or unit:
        kept = greater(columns, rows) if upper else greater(rows, columns)
    else:
        kept = greater_equal(columns, rows) if upper else less_equal(columns, rows)
    part = where(kept, x, 0)
    return where(equal(rows, columns), 1, part) if unit else part
