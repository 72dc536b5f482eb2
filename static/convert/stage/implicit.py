"""Methods that Python calls implicitly (properties, `__getitem__`, `__bool__`, `__iter__`), converted if the user's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from types import FunctionType, GetSetDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from static.convert.stage import branches, places, unknown
from static.convert.stage.calls import call
from static.convert.stage.conversion import Missing, class_attribute, is_of_a_class_statement, special, users
from static.convert.stage.effects import check_changing, check_quiet, check_read, check_write
from static.convert.stage.places import (
    Attribute,
    check_takes,
    is_conditional,
    is_ours,
    note_new,
    note_part,
    write,
)
from static.convert.stage.unknown import check_key, is_symbol, refuse

_QUIET_EXITS = ("suppress", "nullcontext", "errstate", "catch_warnings")


# Attributes ----------------------------------------------------------------------------------------------------------


def attribute(owner: Any, name: str) -> Any:
    """Return `owner.name`."""
    kind = type(owner)
    if kind is super:
        return _of_a_base(owner, name)
    if name == "__dict__":
        return note_part(getattr(owner, name), owner)
    if isinstance(owner, ModuleType):
        return _of_a_module(owner, name)
    if not is_of_a_class_statement(owner if isinstance(owner, type) else kind):
        return getattr(owner, name)
    return _find_attribute(owner, name)


def refuse_plain_read(owner: Any, *_: Any) -> NoReturn:
    """Refuse `object.__getattribute__(owner, name)`."""
    refuse(f"an attribute of a {type(owner).__name__} is read past its class's own rules; read it by its name")


def attribute_or(owner: Any, name: str, *default: Any) -> Any:
    """Return `getattr(owner, name, default)`."""
    try:
        return attribute(owner, name)
    except AttributeError:
        if default:
            return default[0]
        raise


def has_attribute(owner: Any, name: str) -> bool:
    """Return `hasattr(owner, name)`."""
    return attribute_or(owner, name, Missing) is not Missing


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Do `owner.name = value`."""
    by_all = special(owner, "__setattr__")
    if by_all is not None:
        call(by_all)(owner, name, value)
    else:
        set_attribute_plainly(owner, name, value)


def set_attribute_plainly(owner: Any, name: str, value: Any) -> None:
    """Do `object.__setattr__(owner, name, value)`, through a property or a descriptor where there is one."""
    held = class_attribute(type(owner), name)
    _check_no_descriptor(owner, held)
    if isinstance(held, property) and held.fset is not None:
        call(held.fset)(owner, value)
    else:
        _check_attributes(owner, name)
        places.set_attribute(owner, name, value)


def delete_attribute(owner: Any, name: str) -> None:
    """Do `del owner.name`."""
    held = class_attribute(type(owner), name)
    _check_no_descriptor(owner, held)
    if special(owner, "__delattr__") is not None or isinstance(held, property):
        refuse(f"`del` calls a method of {type(owner).__name__}, which is not converted; call a method by its name")
    _check_attributes(owner, name)
    places.delete_attribute(owner, name)


def _check_no_descriptor(owner: Any, held: Any) -> None:
    """Raise ControlFlowError for an attribute that a descriptor of the user's gives, or a `__getattribute__`."""
    methods = [name for name in ("__get__", "__set__", "__delete__") if special(held, name) is not None]
    if special(owner, "__getattribute__") is not None:
        methods = ["__getattribute__"]
    if methods:
        kind = type(owner) if methods == ["__getattribute__"] else type(held)
        refuse(f"{kind.__name__}.{methods[0]} is not converted; write a property, or a __getattr__")


def _check_attributes(owner: Any, name: str) -> None:
    """Raise ControlFlowError for an attribute that is more than a value stored under its name."""
    if name == "__class__":
        refuse("the class of an object changes, which a graph does not repeat; make another object")
    is_kept = isinstance(owner, (type, ModuleType, FunctionType, SimpleNamespace))
    is_kept = is_kept or is_of_a_class_statement(type(owner))
    is_computed = isinstance(class_attribute(type(owner), name), GetSetDescriptorType)
    if is_computed or isinstance(owner, np.ndarray) or not is_kept:
        check_changing(owner)


def _find_attribute(owner: Any, name: str) -> Any:
    """Return an attribute of an object or a class, through the user's property where there is one."""
    held = class_attribute(type(owner), name)
    if isinstance(owner, type) and held is Missing:
        held, place = class_attribute(owner, name), None
    else:
        place = owner
    _check_no_descriptor(owner, held)
    if isinstance(held, property) and place is not None and users(held.fget) is not None:
        return call(held.fget)(owner)
    if isinstance(held, cached_property) and place is not None and name not in vars(owner):
        write(Attribute(owner, name), call(held.func)(owner))
    method = special(owner, "__getattr__")
    if method is None:
        return getattr(owner, name)
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return call(method)(owner, name)


def _of_a_base(bound: Any, name: str) -> Any:
    """Return `super().name`."""
    kinds = list(bound.__self_class__.__mro__)
    for base in kinds[kinds.index(bound.__thisclass__) + 1 :]:
        held = vars(base).get(name)
        if isinstance(held, property) and users(held.fget) is not None:
            return call(held.fget)(bound.__self__)
        if held is not None:
            break
    return getattr(bound, name)


def _of_a_module(module: ModuleType, name: str) -> Any:
    method = users(vars(module).get("__getattr__"))
    return getattr(module, name) if method is None or name in vars(module) else call(method)(name)


# Items ---------------------------------------------------------------------------------------------------------------


def item(container: Any, key: Any) -> Any:
    """Return `container[key]`."""
    return _item(places.item, container, key)


def tried_item(container: Any, key: Any) -> Any:
    """Return `container[key]` where a handler would catch an IndexError."""
    return _item(places.tried_item, container, key)


def _item(plain: Callable[[Any, Any], Any], container: Any, key: Any) -> Any:
    method = special(container, "__getitem__")
    if method is not None:
        return call(method)(container, key)
    check_read(key)
    if isinstance(container, dict):
        _check_key(key)
        if key not in container:
            return _missing(container, key)
    elif is_of_a_class_statement(type(container)):
        check_quiet(container)
    return plain(container, key)


def _missing(container: dict[Any, Any], key: Any) -> Any:
    """Return the value that a dict gives for a missing key."""
    method = special(container, "__missing__")
    if method is not None:
        return call(method)(container, key)
    if isinstance(container, defaultdict) and container.default_factory is not None:
        new = call(container.default_factory)()
        places.set_item(container, key, note_new(new))
        return new
    return container[key]


def set_item(container: Any, key: Any, value: Any) -> None:
    """Do `container[key] = value`."""
    method = special(container, "__setitem__")
    if method is not None:
        call(method)(container, key, value)
        return
    _check_key(key)
    check_write(container, key)
    places.set_item(container, key, value)


def delete_item(container: Any, key: Any) -> None:
    """Do `del container[key]`."""
    method = special(container, "__delitem__")
    if method is not None:
        call(method)(container, key)
        return
    _check_key(key)
    check_write(container, key)
    places.delete_item(container, key)


def _check_key(key: Any) -> None:
    check_key(key)
    check_quiet(key)


def fresh_container(container: Any) -> Any:
    """Return a container made by a display or a comprehension, which nobody else holds."""
    if isinstance(container, (dict, set)):
        for key in container:
            _check_key(key)
    return note_new(container)


# Tests ---------------------------------------------------------------------------------------------------------------


def truth_value(value: Any) -> Any:
    """Return a value whose truth Python can tell: for an object of the user's, the result of its method."""
    method = special(value, "__bool__")
    if method is not None:
        return call(method)(value)
    method = special(value, "__len__")
    return value if method is None else call(method)(value) != 0


def truth(value: Any = False) -> Any:
    """Return `bool(value)`."""
    answer = truth_value(value)
    return unknown.truth(answer) if is_symbol(answer) else bool(answer)


def both(first: Any, second: branches.Block) -> Any:
    """Return `first and second()`."""
    test = truth_value(first)
    return branches.both(first, second) if test is first else branches.choose(test, second, lambda: first)


def any_of(first: Any, second: branches.Block) -> Any:
    """Return `first or second()`."""
    test = truth_value(first)
    return branches.any_of(first, second) if test is first else branches.choose(test, lambda: first, second)


def length(value: Any) -> Any:
    """Return `len(value)`."""
    method = special(value, "__len__")
    return len(value) if method is None else call(method)(value)


# Iteration, with, signs ----------------------------------------------------------------------------------------------


def loop_items(items: Any) -> Any:
    """Return the iterable that a loop goes over."""
    method = special(items, "__iter__")
    if method is not None:
        items = call(method)(items)
    if special(items, "__next__") is not None:
        refuse(f"{type(items).__name__}.__next__ is not converted; write a generator")
    return items


def spread(items: Any) -> Any:
    """Return the items that Python spreads into a call or a display; Python asks for their length as well."""
    if special(items, "__iter__") is None or special(items, "__len__") or special(items, "__length_hint__"):
        check_quiet(items)
    items = loop_items(items)
    check_takes(items)
    return items


def context_manager(manager: Any) -> Any:
    """Return the context manager that a `with` enters."""
    if special(manager, "__enter__") is not None or special(manager, "__exit__") is not None:
        return _UserContext(manager)
    check_read(manager)
    module = type(manager).__module__.partition(".")[0]
    is_known = type(manager).__name__ in _QUIET_EXITS or module in ("graphs", "static", "dynamic")
    if is_conditional() and not is_known and not is_ours(manager):
        refuse(
            f"a {type(manager).__name__} is entered where only the run knows whether that is reached, and nothing "
            "tells what it changes; enter it outside of the branch or loop"
        )
    return manager


class _UserContext:
    """A context manager of the user's, whose methods are converted."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        return call(type(self._manager).__enter__)(self._manager)

    def __exit__(self, *error: object) -> Any:
        return call(type(self._manager).__exit__)(self._manager, *error)


_SIGNS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "USub": ("__neg__", lambda value: -value),
    "UAdd": ("__pos__", lambda value: +value),
    "Invert": ("__invert__", lambda value: ~value),
}


def unary(name: str, value: Any) -> Any:
    """Return `-value`, `+value` or `~value`, by the operator's name."""
    method, plain = _SIGNS[name]
    own = special(value, method)
    return plain(value) if own is None else call(own)(value)
