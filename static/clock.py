"""What compilation spends its time on: seconds of this thread's CPU by phase, each without the phases inside it.

trace, differentiate      the function run on symbols, and the backward pass appended
each pass, by its name    with what `pipeline.run` does around it: verifying, counting
schedule, lower           the order of nodes and what shares memory; the generated code, and its compilation by Python
plan, bind                offsets in the arena; the function with its buffers
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

Seconds = dict[str, float]


class _Now(threading.local):
    def __init__(self) -> None:
        self.seconds: Seconds = {}  # outside of `adding_to` nobody looks at it
        self.phase = ""
        self.inner = 0.0  # of the open phase, the seconds spent in phases inside it


_now = _Now()


@contextmanager
def adding_to(seconds: Seconds) -> Iterator[None]:
    """Add what each phase inside the block takes to these."""
    before, _now.seconds = _now.seconds, seconds
    try:
        yield
    finally:
        _now.seconds = before


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The block is this phase, but for the phases in it."""
    before, _now.phase, _now.inner = (_now.phase, _now.inner), name, 0.0
    start = time.thread_time()
    try:
        yield
    finally:
        whole = time.thread_time() - start
        _now.seconds[name] = _now.seconds.get(name, 0.0) + whole - _now.inner
        _now.phase, _now.inner = before[0], before[1] + whole


def current() -> str:
    """The innermost open phase; nothing where none is open."""
    return _now.phase
