"""PyTorch's path `torch.special`: see `graphs/frontends/torch/special.py`."""

from graphs.frontends.torch.special import *  # noqa: F403
from graphs.frontends.torch.special import __all__, __getattr__  # noqa: F401  (the second says what is not there)
