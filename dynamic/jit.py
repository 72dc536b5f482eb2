"""PyTorch's path `torch.jit`: see `dynamic/torch/jit.py`."""

from dynamic.torch.jit import *  # noqa: F403
from dynamic.torch.jit import __all__, __getattr__, _overload_method  # noqa: F401
