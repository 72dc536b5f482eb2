"""What the code of a function can reach and change: the globals it names, what it closes over, what it is bound to.

Functions and classes of the user's that it names are followed, and modules of the user's by the attributes it names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from compare.own import users
from compare.own.fingerprint import fingerprint

_MISSING = object()


@dataclass(frozen=True)
class Place:
    """Something that can be changed, by the name that a message calls it, and how to read it."""

    name: str
    read: Callable[[], Any]


def places(f: Any) -> list[Place]:
    """All that the code of `f`, and of the user's functions that it names, can reach by name."""
    found: dict[tuple[int, str], Place] = {}
    waiting, seen = list(_functions(f)), set[int]()
    if not isinstance(f, FunctionType):
        found[id(f), ""] = Place("the object that it is a method of", lambda: fingerprint(_self(f)))
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not users.wrote(one.__code__.co_filename):
            continue
        seen.add(id(one))
        for holder, name, place, value in _named(one):
            if (id(holder), name) not in found:
                found[id(holder), name] = place
                waiting += _functions(value)
    return list(found.values())


def _named(f: FunctionType) -> Iterator[tuple[Any, str, Place, Any]]:
    """What one function can reach: what holds it, its name there, the place, and what is there now."""
    names = _names(f.__code__)
    for name in names:
        value = f.__globals__.get(name, _MISSING)
        yield f.__globals__, name, _global(f.__globals__, name), value
        if isinstance(value, ModuleType) and users.wrote(getattr(value, "__file__", None) or "<frozen"):
            for attribute in names:
                held = vars(value).get(attribute, _MISSING)
                yield vars(value), attribute, _global(vars(value), attribute, f"{name}."), held
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        yield (
            cell,
            name,
            Place(f"the outer variable `{name}`", partial(_closed, cell)),
            _inside(cell),
        )
    kept = (f.__defaults__, f.__kwdefaults__)
    yield f, "()", Place(f"a default argument of {f.__name__}", lambda: fingerprint(kept)), None
    yield f, ".", Place(f"an attribute of {f.__name__}", lambda: fingerprint(f.__dict__)), None


def _global(space: Mapping[str, Any], name: str, before: str = "") -> Place:
    return Place(f"the global `{before}{name}`", lambda: _told(space.get(name, _MISSING)))


def _told(value: Any) -> Any:
    """The fingerprint of a global; of a class, of what it holds itself."""
    if isinstance(value, type):
        held = {name: item for name, item in vars(value).items() if not name.startswith("__")}
        return id(value), fingerprint(held)[1]
    return fingerprint(value)


def _names(code: CodeType) -> set[str]:
    """The names that code reads or writes anywhere but in its own variables, functions inside it included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for one in inner for name in _names(one))}


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions of Python's that calling a value, or naming a class, may run."""
    value = inspect.unwrap(value) if callable(value) and hasattr(value, "__wrapped__") else value
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, MethodType):
        yield from _functions(value.__func__)
    elif isinstance(value, type):
        yield from (one for one in vars(value).values() if isinstance(one, FunctionType))
    elif hasattr(value, "func"):  # functools.partial
        yield from _functions(value.func)
    else:
        yield from (one for one in vars(type(value)).values() if isinstance(one, FunctionType))


def _self(f: Any) -> Any:
    return getattr(f, "__self__", f)


def _closed(cell: Any) -> Any:
    return fingerprint(_inside(cell))


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING
