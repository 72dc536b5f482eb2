"""The state that a call may change, and its restoration: all that a function, its code and its arguments hold.

Containers, attributes, globals and outer variables are restored, arrays and generators of random numbers with their
values. A framework's own objects are restored by its adapter (`CallState.kept`). Iterators are restored where Python
can copy them; others, such as generators, are reported (`Snapshot.spent`). Read `Piece` and `Snapshot` first.
"""

from __future__ import annotations

import copy
import dis
import random
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from compare.engines.reach import MISSING, behind, is_users_class, places_of, size_of, values_in
from compare.engines.step import Turns
from compare.errors import is_users

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(NotImplemented), type(...), range, slice)
_NO_STATE = (*_PLAIN, np.generic, np.dtype, ModuleType, BuiltinFunctionType, CodeType)
_RUNNING = (GeneratorType, CoroutineType, AsyncGeneratorType)
_OURS = ("compare", "static", "graphs")


@dataclass(frozen=True)
class Piece:
    """A part of the state, `of` some object: a test whether it is unchanged, and a function that restores it.

    `rewind` restores only values that run out: plain numbers and iterators. Arrays stay, and so do entries added since.
    `counts` tells whether a plain number of it has changed. `parts` are values inside it. `is_argument` marks an array
    among the arguments that is not trained. `again` makes an array that a call takes away ready for the next one, which
    then goes on from what this one returned.
    """

    same: Callable[[], bool] = lambda: True
    back: Callable[[], None] = lambda: None
    parts: Iterable[Any] = ()
    of: Any = None
    is_argument: bool = False
    rewind: Callable[[], None] = lambda: None
    counts: Callable[[], bool] = lambda: False
    again: Callable[[], None] | None = None


Kept = Callable[[Any], Piece | None]
"""A function that returns the piece for a framework's object, and None for any other value."""


class Snapshot:
    """The present state, for later restoration. `internals` are packages whose objects hold code and no state.

    `builders` are packages whose objects make parts of themselves when they are first called: these parts stay, and
    `add` notes their initial numbers. `inert` are packages whose objects add nothing to themselves: what a call adds to
    them is the user's, and goes again.
    """

    def __init__(
        self,
        function: Any,
        calls: Sequence[Any],
        kept: Kept,
        internals: Sequence[str] = (),
        builders: Sequence[str] = (),
        inert: Sequence[str] = (),
    ) -> None:
        self._kept, self._internals, self._builders, self._inert = kept, (*internals, *_OURS), builders, inert
        self._seen: dict[int, Any] = {}  # which also keeps each id
        self._iterators = _Iterators()
        self._running: list[tuple[str, Any, Any]] = []
        self._functions: list[FunctionType] = []
        self.pieces: list[Piece] = []
        self._ahead: list[tuple[Any, str, bool, bool]] = [
            (list(calls), "an argument", True, False),
            (function, "", False, False),
        ]
        while self._ahead:
            self._enter(*self._ahead.pop())

    def restore(self) -> None:
        """Restore the whole state."""
        self.back(self.pieces)()

    def rewind(self) -> None:
        """Rewind values that run out, as schedules do; trained values and new parts stay as they are now."""
        self._iterators.begin()
        for piece in self.pieces:
            piece.rewind()

    def changed(self) -> list[Piece]:
        """Return the pieces that have changed."""
        return [piece for piece in self.pieces if not piece.same()]

    @property
    def spent(self) -> list[str]:
        """Return the labels of iterators that advanced and cannot be restored: ``the global `batches` (f.py:12)``."""
        return [
            f"{label}{self._line_of(label)}" for label, running, before in self._running if _position(running) != before
        ]

    def _line_of(self, label: str) -> str:
        """Return the place where the user's code first names a label's variable, as ` (mine.py:12)`; "" if nowhere."""
        name = label.rpartition(" ")[2].strip("`").rpartition(".")[2]
        for function in self._functions:
            for instruction in dis.get_instructions(function):
                if instruction.argval == name and instruction.positions and instruction.positions.lineno:
                    return f" ({Path(function.__code__.co_filename).name}:{instruction.positions.lineno})"
        return ""

    def back(self, pieces: Sequence[Piece]) -> Callable[[], None]:
        """Return a function that restores these pieces only."""

        def back() -> None:
            self._iterators.begin()
            for piece in pieces:
                piece.back()

        return back

    def add(self, value: Any) -> None:
        """Note a holder of numbers that was just made."""
        self._ahead.append((value, "", False, True))
        while self._ahead:
            self._enter(*self._ahead.pop())

    # What lies in a value ---------------------------------------------------------------------------------------------

    def _enter(self, value: Any, label: str, is_argument: bool, built: bool) -> None:
        kind = type(value)
        if issubclass(kind, _NO_STATE) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        piece = self._kept(value) or _numbers(value)
        if piece is not None:
            is_argument = is_argument and not getattr(value, "requires_grad", False)
            self.pieces.append(replace(piece, parts=(), of=value, is_argument=is_argument))
            self._next(piece.parts, label, False, built)
        elif issubclass(kind, _RUNNING):
            self._running.append((label, value, _position(value)))
        elif issubclass(kind, (dict, list, set, deque)):
            self._container(value, label, is_argument, built)
        elif (inside := _inside(value)) is not None:
            self._next(inside, label, is_argument and isinstance(value, tuple), built)
        elif issubclass(kind, FunctionType):
            self._function(value, label)
        elif isinstance(value, type):
            self._class(value, label)
        elif hasattr(kind, "__next__") and not hasattr(value, "__dict__"):
            self._iterator(value, label)
        else:
            self._object(value, label, built)

    def _next(self, values: Iterable[Any], label: str, is_argument: bool, built: bool) -> None:
        self._ahead += [(value, label, is_argument, built) for value in values if type(value) not in _PLAIN]

    def _container(self, value: Any, label: str, is_argument: bool, built: bool) -> None:
        if not built:
            self.pieces.append(_items(value, self._iterators))
        keys = dict.keys(value) if isinstance(value, dict) else ()
        self._next([*keys, *values_in(value)], label, is_argument, built)
        self._attributes(value, label, built)

    def _function(self, function: FunctionType, label: str) -> None:
        users = is_users(function.__code__.co_filename)
        if users:
            self._functions.append(function)
            self._dict(vars(function), label, lambda name: not name.startswith("_"))
        for place in places_of(function, globals_too=users):
            value = place.read()
            self.pieces.append(_place(place.read, place.write, value, self._iterators))
            self._next((value,), place.label, False, False)
        self._next((behind(function),), label, False, False)

    def _class(self, kind: type, label: str) -> None:
        if not is_users_class(kind):
            return
        values = {
            name: value for name, value in vars(kind).items() if not (name.startswith("__") and name.endswith("__"))
        }
        data = {name: value for name, value in values.items() if not (callable(value) or hasattr(value, "__get__"))}
        self.pieces += [_attribute(kind, name, value, self._iterators) for name, value in data.items()]
        bound = (staticmethod, classmethod)
        functions = [value.__func__ if isinstance(value, bound) else value for value in values.values()]
        self._next([f.fget if isinstance(f, property) else f for f in functions], label, False, False)

    def _object(self, value: Any, label: str, built: bool) -> None:
        package = type(value).__module__
        internal = any(package == name or package.startswith(f"{name}.") for name in self._internals)
        if internal and not is_users_class(type(value)):  # the suite's models are in our packages
            return
        if isinstance(value, SimpleNamespace) or package.partition(".")[0] not in sys.stdlib_module_names:
            builds = any(base.__module__.partition(".")[0] in self._builders for base in type(value).__mro__)
            self._attributes(value, label, built or builds)
        self._next((behind(value),), label, False, built)

    def _attributes(self, value: Any, label: str, built: bool) -> None:
        users = is_users_class(type(value))
        space = getattr(value, "__dict__", None)
        if type(space) is dict:
            if built:
                self._next(space.values(), label, False, built)
            else:
                inert = type(value).__module__.partition(".")[0] in self._inert
                self._dict(space, label, lambda _: users or inert)
        if users:
            self._next((type(value),), label, False, False)
            for name, held in _slots(value):
                self.pieces.append(_attribute(value, name, held, self._iterators))
                self._next((held,), label, False, built)

    def _dict(self, space: dict[str, Any], label: str, removed: Callable[[str], bool]) -> None:
        """Add a namespace's piece; names that are new later are deleted on restoration where `removed(name)`."""
        self.pieces.append(_items(space, self._iterators, removed))
        self._next(space.values(), label, False, False)

    def _iterator(self, value: Any, label: str) -> None:
        try:
            self._iterators.keep(value)
        except TypeError:  # it reads from an object that cannot be copied
            with suppress(TypeError):
                self._next(_reduce_iterator(value)[1], label, False, False)


def _inside(value: Any) -> Iterable[Any] | None:
    """Return the values inside an immutable container, method or partial; None for other values."""
    if isinstance(value, (tuple, frozenset)):
        return values_in(value)
    if isinstance(value, MappingProxyType):
        return value.values()
    if isinstance(value, MethodType):
        return value.__self__, value.__func__
    return (value.func, value.args, value.keywords) if isinstance(value, partial) else None


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                yield name, getattr(value, name, MISSING)


def turns_of(state: Snapshot, epochs: Sequence[Callable[[], None]]) -> Turns:
    """Return the turns that restore the state in which these epochs begin; the state is restored at the end.

    Each epoch runs once to find its changes. Arguments are restored before each call, other changes before each block,
    and so are arguments that a call takes away: they are made ready again before each call.
    """
    changed: dict[int, Piece] = {}
    try:
        for epoch in epochs:
            state.restore()
            epoch()
            changed |= {id(piece): piece for piece in state.changed()}
    finally:
        state.restore()
    arguments = [piece for piece in changed.values() if piece.is_argument]
    before_block = [piece for piece in changed.values() if not piece.is_argument or piece.again]
    again = [Piece(back=each) for each in dict.fromkeys(piece.again for piece in arguments) if each]
    before_call = [*(piece for piece in arguments if not piece.again), *again]
    return Turns(state.back(before_block) if before_block else None, state.back(before_call) if before_call else None)


# Pieces ---------------------------------------------------------------------------------------------------------------


def _numbers(value: Any) -> Piece | None:
    """Return the piece of a NumPy array, or of a random generator of NumPy or Python; None for other values."""
    if isinstance(value, np.ndarray):
        before = value.copy()

        def same() -> bool:
            return value.shape == before.shape and value.tobytes() == before.tobytes()

        def back() -> None:
            if value.flags.writeable and value.shape == before.shape:
                np.copyto(value, before)

        return Piece(same, back, list(value.flat) if value.dtype.hasobject else ())
    if isinstance(value, random.Random):
        return _stored_piece(value.getstate, value.setstate)
    if isinstance(value, np.random.Generator):
        value = value.bit_generator
    if isinstance(value, np.random.BitGenerator):
        return _stored_piece(lambda: copy.deepcopy(value.state), partial(setattr, value, "state"), repr)
    if isinstance(value, np.random.RandomState):
        return _stored_piece(value.get_state, value.set_state, repr)
    return None


def _stored_piece(
    read: Callable[[], Any], write: Callable[[Any], None], told: Callable[[Any], Any] = lambda state: state
) -> Piece:
    before = read()
    return Piece(lambda: bool(told(read()) == told(before)), lambda: write(before))


def _items(value: Any, iterators: _Iterators, removed: Callable[[Any], bool] = lambda _: True) -> Piece:
    """Return the piece of a dict, list, set or deque, read and written by the methods of Python's own class."""
    if isinstance(value, dict):
        return _entries(value, iterators, removed)
    kind: Any = next(kind for kind in (list, set, deque) if isinstance(value, kind))
    before = values_in(value)

    def same() -> bool:
        return size_of(value) == len(before) and all(map(iterators.same, values_in(value), before))

    def back() -> None:
        if not same():
            kind.clear(value)
            (kind.update if kind is set else kind.extend)(value, map(iterators.renewed, before))

    def rewind() -> None:
        if all(map(iterators.runs_out, before)):
            back()

    return Piece(same, back, rewind=rewind)


def _entries(value: dict[Any, Any], iterators: _Iterators, removed: Callable[[Any], bool]) -> Piece:
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    before = dict(kind.items(value))

    def same() -> bool:
        now = kind.keys(value)
        added = [key for key in now if key not in before and removed(key)] if len(now) != len(before) else []
        return (
            not added
            and all(iterators.same(dict.get(value, key, MISSING), held) for key, held in before.items())
            and not before.keys() - now
        )

    def back() -> None:
        if not same():
            others = {key: held for key, held in kind.items(value) if key not in before and not removed(key)}
            kind.clear(value)
            for key, held in before.items():
                kind.__setitem__(value, key, iterators.renewed(held))
            for key, held in others.items():
                kind.__setitem__(value, key, held)

    def rewind() -> None:
        for key, held in before.items():
            if iterators.runs_out(held) and key in value:
                kind.__setitem__(value, key, iterators.renewed(held))

    return Piece(same, back, rewind=rewind, counts=lambda: any(_counts(value.get(key), before[key]) for key in before))


def _attribute(holder: Any, name: str, before: Any, iterators: _Iterators) -> Piece:
    """Return the piece of an attribute of a class, or of one with a slot."""

    def read() -> Any:
        return vars(holder).get(name, MISSING) if isinstance(holder, type) else getattr(holder, name, MISSING)

    def write(value: Any) -> None:
        if value is MISSING:
            delattr(holder, name)
        else:
            (type if isinstance(holder, type) else object).__setattr__(holder, name, value)

    return _place(read, write, before, iterators)


def _place(read: Callable[[], Any], write: Callable[[Any], None], before: Any, iterators: _Iterators) -> Piece:
    """Return the piece of a place that code names; `write` empties it where the value is MISSING."""

    def same() -> bool:
        return iterators.same(read(), before)

    def back() -> None:
        if not same():
            write(iterators.renewed(before))

    def rewind() -> None:
        if iterators.runs_out(before):
            back()

    return Piece(same, back, rewind=rewind, counts=lambda: _counts(read(), before))


def _counts(now: Any, before: Any) -> bool:
    """Return whether a number has changed to another number; a flag is none."""
    return type(now) is type(before) and type(now) in (int, float) and now != before


# Iterators ------------------------------------------------------------------------------------------------------------


class _Iterators:
    """Copies of iterators: on restoration each place that held an iterator gets the same copy."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._made: dict[int, Any] = {}

    def keep(self, iterator: Any) -> None:
        """Note the position of an iterator. Raises TypeError where it cannot be copied."""
        self._before[id(iterator)] = _copy_iterator(iterator)

    def begin(self) -> None:
        """Begin a restoration, which makes new copies."""
        self._made.clear()

    def same(self, now: Any, before: Any) -> bool:
        """Return whether a value is the same object as before, or an iterator at the same position."""
        pristine = self._before.get(id(before))
        if pristine is None:
            return now is before
        return type(now) is type(pristine) and bool(_position(now) == _position(pristine))

    def runs_out(self, before: Any) -> bool:
        """Return whether a value may run out: a plain number or text, a tuple of them, or an iterator."""
        return _is_plain(before) or id(before) in self._before

    def renewed(self, before: Any) -> Any:
        """Return the value to restore: a copy of an iterator, or the value itself."""
        pristine = self._before.get(id(before))
        if pristine is None:
            return before
        return self._made.setdefault(id(before), _copy_iterator(pristine))


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def _reduce_iterator(iterator: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Return the parts of an iterator by `__reduce__`. Raises TypeError where it cannot be taken apart."""
    if isinstance(iterator, _RUNNING):
        raise TypeError("a generator has no copy")
    made = iterator.__reduce__()
    if isinstance(made, str):
        raise TypeError(made)
    function, arguments, *state = made
    return function, arguments, state[0] if state else None


def _copy_iterator(iterator: Any) -> Any:
    """Return a copy of an iterator: it reads the same list, and has its own copy of buffered items."""
    function, arguments, state = _reduce_iterator(iterator)
    fresh = function(*(_copy_within(part) for part in arguments))
    if isinstance(state, tuple):
        state = tuple(list(part) if isinstance(part, list) else _copy_within(part) for part in state)
    if state is not None:
        fresh.__setstate__(state)
    return fresh


def _copy_within(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_copy_within, part))
    return _copy_iterator(part) if hasattr(type(part), "__next__") else part


def _position(part: Any) -> Any:
    """Return a value that differs once an iterator has advanced."""
    if isinstance(part, GeneratorType):
        frame = part.gi_frame
        return None if frame is None else (frame.f_lasti, tuple(map(id, frame.f_locals.values())))
    if isinstance(part, tuple):
        return tuple(map(_position, part))
    if isinstance(part, list):
        return len(part), *map(id, (*part[:1], *part[-1:]))
    if hasattr(type(part), "__next__"):
        try:
            return _position(_reduce_iterator(part))
        except TypeError:
            return id(part)
    return part if isinstance(part, _PLAIN) else id(part)
