"""The Poisson distribution, on whole numbers from `loc` up."""

from __future__ import annotations

from graphs import ops
from graphs.op import Array
from graphs.ops.gamma import gammaincc, gammaln
from graphs.special import xlogy
from graphs.stats.scaling import NEVER, of_one_kind, within


@of_one_kind
def logpmf(k: Array, mu: Array, loc: Array = 0) -> Array:
    """The logarithm of how likely k is; -inf for what is no count."""

    def mass(count: Array) -> Array:
        return ops.subtract(ops.subtract(xlogy(count, mu), mu), gammaln(ops.add(count, 1)))

    count = ops.subtract(k, loc)
    inside = ops.logical_and(ops.greater_equal(count, 0), ops.equal(ops.floor(count), count))
    return within(inside, count, 0, mass, NEVER)


@of_one_kind
def pmf(k: Array, mu: Array, loc: Array = 0) -> Array:
    """How likely k is."""
    return ops.exp(logpmf(k, mu, loc))


@of_one_kind
def cdf(k: Array, mu: Array, loc: Array = 0) -> Array:
    """How likely a count is at most k."""
    count = ops.floor(ops.subtract(k, loc))
    return within(ops.greater_equal(count, 0), count, 0, lambda n: gammaincc(ops.add(n, 1), mu), 0.0)
