"""The compiled module: `dynamic/loops/loops.h` says what is in it. Raises ImportError where it was not built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic._native import (
    Learned,
    Program,
    Record,
    Recorder,
    arguments,
    binder,
    close,
    collect,
    connect,
    follow,
    grouped,
    history,
    step,
    walk,
)

__all__ = [
    "Learned",
    "Program",
    "Record",
    "Recorder",
    "arguments",
    "binder",
    "close",
    "collect",
    "connect",
    "follow",
    "grouped",
    "history",
    "step",
    "walk",
    "watchers",
]

watchers: list[Callable[[Any], None]] = []
"""Called with every array that the compiled tape makes."""
