"""PyTorch's path `torch.amp`: see `dynamic/torch/amp.py`."""

from dynamic.torch.amp import *  # noqa: F403
from dynamic.torch.amp import __all__  # noqa: F401
