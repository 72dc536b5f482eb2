"""What PyTorch has under `torch.utils`: data, and checkpoints."""

from dynamic.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
