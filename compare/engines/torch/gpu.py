"""PyTorch on a GPU of CUDA's: its clock by events, and the bytes that its allocator has given.

Both follow the documented calls of `torch.cuda` alone: `Event.elapsed_time`, which resolves about half a microsecond,
and `max_memory_allocated` since `reset_peak_memory_stats`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Protocol

from compare.engines.heap import ByteCounter


class TimingEvent(Protocol):
    """What is asked of `torch.cuda.Event`."""

    def record(self) -> object:
        """Put it behind what the GPU has been given."""

    def synchronize(self) -> object:
        """Return when the GPU has come to it."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this event to another."""


class EventClock:
    """Nanoseconds on the GPU. Each reading puts an event behind what the GPU was given, and returns when it is there.

    They are added up from one event to the next, since milliseconds are told as a float32.
    """

    def __init__(self, event: Callable[[], TimingEvent]) -> None:
        self._event, self._nanoseconds = event, 0
        self._last = self._record_event()

    def __call__(self) -> int:
        """The nanoseconds from when this clock was made until the GPU has done all that it was given."""
        event = self._record_event()
        self._nanoseconds += round(self._last.elapsed_time(event) * 1e6)
        self._last = event
        return self._nanoseconds

    def _record_event(self) -> TimingEvent:
        event = self._event()
        event.record()
        event.synchronize()
        return event


def allocator(cuda: Any) -> ByteCounter:
    """Counts what the allocator of `torch.cuda` has given, from what is in use before a call."""

    def live() -> int:
        gc.collect()
        return int(cuda.memory_allocated())

    def peak(call: Callable[[], object]) -> int:
        before = live()
        cuda.reset_peak_memory_stats()
        call()
        cuda.synchronize()
        return int(cuda.max_memory_allocated()) - before

    return ByteCounter("allocator", live, peak)
