"""What PyTorch has under `torch.utils`: data, and checkpoints."""

from dynamic.paths import submodule
from dynamic.utils import data

__all__ = ["data"]


def __getattr__(name: str) -> object:
    return submodule(__name__, name)
