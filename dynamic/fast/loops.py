"""The compiled module: `dynamic/loops/loops.h` says what is in it. Raises ImportError where it was not built.

It has its functions and classes once `connect` has lent it what it works with: they are looked up when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dynamic._native as _native

watchers: list[Callable[[Any], None]] = []
"""Called with every array that the compiled tape makes."""


def __getattr__(name: str) -> Any:
    return getattr(_native, name)


def binder(general: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter for tensors, which calls `general` where anything is unusual."""
    return _native.binder(general)
