"""What distributions have in common: shapes, draws, and checks of parameters and values. `Independent` is here too."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dynamic import random
from dynamic.creation import tensor
from dynamic.grad_mode import no_grad
from graphs.errors import GraphError, locate
from graphs.frontends.torch import functions
from graphs.frontends.torch.words import as_dtype
from graphs.surface import Surface

__all__ = ["Constraint", "Distribution", "Independent", "broadcast_all", "constraints", "logits_or_probs", "sum_last"]


class Constraint(NamedTuple):
    """What values are allowed: a test of an array, element by element or along its last axes."""

    says: str
    test: Callable[[Any], Any]
    event_dim: int = 0
    is_discrete: bool = False

    def check(self, value: Any) -> Any:
        """Whether each value is allowed, as a tensor of bools."""
        return tensor(np.asarray(self.test(value.detach().numpy())))


def _is_positive_definite(matrix: Any) -> Any:
    return np.linalg.eigvalsh(matrix).min(-1) > 0


_WHOLE = {"is_discrete": True}
constraints = SimpleNamespace(
    real=Constraint("real", lambda x: ~np.isnan(x)),
    real_vector=Constraint("real vector", lambda x: ~np.isnan(x).any(-1), 1),
    boolean=Constraint("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True),
    positive=Constraint("above 0", lambda x: x > 0),
    nonnegative=Constraint("0 or more", lambda x: x >= 0),
    unit_interval=Constraint("from 0 to 1", lambda x: (x >= 0) & (x <= 1)),
    nonnegative_integer=Constraint("an int from 0 on", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True),
    simplex=Constraint("shares of 1", lambda x: (x >= 0).all(-1) & (np.abs(x.sum(-1) - 1) < 1e-6), 1),
    one_hot=Constraint("one 1 among 0", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True),
    lower_cholesky=Constraint("lower triangular", lambda x: (np.triu(x, 1) == 0).all((-1, -2)), 2),
    positive_definite=Constraint("positive definite", _is_positive_definite, 2),
    Constraint=Constraint,
)


def broadcast_all(*values: Any) -> list[Any]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype of the tensors."""
    tensors = [value for value in values if isinstance(value, Surface)]
    dtype = tensors[0].dtype if tensors else as_dtype(None)
    held = [value if isinstance(value, Surface) else tensor(value, dtype=dtype) for value in values]
    return list(functions.broadcast_tensors(*held))


def sum_last(x: Any, count: int) -> Any:
    """The sum over the last `count` axes."""
    return x.sum(tuple(range(-count, 0))) if count else x


def logits_or_probs(name: str, probs: Any, logits: Any) -> None:
    """Raise ValueError unless one of both is given."""
    if (probs is None) is (logits is None):
        raise ValueError(f"{name} takes probs or logits, and not both")


class Distribution:
    """Base of distributions: the shape of a batch of them, and that of one event.

    A draw has the shape `sample_shape + batch_shape + event_shape`. `arg_constraints` names the tensors that a class
    is made of, in the order of its axes; `expand` and the checks of values read it.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    mean: Any
    variance: Any

    def __init__(
        self, batch_shape: tuple[int, ...] = (), event_shape: tuple[int, ...] = (), validate_args: bool | None = None
    ) -> None:
        """Raises ValueError for parameters that are not allowed, unless `validate_args` is False."""
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self):
                    self._check(name, vars(self)[name], constraint)

    def _check(self, name: str, value: Any, constraint: Constraint) -> None:
        held = random._array_or_value(value) if isinstance(value, Surface) else None
        if random._is_known(held) and not np.all(constraint.test(held)):  # what only a run knows is not checked
            raise ValueError(f"{type(self).__name__}: {name} is {constraint.says}, and not {value.detach()}")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where a distribution does not say so."""
        Distribution._validate_args = value

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return functions.sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:  # noqa: ARG002
        """A draw with a gradient in the parameters. Raises GraphError where there is none."""
        kind = type(self).__name__
        raise GraphError(locate(f"{kind}.rsample: draws of a {kind} have no gradient; use sample and log_prob"))

    def sample_n(self, n: int) -> Any:
        """`n` draws."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability, or of the density, of each value. Raises ValueError for no such value."""
        if self._validate_args and self.support is not None:
            self._check("a value", value, self.support)
        return self._log_prob(value)

    def _log_prob(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of a number of at most `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def entropy(self) -> Any:
        """The entropy of each in the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return functions.exp(self.entropy())

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distributions, repeated to a larger batch."""
        made = copy.copy(self)
        made.batch_shape = tuple(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in vars(self):
                value = vars(self)[name]
                setattr(made, name, value.expand(*made.batch_shape, *value.shape[value.ndim - constraint.event_dim :]))
        return made

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        held = [
            f"{n}: {v if v.numel() == 1 else v.shape}"
            for n in self.arg_constraints
            if (v := vars(self).get(n)) is not None
        ]
        return f"{type(self).__name__}({', '.join(held) or f'batch_shape={self.batch_shape}'})"


class Independent(Distribution):
    """A distribution whose last axes of the batch are axes of one event: their log probabilities are summed."""

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        """Raises ValueError for more axes than the batch has."""
        batch, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(batch):
            raise ValueError(f"Independent takes at most the {len(batch)} axes of the batch, not {count}")
        split = len(batch) - count
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        super().__init__(batch[:split], batch[split:] + base_distribution.event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw of the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw of the base, with a gradient."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The sum of the base's over the axes of the event."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The sum of the base's."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        """The same distributions, repeated to a larger batch."""
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims, False)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


LOG_2PI = math.log(2 * math.pi)
