"""PyTorch's path `torch.cuda`: see `dynamic/torch/cuda.py`."""

from dynamic.torch.cuda import *  # noqa: F403
from dynamic.torch.cuda import __all__  # noqa: F401
