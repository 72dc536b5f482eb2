"""The compiled inner loops of the tape, where they were built: `dynamic/loops/loops.h` says what each of them does.

They are built at installation if there is a C compiler, and nothing else changes with them: every one has its Python,
which runs where they are missing, and with `GRAPHDUEL_TAPE=python` in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any


def _load() -> ModuleType | None:
    if os.environ.get("GRAPHDUEL_TAPE") == "python":
        return None
    try:
        from dynamic import _native
    except ImportError:
        return None
    return _native


loops: ModuleType | None = _load()
watchers: list[Callable[[Any], None]] = []
"""Who is told of every array that the compiled loops make."""


def is_compiled() -> bool:
    """Whether the inner loops of the tape are compiled."""
    return loops is not None
