"""Invertible functions with the determinants of their derivatives, and the distributions of what they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamic import random
from dynamic.distributions.counts import BinaryDistribution, OneHotCategorical
from dynamic.distributions.distribution import Distribution, Independent, broadcast_all, constraints, sum_last
from dynamic.distributions.families import Normal
from graphs import ops
from graphs.frontends.torch import functions

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "LogNormal", "PowerTransform",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "SigmoidTransform", "SoftplusTransform", "TanhTransform",
    "Transform", "TransformedDistribution", "identity_transform",
]  # fmt: skip


class Transform:
    """An invertible function: define `_call`, `_inverse` and `log_abs_det_jacobian`.

    `event_dim` is the number of axes that belong together. With `cache_size=1` the inverse of the last result is the
    value that it was made from.
    """

    bijective = True
    event_dim = 0
    sign = 1

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = None, None

    def __call__(self, x: Any) -> Any:
        """The result for x."""
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        if self._cache_size:
            self._last = x, y
        return x

    @property
    def inv(self) -> Any:
        """The function that goes back."""
        return _Inverse(self)

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no _call")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no _inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the absolute determinant of the derivative at x, whose result is y."""
        raise NotImplementedError(f"{type(self).__name__} defines no log_abs_det_jacobian")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform: Any) -> None:
        super().__init__()
        self._of, self.event_dim = transform, transform.event_dim

    @property
    def inv(self) -> Any:
        """The function itself."""
        return self._of

    def __call__(self, x: Any) -> Any:
        return self._of._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Minus that of the function."""
        return -self._of.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """Functions one after another."""

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in parts), default=0)

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of those of the functions."""
        total: Any = 0
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return total if self.parts else 0 * sum_last(x, self.event_dim)


class IndependentTransform(Transform):
    """A function whose last axes belong together."""

    def __init__(self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self._axes = base_transform, reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + reinterpreted_batch_ndims

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum over these axes."""
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self._axes)


class AffineTransform(Transform):
    """`loc + scale * x`."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:  # noqa: ARG002  (of all transforms)
        """The logarithm of the absolute scale, for each element or summed over the event."""
        scale, like = broadcast_all(self.scale, x)
        return sum_last(functions.log(functions.abs(scale)) + 0 * like.detach(), self.event_dim)


class ExpTransform(Transform):
    """`exp(x)`."""

    def _call(self, x: Any) -> Any:
        return functions.exp(x)

    def _inverse(self, y: Any) -> Any:
        return functions.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:  # noqa: ARG002  (of all transforms)
        """x."""
        return x


class PowerTransform(Transform):
    """`x ** exponent`, of positive numbers."""

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """`log |exponent * y / x|`."""
        return functions.log(functions.abs(self.exponent * y / x))


class SigmoidTransform(Transform):
    """`1 / (1 + exp(-x))`, kept inside of 0 and 1."""

    def _call(self, x: Any) -> Any:
        limits = np.finfo(x.dtype)
        return functions.clamp(functions.sigmoid(x), float(limits.tiny), 1 - float(limits.eps))

    def _inverse(self, y: Any) -> Any:
        limits = np.finfo(y.dtype)
        inside = functions.clamp(y, float(limits.tiny), 1 - float(limits.eps))
        return functions.log(inside) - functions.log1p(-inside)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:  # noqa: ARG002  (of all transforms)
        """The logarithm of the sigmoid's slope."""
        return -ops.softplus(-x) - ops.softplus(x)


class SoftplusTransform(Transform):
    """`log(1 + exp(x))`."""

    def _call(self, x: Any) -> Any:
        return ops.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return functions.log(-functions.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:  # noqa: ARG002  (of all transforms)
        """The logarithm of the sigmoid."""
        return -ops.softplus(-x)


class TanhTransform(Transform):
    """`tanh(x)`."""

    def _call(self, x: Any) -> Any:
        return functions.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return functions.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:  # noqa: ARG002  (of all transforms)
        """`log(1 - tanh(x) ** 2)`, written so that large x keep their digits."""
        return 2 * (math.log(2) - x - ops.softplus(-2 * x))


identity_transform = ComposeTransform([])


# Distributions --------------------------------------------------------------------------------------------------------


class TransformedDistribution(Distribution):
    """What one function, or several, make of the draws of a distribution."""

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        chain = ComposeTransform(self.transforms)
        shape, events = (
            base_distribution.batch_shape + base_distribution.event_shape,
            len(base_distribution.event_shape),
        )
        for part in self.transforms:  # of which some may broadcast
            held: list[Any] = [vars(part).get("loc"), vars(part).get("scale")]
            sizes = [value.shape for value in held if hasattr(value, "shape")]
            shape = functions.broadcast_shapes(shape, *sizes)
        if shape != base_distribution.batch_shape + base_distribution.event_shape:
            base_distribution = base_distribution.expand(shape[: len(shape) - events])
        if chain.event_dim > events:
            base_distribution = Independent(base_distribution, chain.event_dim - events)
        self.base_dist = base_distribution
        split = len(shape) - max(chain.event_dim, events)
        super().__init__(shape[:split], shape[split:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _through(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw without a gradient."""
        return self._through(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw with a gradient."""
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The density of what the value was made from, by how the functions stretch there."""
        total: Any = 0
        for transform in reversed(self.transforms):
            x = transform._inv_call(value)
            stretch = transform.log_abs_det_jacobian(x, value)
            total = total - sum_last(stretch, len(self.event_shape) - transform.event_dim)
            value = x
        inner = self.base_dist.log_prob(value)
        return total + sum_last(inner, len(self.event_shape) - len(self.base_dist.event_shape))

    def cdf(self, value: Any) -> Any:
        """The probability of a number of at most `value`, where the functions rise."""
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self.base_dist.cdf(value)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions, repeated to a larger batch."""
        more = len(self.event_shape) - len(self.base_dist.event_shape)
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:more]))
        return TransformedDistribution(base, self.transforms)


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normal."""

    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: functions.exp(self.loc + self.scale**2 / 2))
    mode = property(lambda self: functions.exp(self.loc - self.scale**2))
    variance = property(lambda self: functions.expm1(self.scale**2) * functions.exp(2 * self.loc + self.scale**2))

    def entropy(self) -> Any:
        """The entropy of the density."""
        return self.base_dist.entropy() + self.loc


class _RelaxedLogits(BinaryDistribution):
    has_rsample = True
    temperature: Any

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = random.rand(*self._extended_shape(sample_shape), dtype=self.logits.dtype)
        eps = float(np.finfo(drawn.dtype).eps)
        drawn = functions.clamp(drawn, eps, 1 - eps)
        return (functions.log(drawn) - functions.log1p(-drawn) + self.logits) / self.temperature

    def _log_prob(self, value: Any) -> Any:
        off = self.logits - value * self.temperature
        return functions.log(self.temperature) + off - 2 * ops.softplus(off)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1, near to both at a low temperature (Maddison, Mnih and Teh, 2017)."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = _RelaxedLogits(probs, logits, validate_args)
        (base.temperature,) = broadcast_all(temperature)
        super().__init__(base, SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class _RelaxedLogs(OneHotCategorical):
    support = None
    has_rsample = True
    temperature: Any

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = random.rand(*self._extended_shape(sample_shape), dtype=self.logits.dtype)
        eps = float(np.finfo(drawn.dtype).eps)
        gumbels = -functions.log(-functions.log(functions.clamp(drawn, eps, 1 - eps)))
        scores = (self.logits + gumbels) / self.temperature
        return scores - functions.logsumexp(scores, -1, True)

    def sample(self, sample_shape: Any = ()) -> Any:
        return Distribution.sample(self, sample_shape)

    def _log_prob(self, value: Any) -> Any:
        count = self.event_shape[0]
        score = self.logits - value * self.temperature
        shares = (score - functions.logsumexp(score, -1, True)).sum(-1)
        return shares + math.lgamma(count) + (count - 1) * functions.log(self.temperature)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of 1, near to one 1 among 0 at a low temperature."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = _RelaxedLogs(probs, logits, validate_args)
        (base.temperature,) = broadcast_all(temperature)
        super().__init__(base, ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
