"""What code that is not converted does to the world: refused where the graph would not repeat it as Python does.

Under a test that only the run knows both sides are traced. So only what the journal knows may be changed there: what is
called besides the user's own functions must be known to change nothing else.
"""

from __future__ import annotations

import io
import queue
import random
import weakref
from array import array
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numpy as np

from static.convert.stage import conversion
from static.convert.stage.identity import check_called, parts
from static.convert.stage.places import MUTABLE, is_conditional, is_ours
from static.convert.stage.purity import is_harmless, is_of_the_engines, is_quiet, makes_quietly
from static.convert.stage.unknown import is_tensor, refuse

_CHANCE = ("random", "numpy.random", "secrets")
_CLOCKS = ("time", "datetime")
_COMPARING = ("index", "count", "remove")
_INERT = (isinstance, issubclass, type, callable)
_UNJOURNALED = (io.IOBase, array, memoryview, ContextVar, queue.Queue, weakref.WeakValueDictionary, weakref.WeakSet)


def check_call(f: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise ControlFlowError for a call of what is not converted, if the graph would not repeat what it changes."""
    owner = getattr(f, "__self__", None)
    _check_chance(f, owner)
    check_called(f, args)
    if isinstance(owner, (list, tuple, deque)) and f.__name__ in _COMPARING:
        check_read(owner)
    if is_of_the_engines(f):
        return
    if is_conditional():
        _check_harmless(f, owner, args, options)
    elif isinstance(owner, _UNJOURNALED) and not is_ours(owner) and not is_harmless(f):
        _refuse_lasting(owner)
    if not any(f is inert for inert in _INERT):
        for value in (*args, *options.values()):
            check_read(value)


def check_write(container: Any, key: Any = None) -> None:
    """Raise ControlFlowError for a write to an object that the journal does not know, unless it came to be here."""
    check_quiet(key)
    if not isinstance(container, MUTABLE) and not is_tensor(container):
        check_changing(container)


def check_changing(owner: Any) -> None:
    """Raise ControlFlowError for an object that changes as the journal cannot note, unless it came to be here."""
    if not is_ours(owner):
        _refuse_lasting(owner)


def check_read(value: Any) -> None:
    """Raise ControlFlowError for a value that Python may read where the graph would not repeat what that changes."""
    for part in parts((value.start, value.stop, value.step) if isinstance(value, slice) else value):
        check_quiet(part)


def check_quiet(value: Any) -> None:
    """Raise ControlFlowError for an object some of whose methods, which Python calls by itself, may write."""
    kind = type(value)
    if not is_quiet(kind) and (is_conditional() or not is_ours(value)):
        refuse(
            f"Python itself calls a method of {kind.__name__} here, which may write, and a graph does not repeat that; "
            "call the method by its name"
        )


def _draws(owner: Any) -> bool:
    """Whether an object draws chance; NumPy loads what draws when it is first asked for."""
    return isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random")


def _check_chance(f: Any, owner: Any) -> None:
    module = getattr(f, "__module__", None) or type(owner).__module__
    name = getattr(f, "__name__", f)
    if (module in _CHANCE or _draws(owner)) and not isinstance(f, type) and not is_ours(owner):
        refuse(
            f"{name}() draws chance outside of the graph, which would repeat one number for ever; draw with "
            "graphs.random and a key, or pass the numbers"
        )
    if f is open or f is input or module in _CLOCKS:
        refuse(f"{name}() gives another result in each call, and a graph repeats one for ever; pass it as an argument")


def _check_harmless(f: Any, owner: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    name = getattr(f, "__name__", type(f).__name__)
    if isinstance(owner, np.ndarray) and not is_harmless(f):
        refuse(f"an array is changed by {name}() where only the run knows whether that is reached")
    if options.get("out") is not None:
        refuse(f"{name}() writes to `out` where only the run knows whether that is reached; use its result")
    is_own = owner is not None and not isinstance(owner, type) and is_ours(owner)
    is_making = name == "__init__" and bool(args) and is_ours(args[0]) and makes_quietly(type(args[0]))
    if not is_own and not is_making and not is_harmless(f):
        reason = conversion.why_not(f) if isinstance(f, FunctionType) else ""
        if reason:
            refuse(f"{name}() is called where only the run knows whether that is reached, and not converted: {reason}")
        refuse(
            f"{name}() is called where only the run knows whether that is reached, and nothing tells what it changes; "
            "call it before the branch or loop"
        )


def _refuse_lasting(owner: Any) -> None:
    refuse(
        f"a {type(owner).__name__} changes where only the run knows whether that is reached, or lasts beyond the call; "
        "use a list, a dict or an attribute, or change it outside of the graph"
    )
