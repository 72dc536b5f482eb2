"""Values that a traced function reads besides its arguments, so that a compiled graph reads them again in each call.

A tensor of the dynamic engine is an input: its array is read when the graph is called. `Fresh` is a value that is made
anew in each call, such as a key for random numbers. A `Guard` is an attribute that Python decided by: a graph serves
only while the attribute has the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple, Protocol
from weakref import finalize, ref

import numpy as np

from graphs.blocks import Table
from graphs.spec import TensorSpec, spec_of


class Source(Protocol):
    """An object whose array is an input of every graph that reads it."""

    def captured_array(self) -> Any:
        """The current array of the object."""


tensors: list[type] = []
"""The tensor of the dynamic engine, which sources are, where that is loaded: a symbol stands for one."""


generators: list[Any] = []
"""Generators of random numbers that a traced function asks to draw in each call, and not while it is traced."""


class Guard(NamedTuple):
    """An attribute that a trace has read, and its value at that time."""

    owner: Any
    attribute: str
    value: Any

    def now(self) -> Any:
        """The current value of the attribute."""
        return getattr(self.owner, self.attribute)

    @property
    def varies(self) -> bool:
        """Whether the value of a tensor changes so often that new graphs decide by it in each call."""
        return isinstance(self.owner, DecidingValue) and self.owner.varies

    def __str__(self) -> str:
        name = self.owner.name if isinstance(self.owner, DecidingValue) else type(self.owner).__name__
        return f"{name}.{self.attribute.lstrip('_')} was {self.value!r}"


class _Void:
    value = None


VOID = Guard(_Void, "value", None)
"""Stands in the place of a guard that no further graph has, so that the places of others stay."""
Guards = dict[tuple[int, str], Guard]
LARGEST_DECIDING, MOST_VALUES = 4096, 4
"""The bytes of a tensor by which Python may decide, and the number of its values for which there are graphs."""


class DecidingValue:
    """The value of a tensor that a traced function reads, where Python has decided by it: the owner of a guard."""

    def __init__(self, source: Source) -> None:
        self._source = ref(source)
        self._last = np.asarray(source.captured_array()).tobytes()
        self._values: set[bytes] = set()
        self.name = f"a tensor {spec_of(source)}"

    @property
    def value(self) -> bytes:
        """The present bytes of the tensor, or the last ones of one that is gone."""
        source = self._source()
        if source is not None:
            self._last = np.asarray(source.captured_array()).tobytes()
        return self._last

    @property
    def varies(self) -> bool:
        """Whether it had too many values when it was asked for: no further graph holds for one of them alone."""
        return len(self._values) > MOST_VALUES

    def note(self) -> None:
        """Note the present value, which a trace asks for."""
        self._values.add(self.value)


Owners = dict[int, DecidingValue]
_deciding: Owners = {}
_handed: Owners = {}


def _owner(owners: Owners, source: Source) -> DecidingValue:
    """Return the value of a tensor by the tensor's id, which is forgotten with it."""
    if id(source) not in owners:
        owners[id(source)] = DecidingValue(source)
        finalize(source, owners.pop, id(source), None)
    return owners[id(source)]


def deciding_value(source: Source) -> DecidingValue | None:
    """Return the value of a tensor for a guard; None for a large one, one that is trained, and one that varies much."""
    if isinstance(source, Fresh) or getattr(source, "requires_grad", False):
        return None
    if np.asarray(source.captured_array()).nbytes > LARGEST_DECIDING:
        return None
    value = _owner(_deciding, source)
    value.note()
    return None if value.varies else value


class Fresh:
    """An input whose value `make()` returns anew in each call of a graph; its spec is that of `like`.

    Without `like` the first value gives the spec. `drawn` says that the value is random: a loop of the graph, where
    each iteration would get the same numbers, refuses such an input. An op `by_turn` lifts this: it makes the value of
    an iteration from this one and the iteration's number.
    """

    def __init__(self, make: Callable[[], Any], like: Any = None, drawn: bool = False, by_turn: Any = None) -> None:
        self.captured_array, self.drawn, self.by_turn = make, drawn, by_turn
        spec: TensorSpec = spec_of(make() if like is None else like)
        self.shape, self.dtype = spec.shape, spec.dtype


def hand_out(source: Source) -> None:
    """Enter the value of a tensor that is handed to Python as a guard of the trace that runs now, if any does."""
    trace = trace_now()
    if trace is not None:
        owner = _owner(_handed, source)
        trace[id(owner), "value"] = Guard(owner, "value", owner.value)


Watcher = Callable[[], Guards | None]
_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> None:
    """Register `watcher()`, which returns the mutable guards of the trace that runs now, or None outside a trace."""
    _watchers.append(watcher)


def is_traced() -> bool:
    """Whether the running code is being traced into a graph."""
    return trace_now() is not None


def trace_now() -> Any:
    """An object that stands for the trace that runs now, None outside a trace."""
    return next((guards for watcher in _watchers if (guards := watcher()) is not None), None)


step_traces: Table[tuple[int, Any]] = {}
"""The traces of steps that run now, `static.trace.step`, each with its thread."""


def step_trace() -> Any:
    """The trace of a whole training step that runs in this thread: it makes tensors and updates. None without one."""
    if not step_traces:
        return None
    here = get_ident()
    return next((trace for thread, trace in reversed(list(step_traces.values())) if thread == here), None)


makers: list[Callable[[Any], Any]] = []
"""Functions that return a tensor which the traced function makes as a constant of its graph, in memory of its own."""


def make_constant(leaf: Any) -> Any:
    """A tensor that was made from no other; in a trace a constant of the graph, which may be changed in place."""
    if is_traced():
        for make in makers:
            leaf = make(leaf)
    return leaf


_pauses: list[Callable[[], int]] = []


def pause(depth: Callable[[], int]) -> None:
    """Register `depth()`, which returns how many blocks without gradients (`no_grad`) surround the running code."""
    _pauses.append(depth)


def pause_depth() -> int:
    """How many blocks without gradients, such as `no_grad`, surround the running code."""
    return max([depth() for depth in _pauses]) if _pauses else 0


def read(owner: Any, attribute: str) -> Any:
    """Read an attribute that decides what is computed, and enter it as a guard of the trace that runs now."""
    value = getattr(owner, attribute)
    for watcher in _watchers:
        guards = watcher()
        if guards is not None:
            guards[id(owner), attribute] = Guard(owner, attribute, value)
    return value
