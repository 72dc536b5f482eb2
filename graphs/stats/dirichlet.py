"""The Dirichlet distribution of shares that sum to 1."""

from __future__ import annotations

from graphs import ops
from graphs.op import Array
from graphs.ops.gamma import gammaln
from graphs.ops.shapes import shape_of
from graphs.special import xlogy
from graphs.stats.scaling import of_one_kind


@of_one_kind
def logpdf(x: Array, alpha: Array) -> Array:
    """The logarithm of the density at x[k], or at the columns of x[k, n]; `alpha` has k elements.

    That a column sums to 1 is not checked.
    """
    powers = ops.sum(xlogy(ops.subtract(_beside(alpha, x), 1), x), axis=0)
    return ops.add(ops.subtract(powers, ops.sum(gammaln(alpha))), gammaln(ops.sum(alpha)))


@of_one_kind
def pdf(x: Array, alpha: Array) -> Array:
    """The density."""
    return ops.exp(logpdf(x, alpha))


def _beside(alpha: Array, x: Array) -> Array:
    return ops.reshape(alpha, (-1, *(1,) * (len(shape_of(x)) - 1)))
