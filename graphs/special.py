"""Special functions for both engines, with the names and parameters of `scipy.special`; loaded at first use."""

from __future__ import annotations

import math

from graphs import ops
from graphs.errors import ShapeError, locate
from graphs.op import Array
from graphs.ops.gamma import betainc, digamma, gammainc, gammaincc, gammaln, i0, i0e, i1, i1e, polygamma, stdtr
from graphs.ops.gamma import zeta as hurwitz_zeta
from graphs.ops.movement import in_single
from graphs.ops.shapes import Axis, as_operand, dtype_of, positive_axes, shape_of
from graphs.ops.special import entr, erf, erfc, erfcinv, erfcx, erfinv

__all__ = [
    "beta", "betainc", "betaln", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "expit", "gamma",
    "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "rgamma", "softmax", "stdtr", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

psi = digamma
expit = ops.sigmoid


def logsumexp(a: Array, axis: Axis = None, b: Array | None = None, keepdims: bool = False) -> Array:
    """log(sum(b * exp(a))) over `axis`, without overflow; NaN where the sum is below 0."""
    if b is None:
        return ops.logsumexp(a, axis=axis, keepdims=keepdims)
    stretched = ops.broadcast_arrays(a, b)
    axes = positive_axes(axis, len(shape_of(stretched[0])))
    least = ops.where(ops.equal(stretched[1], 0), -math.inf, stretched[0])  # what has no weight is no peak
    largest = ops.stop_gradient(ops.max(least, axis=axes, keepdims=True))
    peak = ops.where(ops.isfinite(largest), largest, 0)
    powers = ops.exp(ops.subtract(least, peak))
    result = ops.add(ops.log(ops.sum(ops.multiply(stretched[1], powers), axis=axes, keepdims=True)), peak)
    return result if keepdims else ops.squeeze(result, axes)


def softmax(x: Array, axis: Axis = None) -> Array:
    """exp(x) divided by its sum over all elements, or along an axis."""
    return ops.softmax(x, axis=positive_axes(axis, len(shape_of(x))))


def log_softmax(x: Array, axis: Axis = None) -> Array:
    """The logarithm of `softmax`."""
    return ops.log_softmax(x, axis=positive_axes(axis, len(shape_of(x))))


@in_single
def logit(x: Array) -> Array:
    """log(x / (1 - x)), the inverse of `expit`."""
    return ops.subtract(ops.log(x), ops.log1p(ops.negative(x)))


@in_single
def xlogy(x: Array, y: Array) -> Array:
    """x * log(y); 0 where x is 0 and y is a number. There the gradient in x is log(y), if that is a number."""
    return ops.multiply(x, ops.log(_unless(x, y, 0.0, 1.0)))


@in_single
def xlog1py(x: Array, y: Array) -> Array:
    """x * log(1 + y); 0 where x is 0 and y is a number. There the gradient in x is log(1 + y), if that is a number."""
    return ops.multiply(x, ops.log1p(_unless(x, y, -1.0, 0.0)))


def _unless(x: Array, y: Array, pole: float, other: float) -> Array:
    """y, but `other` where x is 0 and the logarithm of y is infinite or NaN though y is not NaN."""
    is_number = ops.logical_and(ops.greater(y, pole), ops.less(y, math.inf))
    return ops.where(
        ops.logical_and(ops.equal(x, 0), ops.logical_not(ops.logical_or(is_number, ops.isnan(y)))), other, y
    )


# Gamma and beta -----------------------------------------------------------------------------------------------------


def gammasgn(x: Array) -> Array:
    """The sign of gamma(x): 1 or -1, and 0 at its poles below 0; no gradient."""
    whole = ops.floor(x)
    sign = ops.subtract(1.0, ops.multiply(2.0, ops.remainder(whole, 2)))
    return ops.where(ops.greater_equal(x, 0), 1.0, ops.where(ops.equal(whole, x), 0.0, sign))


@in_single
def gamma(x: Array) -> Array:
    """The gamma function; infinite at 0, and NaN at negative whole numbers."""
    return ops.multiply(gammasgn(x), ops.exp(gammaln(x)))


@in_single
def rgamma(x: Array) -> Array:
    """1 / gamma(x)."""
    return ops.multiply(gammasgn(x), ops.exp(ops.negative(gammaln(x))))


@in_single
def betaln(a: Array, b: Array) -> Array:
    """log(abs(beta(a, b)))."""
    return ops.subtract(ops.add(gammaln(a), gammaln(b)), gammaln(ops.add(a, b)))


@in_single
def beta(a: Array, b: Array) -> Array:
    """gamma(a) * gamma(b) / gamma(a + b)."""
    sign = ops.multiply(ops.multiply(gammasgn(a), gammasgn(b)), gammasgn(ops.add(a, b)))
    return ops.multiply(sign, ops.exp(betaln(a, b)))


@in_single
def multigammaln(a: Array, d: int) -> Array:
    """The logarithm of the gamma function of `d` dimensions, for a > (d - 1) / 2. Raises ShapeError for d < 1."""
    if d < 1:
        raise ShapeError(locate(f"multigammaln: there are no {d} dimensions; use 1 or more"))
    parts = gammaln(ops.subtract(ops.expand_dims(a, -1), ops.divide(ops.arange(d), 2)))
    return ops.add(ops.sum(parts, axis=-1), d * (d - 1) / 4 * math.log(math.pi))


def zeta(x: Array, q: Array = 1.0) -> Array:
    """The sum of (k + q) ** -x over all k >= 0, for x > 1: Hurwitz's zeta function, and Riemann's for q = 1."""
    return hurwitz_zeta(x, q)


# The normal distribution --------------------------------------------------------------------------------------------


@in_single
def ndtr(x: Array) -> Array:
    """The probability that a standard normal number is at most x."""
    return ops.multiply(0.5, erfc(ops.multiply(x, -math.sqrt(0.5))))


@in_single
def ndtri(y: Array) -> Array:
    """The x with ndtr(x) = y."""
    return ops.multiply(erfcinv(ops.multiply(y, 2.0)), -math.sqrt(2))


@in_single
def log_ndtr(x: Array) -> Array:
    """log(ndtr(x)), also where ndtr(x) is tiny: there by an asymptotic series (Abramowitz and Stegun, 26.2.12)."""
    x = as_operand(x)
    far, low = ops.less(x, _FAR.get(dtype_of(x).itemsize, -20.0)), ops.less(x, 0.0)
    near = ops.where(
        low, ops.log(ndtr(ops.where(far, 0.0, x))), ops.log1p(ops.negative(ndtr(ops.negative(ops.where(low, 0.0, x)))))
    )
    y = ops.where(far, x, -20.0)
    inverse = ops.reciprocal(ops.square(y))
    series = ops.multiply(inverse, -15.0)
    for odd in range(13, 0, -2):  # 1 - 1 / y**2 + 3 / y**4 - 15 / y**6 ...
        series = ops.multiply(ops.multiply(inverse, -float(odd)), ops.add(series, 1.0))
    lead = ops.subtract(ops.multiply(ops.square(y), -0.5), ops.log(ops.negative(y)))
    tail = ops.add(ops.subtract(lead, 0.5 * math.log(2 * math.pi)), ops.log1p(series))
    return ops.where(far, tail, near)


_FAR = {4: -10.0, 8: -20.0}  # by bytes: from here down the series is exact, and erfc not yet 0
