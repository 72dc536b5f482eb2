"""The LU factors of matrices of any two sizes, with partial pivoting; NumPy has no such function of LAPACK's.

As the factors in `graphs/ops/factoring.py`, all is one array: the places of the pivots in a first row, and below it
the compact factors, U on and above the diagonal and L, without its ones, below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.errors import ShapeError
from graphs.op import Array, Op
from graphs.ops.creation import arange
from graphs.ops.elementwise import add, equal, greater, greater_equal, less_equal, subtract, where
from graphs.ops.linalg import matmul, transposed
from graphs.ops.movement import astype, concat, expand_dims
from graphs.ops.shapes import as_operand, integral, new_shape
from graphs.ops.slicing import getitem
from graphs.ops.solving import cubed, matrices, solve_matrices, solver, square
from graphs.spec import TensorSpec


def part(x: Array, rows: slice, columns: slice) -> Array:
    """Some rows and columns of matrices."""
    return getitem(x, (..., rows, columns))


def triangle(x: Array, *, upper: bool, strict: bool = False, unit: bool = False) -> Array:
    """The elements on one side of the diagonal of matrices, and 0 for the others; with ones on it if `unit`."""
    rows, columns = expand_dims(arange(x.shape[-2]), 1), arange(x.shape[-1])
    if strict or unit:
        kept = greater(columns, rows) if upper else greater(rows, columns)
    else:
        kept = greater_equal(columns, rows) if upper else less_equal(columns, rows)
    part = where(kept, x, 0)
    return where(equal(rows, columns), 1, part) if unit else part


# The factors --------------------------------------------------------------------------------------------------------


def _factor(x: Array, out: Array) -> Array:
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    factors = x.reshape(math.prod(x.shape[:-2]), rows, columns).copy()
    every, pivots = np.arange(len(factors)), np.zeros((len(factors), columns), x.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(count):
            at = i + np.argmax(np.abs(factors[:, i:, i]), axis=1)
            pivots[:, i] = at
            upper, lower = factors[:, i].copy(), factors[every, at]
            factors[:, i], factors[every, at] = lower, upper
            pivot = lower[:, i, None]
            quotients = np.where(pivot == 0, 0, factors[:, i + 1 :, i] / pivot)  # of a column that is all zeros
            factors[:, i + 1 :, i] = quotients
            factors[:, i + 1 :, i + 1 :] -= quotients[:, :, None] * factors[:, i, None, i + 1 :]
    out[..., 0, :] = pivots.reshape((*out.shape[:-2], columns))
    out[..., 1:, :] = factors.reshape(x.shape)
    return out


def _infer(x: TensorSpec) -> TensorSpec:
    rows, columns = matrices(x)
    return TensorSpec((*x.shape[:-2], rows + 1, columns), x.dtype)


def _rule(g: Array, x_shape: Any, out: Array) -> Array:
    """From A = P @ L @ U of square matrices, and of what stands beside or below the square part by itself.

    Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2010), section 4, for the square part.
    """
    rows, columns = x_shape[-2:]
    count = dims.minimum(rows, columns)
    inside, beyond = slice(0, count), slice(count, None)
    factors, g = part(out, slice(1, None), slice(None)), part(g, slice(1, None), slice(None))
    lower = triangle(part(factors, inside, inside), upper=False, unit=True)
    upper = triangle(part(factors, inside, inside), upper=True)
    g_square, g_right, g_below = part(g, inside, inside), part(g, inside, beyond), part(g, beyond, inside)
    right, below = part(factors, inside, beyond), part(factors, beyond, inside)
    of_lower = subtract(
        matmul(transposed(lower), triangle(g_square, upper=False, strict=True)), matmul(g_right, transposed(right))
    )
    of_upper = subtract(matmul(triangle(g_square, upper=True), transposed(upper)), matmul(transposed(below), g_below))
    inner = add(triangle(of_lower, upper=False, strict=True), triangle(of_upper, upper=True))
    beside = solve_matrices(transposed(lower), concat([_divided(inner, upper), g_right], axis=-1))
    whole = beside if dims.same(count, rows) else concat([beside, _divided(g_below, upper)], axis=-2)
    return matmul(permutation_matrix(permutation_of(pivots_of(out, count), size=rows), out.dtype), whole)


def _divided(x: Array, upper: Array) -> Array:
    """x @ inv(upper).mT."""
    return transposed(solve_matrices(upper, transposed(x)))


packed_lu: Op = solver(
    "lu",
    _factor,
    _infer,
    _rule,
    flops=lambda x: x.size * dims.minimum(*x.shape[-2:]),
    rule_fails=True,
    doc="Where the rows of matrices were swapped, in a first row; below it U, and L without the ones on its diagonal.",
)


def pivots_of(packed: Array, count: Any) -> Array:
    """The place, from 0 on, that each of the first rows was swapped with: i[..., count]."""
    return astype(getitem(packed, (..., 0, slice(0, count))), "int64")


def factors_of(packed: Array) -> Array:
    """The compact factors of what `packed_lu` gives."""
    return part(packed, slice(1, None), slice(None))


def _infer_count(x: TensorSpec) -> TensorSpec:
    square(x)
    return TensorSpec(x.shape[:-2], np.int64)


def _definite(x: Array, out: Array) -> Array:
    size = x.shape[-1]
    rest = x.reshape(math.prod(x.shape[:-2]), size, size).copy()
    count, going = np.zeros(len(rest), np.int64), np.full(len(rest), True)
    for i in range(size):
        going &= rest[:, i, i] > 0
        count += going
        pivot = np.where(going, rest[:, i, i], 1)[:, None]
        rest[:, i + 1 :, i + 1 :] -= (rest[:, i + 1 :, i] / pivot)[:, :, None] * rest[:, i, None, i + 1 :]
    out[...] = count.reshape(out.shape)
    return out


leading_definite: Op = solver(
    "leading_definite",
    _definite,
    _infer_count,
    flops=lambda x: cubed(x) * 2 // 3,
    doc="How many of the first rows and columns of symmetric matrices make a positive definite one.",
)


# The order of rows --------------------------------------------------------------------------------------------------


def _permutation(pivots: Array, *, size: int, out: Array = None) -> Array:
    """Which row comes where after the swaps that pivots describe: i[..., count] -> i[..., size]."""
    permutation = np.empty((*pivots.shape[:-1], size), np.int64) if out is None else out
    order = np.tile(np.arange(size), (math.prod(pivots.shape[:-1]), 1))
    every = np.arange(len(order))
    for i, at in enumerate(pivots.reshape(len(order), pivots.shape[-1]).T):
        before = order[:, i].copy()
        order[:, i] = order[every, at]
        order[every, at] = before
    permutation[...] = order.reshape(permutation.shape)
    return permutation


def _infer_permutation(pivots: TensorSpec, *, size: Size) -> TensorSpec:
    integral(pivots, "pivots")
    if not pivots.ndim or (isinstance(size, int) and isinstance(pivots.shape[-1], int) and pivots.shape[-1] > size):
        raise ShapeError(f"pivots swap some of {size} rows, not {pivots}; give as many, or fewer")
    return TensorSpec((*pivots.shape[:-1], size), np.int64)


permutation_of: Op = Op(
    "permutation",
    _permutation,
    _infer_permutation,
    prepare=lambda pivots, /, *, size: ((as_operand(pivots),), {"size": new_shape(size)[0]}),
    cost=lambda pivots, *, size, out: out.size,
    family="sorting",
)


def permutation_matrix(order: Array, dtype: Any) -> Array:
    """The P with P @ x[order] = x: f[..., size, size]."""
    places = expand_dims(arange(order.shape[-1]), 1)
    return astype(equal(expand_dims(order, -2), places), dtype)
