"""Calls: a function of the user's is converted, Python's own take what only the run knows, all others are called."""

from __future__ import annotations

import dis
import functools
import inspect
import random
import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, GeneratorType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from static.convert.rewrite.functions import Rewritten
from static.convert.rewrite.source import NotConvertedError
from static.convert.stage import conversion, writing
from static.convert.stage.builtins import CALLING, REPLACED, item_of
from static.convert.stage.loops import check_takes
from static.convert.stage.places import (
    MUTABLE,
    born,
    check_not_frozen,
    is_conditional,
    is_ours,
    journal_container,
    made,
)
from static.convert.stage.sorting import sort
from static.convert.stage.streams import Generated, Streamed, first
from static.convert.stage.trees import is_made_by_object
from static.convert.stage.unknown import is_symbol, refuse

OPERATORS = SimpleNamespace()
"""What converted code calls; `stage.operators` fills it."""

_rewrite = Rewritten(OPERATORS)
_known: weakref.WeakKeyDictionary[FunctionType, FunctionType] = weakref.WeakKeyDictionary()
_done: weakref.WeakSet[FunctionType] = weakref.WeakSet()
_plain: weakref.WeakSet[FunctionType] = weakref.WeakSet()
_CHANCE = ("random", "numpy.random", "secrets")
_CLOCKS = ("time", "datetime")


def plain(f: Any) -> Any:
    """Leave a function as it is: it is traced, not converted."""
    _plain.add(f)
    return f


def converted(f: FunctionType) -> FunctionType:
    """A function that has been rewritten with the one around it."""
    _done.add(f)
    return f


def convertible(f: Any) -> Any:
    """The rewritten form of a function of the user's; anything else, and what cannot be rewritten, as it is."""
    if not isinstance(f, FunctionType) or f in _done or f in _plain or not conversion.is_the_users(f):
        return f
    if f not in _known:
        try:
            _known[f] = converted(_rewrite(f))
        except NotConvertedError as reason:
            conversion.note(f, str(reason))
            return f
    conversion.note(f)
    new = _known[f]
    new.__defaults__, new.__kwdefaults__, new.__dict__ = f.__defaults__, f.__kwdefaults__, f.__dict__
    return new


def call(f: Any) -> Callable[..., Any]:
    """What to call in place of `f`."""
    replaced = _replaced(f)
    if replaced is not None:
        return replaced
    if f is next:
        return _next
    if isinstance(f, FunctionType):
        if f.__code__.co_flags & inspect.CO_GENERATOR:
            return functools.partial(_generated, f)
        new = convertible(f)
        return new if new is not f or f in _done else functools.partial(_outside, f)
    if isinstance(f, MethodType) and isinstance(f.__func__, FunctionType):
        return functools.partial(call(f.__func__), f.__self__)
    if isinstance(f, functools.partial):
        return functools.partial(call(f.func), *f.args, **f.keywords)
    if isinstance(f, type):
        return functools.partial(_constructed, f)
    own = inspect.getattr_static(type(f), "__call__", None)
    if isinstance(own, FunctionType) and conversion.is_the_users(own):
        return functools.partial(call(own), f)
    return functools.partial(_outside, f)


def _replaced(f: Any) -> Callable[..., Any] | None:
    owner = getattr(f, "__self__", None)
    if type(owner) is list and f.__name__ == "sort":
        return _calling(functools.partial(sort, owner))
    if is_symbol(owner):
        return functools.partial(item_of, owner) if f.__name__ == "item" else None
    try:
        new = REPLACED.get(f) or _WRITES.get(f)
        return _calling(new) if new is not None and f in CALLING else new
    except TypeError:  # it has no hash
        return None


def _calling(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls those that it is given, in their converted form."""

    def calling(*args: Any, **options: Any) -> Any:
        given = [call(arg) if callable(arg) else arg for arg in args]
        return f(*given, **{name: call(value) if callable(value) else value for name, value in options.items()})

    return calling


def _next(items: Any, *default: Any) -> Any:
    if isinstance(items, Streamed):
        return first(items, *default)
    return _outside(next, items, *default)


def _generated(f: FunctionType, /, *args: Any, **options: Any) -> Any:
    """A call of a generator function."""
    new = convertible(f)
    if new is f:
        return _outside(f, *args, **options)
    return born(
        Generated(lambda consume, goes_on: new(consume, goes_on, *args, **options), lambda: f(*args, **options))
    )


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`, by the setter of a property where it has one."""
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(found, property) and found.fset is not None:
        call(found.fset)(owner, value)
    else:
        writing.set_attribute(owner, name, value)


_WRITES: dict[Any, Callable[..., Any]] = {setattr: set_attribute, delattr: writing.delete_attribute}


def _constructed(kind: type, /, *args: Any, **options: Any) -> Any:
    """An object of a class, whose __init__ is converted where it is the user's."""
    init = vars(kind).get("__init__") or getattr(kind, "__init__", None)
    if is_made_by_object(kind) and isinstance(init, FunctionType) and type(kind) is type:
        new = born(object.__new__(kind))
        call(init)(new, *args, **options)
        return new
    return _outside(kind, *args, **options)


def _outside(f: Any, /, *args: Any, **options: Any) -> Any:
    """Call what is not converted. What it may change is noted first; functions that it is given are converted."""
    _check_effects(f)
    _check_unconverted(f, args)
    if not _is_of_the_engines(f):
        for value in (getattr(f, "__self__", None), *args, *options.values()):
            check_not_frozen(value)
            check_takes(value)
            journal_container(value)
    given = [convertible(arg) for arg in args]
    named = {name: convertible(value) for name, value in options.items()}
    with _forwards(f):
        result = f(*given, **named)
    return _noted(f, result)


def _is_of_the_engines(f: Any) -> bool:
    """Whether a function is one of ours, which changes no container."""
    module = getattr(f, "__module__", None) or type(f).__module__
    return module.partition(".")[0] in ("graphs", "static", "dynamic")


def _noted(f: Any, result: Any) -> Any:
    """The result of a call, noted as new where it is."""
    if isinstance(f, type) and type(result) is f and (is_made_by_object(f) or f in _MADE):
        return born(result)
    name = getattr(f, "__name__", "")
    makes_iterators = f is iter or isinstance(f, (type, FunctionType))
    if hasattr(result, "__next__") and (makes_iterators or isinstance(result, GeneratorType)):
        return born(result)
    return made(result) if name in _MAKERS else result


_CREATING = "array zeros ones full empty arange linspace eye zeros_like ones_like full_like empty_like"
_MAKERS = frozenset(f"copy deepcopy sorted split tolist {_CREATING}".split())
"""The names of functions whose result nobody else holds."""
_MADE = (*MUTABLE[:4], defaultdict, Counter, OrderedDict, random.Random)


def _check_effects(f: Any) -> None:
    """Raise ControlFlowError for chance, and for what else the graph would not repeat."""
    owner = getattr(f, "__self__", None)
    module = getattr(f, "__module__", None) or type(owner).__module__
    if module in _CHANCE or isinstance(owner, (random.Random, np.random.Generator, np.random.RandomState)):
        if not isinstance(f, type) and not is_ours(owner):
            refuse(
                f"{getattr(f, '__name__', f)}() draws chance outside of the graph, which would repeat one number for "
                "ever; draw with graphs.random and a key, or pass the numbers"
            )
    elif isinstance(owner, np.ndarray) and is_conditional() and f.__name__ in ("fill", "sort", "put", "resize"):
        refuse(f"an array is changed by {f.__name__}() where only the run knows whether that is reached")
    elif f is open or f is input or module in _CLOCKS:
        name = getattr(f, "__name__", f)
        refuse(f"{name}() gives another result in each call, and a graph repeats one for ever; pass it as an argument")


def _check_unconverted(f: Any, args: tuple[Any, ...]) -> None:
    """Raise ControlFlowError for a function of the user's whose writes nobody would undo if it is not reached."""
    if not isinstance(f, FunctionType) or not is_conditional() or f in _plain or not conversion.is_the_users(f):
        return
    reason = conversion.why_not(f)
    if reason and _may_write(f.__code__) and not (args and _is_init_of_dataclass(f, args[0])):
        refuse(
            f"{f.__name__}() is called where only the run knows whether it is reached, and is not converted: {reason}"
        )


def _may_write(code: CodeType) -> bool:
    """Whether a function writes to anything but its variables, or calls what may."""
    return any(
        step.opname.startswith(("STORE_", "DELETE_", "CALL"))
        for step in dis.get_instructions(code)
        if not step.opname.endswith("_FAST")
    )


def _is_init_of_dataclass(f: FunctionType, owner: Any) -> bool:
    """Whether this is what `dataclass` has written, which sets attributes of a new object and no more."""
    kind = type(owner)
    return f.__name__ == "__init__" and "__dataclass_fields__" in vars(kind) and not hasattr(kind, "__post_init__")


@contextmanager
def _forwards(f: Any) -> Iterator[None]:
    """Inside, a module of the dynamic engine runs the converted form of what its classes compute."""
    modules = list(f.modules()) if hasattr(f, "forward") and hasattr(f, "modules") else []
    changed = []
    for module in modules:
        forward = type(module).forward
        new = convertible(forward)
        if new is not forward and "forward" not in vars(module):
            vars(module)["forward"] = MethodType(new, module)
            changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del vars(module)["forward"]
