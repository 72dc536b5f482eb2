"""What PyTorch has under `torch.utils`: data."""

from dynamic.utils import data

__all__ = ["data"]
