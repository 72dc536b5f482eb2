"""The beta distribution, on numbers from `loc` to `loc + scale`."""

from __future__ import annotations

from graphs import ops
from graphs.op import Array
from graphs.ops.gamma import betainc
from graphs.special import betaln, xlog1py, xlogy
from graphs.stats.scaling import NEVER, of_one_kind, standard, unscaled, within


@of_one_kind
def logpdf(x: Array, a: Array, b: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The logarithm of the density; -inf outside."""

    def density(z: Array) -> Array:
        powers = ops.add(xlogy(ops.subtract(a, 1), z), xlog1py(ops.subtract(b, 1), ops.negative(z)))
        return ops.subtract(powers, betaln(a, b))

    z = standard(x, loc, scale)
    inside = ops.logical_and(ops.greater_equal(z, 0), ops.less_equal(z, 1))
    return unscaled(within(inside, z, 0.5, density, NEVER), scale)


@of_one_kind
def pdf(x: Array, a: Array, b: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """The density."""
    return ops.exp(logpdf(x, a, b, loc, scale))


@of_one_kind
def cdf(x: Array, a: Array, b: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
    """How likely a number is at most x; no gradient in `a` and `b`."""
    return betainc(a, b, ops.clip(standard(x, loc, scale), 0, 1))
