"""Solving systems of equations: solve, inv, pinv, det, slogdet, cholesky and the exponential, over the last two axes.

LAPACK does the work, through `numpy.linalg`: float32 and float64, batches of any number of axes. A system that LAPACK
cannot solve raises LinAlgError.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.errors import DTypeError, LinAlgError, ShapeError
from graphs.op import Array, Kernel, Op, Prepare
from graphs.ops.creation import arange
from graphs.ops.elementwise import add, greater, multiply, negative, subtract, where
from graphs.ops.families import composite
from graphs.ops.linalg import matmul, transpose_matrix
from graphs.ops.movement import concat, expand_dims, matrix_transpose, squeeze
from graphs.ops.reductions import sum
from graphs.ops.shapes import as_operand, one_operand, shape_of, store, two_operands
from graphs.ops.slicing import getitem
from graphs.spec import TensorSpec, broadcast_shapes, spec_of

# Helpers of all ops here ------------------------------------------------------------------------------------------

_TYPES = (np.dtype(np.float32).num, np.dtype(np.float64).num)
_REASONS = {
    "Singular matrix": "the matrix is singular; add a multiple of the identity, or use linalg.pinv",
    "Matrix is not positive definite": "the matrix is not positive definite; add a multiple of the identity",
}


def solver(
    name: str,
    kernel: Kernel,
    infer: Callable[..., TensorSpec],
    *rules: Callable[..., Any],
    flops: Callable[..., Size],
    prepare: Prepare | None = None,
    arity: int = 1,
    whole: bool = False,
    rule_fails: bool = False,
    doc: str,
) -> Op:
    """Make an op on matrices that numpy.linalg computes: `kernel(*arrays, out, **attrs)` fills `out` and returns it.

    `out` is an array of the spec that `infer` gives; with `whole`, for a kernel that makes its own result, it may be
    None. `flops(*specs, **attrs)` counts the operations. `rule_fails` says that a rule may solve with a singular
    matrix.
    """

    def run(*arrays: Array, out: Array = None, **attrs: Any) -> Array:
        _check_types(arrays)
        if out is None:
            spec = infer(*map(spec_of, arrays), **attrs)  # refuses shapes that NumPy takes where there is no matrix
            out = None if whole else np.empty(spec.shape, spec.dtype)
        try:
            return kernel(*arrays, out, **attrs)
        except ValueError as error:  # LinAlgError is one
            infer(*map(spec_of, arrays), **attrs)  # which tells better what is wrong with sizes
            raise _reason(error) from None

    def infer_square(*specs: TensorSpec, **attrs: Any) -> TensorSpec:
        _check_types(specs)
        return infer(*specs, **attrs)

    def cost(*specs: TensorSpec, out: TensorSpec, **attrs: Any) -> Size:
        return flops(*specs, **attrs)

    return Op(
        name, run, infer_square, rules=rules, prepare=prepare or (one_operand if arity == 1 else two_operands),
        cost=cost,
        family="solver", arity=arity, broadcasts=arity > 1, rule_fails=rule_fails, doc=doc,
    )  # fmt: skip


def _check_types(operands: Iterable[Any]) -> None:
    for operand in operands:
        if operand.dtype.num not in _TYPES:
            raise DTypeError("takes float32 and float64; convert with astype(x, 'float64')")


def _reason(error: ValueError) -> ValueError:
    """Convert an error of LAPACK to a LinAlgError of ours, with a remedy; other errors stay unchanged."""
    if isinstance(error, LinAlgError) or not isinstance(error, np.linalg.LinAlgError):
        return error
    return LinAlgError(_REASONS.get(str(error), f"{error}; look for NaN and infinity in the matrix"))


def matrices(x: TensorSpec) -> tuple[Size, Size]:
    """The numbers of rows and columns. Raises ShapeError for less than two axes."""
    if x.ndim < 2:
        raise ShapeError(f"takes matrices, with at least 2 axes, not {x.ndim}; add one with expand_dims")
    return x.shape[-2], x.shape[-1]


def square(x: TensorSpec) -> Size:
    """The size of square matrices. Raises ShapeError for other matrices."""
    rows, columns = matrices(x)
    if not dims.same(rows, columns):
        raise ShapeError(f"takes square matrices, not {rows} by {columns}; use linalg.pinv for others")
    return rows


def cubic_cost(x: TensorSpec) -> Size:
    """The size n ** 3 of square matrices times their number: the unit in which elimination is counted."""
    return x.size * x.shape[-1]


def mirror_lower(x: Array) -> Array:
    """Mirror the lower triangle of matrices into the upper one."""
    places = arange(x.shape[-1])
    return where(greater(places, expand_dims(places, 1)), transpose_matrix(x), x)


UNEVEN = 1e-3
"""How far from symmetric a matrix may be, of its largest element: far more than rounding and differences make."""


def symmetric(x: Array) -> Array:
    """The mean of matrices and their transposes. Raises LinAlgError for a matrix that is not nearly symmetric."""
    other = np.swapaxes(x, -1, -2)
    if np.array_equal(x, other):
        return x
    with np.errstate(invalid="ignore"):  # infinity less infinity
        apart = np.abs(x - other).max(axis=(-2, -1)) > UNEVEN * np.abs(x).max(axis=(-2, -1))
    if apart.any():
        raise LinAlgError("the matrix is not symmetric; take (x + x.mT) / 2, or mirror the triangle that counts")
    return x * 0.5 + other * 0.5


# Systems of equations ---------------------------------------------------------------------------------------------


def _infer_solve(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    size = square(x)
    rows, columns = matrices(y)
    if not dims.same(size, rows):
        raise ShapeError(f"{size} equations and {rows} right-hand sides; make the sizes equal")
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return TensorSpec((*batch, rows, columns), np.result_type(x.dtype, y.dtype))


def _with_out(function: Callable[..., Any]) -> Kernel:
    def kernel(*arrays: Any) -> Array:
        *inputs, out = arrays
        solution = function(*inputs)
        return solution if out is None else store(solution, out)

    return kernel


solve_matrices: Op = solver(
    "solve",
    _with_out(np.linalg.solve),
    _infer_solve,
    lambda g, x, out: negative(matmul(solve_matrices(transpose_matrix(x), g), transpose_matrix(out))),
    lambda g, x: solve_matrices(transpose_matrix(x), g),
    flops=lambda x, y: cubic_cost(x) * 2 // 3 + y.size * x.shape[-1] * 2,
    arity=2,
    whole=True,
    doc="The z with x @ z = y, for square matrices x and matrices y; leading axes broadcast.",
)


@composite
def solve(x1: Array, x2: Array, /) -> Array:
    """The x with x1 @ x = x2: x2 is a vector if it has one axis, else matrices; leading axes broadcast.

    Raises LinAlgError where x1 is singular. The gradient solves with the transpose.
    """
    x1, x2 = as_operand(x1), as_operand(x2)
    if len(shape_of(x2)) != 1:
        return solve_matrices(x1, x2)
    return squeeze(solve_matrices(x1, expand_dims(x2, -1)), -1)


inv: Op = solver(
    "inv",
    _with_out(np.linalg.inv),
    lambda x: TensorSpec((*x.shape[:-1], square(x)), x.dtype),
    lambda g, out: negative(matmul(matmul(transpose_matrix(out), g), transpose_matrix(out))),
    flops=lambda x: cubic_cost(x) * 2,
    whole=True,
    doc="The inverse of square matrices. Raises LinAlgError where one is singular.",
)


def _pinv(x: Array, out: Array, rtol: float | None, atol: float) -> Array:
    cutoff = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol
    if atol and x.size:
        largest = np.linalg.norm(x, 2, axis=(-2, -1))
        cutoff = np.maximum(cutoff, atol / np.where(largest == 0, 1, largest))
    np.copyto(out, np.linalg.pinv(x, rcond=cutoff))
    return out


def _infer_pinv(x: TensorSpec, rtol: float | None, atol: float) -> TensorSpec:
    rows, columns = matrices(x)
    return TensorSpec((*x.shape[:-2], columns, rows), x.dtype)


def _pinv_rule(g: Array, x: Array, out: Array) -> Array:
    """The VJP of pinv at constant rank: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), eq. 4.12, transposed."""
    p, turned = transpose_matrix(out), transpose_matrix(g)
    left = matmul(turned, matmul(out, p))
    right = matmul(matmul(p, out), turned)
    left = subtract(left, matmul(x, matmul(out, left)))
    right = subtract(right, matmul(matmul(right, out), x))
    return add(subtract(left, matmul(matmul(p, g), p)), right)


pinv_of: Op = solver(
    "pinv",
    _pinv,
    _infer_pinv,
    _pinv_rule,
    flops=lambda x, rtol, atol: x.size * dims.minimum(*x.shape[-2:]) * 24,
    prepare=lambda x, /, *, rtol=None, atol=0.0: ((as_operand(x),), {"rtol": rtol, "atol": atol}),
    doc="The Moore-Penrose inverse of matrices; singular values below `atol`, or `rtol` times the largest, count as 0.",
)


@composite
def pinv(x: Array, /, *, rtol: float | None = None, atol: float = 0.0) -> Array:
    """The Moore-Penrose inverse of matrices; singular values below `atol`, or `rtol` times the largest, count as 0.

    `rtol` is by default the larger size times the spacing of floats at 1. The gradient holds for changes that keep the
    rank.
    """
    return pinv_of(x, rtol=None if rtol is None else float(rtol), atol=float(atol))


# Determinants -----------------------------------------------------------------------------------------------------


def _infer_det(x: TensorSpec) -> TensorSpec:
    square(x)
    return TensorSpec(x.shape[:-2], x.dtype)


def _cofactor(x: Array, out: Array) -> Array:
    dets = np.linalg.det(x)
    usual = np.asarray((dets != 0) & ~np.isinf(dets))
    # det and inv divide by the same pivots: their product is right even where a pivot is tiny.
    out[usual] = dets[usual][:, None, None] * np.swapaxes(np.linalg.inv(x[usual]), -1, -2)
    out[~usual] = _cofactor_of_singular(x[~usual])
    return out


def _cofactor_of_singular(x: Array) -> Array:
    """The cofactors of singular matrices, from singular values: for each the product of the others, no division."""
    u, s, vh = np.linalg.svd(x)
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)[..., : s.shape[-1]]
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], -1), -1)[..., : s.shape[-1]][..., ::-1]
    sign = np.round(np.linalg.det(u) * np.linalg.det(vh))
    return (u * (before * after * sign[..., None])[..., None, :]) @ vh


def _cofactor_rule(g: Array, x: Array, out: Array) -> Array:
    """The VJP of the cofactors: the derivative of det(x) times the transpose of inv(x), which is its own adjoint."""
    inverse = transpose_matrix(inv(x))
    scale = sum(multiply(g, out), axis=(-2, -1), keepdims=True)
    return subtract(multiply(scale, inverse), matmul(matmul(inverse, transpose_matrix(g)), out))


cofactor: Op = solver(
    "cofactor",
    _cofactor,
    lambda x: TensorSpec((*x.shape[:-1], square(x)), x.dtype),
    _cofactor_rule,
    flops=lambda x: cubic_cost(x) * 3,
    rule_fails=True,
    doc="The gradient of det, for singular matrices found from singular values.",
)
det: Op = solver(
    "det",
    _with_out(np.linalg.det),
    _infer_det,
    lambda g, x: multiply(expand_dims(g, (-2, -1)), cofactor(x)),
    flops=lambda x: cubic_cost(x) * 2 // 3,
    whole=True,
    doc="The determinant of square matrices; its gradient is right for singular ones too, but has no gradient there.",
)


def _slogdet(x: Array, out: Array) -> Array:
    out[..., 0], out[..., 1] = np.linalg.slogdet(x)
    return out


def _infer_slogdet(x: TensorSpec) -> TensorSpec:
    square(x)
    return TensorSpec((*x.shape[:-2], 2), x.dtype)


signed_log_det: Op = solver(
    "slogdet",
    _slogdet,
    _infer_slogdet,
    lambda g, x: multiply(expand_dims(getitem(g, (..., slice(1, None))), -1), transpose_matrix(inv(x))),
    flops=lambda x: cubic_cost(x) * 2 // 3,
    rule_fails=True,
    doc="The sign of the determinant and the logarithm of its absolute value, on a last axis of two.",
)

# Cholesky ---------------------------------------------------------------------------------------------------------


def _cholesky_rule(g: Array, out: Array) -> Array:
    """The VJP of cholesky: Murray, arXiv 1602.07527, equation 10; the result is symmetric."""
    upper = transpose_matrix(out)
    inner = multiply(mirror_lower(matmul(upper, g)), 0.5)
    return solve_matrices(upper, transpose_matrix(solve_matrices(upper, inner)))


lower_cholesky: Op = solver(
    "cholesky",
    lambda x, out: _with_out(np.linalg.cholesky)(symmetric(x), out),
    lambda x: TensorSpec((*x.shape[:-1], square(x)), x.dtype),
    _cholesky_rule,
    flops=lambda x: cubic_cost(x) // 3,
    whole=True,
    doc="The lower triangular L with L @ L.mT = x, for symmetric positive definite x; its gradient is symmetric.",
)


@composite
def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The lower triangular L with L @ L.mT = x, or with `upper` its transpose; x is symmetric positive definite.

    Raises LinAlgError for other matrices. Both triangles count: the matrix that is decomposed is (x + x.mT) / 2, so
    that the gradient is symmetric, as in PyTorch.
    """
    lower = lower_cholesky(x)
    return matrix_transpose(lower) if upper else lower


# The exponential of a matrix ------------------------------------------------------------------------------------------


_DEGREE = 13
_LARGEST = 5.371920351148152  # the 1-norm up to which the approximation is as exact as float64
_PADE = [
    math.factorial(2 * _DEGREE - j) / (math.factorial(_DEGREE - j) * math.factorial(j)) for j in range(_DEGREE + 1)
]


def _pade(x: Array) -> Array:
    """exp(x) as the Padé quotient of two polynomials, from the even and the odd powers of x."""
    square_of_x, powers = x @ x, [np.broadcast_to(np.eye(x.shape[-1]), x.shape)]
    for _ in range(_DEGREE // 2):
        powers.append(powers[-1] @ square_of_x)
    even = builtins.sum(b * power for b, power in zip(_PADE[::2], powers, strict=True))
    odd = x @ builtins.sum(b * power for b, power in zip(_PADE[1::2], powers, strict=True))
    return np.asarray(np.linalg.solve(even - odd, even + odd))


def _matrix_exp(x: Array, out: Array) -> Array:
    wide = x.astype(np.float64)
    norms = np.abs(wide).sum(-2).max(-1, initial=0)
    with np.errstate(divide="ignore"):
        halvings = np.where(np.isfinite(norms), np.maximum(np.ceil(np.log2(norms / _LARGEST)), 0), 0)
    power = _pade(wide * (0.5**halvings)[..., None, None])
    for done in range(int(halvings.max(initial=0))):
        power = np.where((halvings > done)[..., None, None], power @ power, power)
    out[...] = power
    return out


def _rule(g: Array, x: Array) -> Array:
    """The derivative along y is the upper right part of exp([[x, y], [0, x]]); its adjoint has x transposed."""
    size = x.shape[-1]
    below = transpose_matrix(x)
    whole = concat([concat([below, g], axis=-1), concat([multiply(below, 0), below], axis=-1)], axis=-2)
    return getitem(matrix_exp(whole), (..., slice(0, size), slice(size, None)))


matrix_exp: Op = solver(
    "matrix_exp",
    _matrix_exp,
    lambda x: TensorSpec((*x.shape[:-1], square(x)), x.dtype),
    _rule,
    flops=lambda x: cubic_cost(x) * 20,
    doc="The exponential of square matrices.",
)
