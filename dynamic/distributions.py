"""PyTorch's path `torch.distributions`: see `dynamic/torch/distributions.py`."""

from dynamic.torch.distributions import *  # noqa: F403
from dynamic.torch.distributions import __all__  # noqa: F401
