"""PyTorch's path `torch.backends`: see `dynamic/torch/backends.py`."""

from dynamic.torch.backends import *  # noqa: F403
from dynamic.torch.backends import __all__  # noqa: F401
