"""Kernels go with the executables that run them, and a process may fork while another thread compiles."""

from __future__ import annotations

import gc
import os
import threading
import warnings
import weakref

import numpy as np
import pytest

import static

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import link, target
from static.native import target as machines

X = np.arange(37, dtype="f4")


def compiled(factor):
    return static.compile(lambda x: x * factor - 3, X, backend="native")


def test_kernels_go_with_the_last_executable_that_runs_them(monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    link.entry(target.host())  # has a library of its own, which stays
    libraries = weakref.WeakSet()
    loaded = link._Library

    def noted(*parts):
        library = loaded(*parts)
        libraries.add(library)
        return library

    monkeypatch.setattr(link, "_Library", noted)
    monkeypatch.setattr(link, "_in_use", weakref.WeakValueDictionary())
    first, other = compiled(1.5), compiled(1.5)
    assert len(link._in_use) == len(libraries) == 1
    del first
    gc.collect()
    assert len(link._in_use) == len(libraries) == 1
    np.testing.assert_array_equal(other(X), X * 1.5 - 3)
    del other
    gc.collect()
    assert not link._in_use
    assert not libraries


def test_compilers_go_with_their_libraries(monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    monkeypatch.setattr(link, "SHARED", 2)
    kept = compiled(0.25)
    for number in range(5):
        exe = compiled(number + 2.25)
        np.testing.assert_array_equal(exe(X), X * (number + 2.25) - 3)
    assert link._jit.cache_info().currsize == 1
    np.testing.assert_array_equal(kept(X), X * 0.25 - 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_child_is_not_left_with_a_lock_that_nobody_gives_back():
    held, forked = threading.Event(), threading.Event()

    def compiling():
        with target.lock:
            held.set()
            forked.wait(0.2)

    thread = threading.Thread(target=compiling)
    thread.start()
    held.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads
        child = os.fork()
    if not child:
        os._exit(0 if target.lock.acquire(timeout=5) else 1)
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_library_goes_later_where_another_thread_compiles(monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    exe = compiled(3.5)
    held, ended = threading.Event(), threading.Event()

    def compiling():
        with target.lock:
            held.set()
            ended.wait()

    thread = threading.Thread(target=compiling)
    thread.start()
    held.wait()
    del exe
    gc.collect()
    assert link._gone
    ended.set()
    thread.join()
    compiled(4.5)
    gc.collect()
    assert not link._gone
