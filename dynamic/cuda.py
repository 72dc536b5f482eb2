"""PyTorch's path `torch.cuda`: see `dynamic/pytorch/cuda.py`."""

from dynamic.pytorch.cuda import *  # noqa: F403
from dynamic.pytorch.cuda import __all__  # noqa: F401
