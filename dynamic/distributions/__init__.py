"""`torch.distributions`: what programs draw actions and noise from, and take log probabilities of.

PyTorch's files, as in `from dynamic.distributions.normal import Normal`, are modules made in `sys.modules`.
"""

from __future__ import annotations

from dynamic.distributions import counts, families, kl, transforms
from dynamic.distributions.counts import *  # noqa: F403
from dynamic.distributions.distribution import Distribution, Independent, constraints
from dynamic.distributions.families import *  # noqa: F403
from dynamic.distributions.kl import kl_divergence, register_kl
from dynamic.distributions.transforms import *  # noqa: F403
from dynamic.paths import file_of

__all__ = [  # noqa: PLE0604  (lists of names)
    "Distribution", "Independent", "constraints", "kl", "kl_divergence", "register_kl", "transforms",
    *counts.__all__, *families.__all__, *transforms.__all__,
]  # fmt: skip

_FILES = {
    "bernoulli": "Bernoulli", "beta": "Beta", "binomial": "Binomial", "categorical": "Categorical", "chi2": "Chi2",
    "dirichlet": "Dirichlet", "exponential": "Exponential", "gamma": "Gamma", "geometric": "Geometric",
    "independent": "Independent", "laplace": "Laplace", "log_normal": "LogNormal",
    "mixture_same_family": "MixtureSameFamily", "multivariate_normal": "MultivariateNormal", "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli", "relaxed_categorical": "RelaxedOneHotCategorical",
    "transformed_distribution": "TransformedDistribution", "uniform": "Uniform",
}  # fmt: skip
globals().update(
    {file: file_of(__name__, file, {name: globals()[name] for name in names.split()}) for file, names in _FILES.items()}
)
file_of(__name__, "constraints", vars(constraints))


def __getattr__(name: str) -> object:
    raise AttributeError(f"distributions has no {name!r}; there are {', '.join(__all__)}")
