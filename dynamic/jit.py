"""PyTorch's path `torch.jit`: see `dynamic/pytorch/jit.py`."""

from dynamic.pytorch.jit import *  # noqa: F403
from dynamic.pytorch.jit import __all__, __getattr__, _overload_method  # noqa: F401
