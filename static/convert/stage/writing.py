"""What user code reads of and writes to containers and objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs.ops.elementwise import where
from graphs.ops.movement import astype, stack
from static.convert.stage.places import (
    MUTABLE,
    Attribute,
    Contents,
    Outer,
    Variable,
    born,
    is_conditional,
    is_new,
    journal,
    journal_container,
    made,
    write,
)
from static.convert.stage.trees import Merged, is_leaf, typed
from static.convert.stage.unknown import Unset, chosen, is_number, is_symbol, refuse, weak
from static.trace.control import building, choice
from static.trace.symbol import Symbol


def item(container: Any, key: Any) -> Any:
    """`container[key]`: of a list, at a place that only the run knows, where its items are alike."""
    if is_symbol(key) and isinstance(container, (list, tuple)):
        return _picked(container, key)
    value = container[key]
    return made(value) if isinstance(key, slice) and isinstance(container, list) else value


def tried_item(container: Any, key: Any) -> Any:
    """`container[key]` where an IndexError would be caught."""
    if is_symbol(key):
        refuse("only the run knows whether this index is there, and a graph catches no error; ask for it by an if")
    return item(container, key)


def _picked(items: Any, key: Symbol) -> Any:
    if not items or not all(map(is_leaf, items)):
        refuse("only the run knows which item of a list is read; make the list an array, by graphs.stack")
    spec, at = Merged("an item of the list", items).spec, _from_front(key, len(items))
    values = [typed(value, spec) for value in items]
    if building().saving:  # the gradient reaches none of the others
        values = [choice(at == i, value, typed(Unset(""), spec)) for i, value in enumerate(values)]
    picked = stack(values)[at]
    return weak(picked) if all(map(is_number, items)) else chosen(picked)


def _from_front(key: Symbol, length: int) -> Any:
    return astype(where(key < 0, key + length, key), np.int64)


def set_item(container: Any, key: Any, value: Any) -> None:
    """`container[key] = value`."""
    if isinstance(container, np.ndarray) and is_conditional() and not is_new(container):
        refuse("an array is changed in place where only the run knows whether that is reached; use graphs.where")
    if is_symbol(key) and isinstance(container, list):
        journal(Contents(container))
        at = _from_front(key, len(container))
        container[:] = [choice(at == i, value, old) for i, old in enumerate(container)]
        return
    if isinstance(container, MUTABLE):
        journal(Contents(container))
    container[key] = value


def delete_item(container: Any, key: Any) -> None:
    """`del container[key]`."""
    journal_container(container)
    del container[key]


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`."""
    write(Attribute(owner, name), value)


def delete_attribute(owner: Any, name: str) -> None:
    """`del owner.name`."""
    journal(Attribute(owner, name))
    delattr(owner, name)


def assigned(variables: Any, value: Any) -> Any:
    """`(name := value)` in a part of an expression that may not run, or not now."""
    journal(Variable(variables, 0))
    variables.put((value,))
    return value


def owned(get: Any) -> None:
    """The variables of a function that has just been entered, which functions inside it set."""
    for cell in get.__closure__ or ():
        born(cell)


def outer(name: str, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
    """A function that writes to a variable outside of it has been entered."""
    journal(Outer(name, get, put))
