"""PyTorch's path `torch.backends`: see `dynamic/pytorch/backends.py`."""

from dynamic.pytorch.backends import *  # noqa: F403
from dynamic.pytorch.backends import __all__  # noqa: F401
