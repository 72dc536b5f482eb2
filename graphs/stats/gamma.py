"""The gamma distribution."""

from __future__ import annotations

from graphs import ops
from graphs.op import Array
from graphs.ops.gamma import gammainc, gammaln
from graphs.special import xlogy
from graphs.stats.scaling import NEVER, of_one_kind, standard, unscaled, within


@of_one_kind
def logpdf(x: Array, a: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of the density; -inf below `loc`."""

    def density(z: Array) -> Array:
        return ops.subtract(ops.subtract(xlogy(ops.subtract(a, 1), z), z), gammaln(a))

    z = standard(x, loc, scale)
    return unscaled(within(ops.greater_equal(z, 0), z, 1.0, density, NEVER), scale)


@of_one_kind
def pdf(x: Array, a: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The density."""
    return ops.exp(logpdf(x, a, loc, scale))


@of_one_kind
def cdf(x: Array, a: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is at most x; no gradient in `a`."""
    return gammainc(a, ops.maximum(standard(x, loc, scale), 0.0))
