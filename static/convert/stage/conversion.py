"""The conversion that runs: whose functions it rewrites, its report on them, and the state of its trace.

The state of a trace begins and ends with it. It is kept in one object, which only the conversion holds. Each file of
this folder that has something to remember declares a part (a class whose fields say what it remembers) and asks `part`
for the part of the running trace. docs/convert.md lists the parts.

The last functions find methods of the user's classes that Python calls implicitly.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Collection, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

from graphs.blocks import Block, Table, enter, innermost
from graphs.errors import is_installed, is_internal, is_of_python, user_frame
from static.trace.symbol import Symbol

Part = TypeVar("Part")


class TraceState:
    """The state of one trace, with a part for each kind of knowledge.

    A part is made empty when it is first asked for.
    """

    def __init__(self) -> None:
        self._parts: dict[type[Any], Any] = {}

    def part(self, kind: type[Part]) -> Part:
        """Return the part of this class."""
        if kind not in self._parts:
            self._parts[kind] = kind()
        return self._parts[kind]


class MetFunction(NamedTuple):
    """A function that was called: its name, its place, and why it was not converted ("" where it was)."""

    name: str
    place: str
    reason: str = ""


class Conversion(Block):
    """One trace of a converted function; functions of the packages in `own` are the user's, even if installed.

    With `max_rounds` a loop that only the run ends becomes a scan of that many rounds. A trace that begins inside
    another one has a conversion, and so a state, of its own.
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
    """Return the conversion that runs in this thread, or None."""
    return innermost(_thread.running, None)


def part(kind: type[Part]) -> Part:
    """Return the running trace's state of one kind; outside any trace an empty one, which nobody keeps."""
    conversion = running()
    return kind() if conversion is None else conversion.state.part(kind)


def packages(f: Any) -> set[str]:
    """Return the packages of a function and of the functions that it wraps, by module name and by source.

    A wrapper has the module name of the function that it wraps, and its source is the wrapping library's. A user who
    asks for a function to be converted asks for all of it.
    """
    names = set[str]()
    while f is not None:
        space = getattr(getattr(f, "__func__", f), "__globals__", {})
        names |= {_top(getattr(f, "__module__", None)), _package_in(space)}
        f = getattr(f, "func", None) if isinstance(f, functools.partial) else getattr(f, "__wrapped__", None)
    return names - {"", *sys.stdlib_module_names}


def _package_in(space: Mapping[str, Any]) -> str:
    """Return the package of a module by its globals; for one run by `python -m` it is not `__main__`."""
    return _top(space.get("__package__") or space.get("__name__"))


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]


def is_the_users(f: FunctionType) -> bool:
    """Whether a function is the user's: not of the engines, of Python, or of an installed library."""
    file = f.__code__.co_filename
    return not is_internal(file) and not _is_of_a_library(file, f.__globals__)


def _is_of_a_library(file: str, space: Mapping[str, Any]) -> bool:
    """Whether a file with these globals is Python's or installed, and of no package that is converted."""
    if not is_of_python(file) and not is_installed(file):
        return False
    active = running()
    return active is None or _package_in(space) not in active.own


def is_raised_outside(error: Exception, caller: str) -> bool:
    """Whether a library, or a function not written in Python that this file of ours called, has raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    return code.co_filename == caller or _is_of_a_library(code.co_filename, trace.tb_frame.f_globals)


def note(f: FunctionType, reason: str = "") -> None:
    """Record that a function is converted, or why it is not."""
    active = running()
    if active is not None:
        met = MetFunction(f.__qualname__, _place(f.__code__), reason)
        active.functions[met.name, met.place] = met


def _place(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def why_not(f: FunctionType) -> str:
    """Return why a function that was called is not converted, and the remedy; "" where it is, or was not called."""
    active = running()
    met = active and active.functions.get((f.__qualname__, _place(f.__code__)))
    return met.reason if met else ""


def unconverted_reason() -> str:
    """Return why the user's code that runs now is not converted, and the remedy; "" if no conversion runs."""
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
    """Stands for an attribute that a class does not have."""


def class_attribute(kind: type, name: str) -> Any:
    """Return the attribute of a class or its bases as it is stored, without descriptors.

    Missing where there is none.
    """
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return Missing


def is_of_a_class_statement(kind: type) -> bool:
    """Whether a class was made by a class statement: only such classes have methods in Python."""
    return not issubclass(kind, Symbol) and kind.__flags__ & _MADE_AT_RUN_TIME != 0


def special(value: Any, name: str) -> FunctionType | None:
    """Return the user's method that Python calls implicitly for an object, if its class has one, else None."""
    kind = type(value)
    return users(class_attribute(kind, name)) if is_of_a_class_statement(kind) else None


def users(method: Any) -> FunctionType | None:
    """Return a method's function if it is the user's, else None."""
    method = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    return method if isinstance(method, FunctionType) and is_the_users(method) else None
