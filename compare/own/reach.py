"""What the code of a function can reach and change: the globals it names, what it closes over, what it is bound to.

Functions and classes of the user's that it names are followed, and modules of the user's by the attributes it names.
What has changed is found by fingerprints: that of a value is equal while the value is as it was.
"""

from __future__ import annotations

import inspect
import itertools
import os
import random
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

import dynamic
from compare.errors import is_library
from compare.run.start import PACKAGES
from graphs.errors import is_internal

_HERE = str(Path(__file__).resolve().parent.parent) + os.sep
_MISSING = object()
MOST = 10_000
"""Items of one container that are looked at; of a longer one, its length."""
DEEPEST = 8

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, range, slice, itertools.count)


@dataclass(frozen=True)
class Changeable:
    """Something that can be changed, by the name that a message calls it, and how to read it."""

    name: str
    read: Callable[[], Any]


def places(f: Any) -> list[Changeable]:
    """All that the code of `f`, and of the user's functions that it names, can reach by name."""
    reached = [place for place, _ in _reached(f)]
    if not isinstance(f, FunctionType):
        own = Changeable("the object that it is a method of", lambda: fingerprint(getattr(f, "__self__", f)))
        reached.insert(0, own)
    return reached


def values(f: Any) -> list[Any]:
    """What is in those places now, and the object that f is a method of."""
    return [value for _, value in _reached(f)] + ([] if isinstance(f, FunctionType) else [getattr(f, "__self__", f)])


def _reached(f: Any) -> Iterator[tuple[Changeable, Any]]:
    waiting, seen, yielded = list(_functions(f)), set[int](), set[tuple[int, str]]()
    while waiting:
        function = waiting.pop()
        if id(function) in seen or not is_users(function.__code__.co_filename):
            continue
        seen.add(id(function))
        for holder, name, place, value in _named(function):
            if (id(holder), name) not in yielded:
                yielded.add((id(holder), name))
                waiting += _functions(value)
                yield place, value


def _named(f: FunctionType) -> Iterator[tuple[Any, str, Changeable, Any]]:
    """What one function can reach: what holds it, its name there, the place, and what is there now."""
    names = _names(f.__code__)
    for name in names:
        value = f.__globals__.get(name, _MISSING)
        yield f.__globals__, name, _global(f.__globals__, name), value
        if isinstance(value, ModuleType) and is_users(getattr(value, "__file__", None) or "<frozen"):
            for attribute in names:
                held = vars(value).get(attribute, _MISSING)
                yield vars(value), attribute, _global(vars(value), attribute, f"{name}."), held
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        yield cell, name, Changeable(f"the outer variable `{name}`", partial(_closed, cell)), _inside(cell)
    kept = (f.__defaults__, f.__kwdefaults__)
    yield f, "()", Changeable(f"a default argument of {f.__name__}", lambda: fingerprint(kept)), None
    yield f, ".", Changeable(f"an attribute of {f.__name__}", lambda: fingerprint(f.__dict__)), None


def _global(space: Mapping[str, Any], name: str, before: str = "") -> Changeable:
    return Changeable(f"the global `{before}{name}`", lambda: _state(space.get(name, _MISSING)))


def _state(value: Any) -> Any:
    """The fingerprint of a global; of a class, of what it holds itself."""
    if isinstance(value, type):
        held = {name: item for name, item in vars(value).items() if not name.startswith("__")}
        return id(value), fingerprint(held)[1]
    return fingerprint(value)


def _names(code: CodeType) -> set[str]:
    """The names that code reads or writes anywhere but in its own variables, functions inside it included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for code_inside in inner for name in _names(code_inside))}


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions of Python's that calling a value, or naming a class, may run."""
    value = inspect.unwrap(value) if callable(value) and hasattr(value, "__wrapped__") else value
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, MethodType):
        yield from _functions(value.__func__)
    elif isinstance(value, type):
        yield from (member for member in vars(value).values() if isinstance(member, FunctionType))
    elif hasattr(value, "func"):  # functools.partial
        yield from _functions(value.func)
    else:
        yield from (member for member in vars(type(value)).values() if isinstance(member, FunctionType))


def _closed(cell: Any) -> Any:
    return fingerprint(_inside(cell))


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


# Fingerprints ------------------------------------------------------------------------------------------------


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Arrays by their bytes, containers and objects by their items, generators by their state, the rest by identity.

    Tensors are as their arrays, modules as their tensors and their mode.
    """
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, dynamic.Tensor):
        return id(value), fingerprint(value.numpy(force=True))
    if hasattr(value, "named_buffers") and _is_module(value):
        tensors = [fingerprint(tensor) for tensor in (*value.parameters(), *value.buffers())]
        return id(value), tensors, [module.training for module in value.modules()]
    if isinstance(value, np.ndarray):
        return id(value), value.shape, value.dtype.str, _bytes(value)
    if isinstance(value, random.Random):
        return id(value), value.getstate()
    if isinstance(value, np.random.Generator):
        return id(value), str(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return id(value), str(value.get_state(legacy=False))
    if depth >= DEEPEST:
        return id(value)
    return id(value), _items(value, depth + 1)


def _is_module(value: Any) -> bool:
    loaded = sys.modules.get("dynamic.nn.module")
    return loaded is not None and isinstance(value, loaded.Module)


def _items(value: Any, depth: int) -> Any:
    if isinstance(value, (list, tuple, deque, dict, set, frozenset)) and len(value) > MOST:
        return len(value)
    if isinstance(value, (list, tuple, deque)):
        return [fingerprint(item, depth) for item in value]
    if isinstance(value, dict):
        return [(fingerprint(key, depth), fingerprint(item, depth)) for key, item in value.items()]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, (set, frozenset)):
        return frozenset(map(id, value)) if len(value) else 0
    return _items(vars(value), depth) if hasattr(value, "__dict__") and _of_users_class(value) else None


def _bytes(array: np.ndarray) -> Any:
    """A checksum of an array's bytes; of one that holds objects, which these are."""
    if array.dtype.hasobject:
        return tuple(map(id, array.ravel()[:MOST]))
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0


# What is the user's -------------------------------------------------------------------------------------------


def is_users(filename: str) -> bool:
    """Whether a file is neither ours nor Python's nor that of an installed package; what is typed in is the user's."""
    return not (is_internal(filename) or filename.startswith(_HERE) or is_library(filename))


def _of_users_class(value: Any) -> bool:
    """Whether the class of a value is the user's."""
    module = type(value).__module__
    if module in sys.builtin_module_names or module.partition(".")[0] in PACKAGES:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (file is not None and is_users(file))


def line(frame: FrameType) -> str:
    """`mine.py:12`, the line that a frame is at."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
