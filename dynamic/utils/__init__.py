"""What PyTorch has under `torch.utils`: data, and checkpoints."""

from dynamic.paths import submodule
from dynamic.utils import checkpoint, data

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> object:
    return submodule(__name__, name)
