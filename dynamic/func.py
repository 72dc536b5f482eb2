"""PyTorch's path `torch.func`: see `dynamic/pytorch/func.py`."""

from dynamic.pytorch.func import *  # noqa: F403
from dynamic.pytorch.func import __all__  # noqa: F401
