"""Calls: a user's function is converted, Python's own functions are replaced, and all others are called as they are."""

from __future__ import annotations

import functools
import inspect
import random
import weakref
from collections import Counter, OrderedDict, UserDict, UserList, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType, GeneratorType, MethodType, MethodWrapperType, SimpleNamespace
from typing import Any

from graphs.errors import GraphError
from static.convert.rewrite import RewriteCache
from static.convert.rewrite.syntax import NotConvertedError
from static.convert.stage import conversion
from static.convert.stage.builtins import CALLING, REPLACED, item_of, sort, text_of
from static.convert.stage.conversion import class_attribute, is_of_a_class_statement, special, users
from static.convert.stage.effects import check_call, check_read, is_of_the_engines
from static.convert.stage.places import MUTABLE, check_not_frozen, check_takes, journal_container, note_new, note_object
from static.convert.stage.streams import GeneratorStream, ItemStream, first
from static.convert.stage.trees import is_made_by_object, leaves
from static.convert.stage.unknown import is_symbol, refuse

OPERATORS = SimpleNamespace()
"""The operators that converted code calls; `stage.operators` fills it."""

_rewrite = RewriteCache(OPERATORS)
# Independent of a trace, and so kept beyond it: rewritten forms by function, and functions that stay as they are.
_forms: weakref.WeakKeyDictionary[FunctionType, FunctionType] = weakref.WeakKeyDictionary()
_rewritten: weakref.WeakSet[FunctionType] = weakref.WeakSet()
_plain: weakref.WeakSet[FunctionType] = weakref.WeakSet()
_INERT = (type, print)


def plain(f: Any) -> Any:
    """Mark a function to be left as it is: it is traced, not converted."""
    _plain.add(f)
    return f


def convert_nested(f: FunctionType) -> FunctionType:
    """Mark a function that has been rewritten with the one around it."""
    _rewritten.add(f)
    return f


def convertible(f: Any) -> Any:
    """Return the rewritten form of a user's function; any other object, or one that cannot be rewritten, as it is."""
    if not isinstance(f, FunctionType) or f in _rewritten or f in _plain or not conversion.is_the_users(f):
        return f
    if f not in _forms:
        try:
            _forms[f] = convert_nested(_rewrite(f))
        except NotConvertedError as reason:
            conversion.note(f, str(reason))
            return f
    conversion.note(f)
    new = _forms[f]
    new.__defaults__, new.__kwdefaults__, new.__dict__ = f.__defaults__, f.__kwdefaults__, f.__dict__
    return new


def call(f: Any) -> Callable[..., Any]:
    """Return the function to call in place of `f`."""
    if isinstance(f, functools.partial):
        return functools.partial(call(f.func), *f.args, **f.keywords)
    if is_of_a_class_statement(type(f)) and not isinstance(f, type):
        own = special(f, "__call__")
        return functools.partial(_outside, f) if own is None else functools.partial(call(own), f)
    replaced = _replacement(f)
    if replaced is not None:
        return replaced
    if isinstance(f, FunctionType):
        if f.__code__.co_flags & inspect.CO_GENERATOR:
            return functools.partial(_call_generator, f)
        new = convertible(f)
        return new if new is not f or f in _rewritten else functools.partial(_outside, f)
    if isinstance(f, MethodType) and users(f.__func__) is not None:
        return functools.partial(call(f.__func__), f.__self__)
    if isinstance(f, type):
        return functools.partial(_construct, f)
    return functools.partial(_outside, f)


def _replacement(f: Any) -> Callable[..., Any] | None:
    if isinstance(f, MethodWrapperType):
        return _by_a_base(f)
    if f is next:
        return _next
    owner = getattr(f, "__self__", None)
    if type(owner) is list and f.__name__ == "sort":
        return _calling(functools.partial(sort, owner))
    if type(owner) is str and f.__name__ == "format":
        return functools.partial(_call_replacement, text_of(f))
    if is_symbol(owner):
        return functools.partial(item_of, owner) if f.__name__ == "item" else None
    try:
        if f in IMPLICIT:
            return IMPLICIT[f]
        if f not in REPLACED or f in _INERT:
            return REPLACED.get(f)
        return _calling(REPLACED[f]) if f in CALLING else functools.partial(_call_replacement, REPLACED[f])
    except TypeError:  # `f` has no hash
        return None


def _calling(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the functions it is given in their converted form."""

    def calling(*args: Any, **options: Any) -> Any:
        positional = [call(arg) if callable(arg) else arg for arg in args]
        named = {name: call(value) if callable(value) else value for name, value in options.items()}
        return _call_replacement(f, *positional, **named)

    return calling


def _call_replacement(f: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Call the replacement of a Python function, which may call methods of its arguments."""
    for value in (*args, *options.values()):
        check_read(value)
    return f(*args, **options)


def _by_a_base(f: MethodWrapperType) -> Callable[..., Any] | None:
    """Return the replacement of a method of `object` or `type` that is bound to one of their objects."""
    if isinstance(f.__self__, type) and f.__name__ == "__call__":
        return functools.partial(_construct, f.__self__)
    written = IMPLICIT.get(f.__objclass__.__dict__.get(f.__name__)) if f.__objclass__ is object else None
    return None if written is None else functools.partial(written, f.__self__)


def _next(items: Any, *default: Any) -> Any:
    if isinstance(items, ItemStream):
        return first(items, *default)
    return _outside(next, items, *default)


def _call_generator(f: FunctionType, /, *args: Any, **options: Any) -> Any:
    """Call a generator function: a stream where it can be converted."""
    new = convertible(f)
    if new is f:
        return _outside(f, *args, **options)
    return note_object(
        GeneratorStream(lambda consume, goes_on: new(consume, goes_on, *args, **options), lambda: f(*args, **options))
    )


IMPLICIT: dict[Any, Callable[..., Any]] = {}
"""Replacements for Python functions that call methods implicitly; `stage.operators` fills it."""


def _is_made_as_named_tuple(kind: type) -> bool:
    """Return whether the `__new__` of a class is the one that Python has written for a named tuple."""
    owner = next(base for base in kind.__mro__ if "__new__" in vars(base))
    return owner.__bases__ == (tuple,) and hasattr(owner, "_fields")


def _construct(kind: type, /, *args: Any, **options: Any) -> Any:
    """Make an object of a class; its __init__ is converted where it is the user's."""
    for name in ("__del__", "__new__"):  # the journal keeps objects alive, so that a __del__ would run late
        is_quiet = name == "__new__" and _is_made_as_named_tuple(kind)
        if users(class_attribute(kind, name)) is not None and not is_quiet:
            refuse(f"{kind.__name__} has a {name}, which is not converted; make the object before the call")
    if special(kind, "__call__") is not None:
        refuse(f"the class of {kind.__name__} has a __call__, which is not converted; make the object before the call")
    init, is_plain = class_attribute(kind, "__init__"), is_made_by_object(kind)
    if class_attribute(type(kind), "__call__") is not vars(type)["__call__"] or not (users(init) or is_plain):
        return _outside(kind, *args, **options)
    new = note_object(object.__new__(kind) if is_plain else kind.__new__(kind, *args, **options))
    if isinstance(new, kind):
        call(init)(new, *args, **options)
    return new


def _outside(f: Any, /, *args: Any, **options: Any) -> Any:
    """Call a function that is not converted: note what it may change, and convert functions that it is given."""
    check_call(f, args, options)
    if not is_of_the_engines(f):
        for value in (getattr(f, "__self__", None), *args, *options.values()):
            check_not_frozen(value)
            check_takes(value)
            journal_container(value)
    positional = [_convert_argument(arg) for arg in args]
    named = {name: _convert_argument(value) for name, value in options.items()}
    with _forwards(f):
        result = _of_a_library(f, positional, named)
    # The result of a call, noted as new where it is.
    if isinstance(f, type) and type(result) is f and (f in _MADE or _makes_new_ones(f)):
        return note_object(result)
    name = getattr(f, "__name__", "")
    if isinstance(result, Iterator):
        is_made = isinstance(f, (type, FunctionType)) or f is iter or isinstance(result, GeneratorType)
        return note_object(result) if is_made and not any(result is value for value in args) else result
    return note_object(result) if name == "__new__" else note_new(result) if name in _MAKERS else result


def _convert_argument(argument: Any) -> Any:
    """Return an argument for a function that is not converted; a function or method of the user's is converted."""
    if isinstance(argument, MethodType) and isinstance(argument.__func__, FunctionType):
        return MethodType(convertible(argument.__func__), argument.__self__)
    return convertible(argument)


def _of_a_library(f: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a function that is not converted.

    Raises ControlFlowError where it takes no value that only the run knows, so that no handler sees its TypeError.
    """
    try:
        return f(*args, **options)
    except (TypeError, AttributeError) as error:
        if isinstance(error, GraphError) or not any(map(is_symbol, leaves([args, options]))):
            raise
        if is_of_the_engines(f) or not conversion.is_raised_outside(error, __file__):
            raise
        name = getattr(f, "__name__", f)
        refuse(f"{name}() takes no value that only the run knows ({error}); compute it with functions of graphs")


def _makes_new_ones(kind: type) -> bool:
    """Whether each call of a class makes a new object: none of its methods chooses an existing one."""
    return is_of_a_class_statement(kind) and not isinstance(
        class_attribute(kind, "__new__"), (FunctionType, staticmethod)
    )


_CREATING = "array zeros ones full empty arange linspace eye zeros_like ones_like full_like empty_like"
_MAKERS = frozenset(f"copy deepcopy sorted split tolist {_CREATING}".split())
"""The names of functions whose result nobody else holds."""
_MADE = (
    *MUTABLE[:4],
    defaultdict,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    SimpleNamespace,
    random.Random,
)


@contextmanager
def _forwards(f: Any) -> Iterator[None]:
    """Inside the block a module of the dynamic engine runs the converted form of its `forward` methods."""
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
