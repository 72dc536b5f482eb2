"""Densities and distribution functions for both engines, with SciPy's names and parameters; loaded at first use.

Each distribution is an object, as in `scipy.stats`: `norm.logpdf(x, loc, scale)`. Some arguments, such as the shapes of
a cumulative distribution, have no gradient: asking for it raises NotDifferentiableError. `import graphs.stats.norm as
norm` works too, as with `autograd.scipy.stats`.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from graphs import linalg, ops
from graphs.errors import ShapeError, locate
from graphs.op import Array
from graphs.ops.gamma import betainc, gammainc, gammaincc, gammaln, stdtr
from graphs.ops.shapes import as_operand, shape_of
from graphs.promotion import is_scalar, weak_to_array
from graphs.special import betaln, log_ndtr, ndtr, xlog1py, xlogy

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

_NEVER = -math.inf
_LOG_TWO_PI = math.log(2 * math.pi)


def _of_one_kind(function: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap a method: Python numbers among its arguments take the dtype of the arrays beside them."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Array:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        beside = [value for value in bound.arguments.values() if hasattr(value, "dtype")]
        for name, value in bound.arguments.items():
            if beside and is_scalar(value) and not isinstance(value, bool):
                bound.arguments[name] = weak_to_array(value, beside)
        return function(*bound.args, **bound.kwargs)

    return call


class _Distribution:
    """Base of distributions: public methods take Python numbers in the dtype of the arrays beside them."""

    def __init_subclass__(cls) -> None:
        for name, held in list(vars(cls).items()):
            if not name.startswith("_"):
                setattr(cls, name, _of_one_kind(held))


class _Density(_Distribution):
    """Base of distributions with a density: a subclass defines `logpdf`."""

    def pdf(self, *args: Any, **options: Any) -> Array:
        """The density, with the parameters of `logpdf`."""
        return ops.exp(self.logpdf(*args, **options))  # type: ignore[attr-defined]


class _Normal(_Density):
    """The normal distribution."""

    def logpdf(self, x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of the density."""
        squares = ops.square(_standard(x, loc, scale))
        return _log_density_of_x(ops.subtract(ops.multiply(squares, -0.5), 0.5 * _LOG_TWO_PI), scale)

    def cdf(self, x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is at most x."""
        return ndtr(_standard(x, loc, scale))

    def logcdf(self, x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of `cdf`, also where `cdf` is tiny."""
        return log_ndtr(_standard(x, loc, scale))

    def sf(self, x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is above x."""
        return ndtr(ops.negative(_standard(x, loc, scale)))

    def logsf(self, x: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of `sf`, also where `sf` is tiny."""
        return log_ndtr(ops.negative(_standard(x, loc, scale)))


class _MultivariateNormal(_Density):
    """The normal distribution of several dimensions."""

    def logpdf(self, x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
        """The logarithm of the density at the vectors along the last axis of x.

        `cov` is a symmetric positive definite matrix, a vector of variances, or one variance for all. The gradient in a
        matrix is symmetric. Raises LinAlgError for a matrix that is not positive definite.
        """
        if allow_singular:
            raise ShapeError(
                locate("multivariate_normal: singular matrices have no density; add a multiple of the identity")
            )
        mean, cov, size = _form(mean, cov)
        points = _vectors(as_operand(x), size)
        lower = linalg.cholesky(cov)
        gaps = ops.reshape(ops.subtract(points, mean), (-1, size))
        squares = ops.sum(ops.square(linalg.solve(lower, ops.matrix_transpose(gaps))), axis=0)
        logdet = ops.multiply(2.0, ops.sum(ops.log(linalg.diagonal(lower))))
        densities = ops.multiply(-0.5, ops.add(squares, ops.add(logdet, size * _LOG_TWO_PI)))
        return ops.reshape(densities, shape_of(points)[:-1])

    def entropy(self, mean: Array | None = None, cov: Array = 1.0) -> Array:
        """The differential entropy."""
        mean, cov, size = _form(mean, cov)
        return ops.multiply(0.5, ops.add(linalg.slogdet(cov).logabsdet, size * (1 + _LOG_TWO_PI)))


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
            locate(f"multivariate_normal: a mean of {size} and a covariance {shape_of(cov)}; make it ({size}, {size})")
        )
    return mean, cov, size


def _vectors(x: Array, size: int) -> Array:
    """x with vectors of that size along its last axis: numbers are vectors of one element, as in SciPy."""
    if size == 1 and len(shape_of(x)) < 2:
        return ops.expand_dims(x, -1)
    return x


class _StudentT(_Density):
    """Student's t distribution."""

    def logpdf(self, x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of the density with `df` degrees of freedom."""
        half, more = ops.divide(df, 2), ops.divide(ops.add(df, 1), 2)
        constant = ops.subtract(gammaln(more), gammaln(half))
        constant = ops.subtract(constant, ops.multiply(0.5, ops.log(ops.multiply(df, math.pi))))
        bell = ops.log1p(ops.divide(ops.square(_standard(x, loc, scale)), df))
        return _log_density_of_x(ops.subtract(constant, ops.multiply(more, bell)), scale)

    def cdf(self, x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is at most x; no gradient in `df`."""
        return stdtr(df, _standard(x, loc, scale))

    def logcdf(self, x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of `cdf`; no gradient in `df`."""
        return ops.log(self.cdf(x, df, loc, scale))


class _Beta(_Density):
    """The beta distribution, on numbers from `loc` to `loc + scale`."""

    def logpdf(self, x: Array, a: Array, b: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of the density; -inf outside."""

        def density(z: Array) -> Array:
            powers = ops.add(xlogy(ops.subtract(a, 1), z), xlog1py(ops.subtract(b, 1), ops.negative(z)))
            return ops.subtract(powers, betaln(a, b))

        z = _standard(x, loc, scale)
        inside = ops.logical_and(ops.greater_equal(z, 0), ops.less_equal(z, 1))
        return _log_density_of_x(_select_inside(inside, z, 0.5, density, _NEVER), scale)

    def cdf(self, x: Array, a: Array, b: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is at most x; no gradient in `a` and `b`."""
        return betainc(a, b, ops.clip(_standard(x, loc, scale), 0, 1))


class _Gamma(_Density):
    """The gamma distribution."""

    def logpdf(self, x: Array, a: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of the density; -inf below `loc`."""

        def density(z: Array) -> Array:
            return ops.subtract(ops.subtract(xlogy(ops.subtract(a, 1), z), z), gammaln(a))

        z = _standard(x, loc, scale)
        return _log_density_of_x(_select_inside(ops.greater_equal(z, 0), z, 1.0, density, _NEVER), scale)

    def cdf(self, x: Array, a: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is at most x; no gradient in `a`."""
        return gammainc(a, ops.maximum(_standard(x, loc, scale), 0.0))


class _ChiSquared(_Density):
    """The chi-squared distribution: the gamma distribution of shape df / 2, twice as wide."""

    def logpdf(self, x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The logarithm of the density with `df` degrees of freedom; -inf below `loc`."""
        return gamma.logpdf(x, ops.divide(df, 2), loc, ops.multiply(scale, 2))

    def cdf(self, x: Array, df: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The probability that a number is at most x; no gradient in `df`."""
        return gamma.cdf(x, ops.divide(df, 2), loc, ops.multiply(scale, 2))


class _Poisson(_Distribution):
    """The Poisson distribution, on whole numbers from `loc` up."""

    def logpmf(self, k: Array, mu: Array, loc: Array = 0) -> Array:
        """The logarithm of the probability of k; -inf where k - loc is negative or no whole number."""

        def mass(count: Array) -> Array:
            return ops.subtract(ops.subtract(xlogy(count, mu), mu), gammaln(ops.add(count, 1)))

        count = ops.subtract(k, loc)
        inside = ops.logical_and(ops.greater_equal(count, 0), ops.equal(ops.floor(count), count))
        return _select_inside(inside, count, 0, mass, _NEVER)

    def pmf(self, k: Array, mu: Array, loc: Array = 0) -> Array:
        """The probability of k."""
        return ops.exp(self.logpmf(k, mu, loc))

    def cdf(self, k: Array, mu: Array, loc: Array = 0) -> Array:
        """The probability that a count is at most k."""
        count = ops.floor(ops.subtract(k, loc))
        return _select_inside(ops.greater_equal(count, 0), count, 0, lambda n: gammaincc(ops.add(n, 1), mu), 0.0)


class _Dirichlet(_Density):
    """The Dirichlet distribution of shares that sum to 1."""

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """The logarithm of the density at x[k], or at the columns of x[k, n]; `alpha` has k elements.

        That a column sums to 1 is not checked.
        """
        powers = ops.sum(xlogy(ops.subtract(_beside(alpha, x), 1), x), axis=0)
        return ops.add(ops.subtract(powers, ops.sum(gammaln(alpha))), gammaln(ops.sum(alpha)))


def _beside(alpha: Array, x: Array) -> Array:
    return ops.reshape(alpha, (-1, *(1,) * (len(shape_of(x)) - 1)))


def _standard(x: Array, loc: Array, scale: Array) -> Array:
    """(x - loc) / scale."""
    return ops.divide(ops.subtract(x, loc), scale)


def _log_density_of_x(logpdf: Array, scale: Array) -> Array:
    """Convert the logarithm of the density of (x - loc) / scale to that of the density of x."""
    return ops.subtract(logpdf, ops.log(scale))


def _select_inside(inside: Array, z: Array, other: float, function: Callable[[Array], Array], outside: float) -> Array:
    """`function(z)` where `inside` holds, else `outside` with gradient 0; `other` is any z that is inside."""
    return ops.where(inside, function(ops.where(inside, z, other)), outside)


norm = _Normal()
multivariate_normal = _MultivariateNormal()
t = _StudentT()
beta = _Beta()
gamma = _Gamma()
chi2 = _ChiSquared()
poisson = _Poisson()
dirichlet = _Dirichlet()
for _name in __all__:  # SciPy's are modules, which programs import by their paths
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
