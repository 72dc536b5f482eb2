"""The compiled module: `dynamic/loops/loops.h` lists its contents. Raises ImportError where it was not built.

Some of its functions and classes exist only after `connect`, so attributes are looked up at each use.
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
    """The compiled interpreter for tensors, which calls `general` for unusual cases."""
    return _native.binder(general)
