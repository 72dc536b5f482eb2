"""Switches of how PyTorch computes, which change nothing here, and its assertion."""

from __future__ import annotations

from typing import Any

__all__ = [
    "_assert", "get_float32_matmul_precision", "get_num_threads", "set_float32_matmul_precision", "set_num_threads",
    "use_deterministic_algorithms",
]  # fmt: skip


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition is true."""
    if not condition:
        raise AssertionError(message)


def set_num_threads(num: int) -> None:
    """Nothing: ops run in this thread, and products in those of NumPy's BLAS."""


def get_num_threads() -> int:
    """1: ops run in this thread."""
    return 1


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products are in full precision."""


def get_float32_matmul_precision() -> str:
    """'highest': products are in full precision."""
    return "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing: all algorithms are deterministic."""
