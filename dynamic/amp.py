"""PyTorch's path `torch.amp`: see `dynamic/pytorch/amp.py`."""

from dynamic.pytorch.amp import *  # noqa: F403
from dynamic.pytorch.amp import __all__  # noqa: F401
