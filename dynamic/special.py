"""PyTorch's path `torch.special`: see `graphs/torch/special.py`."""

from graphs.torch.special import *  # noqa: F403
from graphs.torch.special import __all__, __getattr__  # noqa: F401  (the second says what is not there)
