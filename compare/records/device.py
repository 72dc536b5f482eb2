"""Where a framework computes: on the CPU, or on a GPU, whose name goes into the environment of each record."""

from __future__ import annotations

from typing import Literal, get_args

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

_gpus: list[str] = []


def note(gpu: str) -> None:
    """Remember that this process computes on that GPU."""
    _gpus[:] = [gpu]


def noted() -> str | None:
    """The GPU that this process computes on; None for the CPU."""
    return _gpus[-1] if _gpus else None
