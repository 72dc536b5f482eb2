"""Places that user code writes to besides its variables, and the journal of those writes.

A branch that only the run takes is traced like one that is taken: its writes to lists, dicts, attributes and variables
of other functions are noted, undone when its trace ends, and made again with the values that the graph computes.

Read `WritePlace`, `Region` and `journal` first. At the end come iterators (which items may be taken where the graph has
to agree with Python, which cannot move an iterator back), and reads and writes of containers and objects.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, MutableMapping, MutableSet
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from graphs.blocks import Block, Table, enter, innermost
from graphs.builder import Builder
from graphs.ops.elementwise import where
from graphs.ops.movement import astype, stack
from static.convert.stage.conversion import part
from static.convert.stage.trees import MergedValue, cast_leaf, is_leaf
from static.convert.stage.unknown import Unset, is_number, is_symbol, mark_chosen, refuse, weak
from static.trace.control import building, choice
from static.trace.symbol import Symbol
from static.trace.tracing import current

MUTABLE = (list, dict, set, deque, bytearray, np.ndarray)


class WritePlace(Protocol):
    """A place that can be written to. Two with one `key` are the same; `label` names it in messages."""

    @property
    def key(self) -> Hashable: ...  # noqa: D102
    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def owner(self) -> Any: ...  # noqa: D102
    def get(self) -> Any: ...  # noqa: D102
    def put(self, value: Any) -> None: ...  # noqa: D102


class Contents:
    """The contents of a list, dict, set, deque or array, as a copy, without a subclass's own methods."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.key = ("contents", id(owner))
        self.label = f"what a {type(owner).__name__} holds"

    def get(self) -> Any:
        """Return a copy of the contents."""
        return _base(self.owner).copy(self.owner)

    def put(self, value: Any) -> None:
        """Replace the contents by these."""
        owner, base = self.owner, _base(self.owner)
        if base in (list, bytearray):
            base.__setitem__(owner, slice(None), value)
        elif base is np.ndarray:
            owner[...] = value
        elif base is deque:
            deque.clear(owner)
            deque.extend(owner, value)
        elif base is OrderedDict:
            OrderedDict.clear(owner)
            for key in value:
                OrderedDict.__setitem__(owner, key, value[key])
        else:
            base.clear(owner)
            base.update(owner, value)


def _base(owner: Any) -> Any:
    """Return the class of Python or NumPy that a container belongs to, under any class of the user's."""
    return next(base for base in (OrderedDict, *MUTABLE) if isinstance(owner, base))


class MissingAttribute:
    """Stands for an attribute that does not exist."""


class Attribute:
    """An attribute of an object."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.key = ("attribute", id(owner), name)
        self.label = f"{type(owner).__name__}.{name}"

    def get(self) -> Any:
        """Return the value of the attribute, or MissingAttribute."""
        held = getattr(self.owner, "__dict__", None)
        return (
            getattr(self.owner, self.name, MissingAttribute) if held is None else held.get(self.name, MissingAttribute)
        )

    def put(self, value: Any) -> None:
        """Set the attribute, or delete it for MissingAttribute."""
        if value is not MissingAttribute:
            _own_method(self.owner, "__setattr__")(self.owner, self.name, value)
        elif self.get() is not MissingAttribute:
            _own_method(self.owner, "__delattr__")(self.owner, self.name)


def _own_method(owner: Any, name: str) -> Any:
    """Return Python's own method; one of the user's would do more than undo or merge a write."""
    held = (vars(base)[name] for base in type(owner).__mro__ if name in vars(base))
    return next(method for method in held if not isinstance(method, FunctionType))


class Outer:
    """A variable of a module or of an enclosing function."""

    def __init__(self, name: str, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        self.get, self.put = get, put
        self.owner = holder(get, name)
        self.key = ("variable", id(self.owner), name)
        self.label = repr(name)


def holder(get: Any, name: str) -> Any:
    """Return the object that holds the variable which `get` reads: its cell, or its module's namespace."""
    function: FunctionType = get
    free = function.__code__.co_freevars
    cells: tuple[CellType, ...] = function.__closure__ or ()
    return cells[free.index(name)] if name in free else function.__globals__


class Variable:
    """A variable of a block that is written to by code which the block is passed to.

    The region `around` sets its variables itself, as do the regions around it, so they need no note of this one.
    """

    def __init__(self, variables: Any, number: int, around: Region | None = None) -> None:
        self._variables, self._number, self.around = variables, number, around
        name = variables.names[number]
        self.owner = holder(variables.get, name)
        self.key = ("variable", id(self.owner), name)
        self.label = repr(name)

    def get(self) -> Any:
        """Return the value of the variable."""
        return self._variables.get()[self._number]

    def put(self, value: Any) -> None:
        """Set the variable."""
        values = list(self._variables.get())
        values[self._number] = value
        self._variables.put(values)


class Write(NamedTuple):
    """A place, and its value before the first write to it."""

    place: WritePlace
    before: Any


class Region(Block):
    """The writes of a stretch of user code; it is `conditional` where only the run knows if it is reached."""

    def __init__(self, conditional: bool = True) -> None:
        self.conditional = conditional
        self.builder: Builder | None = None
        self._is_graph = False
        self._writes: dict[Hashable, Write] = {}
        self._made: dict[int, Any] = {}  # objects that did not exist before, alive so that their ids stay theirs

    def __enter__(self) -> Self:
        self.builder, around = current(), innermost(part(Regions).running, None)
        self._is_graph = around is None or around.builder is not self.builder
        enter(part(Regions).running, self.hold(), self)
        return self

    def has_noted(self, place: WritePlace) -> bool:
        """Whether the region has noted a place's earlier value."""
        return place.key in self._writes

    def note(self, place: WritePlace) -> None:
        """Note the present value of a place."""
        self._writes[place.key] = Write(place, place.get())

    def make(self, value: Any) -> None:
        """Record an object that exists from now on; writes to it concern nobody outside the region."""
        self._made[id(value)] = value

    def has_made(self, value: Any) -> bool:
        """Whether an object was made in this region; a symbol was, if its node is in the graph that begins here."""
        if isinstance(value, Symbol):
            return self._is_graph and value.builder is self.builder
        return id(value) in self._made

    def changed(self) -> list[Write]:
        """Return the writes whose places now differ from before."""
        return [write for write in self._writes.values() if not _is_same(write.place.get(), write.before)]

    def undo(self, seen: Callable[[Any], Any] = lambda value: value) -> dict[Hashable, tuple[WritePlace, Any]]:
        """Restore the places. Returns the changed ones by key, each with `seen(value)` of its value at the end."""
        changed = {write.place.key: (write.place, seen(write.place.get())) for write in self.changed()}
        for write in reversed(self._writes.values()):
            write.place.put(write.before)
        return changed


@contextmanager
def putting_back() -> Iterator[None]:
    """Undo at the end of the block what converted code changes: nothing lasts that a graph would have to repeat."""
    with Region(is_conditional()) as region:
        region._is_graph = True  # the nodes that symbols stand for belong to the graph, and stay
        try:
            yield
        finally:
            region.undo()


class Regions:
    """The regions that run now, the innermost last."""

    def __init__(self) -> None:
        self.running: Table[Region | None] = {}


class FrozenContainers:
    """Containers that nothing may change, because only the run knows which container a value is."""

    def __init__(self) -> None:
        self.by_id: dict[int, Any] = {}  # alive, so that the id stays theirs


def regions() -> Iterator[Region]:
    """Return the regions that run now, the innermost first."""
    return (region for region in reversed(list(part(Regions).running.values())) if region is not None)


def is_traced_by_region() -> bool:
    """Whether the graph that is traced belongs to the innermost region, and not to a body given to an op."""
    region = innermost(part(Regions).running, None)
    return region is not None and region.builder is current()


def is_conditional() -> bool:
    """Whether only the run knows if the present code is reached."""
    return any(region.conditional for region in regions())


def note_new(value: Any) -> Any:
    """Return the value; a container is recorded as new, since nobody else holds it yet."""
    return note_object(value) if isinstance(value, MUTABLE) else value


def note_object(value: Any) -> Any:
    """Return an object that a class has just made, and record it as new."""
    region = innermost(part(Regions).running, None)
    if region is not None:
        region.make(value)
    return value


def note_part(value: Any, owner: Any) -> Any:
    """Return a part of an object, recorded as made where the object was made."""
    for region in regions():
        if region.has_made(owner):
            region.make(value)
            break
    return value


def is_new(value: Any) -> bool:
    """Whether an object was made in the innermost region."""
    region = innermost(part(Regions).running, None)
    return region is not None and region.has_made(value)


def is_ours(value: Any) -> bool:
    """Whether an object was made in this trace, outside any enclosing branch, so that the graph repeats its changes."""
    for region in regions():
        if region.has_made(value):
            return True
        if region.conditional:
            return False
    return next(regions(), None) is None


def freeze(value: Any) -> None:
    """Forbid converted code to change a container, since only the run knows which of two it is."""
    part(FrozenContainers).by_id[id(value)] = value


def check_not_frozen(value: Any) -> None:
    """Raise ControlFlowError for an object that must not change any more."""
    if id(value) in part(FrozenContainers).by_id:
        kind = type(value).__name__
        refuse(f"a {kind} changes, and only the run knows which one that is, or where it stands; change it before")


def journal(place: WritePlace) -> None:
    """Note a place's value, before a write, in each region that is younger than the place."""
    check_not_frozen(place.owner)
    around = place.around if isinstance(place, Variable) else None
    for region in regions():
        if region is around or region.has_noted(place) or region.has_made(place.owner):  # and so have those around it
            break
        region.note(place)


def write(place: WritePlace, value: Any) -> None:
    """Write a value to a place, after noting it in the journal."""
    journal(place)
    place.put(value)


class HeldValue:
    """A variable of the engine's own, which a loop of the graph can carry."""

    def __init__(self, value: Any) -> None:
        self._cell = note_object([value])

    @property
    def value(self) -> Any:
        """The present value."""
        return self._cell[0]

    def set(self, value: Any) -> None:
        """Set the value."""
        journal(Contents(self._cell))
        self._cell[0] = value


def journal_container(value: Any) -> None:
    """Note the contents of a container, before a call that may change it."""
    if isinstance(value, MUTABLE):
        journal(Contents(value))


def _is_same(now: Any, before: Any) -> bool:
    """Whether a place holds the same objects as before, in the same order."""
    if now is before:
        return True
    if type(now) is not type(before) or not isinstance(now, MUTABLE):
        return False
    if isinstance(now, np.ndarray):
        return now.shape == before.shape and bool(np.array_equal(now, before, equal_nan=now.dtype.kind == "f"))
    if len(now) != len(before):
        return False
    if isinstance(now, MutableMapping):
        return all(a is b for a, b in zip(now, before, strict=True)) and all(now[k] is before[k] for k in now)
    if isinstance(now, MutableSet):
        return bool(now == before)
    return all(a is b for a, b in zip(now, before, strict=True))


TAKEN_WHOLE: tuple[type, ...] = (
    enumerate,
    zip,
    type(reversed([])),
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
)
"""Iterators over containers; taking all their items at once changes nothing but the iterator."""
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_RESTING = (list, tuple, range, dict, set, frozenset, str, bytes, bytearray, deque, OrderedDict, np.ndarray, Symbol)
_RESTING_ITERS = {getattr(kind, "__iter__", None) for kind in (*_RESTING, *_VIEWS)}


def is_at_rest(items: Any) -> bool:
    """Whether taking an item has no side effect, since the items of a container exist already."""
    return type(items) in TAKEN_WHOLE or getattr(type(items), "__iter__", None) in _RESTING_ITERS


def is_iterator(items: Any) -> bool:
    """Whether taking an item changes what is left."""
    return hasattr(type(items), "__next__")


def check_takes(items: Any) -> None:
    """Raise ControlFlowError for an iterator that nothing could move back, or that lasts beyond the call."""
    if is_iterator(items) and not is_ours(items):
        refuse(
            "an iterator moves on where only the run knows whether that is reached, or it lasts beyond the call; loop "
            "over a list of its items"
        )


def item(container: Any, key: Any) -> Any:
    """Return `container[key]`; for a list, also at an index that only the run knows, if its items are alike."""
    if is_symbol(key) and isinstance(container, (list, tuple)):
        if not container or not all(map(is_leaf, container)):
            refuse("only the run knows which item of a list is read; make the list an array, by graphs.stack")
        spec, at = MergedValue("an item of the list", container).spec, _from_front(key, len(container))
        values = [cast_leaf(value, spec) for value in container]
        if building().saving:  # the gradient reaches none of the others
            values = [choice(at == i, value, cast_leaf(Unset(""), spec)) for i, value in enumerate(values)]
        picked = stack(values)[at]
        return weak(picked) if all(map(is_number, container)) else mark_chosen(picked)
    value = container[key]
    return note_new(value) if isinstance(key, slice) and isinstance(container, list) else value


def tried_item(container: Any, key: Any) -> Any:
    """Return `container[key]` where a handler would catch an IndexError."""
    if is_symbol(key):
        refuse("only the run knows whether this index is there, and a graph catches no error; ask for it by an if")
    return item(container, key)


def _from_front(key: Symbol, length: int) -> Any:
    return astype(where(key < 0, key + length, key), np.int64)


def set_item(container: Any, key: Any, value: Any) -> None:
    """Do `container[key] = value`."""
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
    """Do `del container[key]`."""
    journal_container(container)
    del container[key]


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Do `owner.name = value`."""
    write(Attribute(owner, name), value)


def delete_attribute(owner: Any, name: str) -> None:
    """Do `del owner.name`."""
    journal(Attribute(owner, name))
    delattr(owner, name)


def assign_expression(variables: Any, value: Any) -> Any:
    """Do `(name := value)` in a part of an expression that is a function of its own; return the value."""
    journal(Variable(variables, 0))
    variables.put((value,))
    return value


def own_variables(get: Any) -> None:
    """Record the cells of a function just entered, whose variables inner functions set, as new."""
    for cell in get.__closure__ or ():
        note_object(cell)


def outer(name: str, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
    """Note an outer variable in the journal, when a function that writes to it is entered."""
    journal(Outer(name, get, put))
