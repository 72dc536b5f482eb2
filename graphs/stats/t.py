"""Student's t distribution."""

from __future__ import annotations

import math

from graphs import ops
from graphs.op import Array
from graphs.ops.gamma import gammaln, stdtr
from graphs.stats.scaling import of_one_kind, standard, unscaled


@of_one_kind
def logpdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of the density with `df` degrees of freedom."""
    half, more = ops.divide(df, 2), ops.divide(ops.add(df, 1), 2)
    constant = ops.subtract(gammaln(more), gammaln(half))
    constant = ops.subtract(constant, ops.multiply(0.5, ops.log(ops.multiply(df, math.pi))))
    bell = ops.log1p(ops.divide(ops.square(standard(x, loc, scale)), df))
    return unscaled(ops.subtract(constant, ops.multiply(more, bell)), scale)


@of_one_kind
def pdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The density."""
    return ops.exp(logpdf(x, df, loc, scale))


@of_one_kind
def cdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is at most x; no gradient in `df`."""
    return stdtr(df, standard(x, loc, scale))


@of_one_kind
def logcdf(x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of `cdf`; no gradient in `df`."""
    return ops.log(cdf(x, df, loc, scale))
