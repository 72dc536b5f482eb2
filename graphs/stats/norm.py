"""The normal distribution."""

from __future__ import annotations

import math

from graphs import ops
from graphs.op import Array
from graphs.special import log_ndtr, ndtr
from graphs.stats.scaling import of_one_kind, standard, unscaled

_CONSTANT = 0.5 * math.log(2 * math.pi)


@of_one_kind
def logpdf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of the density."""
    squares = ops.square(standard(x, loc, scale))
    return unscaled(ops.subtract(ops.multiply(squares, -0.5), _CONSTANT), scale)


@of_one_kind
def pdf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The density."""
    return ops.exp(logpdf(x, loc, scale))


@of_one_kind
def cdf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is at most x."""
    return ndtr(standard(x, loc, scale))


@of_one_kind
def logcdf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of `cdf`, also where that is tiny."""
    return log_ndtr(standard(x, loc, scale))


@of_one_kind
def sf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is above x."""
    return ndtr(ops.negative(standard(x, loc, scale)))


@of_one_kind
def logsf(x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of `sf`, also where that is tiny."""
    return log_ndtr(ops.negative(standard(x, loc, scale)))
