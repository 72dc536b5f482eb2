"""The compiled part of the engine, where it was built: `dynamic/loops/loops.h` says what it does.

It is built at installation if there is a C compiler. The inner loops of the tape change nothing but time: every one has
its Python, which runs where they are missing, and with `GRAPHDUEL_TAPE=python` in the environment. The pool is there
with it alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any


def _load() -> ModuleType | None:
    try:
        from dynamic import _native
    except ImportError:
        return None
    return _native


module: ModuleType | None = _load()
loops: ModuleType | None = None if os.environ.get("GRAPHDUEL_TAPE") == "python" else module
watchers: list[Callable[[Any], None]] = []
"""Who is told of every array that the compiled loops make."""


def is_compiled() -> bool:
    """Whether the inner loops of the tape are compiled."""
    return loops is not None
