"""PyTorch on a CUDA GPU: a clock by events, and the bytes that its allocator has given out.

Both use only documented calls of `torch.cuda`: `Event.elapsed_time`, which resolves about half a microsecond,
and `max_memory_allocated` since `reset_peak_memory_stats`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Protocol

from compare.engines.heap import ByteCounter


class TimingEvent(Protocol):
    """The part of `torch.cuda.Event` that the clock uses."""

    def record(self) -> object:
        """Put the event behind the GPU's queued work."""

    def synchronize(self) -> object:
        """Wait until the GPU has reached the event."""

    def elapsed_time(self, end: Any) -> float:
        """Return the milliseconds from this event to another."""


class EventClock:
    """A clock in nanoseconds on the GPU: each reading queues an event and waits for it.

    It sums the times between successive events, since one time is a float32 of milliseconds.
    """

    def __init__(self, event: Callable[[], TimingEvent]) -> None:
        self._event, self._nanoseconds = event, 0
        self._last = self._record_event()

    def __call__(self) -> int:
        """Return the nanoseconds from the clock's start until the GPU has done its queued work."""
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
    """Return a counter of the bytes that `torch.cuda`'s allocator gives out, beyond those in use before a call."""

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
