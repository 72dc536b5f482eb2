"""The conversion that runs: whose functions it rewrites, and what it has to tell of them."""

from __future__ import annotations

import os
import threading
from types import FunctionType
from typing import Any, NamedTuple

from graphs.blocks import Block, Table, enter, innermost
from graphs.errors import is_internal

_PYTHON = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  (as the code of Python's library names its files)
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


class MetFunction(NamedTuple):
    """A function that was called: its name, its place, and why it was not converted (empty where it was)."""

    name: str
    place: str
    reason: str = ""


class Conversion(Block):
    """One trace of a converted function; functions of the package `own` are the user's wherever they are installed.

    With `max_rounds` a loop that only the run ends is a scan of so many rounds.
    """

    def __init__(self, own: str, max_rounds: int | None = None) -> None:
        self.own, self.max_rounds = own, max_rounds
        self.functions: dict[tuple[str, str], MetFunction] = {}

    def __enter__(self) -> None:
        enter(_thread.running, self.hold(), self)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.running: Table[Conversion | None] = {}


_thread = _Thread()


def running() -> Conversion | None:
    """The conversion of this thread, if any."""
    return innermost(_thread.running, None)


def package(f: Any) -> str:
    """The package that a function belongs to."""
    return (getattr(f, "__module__", None) or "").partition(".")[0]


def is_the_users(f: FunctionType) -> bool:
    """Whether a function is the user's: not of the engines, of Python, or of an installed library."""
    file = f.__code__.co_filename
    one = running()
    if is_internal(file):
        return False
    library = file.startswith(_PYTHON) or any(name in file for name in _INSTALLED)
    return not library or (one is not None and bool(one.own) and package(f) == one.own)


def note(f: FunctionType, reason: str = "") -> None:
    """Tell that a function is converted, or why not."""
    one = running()
    if one is not None:
        code = f.__code__
        found = MetFunction(f.__qualname__, f"{code.co_filename}:{code.co_firstlineno}", reason)
        one.functions[found[:2]] = found
