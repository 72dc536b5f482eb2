"""The side effects of a function: it prints, draws random numbers, changes globals, its arguments or files.

Questions to the outside are effects as well: a function may read a file, a clock, the environment.

An eager mode runs the function's Python on every call, a compiled mode mostly when it traces alone. Side effects of
Python then happen in one mode alone, and a comparison of their times says nothing. So the function is run once, and all
that its code can reach is compared before and after; where something has changed, it is run again, line by line, for
the line that changed it. Outside effects of the first call alone do not count: every mode loads what it needs once.
`graphs.print` and `graphs.breakpoint` are ops, which both engines run on each call.

Not found: writes to a descriptor by its number (`os.write(1, ...)`), and changes inside objects of libraries.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import sys
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import numpy as np

import dynamic
from compare.engines import Engine
from compare.engines.reach import ReachedCode, entries_of, is_users_class, size_of, values_in
from compare.errors import EffectsError, is_users
from compare.subjects import traffic
from compare.subjects.subject import Subject
from graphs import tree
from graphs.errors import is_internal

LOOKING = 2.0
"""The seconds after which the search for the line of an effect ends."""
NO_RESULT = "returns None"
INPUT = "reads stdin"
ARGUMENT = "its argument"


@dataclass(frozen=True)
class SideEffect:
    """A side effect, and the line that causes it, `mine.py:12`, where that was found."""

    what: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.line})" if self.line else self.what


def refuse(name: str, effects: Sequence[SideEffect]) -> None:
    """Raise EffectsError with these effects, if there are any."""
    allow = "measure all the same with --allow-effects (allow_effects=True)"
    if [effect.what for effect in effects] == [NO_RESULT]:
        raise EffectsError(
            f"{name} {effects[0]}, so that there is nothing to compare; return what it computes, or {allow}"
        )
    if effects:
        remedy = "take it out"
        if any(effect.what in traffic.ASKS for effect in effects):
            remedy = "ask before, and give the answer as an argument"
        if any(effect.what == traffic.SYSTEM_DRAW for effect in effects):
            remedy = "seed what it draws, as in np.random.default_rng(0), or pass the numbers as an argument"
        if any(ARGUMENT in effect.what for effect in effects):
            remedy = "make a new array (x = x + 1 instead of x += 1)"
        raise EffectsError(
            f"{name} does more than give a result: {', '.join(map(str, effects))}. What runs its Python does that on "
            f"every call, a compiled mode only when it traces, so that their times cannot be compared; {remedy}, or "
            f"{allow}"
        )


def not_deterministic(name: str) -> EffectsError:
    """Return the error for a function whose results differ between two calls on the same arguments."""
    return EffectsError(
        f"{name} is not deterministic: two calls on the same arguments give different results, so that no mode can be "
        "compared with another. Seed what it draws, as in np.random.default_rng(0), or pass the numbers as an argument"
    )


def effects_in(subject: Subject, function: Callable[..., Any], call: Any, *, trains: bool = False) -> list[SideEffect]:
    """Return the function's side effects. Raises EffectsError where modes would not repeat them alike."""
    with traffic.one_process(subject.name):
        effects = effects_of(function, call, subject.adapter, trains=trains)
    if not (subject.allow_effects or subject.adapter.keeps_effects or trains):
        refuse(subject.name, effects)
    return effects


def effects_of(
    f: Callable[..., Any], example: Sequence[Any], engine: Engine, *, trains: bool = False
) -> list[SideEffect]:
    """Return the effects of one call. Raises what f raises.

    Python's and NumPy's random states stay as they were. A training step may return nothing. Tensors, modules and
    optimizers of a framework are not examined.
    """
    look = _Look(f, engine, example)
    with _random_states_kept():
        effects, changed, output = look.run()
        if effects:
            effects = look.again(effects)
        if changed:
            lines = look.lines(changed)
            effects += [SideEffect(f"changes {what}", lines.get(what, "")) for what in changed]
    if output is None and not trains:
        effects.append(SideEffect(NO_RESULT, _definition_line(f)))
    return effects


@dataclass(frozen=True)
class _Look:
    """A function that is called in an engine and watched, each time with arrays of its own."""

    f: Callable[..., Any]
    engine: Engine
    example: Sequence[Any]

    def run(self) -> tuple[list[SideEffect], list[str], Any]:
        """Return the outside effects of one call, the names of the objects it changed, and its output."""
        places, changed = list[Changeable](), list[str]()

        def wrapper(*args: Any) -> Any:
            places.extend(_places(self.f, copies, args))
            before = [place.read() for place in places]
            output = self.f(*args)
            changed.extend(place.name for place, old in zip(places, before, strict=True) if place.read() != old)
            return output

        copies, heard = _copy_example(self.example), list[SideEffect]()
        with _listening(heard, self.engine):
            try:
                output = self.engine.ops.called(wrapper, copies)
            except Exception:
                if INPUT not in (effect.what for effect in heard):
                    raise
                output = INPUT  # stdin has no answer
        return list(dict.fromkeys(heard)), list(dict.fromkeys(changed)), output

    def again(self, effects: Sequence[SideEffect]) -> list[SideEffect]:
        """Return the effects that a later call has too; all where it cannot be called twice."""
        heard = list[SideEffect]()
        with _listening(heard, self.engine):
            try:
                self.engine.ops.called(self.f, _copy_example(self.example))
            except Exception:  # noqa: BLE001  (for example, it removed a file in the first call)
                return list(effects)
        later = {effect.what for effect in heard}
        return [effect for effect in effects if effect.what in later]

    def lines(self, changed: Sequence[str]) -> dict[str, str]:
        """Return the line of the user's that first changed each of these, by another call."""
        lines, copies = dict[str, str](), _copy_example(self.example)

        def wrapper(*args: Any) -> Any:
            places = [place for place in _places(self.f, copies, args) if place.name in changed]
            with _stepping(places, lines):
                return self.f(*args)

        with _listening([], self.engine):
            self.engine.ops.called(wrapper, copies)
        return lines


@contextmanager
def _stepping(places: Sequence[Changeable], lines: dict[str, str]) -> Iterator[None]:
    """A context that checks the places after each line of the user's; a change belongs to the line before."""
    seen = {place.name: place.read() for place in places}
    last, until = [""], time.monotonic() + LOOKING

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if not is_users(frame.f_code.co_filename) or time.monotonic() > until:
            return None
        for place in places:
            if place.name not in lines and place.read() != seen[place.name]:
                lines[place.name] = last[0]
        if event == "line":
            last[0] = traffic.line(frame)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


class _Ear(io.TextIOBase):
    """A stream that notes which line of the user's writes to it; it shows only what ops write."""

    def __init__(self, name: str, stream: Any, heard: list[SideEffect], callbacks: tuple[str, ...]) -> None:
        self.stream_name, self.stream, self.heard, self.callbacks = name, stream, heard, callbacks

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Note which line of the user's writes; pass on what an op writes."""
        frame = _writer(sys._getframe(1), self.callbacks)
        if frame is None:
            self.stream.write(text)
        elif text:
            self.heard.append(SideEffect(f"writes to {self.stream_name}", traffic.line(frame)))
        return len(text)


class _Nobody(io.TextIOBase):
    """An empty stdin that notes which line of the user's reads it."""

    def __init__(self, heard: list[SideEffect]) -> None:
        self.heard = heard

    def readline(self, *_: Any) -> str:  # type: ignore[override]
        """Note the line that reads."""
        return self.read()

    def read(self, *_: Any) -> str:
        """Note the line that reads."""
        frame = _writer(sys._getframe(1))
        if frame is not None:
            self.heard.append(SideEffect(INPUT, traffic.line(frame)))
        return ""


@contextmanager
def _listening(heard: list[SideEffect], engine: Engine) -> Iterator[None]:
    def note(what: str, line: str) -> None:
        if what not in (effect.what for effect in heard):  # opening and writing a file are one effect
            heard.append(SideEffect(what, line))

    out, err = (_Ear(name, getattr(sys, name), heard, engine.callbacks) for name in ("stdout", "stderr"))
    stdin = sys.stdin
    sys.stdin = _Nobody(heard)
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            traffic.overheard(note, engine.caches),
            traffic.watch_traffic(note),
        ):
            yield
    finally:
        sys.stdin = stdin


def _writer(frame: FrameType | None, callbacks: tuple[str, ...] = ()) -> FrameType | None:
    """Return the user's frame that writes; None where an op writes, on every call, or a warning, which comes once."""
    users = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.replace(os.sep, "/").endswith(callbacks):
            return None
        if users is None and (is_internal(name) or name == warnings.__file__):
            return None
        if users is None and is_users(name):
            users = frame
        frame = frame.f_back
    return users


@contextmanager
def _random_states_kept() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  (the state that users' code shares)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _places(f: Callable[..., Any], example: Sequence[Any], args: Sequence[Any]) -> list[Changeable]:
    """Return all places to examine: random states, arguments before and inside the call, and what f's code reaches."""
    names = tree.argument_names(f, len(args))
    pairs = zip(names, zip(example, args, strict=True), strict=True)
    arguments = [Changeable(f"{ARGUMENT} `{name}`", partial(fingerprint, pair)) for name, pair in pairs]
    return [
        Changeable("the state of Python's random", random.getstate),
        Changeable("the state of np.random", lambda: str(np.random.get_state(legacy=False))),  # noqa: NPY002
        Changeable("the state of dynamic's generator", _generator_state),
        *arguments,
        *places(f),
    ]


def _generator_state() -> str:
    """Return the state of the dynamic engine's generator, where it is loaded."""
    random = sys.modules.get("dynamic.random")
    return "" if random is None else str(random.get_rng_state())


def _copy_example(example: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tree.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tuple(example)))


def _definition_line(f: Callable[..., Any]) -> str:
    code = getattr(f, "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""


# What calling a function may change ----------------------------------------------------------------------------------


MOST = 10_000
"""The most items of one container that are examined; of a longer one only its length."""
DEEPEST = 8

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, range, slice, itertools.count)


@dataclass(frozen=True)
class Changeable:
    """Something that can be changed: its name for messages, and a function that reads it."""

    name: str
    read: Callable[[], Any]


def places(f: Any) -> list[Changeable]:
    """Return all that the code of `f`, and of the user's functions that it names, can reach by name."""
    own = Changeable("the object that it is a method of", lambda: fingerprint(getattr(f, "__self__", f)))
    reached = ReachedCode(f)
    return [
        *([] if isinstance(f, FunctionType) else [own]),
        *(Changeable(place.label, partial(_state, place.read)) for place in reached.places),
        *(place for function in reached.functions for place in _of_function(function)),
    ]


def _of_function(f: FunctionType) -> Iterator[Changeable]:
    yield Changeable(f"an attribute of {f.__name__}", lambda: fingerprint(f.__dict__))


def _state(read: Callable[[], Any]) -> Any:
    """Return the fingerprint of a place's value; for a class that of its attributes."""
    value = read()
    if isinstance(value, type):
        held = {name: item for name, item in vars(value).items() if not name.startswith("__")}
        return id(value), fingerprint(held)[1]
    return fingerprint(value)


# Fingerprints ------------------------------------------------------------------------------------------------


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Return a value that changes with an object's contents.

    It has arrays by their bytes, containers and objects by their items, generators by their state, tensors by their
    arrays, modules by their tensors and their mode, and all others by identity.
    """
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, dynamic.Tensor):
        return id(value), fingerprint(value.numpy(force=True))
    if _is_module(value):
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
    if isinstance(value, (list, tuple, deque, dict, set, frozenset)) and size_of(value) > MOST:
        return size_of(value)
    if isinstance(value, (list, tuple, deque)):
        return [fingerprint(item, depth) for item in values_in(value)]
    if isinstance(value, dict):
        return [(fingerprint(key, depth), fingerprint(item, depth)) for key, item in entries_of(value)]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, (set, frozenset)):
        return frozenset(map(id, values_in(value))) if size_of(value) else 0
    return _items(vars(value), depth) if hasattr(value, "__dict__") and is_users_class(type(value)) else None


def _bytes(array: np.ndarray) -> Any:
    """Return a checksum of an array's bytes; for an object array the identities of its objects."""
    if array.dtype.hasobject:
        return tuple(map(id, array.ravel()[:MOST]))
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0
