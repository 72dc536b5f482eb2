"""The conversion that runs: whose functions it rewrites, what it has to tell of them, and what its trace knows.

What a trace knows begins and ends with it. It is kept in one object, which only the conversion holds. Each file of this
folder that has something to remember declares a part, a class whose fields say what, and asks `part` for that of the
trace that runs. docs/convert.md lists them.

What a class of the user's does when Python calls its methods by itself.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Collection, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

from graphs.blocks import Block, Table, enter, innermost
from graphs.errors import is_internal, user_frame
from static.trace.symbol import Symbol

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
    """One trace of a converted function; functions of the packages `own` are the user's wherever they are installed.

    With `max_rounds` a loop that only the run ends is a scan of so many rounds. A trace that begins inside another
    one has a conversion, and so a state, of its own.
    """

    def __init__(self, own: Collection[str], max_rounds: int | None = None) -> None:
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


def packages(f: Any) -> set[str]:
    """The packages that a function belongs to: those that it and each function inside it name, and have their text in.

    A wrapper names the module of what it wraps, and its text is of the library that wraps. Who asks for the function
    to be converted asks for all of it.
    """
    names = set[str]()
    while f is not None:
        space = getattr(getattr(f, "__func__", f), "__globals__", {})
        names |= {_top(getattr(f, "__module__", None)), _package_in(space)}
        f = getattr(f, "func", None) if isinstance(f, functools.partial) else getattr(f, "__wrapped__", None)
    return names - {"", *sys.stdlib_module_names}


def _package_in(space: Mapping[str, Any]) -> str:
    """The package of a module by its globals; of one that `python -m` runs it is not `__main__`."""
    return _top(space.get("__package__") or space.get("__name__"))


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]


def is_the_users(f: FunctionType) -> bool:
    """Whether a function is the user's: not of the engines, of Python, or of an installed library."""
    file = f.__code__.co_filename
    return not is_internal(file) and not _is_of_a_library(file, f.__globals__)


def _is_of_a_library(file: str, space: Mapping[str, Any]) -> bool:
    """Whether a file with these globals is Python's or an installed one, and of no package that is converted."""
    if not file.startswith(_PYTHON) and not any(name in file for name in _INSTALLED):
        return False
    active = running()
    return active is None or _package_in(space) not in active.own


def is_raised_outside(error: Exception, caller: str) -> bool:
    """Whether a library has raised an error, or what is not written in Python and was called in this file of ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    return code.co_filename == caller or _is_of_a_library(code.co_filename, trace.tb_frame.f_globals)


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


def unconverted_reason() -> str:
    """Why the user's code that runs now is not converted, and what to do about it; empty if nothing is."""
    active, frame = running(), user_frame()
    if active is None or frame is None:
        return ""
    code = frame.f_code
    if _is_of_a_library(code.co_filename, frame.f_globals):
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


_MADE_AT_RUN_TIME = 512  # the flag of a class made by a class statement


class Missing:
    """Stands for what a class does not have."""


def class_attribute(kind: type, name: str) -> Any:
    """What a class or one of its bases holds under a name, as it stands there; Missing where none does."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return Missing


def is_of_a_class_statement(kind: type) -> bool:
    """Whether a class was made at run time: no other one has methods in Python."""
    return not issubclass(kind, Symbol) and kind.__flags__ & _MADE_AT_RUN_TIME != 0


def special(value: Any, name: str) -> FunctionType | None:
    """The method of the user's that Python calls by itself for an object, if its class has one."""
    kind = type(value)
    return users(class_attribute(kind, name)) if is_of_a_class_statement(kind) else None


def users(method: Any) -> FunctionType | None:
    """A function of the user's, else None."""
    method = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    return method if isinstance(method, FunctionType) and is_the_users(method) else None
