"""LU factors of matrices of any two sizes, with partial pivoting; NumPy does not offer LAPACK's function.

One array holds the places of the pivots in a first row, and below it the compact factors: U on and above the diagonal,
and L, without its ones, below.
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
from graphs.ops.elementwise import (
    add,
    equal,
    subtract,
)
from graphs.ops.factoring import part, triangle
from graphs.ops.linalg import matmul, transpose_matrix
from graphs.ops.movement import astype, concat, expand_dims
from graphs.ops.shapes import as_operand, integral, new_shape
from graphs.ops.slicing import getitem
from graphs.ops.solving import (
    cubic_cost,
    matrices,
    solve_matrices,
    solver,
    square,
)
from graphs.spec import TensorSpec


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
    """The VJP of A = P @ L @ U for the square part of matrices; rows or columns outside it are handled by themselves.

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
        matmul(transpose_matrix(lower), triangle(g_square, upper=False, strict=True)),
        matmul(g_right, transpose_matrix(right)),
    )
    of_upper = subtract(
        matmul(triangle(g_square, upper=True), transpose_matrix(upper)), matmul(transpose_matrix(below), g_below)
    )
    inner = add(triangle(of_lower, upper=False, strict=True), triangle(of_upper, upper=True))
    beside = solve_matrices(transpose_matrix(lower), concat([_divide_by_upper(inner, upper), g_right], axis=-1))
    whole = beside if dims.same(count, rows) else concat([beside, _divide_by_upper(g_below, upper)], axis=-2)
    return matmul(permutation_matrix(permutation_of(pivots_of(out, count), size=rows), out.dtype), whole)


def _divide_by_upper(x: Array, upper: Array) -> Array:
    """x @ inv(upper).mT."""
    return transpose_matrix(solve_matrices(upper, transpose_matrix(x)))


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
    """The row, from 0 on, that each of the first `count` rows was swapped with: i[..., count]."""
    return astype(getitem(packed, (..., 0, slice(0, count))), "int64")


def factors_of(packed: Array) -> Array:
    """The compact factors L and U in the result of `packed_lu`."""
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
    flops=lambda x: cubic_cost(x) * 2 // 3,
    doc="How many of the first rows and columns of symmetric matrices make a positive definite one.",
)


def _permutation(pivots: Array, *, size: int, out: Array = None) -> Array:
    """The order of rows after the swaps that the pivots describe: i[..., count] -> i[..., size]."""
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
    fails="raises",
)


def permutation_matrix(order: Array, dtype: Any) -> Array:
    """The P with P @ x[order] = x: f[..., size, size]."""
    places = expand_dims(arange(order.shape[-1]), 1)
    return astype(equal(expand_dims(order, -2), places), dtype)
