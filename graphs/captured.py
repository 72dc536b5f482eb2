"""What a traced function reads besides its arguments, so that a compiled graph reads it again in each call.

A tensor of the dynamic engine is an input: its array is read when the graph is called. `Fresh` is one that is made
anew in each call, such as a key for random numbers. A `Guard` is a value that Python decided by: a graph serves only
while it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from graphs.spec import TensorSpec, spec_of


class Source(Protocol):
    """Something whose array is an input of every graph that reads it."""

    def captured_array(self) -> Any:
        """The array it has now."""


class Guard(NamedTuple):
    """A value that a trace has read, the name it is told by, and how to read it again."""

    name: str
    read: Callable[[], Any]
    value: Any

    def holds(self) -> bool:
        """Whether it is still the same."""
        return bool(self.read() == self.value)


class Fresh:
    """An input that `make` gives a value in each call of a graph."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.captured_array = make
        spec: TensorSpec = spec_of(make())
        self.shape, self.dtype = spec.shape, spec.dtype


Watcher = Callable[[], "list[Guard] | None"]
_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> None:
    """Let `watcher()` give the list of the guards of the trace that runs now, or None."""
    _watchers.append(watcher)


def is_watching() -> bool:
    """Whether a trace runs that must know what is read."""
    return any(watcher() is not None for watcher in _watchers)


def guard(name: str, read: Callable[[], Any], value: Any) -> None:
    """Tell the trace that runs now that its graph depends on a value."""
    for watcher in _watchers:
        guards = watcher()
        if guards is not None:
            guards.append(Guard(name, read, value))
