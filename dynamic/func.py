"""PyTorch's path `torch.func`: see `dynamic/torch/func.py`."""

from dynamic.torch.func import *  # noqa: F403
from dynamic.torch.func import __all__  # noqa: F401
