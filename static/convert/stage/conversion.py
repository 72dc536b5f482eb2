"""The conversion that runs: whose functions it rewrites, what it has to tell of them, and what its trace knows.

What a trace knows begins and ends with it. It is kept in one object, which only the conversion holds. Each file of this
folder that has something to remember declares a part, a class whose fields say what, and asks `part` for that of the
trace that runs. docs/convert.md lists them.
"""

from __future__ import annotations

import inspect
import os
import threading
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

from graphs.blocks import Block, Table, enter, innermost
from graphs.errors import is_internal, user_frame

_PYTHON = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  (as the code of Python's library names its files)
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


Part = TypeVar("Part")


class TraceState:
    """All that one trace knows, a part for each kind of knowledge: made empty when it is first asked for."""

    def __init__(self) -> None:
        self._parts: dict[type[Any], Any] = {}

    def part(self, kind: type[Part]) -> Part:
        """The part of this class."""
        if kind not in self._parts:
            self._parts[kind] = kind()
        return self._parts[kind]


class MetFunction(NamedTuple):
    """A function that was called: its name, its place, and why it was not converted (empty where it was)."""

    name: str
    place: str
    reason: str = ""


class Conversion(Block):
    """One trace of a converted function; functions of the package `own` are the user's wherever they are installed.

    With `max_rounds` a loop that only the run ends is a scan of so many rounds. A trace that begins inside another
    one has a conversion, and so a state, of its own.
    """

    def __init__(self, own: str, max_rounds: int | None = None) -> None:
        self.own, self.max_rounds = own, max_rounds
        self.functions: dict[tuple[str, str], MetFunction] = {}
        self.state = TraceState()

    def __enter__(self) -> None:
        enter(_thread.running, self.hold(), self)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.running: Table[Conversion | None] = {}


_thread = _Thread()


def running() -> Conversion | None:
    """The conversion of this thread, if any."""
    return innermost(_thread.running, None)


def part(kind: type[Part]) -> Part:
    """What the trace that runs knows of one kind; outside any trace an empty one, which nobody keeps."""
    conversion = running()
    return kind() if conversion is None else conversion.state.part(kind)


def package(f: Any) -> str:
    """The package that a function belongs to."""
    return (getattr(f, "__module__", None) or "").partition(".")[0]


def is_the_users(f: FunctionType) -> bool:
    """Whether a function is the user's: not of the engines, of Python, or of an installed library."""
    file = f.__code__.co_filename
    active = running()
    if is_internal(file):
        return False
    return not _is_of_a_library(file) or (active is not None and bool(active.own) and _defined_in(f) == active.own)


def _is_of_a_library(file: str) -> bool:
    return file.startswith(_PYTHON) or any(name in file for name in _INSTALLED)


def _defined_in(f: FunctionType) -> str:
    """The package whose text a function stands in: a wrapper of a library names the module of what it wraps."""
    return str(f.__globals__.get("__name__", "")).partition(".")[0]


def is_raised_outside(error: Exception, caller: str) -> bool:
    """Whether a library has raised an error, or what is not written in Python and was called in this file of ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = "" if trace is None else trace.tb_frame.f_code.co_filename
    return file == caller or _is_of_a_library(file)


def note(f: FunctionType, reason: str = "") -> None:
    """Tell that a function is converted, or why not."""
    active = running()
    if active is not None:
        met = MetFunction(f.__qualname__, _place(f.__code__), reason)
        active.functions[met.name, met.place] = met


def _place(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def why_not(f: FunctionType) -> str:
    """Why a function that was met is not converted, and what to do about it; empty where it is, or was not met."""
    active = running()
    met = active and active.functions.get((f.__qualname__, _place(f.__code__)))
    return met.reason if met else ""


def unconverted() -> str:
    """Why the user's code that runs now is not converted, and what to do about it; empty if nothing is."""
    active, frame = running(), user_frame()
    if active is None or frame is None:
        return ""
    code = frame.f_code
    if _is_of_a_library(code.co_filename):
        return f"{code.co_qualname} is a function of a library, which is not converted; write one of your own"
    if not code.co_flags & inspect.CO_NEWLOCALS:
        return "the body of a class is not converted; decide before it"
    reasons = {met.place: met for met in active.functions.values() if met.reason}
    if code.co_flags & inspect.CO_GENERATOR and _place(code) not in reasons:
        return "Python takes the items of this generator one by one; loop over it"
    while frame is not None:
        met = reasons.get(_place(frame.f_code))
        if met is not None:
            return f"{met.name} is not converted: {met.reason}"
        frame = frame.f_back
    return "Python itself asks for it here, and not a statement or an operator that is converted"
