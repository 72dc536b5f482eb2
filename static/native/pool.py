"""Threads that wait in machine code, without Python's lock, until a step of the same process has work for them.

`drivers` has their code. A thread that finds nothing to do looks again for some hundred microseconds, and sleeps then.
They start with the first executable for so many threads, and end with the last. While a process forks there are none,
and then they start again, in both.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

from static.native import cache, layouts, link
from static.native.layouts import KERNEL, PoolState
from static.native.target import Target

NAME = "graphduel"  # of the threads
TIMES = 50  # that sharing work is measured
TURNS = 20_000  # that each thread then counts: some microseconds, in which all of them can begin
SLOWEST = 20_000  # nanoseconds that this is said to take at most

_pools: weakref.WeakValueDictionary[tuple[int, Target], Pool] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def count(threads: int | str) -> int:
    """The number of threads that an option means: "all" is one for each core that this process may use."""
    if isinstance(threads, int):
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool_of(threads: int, target: Target) -> Pool | None:
    """The pool of so many threads, the caller's among them; None for one, and where there are no POSIX threads."""
    if threads == 1 or os.name != "posix":
        return None
    with _lock:
        pool = _pools.get((threads, target))
        if pool is None:
            pool = _pools[threads, target] = Pool(threads, target)
        return pool


class Pool:
    """So many threads, with that of the caller; `state` is what their code reads."""

    def __init__(self, threads: int, target: Target) -> None:
        self.threads, self.target = threads, target
        self.code = link.drivers(target)
        self.state = state = layouts.pool_state()
        self._waiting: list[threading.Thread] = []
        self._finish = weakref.finalize(self, _stop, state, self._waiting)
        self.start()
        self.nanoseconds = _nanoseconds(self)

    def start(self) -> None:
        """Start the threads."""
        wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.code["attend"].address)
        self.state.stop = 0
        for _ in range(self.threads - 1):
            thread = threading.Thread(target=_attend, args=(wait, self.state), name=NAME, daemon=True)
            thread.start()
            self._waiting.append(thread)
        self.state.workers = len(self._waiting)

    def stop(self) -> None:
        """End the threads, after what they do now; work that comes meanwhile runs in the thread that has it."""
        _stop(self.state, self._waiting)


def _attend(wait: Any, state: PoolState) -> None:
    wait(ctypes.addressof(state))


def _stop(state: PoolState, waiting: list[threading.Thread]) -> None:
    state.workers, state.stop = 0, 1
    at = ctypes.addressof(state)
    mutex, condition = at + PoolState.mutex.offset, at + PoolState.condition.offset
    state.acquire(mutex)
    state.wake(condition)
    state.release(mutex)
    for thread in waiting:
        if thread is not threading.current_thread():  # whose end may be what collects the pool
            thread.join()
    waiting.clear()


def _nanoseconds(pool: Pool) -> int:
    """How long sharing work takes: the least that any process measured, since others may run meanwhile.

    Where the machine was too busy to tell, it is said to take the most, and nothing is kept of that.
    """
    name = cache.key(["sharing at least", pool.threads, platform.platform(), platform.node()], pool.target)
    measured = _sharing_cost(pool)
    is_measured = measured > 0
    measured = min(SLOWEST, measured) if is_measured else SLOWEST
    with contextlib.suppress(TypeError, ValueError):
        kept = int(cache.load(name) or b"")
        if 0 < kept <= measured:
            return kept
    if is_measured:
        cache.save(name, str(measured).encode())
    return measured


def _sharing_cost(pool: Pool) -> int:
    """How many nanoseconds longer lists that count take, one for each thread, than one such list.

    Both are the least of several times: one that was interrupted is longer, so that no more than one of them is wrong,
    and the difference is then no time at all.
    """
    turns = ctypes.c_int64(TURNS)
    call = layouts.KernelCall(pool.code["count"].address, ctypes.addressof(turns))
    lists = (layouts.CallList * pool.threads)(*[layouts.CallList(1, ctypes.addressof(call))] * pool.threads)
    share = KERNEL(pool.code["parallel"].address)
    alone, shared = (min(_times(share, pool, count, lists)) for count in (1, pool.threads))
    return shared - alone


def _times(share: Any, pool: Pool, count: int, lists: Any) -> Iterator[int]:
    for _ in range(TIMES):
        header = layouts.ParallelHeader(ctypes.addressof(pool.state), count, ctypes.addressof(lists))
        start = time.perf_counter_ns()
        share(ctypes.addressof(header))
        yield time.perf_counter_ns() - start


def _before_fork() -> None:
    _lock.acquire()
    for pool in list(_pools.values()):
        pool.stop()


def _after_fork(*, is_child: bool) -> None:
    for pool in list(_pools.values()):
        if is_child:  # a thread that is not here may have had the pool
            layouts.clear(pool.state)
        pool.start()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=functools.partial(_after_fork, is_child=False),
        after_in_child=functools.partial(_after_fork, is_child=True),
    )
