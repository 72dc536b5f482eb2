"""A limit in seconds for what may not end: a compiler hangs, or takes minutes for each of many shapes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from compare.errors import UnsupportedError

AGAIN = 1.0
"""Seconds after which an alarm comes again: a compiler may have swallowed the first."""


class LimitError(UnsupportedError):
    """What was to be measured took longer than it may."""


class _AlarmError(BaseException):
    """Time is over. No Exception, so that no compiler takes it for an error in what it compiles."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """A block that may take so many seconds, and then ends where it is. Raises LimitError.

    A block ends when Python runs its next instruction: a call into native code that does not come back is left to the
    time limit of the worker. Blocks do not nest. Only the main thread has a limit, where the system has alarms.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _AlarmError:
        raise LimitError(f"it did not end in {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(*_: Any) -> NoReturn:
    raise _AlarmError
