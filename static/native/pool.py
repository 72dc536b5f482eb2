"""Threads that wait in machine code, without Python's lock, until a step of the same process has work for them.

`drivers` has their code. A thread that finds nothing to do polls for some hundred microseconds, and then sleeps. The
threads start with the first executable for that number of threads, and end with the last. Before a process forks they
are stopped, and they start again afterwards, in both processes.
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

from static.native import layouts, link
from static.native import target as machines
from static.native.layouts import KERNEL, PoolState
from static.native.target import Target

NAME = "graphduel"  # the name of the threads
TIMES = 50  # measurements of sharing work
TURNS = 20_000  # turns that each thread counts then: some microseconds, in which all of them can begin
SLOWEST = 20_000  # nanoseconds that this is said to take at most

_pools: weakref.WeakValueDictionary[tuple[int, Target], Pool] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def count(threads: int | str) -> int:
    """Return the number of threads that an option means: "all" is one for each core that this process may use."""
    return threads if isinstance(threads, int) else machines.cores()


def pool_of(threads: int, target: Target) -> Pool | None:
    """Return the pool of this many threads, including the caller's; None for one thread, and without POSIX threads."""
    if threads == 1 or os.name != "posix":
        return None
    with _lock:
        pool = _pools.get((threads, target))
        if pool is None:
            pool = _pools[threads, target] = Pool(threads, target)
        return pool


class Pool:
    """A number of threads, including the caller's; `state` is the memory that their code reads."""

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
        """End the threads after their present work; later work runs in the thread that has it."""
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
        if thread is not threading.current_thread():  # the pool may be collected as this very thread ends
            thread.join()
    waiting.clear()


def _nanoseconds(pool: Pool) -> int:
    """Return the nanoseconds that sharing work takes: the least that any process measured, kept in the cache.

    Other processes may run meanwhile. Where the machine was too busy to tell, it is `SLOWEST`, and nothing is kept.
    """
    name = machines.kernel_key(["sharing at least", pool.threads, platform.platform(), platform.node()], pool.target)
    measured = _sharing_cost(pool)
    is_measured = measured > 0
    measured = min(SLOWEST, measured) if is_measured else SLOWEST
    with contextlib.suppress(TypeError, ValueError):
        kept = int(machines.load_code(name) or b"")
        if 0 < kept <= measured:
            return kept
    if is_measured:
        machines.save_code(name, str(measured).encode())
    return measured


def _sharing_cost(pool: Pool) -> int:
    """Return how many nanoseconds longer one counting list per thread takes than one list alone.

    Both times are the least of several. An interrupted run is longer, so at most one of them is wrong; the difference
    may then be negative.
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
