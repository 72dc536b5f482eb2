"""Effects of code that is not converted: refused where the graph would not repeat them as Python does.

Under a test that only the run knows both sides are traced. So only objects that the journal knows may be changed there,
and a function that is not the user's must be known to change nothing else.

`check_call` and the functions after it refuse; `is_harmless` and those after it decide. For Python's library and NumPy
tables decide. A function in Python is analysed: it may write if its instructions store anything outside of it, or call
an unknown function. So an unknown function counts as writing.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import io
import queue
import random
import re
import sys
import weakref
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import date, time, timedelta
from enum import Enum
from functools import cached_property
from numbers import Number
from types import BuiltinMethodType, CodeType, FunctionType, MappingProxyType, MethodType, MethodWrapperType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from static.convert.stage import conversion
from static.convert.stage.conversion import class_attribute, is_of_a_class_statement, users
from static.convert.stage.places import MUTABLE, is_conditional, is_ours
from static.convert.stage.unknown import check_called, is_tensor, parts, refuse
from static.trace.symbol import ArraySymbol

_CHANCE = ("random", "numpy.random", "secrets")
_CLOCKS = ("time", "datetime")
_COMPARING = ("index", "count", "remove")
_INERT = (isinstance, issubclass, type, callable)
_UNJOURNALED = (io.IOBase, array, memoryview, ContextVar, queue.Queue, weakref.WeakValueDictionary, weakref.WeakSet)


def check_call(f: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise ControlFlowError for a call of unconverted code, if the graph would not repeat its effects."""
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
    """Raise ControlFlowError for a write to an object that the journal does not know, unless the trace made it."""
    check_quiet(key)
    if not isinstance(container, MUTABLE) and not is_tensor(container):
        check_changing(container)


def check_changing(owner: Any) -> None:
    """Raise ControlFlowError for an object whose change the journal cannot note, unless the trace made it."""
    if not is_ours(owner):
        _refuse_lasting(owner)


def check_read(value: Any) -> None:
    """Raise ControlFlowError for a value with methods that Python calls to read it, and that may write."""
    for part in parts((value.start, value.stop, value.step) if isinstance(value, slice) else value):
        check_quiet(part)


def check_quiet(value: Any) -> None:
    """Raise ControlFlowError for an object of a class whose implicitly called methods may write."""
    kind = type(value)
    if not is_quiet(kind) and (is_conditional() or not is_ours(value)):
        refuse(
            f"Python itself calls a method of {kind.__name__} here, which may write, and a graph does not repeat that; "
            "call the method by its name"
        )


def _draws(owner: Any) -> bool:
    """Whether an object draws random numbers, as those of `random` and `numpy.random` do."""
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
    of_ours = bool(args) and is_ours(args[0])
    is_making = of_ours and (f is next or (name == "__init__" and makes_quietly(type(args[0]))))
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


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), MappingProxyType)
_FIXED: tuple[type, ...] = (
    Number,
    str,
    bytes,
    tuple,
    frozenset,
    range,
    slice,
    type(None),
    np.generic,
    np.dtype,
    re.Pattern,
    re.Match,
)
_UNCHANGING: tuple[type, ...] = (*_FIXED, *_VIEWS, date, time, timedelta, Enum)

_PURE_MODULES = _names(
    "math cmath operator _operator itertools functools _functools numbers fractions decimal _decimal statistics "
    "_statistics string re copy dataclasses typing types enum abc _abc collections _collections collections.abc bisect "
    "_bisect heapq _heapq struct _struct textwrap json json.encoder json.decoder array io _io queue _queue weakref "
    "_weakref contextvars _contextvars inspect datetime uuid builtins numpy"
)
_WRITING = _names(
    "exec eval open input print setattr delattr breakpoint exit quit help __import__ next "
    "setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor "
    "dump setcontext finalize setprofile settrace excepthook start_new_thread stack_size "
    "copyto put place putmask put_along_axis fill_diagonal seterr seterrcall setbufsize set_printoptions save savez "
    "savez_compressed savetxt memmap nditer"
)
_WRITING_METHODS = {np.ndarray: _names("fill sort put resize partition itemset setfield setflags")}
_READING = _names(
    "keys values items copy index count tolist tobytes getvalue qsize empty full most_common elements total "
    "startswith endswith split rsplit join strip lstrip rstrip lower upper title replace format encode decode find "
    "is_integer bit_length as_integer_ratio conjugate union intersection difference issubset issuperset isdisjoint "
    "sum mean max min any all item astype reshape ravel flatten transpose dot prod std var argmax argmin"
)
_OF_TENSORS = frozenset(name for name in dir(ArraySymbol) if not name.startswith("_") and not name.endswith("_"))
_READING |= _OF_TENSORS - _names("add sort put resize fill set clear update pop remove discard insert extend append")
_NOT_BY_READING = _names(
    "__init__ __new__ __post_init__ __init_subclass__ __class_getitem__ __set_name__ __setattr__ __delattr__ "
    "__setitem__ __delitem__ __set__ __delete__ __enter__ __exit__ __del__ __iadd__ __isub__ __imul__ "
    "__itruediv__ __setstate__"
)
_STORING = _names("STORE_ATTR DELETE_ATTR STORE_SUBSCR DELETE_SUBSCR STORE_SLICE STORE_GLOBAL DELETE_GLOBAL STORE_NAME")
_quiet: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_OF_CLOSURES = ("STORE_DEREF", "DELETE_DEREF")


def is_harmless(f: Any) -> bool:
    """Whether an unconverted function is known to change nothing but journaled containers."""
    return _is_harmless(f, frozenset())


def is_of_the_engines(f: Any) -> bool:
    """Whether a function is one of the engines', which change no container; one that they decorate with is, too."""
    function = getattr(f, "__func__", f)
    globals_ = function.__globals__ if isinstance(function, FunctionType) else {}
    module = globals_.get("__name__") or getattr(f, "__module__", None) or type(f).__module__
    return module.partition(".")[0] in ("graphs", "static", "dynamic")


def is_quiet(kind: type) -> bool:
    """Whether no method that Python calls implicitly to read objects of a class may write."""
    if not is_of_a_class_statement(kind):
        return True
    if kind not in _quiet:
        _quiet[kind] = not any(_may_write(method, kind, False, frozenset()) for method in _property_functions(kind))
    return _quiet[kind]


def makes_quietly(kind: type) -> bool:
    """Whether making an object of a class, by unconverted methods, changes that object at most."""
    if kind.__module__ in _PURE_MODULES:
        return True
    held = [class_attribute(kind, name) for name in ("__new__", "__init__", "__post_init__")]
    made_by = [method.__func__ if isinstance(method, staticmethod) else method for method in held]
    functions = [method for method in made_by if isinstance(method, FunctionType) and not is_of_the_engines(method)]
    return not any(_may_write(method, kind, True, frozenset()) for method in functions)


Seen = frozenset[CodeType]


def _is_harmless(f: Any, seen: Seen) -> bool:
    inner = getattr(f, "__wrapped__", None)
    if isinstance(inner, FunctionType) and not isinstance(f, type):
        return not _may_write(inner, None, False, seen)
    if isinstance(f, type):
        return _is_harmless_class(f)
    if isinstance(f, FunctionType):
        return is_of_the_engines(f) or _is_pure(f) or not _may_write(f, None, False, seen)
    if isinstance(f, (BuiltinMethodType, MethodType, MethodWrapperType)):
        return _is_harmless_method(f.__self__, f.__name__, f)
    declaring = getattr(f, "__objclass__", None)
    if declaring is not None:  # a method of a class, called with its object
        return issubclass(declaring, (*MUTABLE, *_UNCHANGING)) or _is_of_object(f)
    own = class_attribute(type(f), "__call__")
    if isinstance(own, FunctionType):
        return is_of_the_engines(own) or not _may_write(own, type(f), False, seen)
    return isinstance(f, np.ufunc) or type(f).__module__ in _PURE_MODULES


def _is_harmless_method(owner: Any, name: str, f: Any) -> bool:
    if owner is None or isinstance(owner, ModuleType):
        return _is_pure(f)
    if isinstance(owner, type):
        return _is_harmless_class(owner)
    if isinstance(f, MethodWrapperType) and _is_of_object(f):
        return True
    if isinstance(owner, (Mapping, ContextVar)) and name == "get":
        return True
    for kind, writing in _WRITING_METHODS.items():
        if isinstance(owner, kind):
            return name not in writing
    return name in _READING or isinstance(owner, (*_UNCHANGING, *MUTABLE))


def _is_of_object(f: Any) -> bool:
    """Whether a method of `object` only reads."""
    return f.__objclass__ is object and f.__name__ not in ("__setattr__", "__delattr__")


def _is_harmless_class(kind: type) -> bool:
    """Whether making an object of a class changes that object at most."""
    if not makes_quietly(kind):
        return False
    is_known = kind.__module__ in _PURE_MODULES and kind.__name__ not in _WRITING
    is_plain = is_of_a_class_statement(kind) and users(class_attribute(type(kind), "__call__")) is None
    return is_known or is_plain or issubclass(kind, (BaseException, contextlib.ExitStack, contextlib.nullcontext))


def _is_pure(f: Any) -> bool:
    """Whether a module's function is one of the known pure ones; a method is not."""
    if isinstance(f, FunctionType) and "." in f.__qualname__:
        return False
    module = f.__globals__.get("__name__", "") if isinstance(f, FunctionType) else getattr(f, "__module__", "") or ""
    is_of_pure_module = module in _PURE_MODULES or (
        module.startswith("numpy") and not module.startswith("numpy.random")
    )
    return is_of_pure_module and f.__name__ not in _WRITING


def _property_functions(kind: type) -> Iterator[FunctionType]:
    for base in kind.__mro__:
        for name, held in vars(base).items():
            if name.startswith("__") and name.endswith("__") and name not in _NOT_BY_READING:
                method = users(held)
            else:
                method = users(held.fget if isinstance(held, property) else getattr(held, "func", None))
                method = None if isinstance(held, cached_property) else method
            if method is not None:
                yield method


# The instructions of a function -------------------------------------------------------------------------------------


def _may_write(f: FunctionType, kind: type | None, own: bool, seen: Seen) -> bool:
    """Whether a function may write; it may set attributes of its first argument, of class `kind`, where `own`."""
    return f.__code__ not in seen and _Reading(f, kind, own, seen | {f.__code__}).writes(f.__code__)


class _Reading:
    """Goes through the instructions of a function; `_held` is the object that the last one has loaded, if known."""

    def __init__(self, f: FunctionType, kind: type | None, own: bool, seen: Seen) -> None:
        self._globals, self._kind, self._own, self._seen = f.__globals__, kind, own, seen
        self._held: Any = None

    def writes(self, code: CodeType) -> bool:
        """Whether one of the instructions, or one of a function inside, may write."""
        first = code.co_varnames[0] if code.co_argcount else ""
        before = ""
        for instruction in dis.get_instructions(code):
            if self._stores(instruction, code, before == first) or self._loads_what_writes(instruction):
                return True
            value = instruction.argval
            before = value[-1] if isinstance(value, tuple) and value else str(value)
        return any(self.writes(const) for const in code.co_consts if isinstance(const, CodeType))

    def _stores(self, instruction: dis.Instruction, code: CodeType, on_first: bool) -> bool:
        """Whether an instruction stores outside the function; attributes of the first argument may be allowed."""
        if instruction.opname in _STORING:
            return not (self._own and on_first and instruction.opname == "STORE_ATTR")
        if instruction.opname in _OF_CLOSURES:
            return instruction.argval in code.co_freevars
        return instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")

    def _loads_what_writes(self, instruction: dis.Instruction) -> bool:
        owner, name = self._held, instruction.argval
        if instruction.opname == "LOAD_GLOBAL":
            self._held = self._globals.get(name, getattr(builtins, name, None))
            return callable(self._held) and not _is_harmless(self._held, self._seen)
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            self._held = getattr(owner, name, None) if isinstance(owner, (ModuleType, type)) else None
            if self._held is not None:
                return callable(self._held) and not _is_harmless(self._held, self._seen)
            if owner is not None and not isinstance(owner, _UNCHANGING):
                return name not in _READING
            return self._is_a_call(instruction) and self._method_writes(name)
        if instruction.opname not in ("PUSH_NULL", "PRECALL"):
            self._held = None
        return False

    @staticmethod
    def _is_a_call(instruction: dis.Instruction) -> bool:
        """Whether the loaded attribute is called. A mere read is allowed: `is_quiet` asks the class about it."""
        return instruction.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bool((instruction.arg or 0) & 1))

    def _method_writes(self, name: str) -> bool:
        if self._own and name == "__setattr__":
            return False
        method = class_attribute(self._kind, name) if self._kind is not None else None
        if isinstance(method, FunctionType):
            return _may_write(method, self._kind, self._own, self._seen)
        return name not in _READING
