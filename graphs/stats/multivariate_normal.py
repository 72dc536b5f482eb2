"""The normal distribution of several dimensions."""

from __future__ import annotations

import math
from typing import Any

from graphs import linalg, ops
from graphs.errors import ShapeError, located
from graphs.op import Array
from graphs.ops.shapes import as_operand, shape_of
from graphs.stats.scaling import of_one_kind

_CONSTANT = math.log(2 * math.pi)


@of_one_kind
def logpdf(x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
    """The logarithm of the density at the vectors along the last axis of x.

    `cov` is a symmetric positive definite matrix, the variances, or one variance for all. The gradient in a matrix is
    symmetric. Raises LinAlgError for one that is not positive definite.
    """
    if allow_singular:
        raise ShapeError(
            located("multivariate_normal: singular matrices have no density; add a multiple of the identity")
        )
    mean, cov, size = _form(mean, cov)
    points = _vectors(as_operand(x), size)
    lower = linalg.cholesky(cov)
    gaps = ops.reshape(ops.subtract(points, mean), (-1, size))
    squares = ops.sum(ops.square(linalg.solve(lower, ops.matrix_transpose(gaps))), axis=0)
    logdet = ops.multiply(2.0, ops.sum(ops.log(linalg.diagonal(lower))))
    densities = ops.multiply(-0.5, ops.add(squares, ops.add(logdet, size * _CONSTANT)))
    return ops.reshape(densities, shape_of(points)[:-1])


@of_one_kind
def pdf(x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
    """The density."""
    return ops.exp(logpdf(x, mean, cov, allow_singular))


@of_one_kind
def entropy(mean: Array | None = None, cov: Array = 1.0) -> Array:
    """The differential entropy."""
    mean, cov, size = _form(mean, cov)
    return ops.multiply(0.5, ops.add(linalg.slogdet(cov).logabsdet, size * (1 + _CONSTANT)))


def _form(mean: Array | None, cov: Array) -> tuple[Array, Array, Any]:
    """The mean as a vector, the covariance as a matrix, and their size."""
    cov = as_operand(cov)
    axes = len(shape_of(cov))
    if mean is None:
        mean = ops.zeros(shape_of(cov)[-1] if axes else 1)
    mean = ops.reshape(mean, (-1,))
    size: Any = shape_of(mean)[0]
    if axes < 2:
        cov = ops.multiply(ops.eye(size), cov)
    if shape_of(cov) != (size, size):
        raise ShapeError(
            located(f"multivariate_normal: a mean of {size} and a covariance {shape_of(cov)}; make it ({size}, {size})")
        )
    return mean, cov, size


def _vectors(x: Array, size: int) -> Array:
    """x with vectors of that size along its last axis: numbers are vectors of one element, as in SciPy."""
    if size == 1 and len(shape_of(x)) < 2:
        return ops.expand_dims(x, -1)
    return x
