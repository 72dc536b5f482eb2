"""`torch.cuda` where there is no GPU: it says so."""

from __future__ import annotations

from typing import Any

from dynamic.random import manual_seed

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize",
]  # fmt: skip

manual_seed_all = manual_seed


def is_available() -> bool:
    """False: values are on the CPU."""
    return False


def device_count() -> int:
    """0: values are on the CPU."""
    return 0


def current_device() -> int:
    """Not supported: raises ValueError, as there is no GPU."""
    raise ValueError("there is no GPU; ask cuda.is_available() first")


def empty_cache() -> None:
    """Do nothing: there is no GPU whose memory is cached."""


def synchronize(device: Any = None) -> None:
    """Do nothing: every op is done when it returns."""
