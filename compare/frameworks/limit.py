"""A time limit for what a compiler does: some programs take it minutes, and some for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WAITING = 4
"""How much longer than it computes something may take: other processes need the cores, and compilers are started."""


class Overrun(BaseException):
    """What ran took longer than it was given: no error of a program's, so that nothing which catches those keeps it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Overrun in the block after that many seconds of computing, in the main thread alone, as signals are.

    What runs in C without coming back to Python is not ended.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Overrun(f"it took more than {seconds:g} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, WAITING * seconds)}
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
