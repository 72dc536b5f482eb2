"""The families of counts, choices and mixtures: each by its parameters, a draw, the log probability and the entropy."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import numpy as np

from dynamic import random
from dynamic.distributions.distribution import Constraint, Distribution, broadcast_all, constraints, logits_or_probs
from dynamic.distributions.families import REAL, SHARE, RealsDistribution, drawn_by
from graphs import ops
from graphs.frontends.torch import functions

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "MixtureSameFamily", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip


def _bce(logits: Any, probs: Any) -> Any:
    return ops.binary_cross_entropy_with_logits(logits, probs, reduction="none")


class BinaryDistribution(Distribution):
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


class Bernoulli(BinaryDistribution):
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


class Geometric(BinaryDistribution):
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


class Binomial(BinaryDistribution):
    """How many of `total_count` are 1."""

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        logits_or_probs("Binomial", probs, logits)
        count, value = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.type_as(value)
        super().__init__(**{"probs" if logits is None else "logits": value}, validate_args=validate_args)

    arg_constraints: ClassVar = {"total_count": constraints.nonnegative_integer, **BinaryDistribution.arg_constraints}
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


class Poisson(RealsDistribution):
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
