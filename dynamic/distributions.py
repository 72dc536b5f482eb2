"""`torch.distributions`: the few that small programs draw actions and noise from.

PyTorch's files, as in `from dynamic.distributions.normal import Normal`, are modules made in `sys.modules`.
"""

from __future__ import annotations

import math
from typing import Any

from dynamic import random
from dynamic.paths import file_of
from dynamic.tensor import Tensor
from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.torch import functions

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "kl_divergence"]


class Distribution:
    """Base of distributions: the shape of a batch of them, and draws without a gradient.

    A draw has the shape `sample_shape + batch_shape`; the shape of one event is empty.
    """

    event_shape: tuple[int, ...] = ()
    mean: Any
    variance: Any

    def __init__(self, batch_shape: tuple[int, ...]) -> None:
        self.batch_shape = batch_shape

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return functions.sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A draw without a gradient."""
        raise NotImplementedError

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability, or of the density, of each value."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy of each in the batch."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape})"


class Categorical(Distribution):
    """Integers from 0 on, by their probabilities or logits along the last axis."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        if (probs is None) is (logits is None):
            raise ValueError("Categorical takes probs or logits, and not both")
        log_weights = functions.log(probs / probs.sum(-1, True)) if logits is None else logits
        self.logits = log_weights - functions.logsumexp(log_weights, -1, True)
        self.probs = functions.softmax(self.logits, -1)
        super().__init__(self.probs.shape[:-1])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Integers of the shape `sample_shape`, and then of the axes before the last."""
        rows, shape = self.probs.detach(), tuple(sample_shape)
        flat = rows.reshape(-1, rows.shape[-1])
        drawn = random.multinomial(flat, max(1, math.prod(shape)), replacement=True)
        return drawn.t().reshape(*shape, *rows.shape[:-1])

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each integer."""
        shape = functions.broadcast_shapes(value.shape, self.batch_shape)
        index = value.long().expand(*shape).unsqueeze(-1)
        logits = self.logits.expand(*shape, self.logits.shape[-1])
        return functions.gather(logits, -1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        """The entropy: minus the mean of the log probability."""
        return -functions.sum(self.logits * self.probs, -1)


class Normal(Distribution):
    """Normal numbers of a mean and a standard deviation, which are broadcast together."""

    def __init__(self, loc: Any, scale: Any) -> None:
        parameters = [value if isinstance(value, Tensor) else Tensor([value]).reshape(()) for value in (loc, scale)]
        super().__init__(functions.broadcast_shapes(*(value.shape for value in parameters)))
        self.loc, self.scale = (value.expand(*self.batch_shape) for value in parameters)

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers with a gradient in mean and deviation."""
        return self.loc + self.scale * random.randn(*sample_shape, *self.batch_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers without a gradient."""
        return self.rsample(sample_shape).detach()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        squared = (value - self.loc) ** 2
        return -squared / (2 * self.scale**2) - functions.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        """The probability of a number of at most `value`."""
        return 0.5 * (1 + functions.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def entropy(self) -> Any:
        """The entropy of the density."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + functions.log(self.scale)


class Bernoulli(Distribution):
    """1 with a probability, and 0 otherwise."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        if (probs is None) is (logits is None):
            raise ValueError("Bernoulli takes probs or logits, and not both")
        self.probs = functions.sigmoid(logits) if probs is None else probs
        self.logits = functions.logit(probs) if logits is None else logits
        super().__init__(self.probs.shape)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Zeros and ones."""
        return random.bernoulli(self.probs.detach().expand(*sample_shape, *self.probs.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each."""
        return -ops.binary_cross_entropy_with_logits(self.logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """The entropy: minus the mean of the log probability."""
        return ops.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """How far q is from p: the mean over p of the logarithm of p / q. Raises GraphError for different kinds."""
    if isinstance(p, Normal) and isinstance(q, Normal):
        share = p.variance / q.variance
        return 0.5 * (share + ((p.loc - q.loc) / q.scale) ** 2 - 1 - functions.log(share))
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return functions.sum(p.probs * (p.logits - q.logits), -1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        return ops.binary_cross_entropy_with_logits(q.logits, p.probs, reduction="none") - p.entropy()
    kinds = f"{type(p).__name__} and {type(q).__name__}"
    raise GraphError(locate(f"kl_divergence: there is no formula for {kinds}; give two of the same kind"))


__path__: list[str] = []  # a package: who lets `torch` mean `dynamic` finds its files by their names

_FILES = {
    "bernoulli": "Bernoulli", "categorical": "Categorical", "distribution": "Distribution", "kl": "kl_divergence",
    "normal": "Normal",
}  # fmt: skip
globals().update({file: file_of(__name__, file, {name: globals()[name]}) for file, name in _FILES.items()})


def __getattr__(name: str) -> object:
    raise AttributeError(f"distributions has no {name!r}; there are {', '.join(__all__)}")
