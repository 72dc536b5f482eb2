"""The time of compilation: seconds of this thread's CPU by phase, each without the phases inside it.

trace, differentiate      the function run on symbols, and the backward pass appended
each pass, by its name    with the work of `pipeline.run` around it: verifying, counting
schedule, lower           the order of nodes and shared memory; the generated code, and its compilation by Python
plan, bind                offsets in the arena; the function with its buffers
"""

from __future__ import annotations

import threading
import time
from typing import Any

from graphs.blocks import Block, Table, enter, innermost

Seconds = dict[str, float]


class _Open:
    """An open phase: when it began, and the seconds of CPU time that the phases inside it have taken."""

    def __init__(self, name: str) -> None:
        self.name, self.start, self.inner = name, time.thread_time(), 0.0


class _Thread(threading.local):
    def __init__(self) -> None:
        self.seconds: Table[Seconds] = {}
        self.phases: Table[_Open | None] = {}


_thread = _Thread()


class adding_to(Block):  # noqa: N801  (a context manager)
    """Add the seconds of each phase inside the block to this table."""

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        enter(_thread.seconds, self.hold(), self._seconds)


class phase(Block):  # noqa: N801  (a context manager)
    """Measure the block as a phase of this name; the time of phases inside the block is not counted in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._outer = innermost(_thread.phases, None)
        self._open = _Open(self._name)
        enter(_thread.phases, self.hold(), self._open)

    def finish(self, *_: Any) -> None:  # type: ignore[override]  # which has this block at hand
        """Add the seconds of this phase to the table of the innermost `adding_to` block."""
        whole = time.thread_time() - self._open.start
        seconds = innermost(_thread.seconds, {})
        seconds[self._name] = seconds.get(self._name, 0.0) + whole - self._open.inner
        if self._outer is not None:
            self._outer.inner += whole


def current() -> str:
    """Return the name of the innermost open phase, "" where none is open."""
    open_phase = innermost(_thread.phases, None)
    return "" if open_phase is None else open_phase.name
