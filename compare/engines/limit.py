"""A time limit for code that may not end: a compiler may hang, or take minutes for each of many shapes.

The limit counts seconds of the process rather than of the wall: a compile that shares its core with other work takes
twice as long, and is not to blame (`SpentSeconds`).
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
"""The seconds after which an alarm is repeated, as a compiler may have swallowed the first."""
LOOKS, OFTEN = 10, 1.0
"""The number of looks at a process before its limit, and the most seconds between two looks."""


class LimitError(UnsupportedError):
    """The measured code took longer than its limit."""


# What counts ----------------------------------------------------------------------------------------------------------


class SpentSeconds:
    """The seconds that a process and its children have spent; `look` must be called often.

    A second counts in which one of them had a core, and one in which none waited for a core: a process that hangs
    spends time as well. On systems other than Linux, which do not tell, seconds of the wall count.
    """

    def __init__(self, pid: int) -> None:
        self.seconds, self._pid = 0.0, pid
        self._at, self._shares = time.monotonic(), shares(pid)

    def look(self) -> float:
        """Return the seconds spent until now."""
        at, now = time.monotonic(), shares(self._pid)
        passed, before = at - self._at, self._shares
        ran, waited = (
            sum(share[i] - before.get(task, (0, 0))[i] for task, share in now.items()) / 1e9 for i in range(2)
        )
        self.seconds += min(passed, max(ran, passed - waited))
        self._at, self._shares = at, now
        return self.seconds


def shares(pid: int) -> dict[str, tuple[int, int]]:
    """Return, for each thread of a process and of its children, the ns on a core and the ns of waiting for one.

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
    """Return the most seconds between two looks at a process with a limit of `seconds`."""
    return min(seconds / LOOKS, OFTEN)


# A block of this process ----------------------------------------------------------------------------------------------


class _AlarmError(BaseException):
    """The time is over. It is no Exception, so that no compiler takes it for an error in the code that it compiles."""


@contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """A context that ends its block after so many seconds. Raises LimitError.

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
    """End the block, unless it is just entered or left: then the alarm would outlive it."""
    while frame is not None:
        if frame.f_code is _WITHIN:
            return
        frame = frame.f_back
    raise _AlarmError


_WITHIN = limit_seconds.__wrapped__.__code__  # type: ignore[attr-defined]
"""The code object of `limit_seconds`: its frame is on the stack while a block is entered or left, not while it runs."""


class _Alarm:
    """A timer of wall time, which a thread postpones by the seconds that other processes had of this core.

    A thread does it, as code of ours in the main thread, where the block runs, would be seen by a compiler or debugger.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._spent = seconds, SpentSeconds(os.getpid())
        self._lock, self._stopped = threading.Lock(), threading.Event()

    def start(self) -> None:
        self._set(self._seconds)
        threading.Thread(target=self._postpone, name="limit", daemon=True).start()

    def stop(self) -> None:
        """Stop the timer for good."""
        self._stopped.set()
        with self._lock:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _postpone(self) -> None:
        while not self._stopped.wait(looks_every(self._seconds)):
            left = self._seconds - self._spent.look()
            if left <= 0:
                return  # the alarm rings by itself
            self._set(left)

    def _set(self, seconds: float) -> None:
        with self._lock:
            if not self._stopped.is_set():
                signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
