"""The chi-squared distribution: the gamma distribution of shape df / 2, twice as wide."""

from __future__ import annotations

from graphs import ops
from graphs.op import Array
from graphs.stats import gamma
from graphs.stats.scaling import of_one_kind


@of_one_kind
def logpdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of the density with `df` degrees of freedom; -inf below `loc`."""
    return gamma.logpdf(x, ops.divide(df, 2), loc, ops.multiply(scale, 2))


@of_one_kind
def pdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The density."""
    return gamma.pdf(x, ops.divide(df, 2), loc, ops.multiply(scale, 2))


@of_one_kind
def cdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is at most x; no gradient in `df`."""
    return gamma.cdf(x, ops.divide(df, 2), loc, ops.multiply(scale, 2))
