"""Functions that layers are made of, with PyTorch's names and meanings: `import dynamic.nn.functional as F`."""

# ruff: noqa: F403
from dynamic.nn.functional import activations, layers, losses, normalization, windows
from dynamic.nn.functional.activations import *
from dynamic.nn.functional.layers import *
from dynamic.nn.functional.losses import *
from dynamic.nn.functional.normalization import *
from dynamic.nn.functional.windows import *

__all__ = [  # noqa: PLE0604  (lists of names)
    *activations.__all__, *layers.__all__, *losses.__all__, *normalization.__all__, *windows.__all__,
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise AttributeError(f"nn.functional has no {name!r}; docs/torch.md lists what is there")
