"""PyTorch's path `torch.distributions`: see `dynamic/pytorch/distributions.py`."""

from dynamic.pytorch.distributions import *  # noqa: F403
from dynamic.pytorch.distributions import __all__  # noqa: F401
