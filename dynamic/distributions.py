"""PyTorch's path `torch.distributions`: see `dynamic/pytorch/distributions.py`.

PyTorch's files, as in `from dynamic.distributions.normal import Normal`, are modules made in `sys.modules`.
"""

from dynamic.paths import file_of
from dynamic.pytorch import distributions as _distributions
from dynamic.pytorch.distributions import *  # noqa: F403
from dynamic.pytorch.distributions import __all__

__path__: list[str] = []  # a package: who lets `torch` mean `dynamic` finds its files by their names

_FILES = {
    "bernoulli": "Bernoulli", "categorical": "Categorical", "distribution": "Distribution", "kl": "kl_divergence",
    "normal": "Normal",
}  # fmt: skip
globals().update(
    {file: file_of(__name__, file, {name: getattr(_distributions, name)}) for file, name in _FILES.items()}
)


def __getattr__(name: str) -> object:
    raise AttributeError(f"distributions has no {name!r}; there are {', '.join(__all__)}")
