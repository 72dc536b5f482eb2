"""PyTorch's path `torch.distributions`: see `dynamic/pytorch/distributions.py`.

Its files, as in `from dynamic.distributions.normal import Normal`, are not there: each is a module in `sys.modules`.
"""

import sys
from types import ModuleType

from dynamic.pytorch import distributions as _distributions
from dynamic.pytorch.distributions import *  # noqa: F403
from dynamic.pytorch.distributions import __all__

__path__: list[str] = []  # a package: who lets `torch` mean `dynamic` finds its files by their names

_FILES = {
    "bernoulli": "Bernoulli", "categorical": "Categorical", "distribution": "Distribution", "kl": "kl_divergence",
    "normal": "Normal",
}  # fmt: skip
for _file, _name in _FILES.items():
    _module = ModuleType(f"{__name__}.{_file}", f"What PyTorch has in distributions/{_file}.py.")
    vars(_module)[_name] = getattr(_distributions, _name)
    globals()[_file] = sys.modules[_module.__name__] = _module


def __getattr__(name: str) -> object:
    raise AttributeError(f"distributions has no {name!r}; there are {', '.join(__all__)}")
