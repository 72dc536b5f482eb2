"""`torch.distributions`: the few that small programs draw actions and noise from."""

from __future__ import annotations

import math
from typing import Any

from dynamic import random
from dynamic.tensor import Tensor
from graphs.torch import functions

__all__ = ["Bernoulli", "Categorical", "Normal"]


class Categorical:
    """Integers from 0 on, by their probabilities or logits along the last axis."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        if (probs is None) is (logits is None):
            raise ValueError("Categorical takes probs or logits, and not both")
        known = functions.log(probs / probs.sum(-1, True)) if logits is None else logits
        self.logits = known - functions.logsumexp(known, -1, True)
        self.probs = functions.softmax(self.logits, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Integers of the shape `sample_shape`, and then of the axes before the last."""
        rows, shape = self.probs.detach(), tuple(sample_shape)
        flat = rows.reshape(-1, rows.shape[-1])
        drawn = random.multinomial(flat, max(1, math.prod(shape)), replacement=True)
        return drawn.t().reshape(*shape, *rows.shape[:-1])

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each integer."""
        index = value.long().unsqueeze(-1)
        logits = self.logits.expand(*index.shape[:-1], self.logits.shape[-1])
        return functions.gather(logits, -1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        """The mean of the logarithm of the probability, less than 0, turned."""
        return -functions.sum(self.logits * self.probs, -1)


class Normal:
    """Normal numbers of a mean and a standard deviation."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = loc, scale
        self._shape = functions.broadcast_shapes(*(getattr(value, "shape", ()) for value in (loc, scale)))

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers with a gradient in mean and deviation."""
        return self.loc + self.scale * random.randn(*sample_shape, *self._shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers without a gradient."""
        return self.rsample(sample_shape).detach()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        scale = self.scale if isinstance(self.scale, Tensor) else Tensor([self.scale]).reshape(())
        return -((value - self.loc) ** 2) / (2 * scale**2) - functions.log(scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        """The entropy of the density."""
        scale = self.scale if isinstance(self.scale, Tensor) else Tensor([self.scale]).reshape(())
        return 0.5 + 0.5 * math.log(2 * math.pi) + functions.log(scale)


class Bernoulli:
    """1 with a probability, and 0 otherwise."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        if (probs is None) is (logits is None):
            raise ValueError("Bernoulli takes probs or logits, and not both")
        self.probs = functions.sigmoid(logits) if probs is None else probs
        self.logits = functions.logit(probs) if logits is None else logits

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Zeros and ones."""
        return random.bernoulli(self.probs.detach().expand(*sample_shape, *self.probs.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each."""
        from graphs import ops

        return -ops.binary_cross_entropy_with_logits(self.logits, value, reduction="none")
