"""The process that measures: the bytes of its heap, its switches, and time limits for code that may not end.

Bytes are counted alike for every framework, by a preloaded C library that is built where a compiler is. The
frameworks' own counters do not count the same things: PyTorch's profiler sees tensors, XLA its buffers, and TensorFlow
has none for the CPU. Nearly all memory that they allocate on the CPU comes from malloc.

A process that belongs to the user is measured as its switches are set, and they are restored afterwards.

A compiler may hang, or take minutes for each of many shapes. A time limit counts seconds of the process rather than of
the wall: a compile that shares its core with other work takes twice as long, and is not to blame (`SpentSeconds`).
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

import numpy as np

from compare.errors import UnsupportedError

SOURCE = Path(__file__).with_name("heap.c")
PRELOAD = "LD_PRELOAD"
"""The variable that lists libraries which a process loads first."""


def heap_library(folder: Path) -> Path | None:
    """Return the path of the library, built in a folder if it is missing; None without glibc or a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    built = folder / "heap.so"
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = built.with_suffix(".partial")
        done = subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(partial)], check=False, capture_output=True
        )
        if done.returncode != 0:
            return None
        partial.replace(built)
    return built


def heap_environment(folder: Path) -> dict[str, str]:
    """Return the environment variable that makes a process count; empty where no library can be built."""
    built = heap_library(folder)
    return {PRELOAD: " ".join(filter(None, (str(built), os.environ.get(PRELOAD))))} if built else {}


def live() -> int:
    """Return the bytes in use after a garbage collection; 0 where this process does not count."""
    gc.collect()
    counter = _counter()
    return int(counter.graphduel_heap_live()) if counter else 0


def peak(call: Callable[[], object]) -> int | None:
    """Return how many bytes the use of memory rises in a call; None where this process does not count.

    The rise is measured from the lowest use before it: a training step that starts by dropping the gradients of the
    last step still needs room for its own.
    """
    gc.collect()
    counter = _counter()
    if counter:
        counter.graphduel_heap_restart()
    call()
    return int(counter.graphduel_heap_rise()) if counter else None


class ByteCounter(NamedTuple):
    """A counter of bytes: its name, the bytes in use now, and the rise in bytes during a call (None: not counted)."""

    name: Literal["malloc", "allocator"]
    live: Callable[[], int]
    peak: Callable[[Callable[[], object]], int | None]


def resident() -> int:
    """Return the resident bytes of this process now."""
    import psutil

    return int(psutil.Process().memory_info().rss)


MALLOC = ByteCounter("malloc", live, peak)


@cache
def _counter() -> ctypes.CDLL | None:
    loaded = ctypes.CDLL(None)
    if not hasattr(loaded, "graphduel_heap_live"):
        return None
    for name in ("live", "rise"):
        getattr(loaded, f"graphduel_heap_{name}").restype = ctypes.c_long
    return loaded


# Switches -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Switch:
    """A setting of the process: a function that reads its value, and one that writes it."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _set_environment(before: Mapping[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


PROCESS = (
    Switch(os.environ.copy, _set_environment),
    Switch(random.getstate, random.setstate),
    Switch(np.random.get_state, np.random.set_state),
    Switch(np.geterr, lambda before: np.seterr(**before)),
)
"""The switches of every process: environment, random states of Python and NumPy, and NumPy's errors."""


@contextmanager
def patch_namespace(space: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """A context in which a namespace has other values under some names; names that it lacked are removed at the end."""
    before = {name: space[name] for name in values if name in space}
    space.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                space[name] = before[name]
            else:
                del space[name]


@contextmanager
def keep_switches(switches: Iterable[Switch]) -> Iterator[None]:
    """A context in which these switches and the filters of warnings may change; all are restored at its end."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        for switch in switches:
            stack.callback(switch.write, switch.read())
        yield


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


class Neighbours:
    """The other processes on the cores of this process, and what the host of a virtual machine took of them."""

    def __init__(self) -> None:
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._at, self._own, self._busy = time.perf_counter(), time.process_time(), _busy_seconds()

    def share(self) -> float | None:
        """Return the share of the cores' seconds until now that they had, from 0 to 1; None where it is not told."""
        passed, own = time.perf_counter() - self._at, time.process_time() - self._own
        busy = _busy_seconds() - self._busy
        if not (self._cores and busy and passed):
            return None
        return min(1.0, max(0.0, (busy - own) / (passed * self._cores)))


def _busy_seconds() -> float:
    """Return the seconds in which the cores of this process were not idle, since the system started; 0 if untold."""
    ticks = 0
    with suppress(OSError, ValueError, AttributeError):
        names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        for line in Path("/proc/stat").read_text("ascii").splitlines():
            name, *counts = line.split()
            if name in names:
                user, nice, system, _idle, _waiting, *rest = map(int, counts[:8])
                ticks += user + nice + system + sum(rest)
        return ticks / os.sysconf("SC_CLK_TCK")
    return 0.0


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
