"""The families of distributions: each by its parameters, a draw, the log probability and the entropy."""

from __future__ import annotations

import copy
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
    logits_or_probs,
)
from dynamic.grad_mode import no_grad
from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.torch import functions, linalg

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Chi2", "Dirichlet", "Exponential", "Gamma", "Geometric",
    "Laplace", "MixtureSameFamily", "MultivariateNormal", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson", "Uniform",
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


def _bce(logits: Any, probs: Any) -> Any:
    return ops.binary_cross_entropy_with_logits(logits, probs, reduction="none")


# Numbers --------------------------------------------------------------------------------------------------------------


class _Reals(Distribution):
    """A family of two parameters that are broadcast, with a gradient of its draws."""

    has_rsample = True

    def __init__(self, *values: Any, validate_args: bool | None = None) -> None:
        for name, value in zip(self.arg_constraints, broadcast_all(*values), strict=True):
            setattr(self, name, value)
        super().__init__(vars(self)[next(iter(self.arg_constraints))].shape, (), validate_args)


class _LocationScale(_Reals):
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


class Uniform(_Reals):
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


class Exponential(_Reals):
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


class Gamma(_Reals):
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


class Beta(_Reals):
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


# Counts ---------------------------------------------------------------------------------------------------------------


class _Binary(Distribution):
    """A family of a probability, or of its logit; the other one is computed when it is read."""

    arg_constraints: ClassVar = {"probs": SHARE, "logits": REAL}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        logits_or_probs(type(self).__name__, probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        (held,) = broadcast_all(value)
        setattr(self, name, held)
        super().__init__(held.shape, (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "probs" and "logits" in vars(self):
            return functions.sigmoid(self.logits)
        if name == "logits" and "probs" in vars(self):
            eps = float(np.finfo(self.probs.dtype).eps)
            return functions.logit(functions.clamp(self.probs, eps, 1 - eps))
        raise AttributeError(f"{type(self).__name__} has no {name!r}")


class Bernoulli(_Binary):
    """1 with a probability, and 0 otherwise."""

    support = constraints.boolean
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Any:
        """The more probable of both; NaN where both are."""
        likely = (self.probs > 0.5).type_as(self.probs)
        return functions.where(self.probs == 0.5, float("nan"), likely)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Zeros and ones."""
        return random.bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def _log_prob(self, value: Any) -> Any:
        return -_bce(self.logits, value)

    def entropy(self) -> Any:
        """The entropy: minus the mean of the log probability."""
        return _bce(self.logits, self.probs)


class Geometric(_Binary):
    """How often 0 comes before the first 1."""

    support = constraints.nonnegative_integer
    mean = property(lambda self: 1 / self.probs - 1)
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Whole numbers, as floats."""
        probs = self.probs.detach()
        drawn = 1 - random.rand(*self._extended_shape(sample_shape), dtype=probs.dtype)  # above 0
        return functions.floor(functions.log(drawn) / functions.log1p(-probs))

    def _log_prob(self, value: Any) -> Any:
        value, probs = broadcast_all(value, self.probs)
        probs = functions.where((probs == 1) & (value == 0), 0.0, probs)
        return value * functions.log1p(-probs) + functions.log(self.probs)

    def entropy(self) -> Any:
        """The entropy."""
        return _bce(self.logits, self.probs) / self.probs


class Binomial(_Binary):
    """How many of `total_count` are 1."""

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        logits_or_probs("Binomial", probs, logits)
        count, value = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.type_as(value)
        super().__init__(**{"probs" if logits is None else "logits": value}, validate_args=validate_args)

    arg_constraints: ClassVar = {"total_count": constraints.nonnegative_integer, **_Binary.arg_constraints}
    support = constraints.nonnegative_integer
    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Whole numbers, as floats."""
        probs, shape = self.probs.detach(), self._extended_shape(sample_shape)
        return drawn_by("binomial", shape, probs.dtype, self.total_count.long(), probs)

    def _log_prob(self, value: Any) -> Any:
        n, logits = self.total_count, self.logits
        ways = functions.lgamma(n + 1) - functions.lgamma(value + 1) - functions.lgamma(n - value + 1)
        return ways + value * logits - n * ops.softplus(logits)


class Poisson(_Reals):
    """How often what happens at a rate happens."""

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    has_rsample = False
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(rate, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Whole numbers, as floats."""
        return random.poisson(self.rate.detach().expand(*self._extended_shape(sample_shape)))

    def _log_prob(self, value: Any) -> Any:
        value, rate = broadcast_all(value, self.rate)
        return functions.xlogy(value, rate) - rate - functions.lgamma(value + 1)


class Categorical(Distribution):
    """Integers from 0 on, by their probabilities or logits along the last axis."""

    arg_constraints: ClassVar = {"logits": constraints.real_vector, "probs": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        logits_or_probs("Categorical", probs, logits)
        if logits is None:
            self.probs = probs / probs.sum(-1, True)
            eps = float(np.finfo(self.probs.dtype).eps)
            self.logits = functions.log(functions.clamp(self.probs, eps, 1 - eps))
        else:
            self.logits = logits - functions.logsumexp(logits, -1, True)
            self.probs = functions.softmax(self.logits, -1)
        super().__init__(self.probs.shape[:-1], (), validate_args)

    @property
    def support(self) -> Constraint:
        """The ints that are drawn."""
        most = self.logits.shape[-1]
        return Constraint(f"an int from 0 to {most - 1}", lambda x: (x % 1 == 0) & (x >= 0) & (x < most))

    param_shape = property(lambda self: self.logits.shape)
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Integers of the shape `sample_shape`, and then of the axes before the last."""
        rows, shape = self.probs.detach(), tuple(sample_shape)
        flat = rows.reshape(-1, rows.shape[-1])
        drawn = random.multinomial(flat, max(1, math.prod(shape)), replacement=True)
        return drawn.t().reshape(*shape, *rows.shape[:-1])

    def _log_prob(self, value: Any) -> Any:
        shape = functions.broadcast_shapes(value.shape, self.batch_shape)
        index = value.long().expand(*shape).unsqueeze(-1)
        logits = self.logits.expand(*shape, self.logits.shape[-1])
        return functions.gather(logits, -1, index).squeeze(-1)

    def entropy(self) -> Any:
        """The entropy: minus the mean of the log probability."""
        logits = functions.clamp(self.logits, min=float(np.finfo(self.logits.dtype).min))
        return -functions.sum(logits * self.probs, -1)


class OneHotCategorical(Distribution):
    """Vectors of one 1 among 0, by their probabilities or logits along the last axis."""

    support = constraints.one_hot

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    probs = mean = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Vectors, as floats."""
        places = self._categorical.sample(sample_shape)
        return ops.one_hot(places, self.event_shape[0]).type_as(self.probs)

    def _log_prob(self, value: Any) -> Any:
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        """The entropy: minus the mean of the log probability."""
        return self._categorical.entropy()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions, repeated to a larger batch."""
        made = copy.copy(self)
        made.batch_shape, made._categorical = tuple(batch_shape), self._categorical.expand(batch_shape)
        return made


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Such vectors with the gradient of the probabilities (Bengio, Leonard and Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Vectors with a gradient."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class MixtureSameFamily(Distribution):
    """Draws of one of the distributions along the last axis of a batch, chosen by a Categorical."""

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        """Raises ValueError where both have other shapes."""
        batch, events = component_distribution.batch_shape, component_distribution.event_shape
        if mixture_distribution.param_shape[-1] != batch[-1]:
            raise ValueError(f"a mixture of {mixture_distribution.param_shape[-1]} of {batch[-1]} distributions")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], events, validate_args)

    def _weights(self) -> Any:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self.event_shape))

    def _along(self) -> int:
        return -1 - len(self.event_shape)

    mean = property(lambda self: (self._weights() * self.component_distribution.mean).sum(self._along()))

    @property
    def variance(self) -> Any:
        """The mean of the variances, and the variance of the means."""
        means = self.component_distribution.mean
        spread = (means - self.mean.unsqueeze(self._along())) ** 2
        return (self._weights() * (self.component_distribution.variance + spread)).sum(self._along())

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw of each, and the choice among them."""
        chosen = self.mixture_distribution.sample(sample_shape)
        drawn, axes = self.component_distribution.sample(sample_shape), len(self.event_shape)
        index = chosen.reshape(*chosen.shape, *[1] * (axes + 1)).expand(*chosen.shape, 1, *self.event_shape)
        return functions.gather(drawn, drawn.ndim + self._along(), index).squeeze(self._along())

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the sum of the weighted densities."""
        logs = self.component_distribution.log_prob(value.unsqueeze(self._along()))
        weights = functions.log_softmax(self.mixture_distribution.logits, -1)
        return functions.logsumexp(logs + weights, -1)
