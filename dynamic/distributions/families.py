"""The families of numbers and vectors: each by its parameters, a draw, the log probability and the entropy."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dynamic import random
from dynamic.creation import leaf
from dynamic.distributions.distribution import (
    LOG_2PI,
    Constraint,
    Distribution,
    broadcast_all,
    constraints,
)
from dynamic.grad_mode import no_grad
from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.torch import functions, linalg

__all__ = [
    "Beta", "Chi2", "Dirichlet", "Exponential", "Gamma", "Laplace", "MultivariateNormal", "Normal", "Uniform",
]  # fmt: skip

REAL, POSITIVE, SHARE = constraints.real, constraints.positive, constraints.unit_interval


def drawn_by(name: str, shape: tuple[int, ...], dtype: Any, *parameters: Any) -> Any:
    """Numbers of one of NumPy's distributions, by its name and parameters. Raises GraphError for those of a graph."""
    held = [random._array_or_value(value) for value in parameters]
    if not all(map(random._is_known, held)):
        raise GraphError(locate(f"{name} of parameters that only a run knows; draw outside of the graph"))
    chance: Any = random._numpy(None)

    def draw(chance: Any) -> Any:
        return getattr(chance, name)(*held, shape)

    numbers = chance.next(shape, draw) if isinstance(chance, random.DrawnNumbers) else draw(chance)
    return leaf(np.asarray(numbers).astype(dtype), dtype)


class RealsDistribution(Distribution):
    """A family of two parameters that are broadcast, with a gradient of its draws."""

    has_rsample = True

    def __init__(self, *values: Any, validate_args: bool | None = None) -> None:
        for name, value in zip(self.arg_constraints, broadcast_all(*values), strict=True):
            setattr(self, name, value)
        super().__init__(vars(self)[next(iter(self.arg_constraints))].shape, (), validate_args)


class _LocationScale(RealsDistribution):
    """A family on all numbers, of a centre that is its mean and a positive scale."""

    arg_constraints: ClassVar = {"loc": REAL, "scale": POSITIVE}
    support = REAL
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)


class Normal(_LocationScale):
    """Normal numbers of a mean and a standard deviation."""

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers with a gradient in mean and deviation."""
        return self.loc + self.scale * random.randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype)

    def _log_prob(self, value: Any) -> Any:
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - functions.log(self.scale) - LOG_2PI / 2

    def cdf(self, value: Any) -> Any:
        """The probability of a number of at most `value`."""
        return 0.5 * (1 + functions.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Any) -> Any:
        """The number below which a share lies."""
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        """The entropy of the density."""
        return 0.5 + 0.5 * LOG_2PI + functions.log(self.scale)


class Laplace(_LocationScale):
    """Numbers whose density falls off exponentially on both sides."""

    variance = property(lambda self: 2 * self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers with a gradient."""
        u = 2 * random.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype) - 1
        return self.loc - self.scale * functions.sign(u) * functions.log1p(-functions.abs(u))

    def _log_prob(self, value: Any) -> Any:
        return -functions.log(2 * self.scale) - functions.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        """The probability of a number of at most `value`."""
        off = value - self.loc
        return 0.5 - 0.5 * functions.sign(off) * functions.expm1(-functions.abs(off) / self.scale)

    def entropy(self) -> Any:
        """The entropy of the density."""
        return 1 + functions.log(2 * self.scale)


class Uniform(RealsDistribution):
    """Numbers from `low` up to, but without, `high`."""

    arg_constraints: ClassVar = {"low": REAL, "high": REAL}
    low: Any
    high: Any

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        """Raises ValueError where `low` is not below `high`."""
        super().__init__(low, high, validate_args=validate_args)
        low, high = self._ends()
        if self._validate_args and not np.all(low < high):
            raise ValueError("Uniform: low is below high")

    mean = property(lambda self: (self.low + self.high) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def _ends(self) -> tuple[Any, Any]:
        """The arrays of both ends; one that only a run knows is infinitely far."""
        return random._value_or_default(self.low, -np.inf), random._value_or_default(self.high, np.inf)

    @property
    def support(self) -> Constraint:
        """From `low` to `high`."""
        low, high = self._ends()
        return Constraint("from low to high", lambda x: (x >= low) & (x <= high))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers with a gradient in both ends."""
        drawn = random.rand(*self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def _log_prob(self, value: Any) -> Any:
        inside = ((self.low <= value) & (self.high > value)).type_as(self.low)
        return functions.log(inside) - functions.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        """The share of the interval below `value`."""
        return functions.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def entropy(self) -> Any:
        """The logarithm of the length."""
        return functions.log(self.high - self.low)


class Exponential(RealsDistribution):
    """Times of waiting for what happens at a rate."""

    arg_constraints: ClassVar = {"rate": POSITIVE}
    support = constraints.nonnegative
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(rate, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers with a gradient."""
        shape = self._extended_shape(sample_shape)
        return random.draw_leaf(lambda chance: chance.standard_exponential(shape), None, self.rate.dtype) / self.rate

    def _log_prob(self, value: Any) -> Any:
        return functions.log(self.rate) - self.rate * value

    def cdf(self, value: Any) -> Any:
        """The probability of a time of at most `value`."""
        return 1 - functions.exp(-self.rate * value)

    def entropy(self) -> Any:
        """The entropy of the density."""
        return 1 - functions.log(self.rate)


def draw_gamma(concentration: Any, shape: tuple[int, ...]) -> Any:
    """Gamma numbers of rate 1, with the gradient of a draw that keeps its rank (Figurnov, Mohamed and Mnih, 2018)."""
    drawn = drawn_by("standard_gamma", shape, concentration.dtype, concentration)
    drawn = functions.clamp(drawn, min=float(np.finfo(drawn.dtype).tiny))
    if not concentration.requires_grad:
        return drawn
    with no_grad():
        a, x = concentration.detach().double(), drawn.double()
        step = 1e-4 * a
        below = ops.gammainc(a + step, x) - ops.gammainc(a - step, x)
        above = ops.gammaincc(a - step, x) - ops.gammaincc(a + step, x)
        moved = functions.where(x < a, below, above) / (2 * step)  # of the smaller tail, whose digits are its own
        density = functions.exp((a - 1) * functions.log(x) - x - ops.gammaln(a))
        slope = (-moved / density).to(drawn.dtype)
    return drawn + (concentration - concentration.detach()) * slope


class Gamma(RealsDistribution):
    """Gamma numbers of a concentration and a rate."""

    arg_constraints: ClassVar = {"concentration": POSITIVE, "rate": POSITIVE}
    support = constraints.nonnegative
    concentration: Any
    rate: Any

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration, rate, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    variance = property(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers with a gradient."""
        return draw_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def _log_prob(self, value: Any) -> Any:
        a = self.concentration
        powers = functions.xlogy(a, self.rate) + functions.xlogy(a - 1, value)
        return powers - self.rate * value - functions.lgamma(a)

    def entropy(self) -> Any:
        """The entropy of the density."""
        a = self.concentration
        return a - functions.log(self.rate) + functions.lgamma(a) + (1 - a) * functions.digamma(a)


class Chi2(Gamma):
    """Sums of the squares of `df` normal numbers."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (half,) = broadcast_all(df)
        super().__init__(0.5 * half, 0.5, validate_args)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(Distribution):
    """Shares of 1, along the last axis."""

    arg_constraints: ClassVar = {"concentration": Constraint("above 0", lambda x: (x > 0).all(-1), 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def variance(self) -> Any:
        """The variance of each share."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Shares with a gradient: gamma numbers by their sum."""
        drawn = draw_gamma(
            self.concentration.expand(*self._extended_shape(sample_shape)), self._extended_shape(sample_shape)
        )
        return drawn / drawn.sum(-1, True)

    def _log_prob(self, value: Any) -> Any:
        a = self.concentration
        return functions.xlogy(a - 1, value).sum(-1) + functions.lgamma(a.sum(-1)) - functions.lgamma(a).sum(-1)

    def entropy(self) -> Any:
        """The entropy of the density."""
        a, count = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        of_total = functions.lgamma(total) + (count - total) * functions.digamma(total)
        return functions.lgamma(a).sum(-1) - of_total - ((a - 1) * functions.digamma(a)).sum(-1)


class Beta(RealsDistribution):
    """The first of two shares of 1."""

    arg_constraints: ClassVar = {"concentration1": POSITIVE, "concentration0": POSITIVE}
    support = SHARE
    concentration1: Any
    concentration0: Any

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration1, concentration0, validate_args=validate_args)

    def _shares(self) -> Dirichlet:
        return Dirichlet(functions.stack([self.concentration1, self.concentration0], -1), False)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def variance(self) -> Any:
        """The variance of the share."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Shares with a gradient."""
        return self._shares().rsample(sample_shape)[..., 0]

    def _log_prob(self, value: Any) -> Any:
        return self._shares()._log_prob(functions.stack([value, 1 - value], -1))

    def entropy(self) -> Any:
        """The entropy of the density."""
        return self._shares().entropy()


class MultivariateNormal(Distribution):
    """Normal vectors of a mean and a matrix: the covariance, its inverse, or its lower Cholesky factor."""

    arg_constraints: ClassVar = {"loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        """Raises ValueError unless one matrix is given."""
        if sum(matrix is not None for matrix in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError("MultivariateNormal takes one of covariance_matrix, precision_matrix and scale_tril")
        if scale_tril is None:
            covariance = linalg.inv(precision_matrix) if covariance_matrix is None else covariance_matrix
            self._checked(covariance, validate_args)
            scale_tril = functions.cholesky(covariance)
        batch, size = functions.broadcast_shapes(scale_tril.shape[:-2], loc.shape[:-1]), loc.shape[-1]
        self.loc, self.scale_tril = loc.expand(*batch, size), scale_tril.expand(*batch, size, size)
        super().__init__(batch, (size,), validate_args)

    def _checked(self, covariance: Any, validate_args: bool | None) -> None:
        if self._validate_args if validate_args is None else validate_args:
            self._check("covariance_matrix", covariance, constraints.positive_definite)

    mean = mode = property(lambda self: self.loc)
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: linalg.inv(self.covariance_matrix))
    variance = property(lambda self: (self.scale_tril**2).sum(-1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Vectors with a gradient."""
        drawn = random.randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + functions.matmul(self.scale_tril, drawn.unsqueeze(-1)).squeeze(-1)

    def _log_det(self) -> Any:
        return functions.log(functions.diagonal(self.scale_tril, dim1=-2, dim2=-1)).sum(-1)

    def _log_prob(self, value: Any) -> Any:
        off = (value - self.loc).unsqueeze(-1)
        factor = self.scale_tril.expand(*off.shape[:-2], *self.scale_tril.shape[-2:])
        distance = (linalg.solve_triangular(factor, off, upper=False).squeeze(-1) ** 2).sum(-1)
        return -0.5 * (self.event_shape[0] * LOG_2PI + distance) - self._log_det()

    def entropy(self) -> Any:
        """The entropy of the density."""
        return 0.5 * self.event_shape[0] * (1 + LOG_2PI) + self._log_det()
