"""What a traced function reads besides its arguments, so that a compiled graph reads it again in each call.

A tensor of the dynamic engine is an input: its array is read when the graph is called. `Fresh` is one that is made
anew in each call, such as a key for random numbers. A `Guard` is an attribute that Python decided by: a graph serves
only while it has the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple, Protocol

from graphs.blocks import Table
from graphs.spec import TensorSpec, spec_of


class Source(Protocol):
    """Something whose array is an input of every graph that reads it."""

    def captured_array(self) -> Any:
        """The array it has now."""


tensors: list[type] = []
"""The tensor of the dynamic engine, which sources are, where that is loaded: a symbol stands for one."""


generators: list[Any] = []
"""Generators of random numbers that a traced function asks to draw in each call, and not while it is traced."""


class Guard(NamedTuple):
    """An attribute that a trace has read, and its value then."""

    owner: Any
    attribute: str
    value: Any

    def now(self) -> Any:
        """Its value now."""
        return getattr(self.owner, self.attribute)

    def __str__(self) -> str:
        return f"{type(self.owner).__name__}.{self.attribute.lstrip('_')} was {self.value!r}"


Guards = dict[tuple[int, str], Guard]


class Fresh:
    """An input that `make` gives a value in each call of a graph, like one that is given, or that is made at once.

    What is `drawn` is random: a loop of the graph, which would have the same numbers in each turn, refuses it. Where
    there is an op `by_turn`, it makes the value of each turn, from this one and the number of the turn.
    """

    def __init__(self, make: Callable[[], Any], like: Any = None, drawn: bool = False, by_turn: Any = None) -> None:
        self.captured_array, self.drawn, self.by_turn = make, drawn, by_turn
        spec: TensorSpec = spec_of(make() if like is None else like)
        self.shape, self.dtype = spec.shape, spec.dtype


Watcher = Callable[[], Guards | None]
_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> None:
    """Let `watcher()` give the guards of the trace that runs now, to be added to, or None."""
    _watchers.append(watcher)


def is_traced() -> bool:
    """Whether what runs now becomes a graph."""
    return any(watcher() is not None for watcher in _watchers)


step_traces: Table[tuple[int, Any]] = {}
"""The traces of steps that run now, `static.trace.step`, each with its thread."""


def step_trace() -> Any:
    """The trace of a step that runs in this thread: it makes the tensors, and does the updates. None outside of one."""
    if not step_traces:
        return None
    here = get_ident()
    return next((trace for thread, trace in reversed(list(step_traces.values())) if thread == here), None)


_pauses: list[Callable[[], int]] = []


def pause(depth: Callable[[], int]) -> None:
    """Let `depth()` say in how many blocks what runs now is that give it no gradient, as `no_grad` does; 0 in none."""
    _pauses.append(depth)


def pause_depth() -> int:
    """In how many such blocks what runs now is."""
    return max([depth() for depth in _pauses]) if _pauses else 0


def read(owner: Any, attribute: str) -> Any:
    """An attribute that decides what is computed; the trace that runs now is told of it."""
    value = getattr(owner, attribute)
    for watcher in _watchers:
        guards = watcher()
        if guards is not None:
            guards[id(owner), attribute] = Guard(owner, attribute, value)
    return value
