"""A limit in seconds for what may not end: a compiler hangs, or takes minutes for each of many shapes.

Its clock is that of the process and not that of the wall: a compile that shares its core with other work takes twice as
long, and is as little at fault (`Spent`).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from compare.errors import UnsupportedError

AGAIN = 1.0
"""Seconds after which an alarm comes again: a compiler may have swallowed the first."""
LOOKS, OFTEN = 10, 1.0
"""How often a process is looked at before its limit, and the most seconds between two looks."""


class LimitError(UnsupportedError):
    """What was to be measured took longer than it may."""


# What counts ----------------------------------------------------------------------------------------------------------


class SpentSeconds:
    """The seconds that a process has spent, itself and by what it has started; `look` must be called often.

    A second counts in which one of them had a core, and one in which none waited for a core: a process that hangs
    spends time as well. Where the system does not tell (all but Linux) it is the wall that counts.
    """

    def __init__(self, pid: int) -> None:
        self.seconds, self._pid = 0.0, pid
        self._at, self._shares = time.monotonic(), shares(pid)

    def look(self) -> float:
        """The seconds until now."""
        at, now = time.monotonic(), shares(self._pid)
        passed, before = at - self._at, self._shares
        ran, waited = (
            sum(share[i] - before.get(task, (0, 0))[i] for task, share in now.items()) / 1e9 for i in range(2)
        )
        self.seconds += min(passed, max(ran, passed - waited))
        self._at, self._shares = at, now
        return self.seconds


def shares(pid: int) -> dict[str, tuple[int, int]]:
    """For each thread of a process and of those that it has started, the ns that it ran and that it waited for a core.

    Empty where the system does not tell, or there is no such process.
    """
    told = {}
    with suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            ran, waited, _ = (task / "schedstat").read_text("ascii").split()
            told[task.name] = int(ran), int(waited)
            for child in (task / "children").read_text("ascii").split():
                told |= shares(int(child))
    return told


def looks_every(seconds: float) -> float:
    """How many seconds may lie between two looks at a process that may spend so many."""
    return min(seconds / LOOKS, OFTEN)


# A block of this process ----------------------------------------------------------------------------------------------


class _AlarmError(BaseException):
    """Time is over. No Exception, so that no compiler takes it for an error in what it compiles."""


@contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """A block that may take so many seconds, and then ends where it is. Raises LimitError.

    A block ends when Python runs its next instruction: a call into native code that does not come back is left to the
    time limit of the worker. Blocks do not nest. Only the main thread has a limit, where the system has alarms.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    alarm = _Alarm(seconds)
    try:
        try:
            alarm.start()
            yield
        finally:
            alarm.stop()
    except _AlarmError:
        raise LimitError(f"it did not end in {seconds:g} s") from None
    finally:
        alarm.stop()
        signal.signal(signal.SIGALRM, before)


def _ring(_signal: int, frame: FrameType | None) -> None:
    """End the block; one that is being entered or left is let be, or its alarm would outlive it."""
    while frame is not None:
        if frame.f_code is _WITHIN:
            return
        frame = frame.f_back
    raise _AlarmError


_WITHIN = limit_seconds.__wrapped__.__code__  # type: ignore[attr-defined]
"""The code that enters and leaves a block: its frame is on the stack then, and not while the block runs."""


class _Alarm:
    """The timer of the system, which knows the wall alone, put off by a thread for what others had of this core.

    The main thread, where the block is, runs no code of ours meanwhile: a compiler or a debugger would see it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._spent = seconds, SpentSeconds(os.getpid())
        self._lock, self._stopped = threading.Lock(), threading.Event()

    def start(self) -> None:
        self._set(self._seconds)
        threading.Thread(target=self._postpone, name="limit", daemon=True).start()

    def stop(self) -> None:
        """There is no alarm from now on."""
        self._stopped.set()
        with self._lock:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _postpone(self) -> None:
        while not self._stopped.wait(looks_every(self._seconds)):
            left = self._seconds - self._spent.look()
            if left <= 0:
                return  # it rings by itself
            self._set(left)

    def _set(self, seconds: float) -> None:
        with self._lock:
            if not self._stopped.is_set():
                signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
