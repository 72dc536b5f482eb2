"""Native code on several cores: the same bits with any number of threads, which come and go with their executables."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static
from benchmarks.programs import ROWS
from graphs.errors import GraphError

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from graphs.testing import samples
from static.native import binding, cores, pool
from static.native import target as machines
from static.native.target import host
from tests.helpers.native_cut import everything_cut
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import examples, mostly_slow
from tests.static.native.test_native_ops import EFFECTS, OPS, summed, together

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the pool is made of POSIX threads")

X = np.linspace(-2, 2, 300_000, dtype="f4").reshape(600, 500)


def bits(f, *args, threads):
    exe = static.compile(f, *args, backend="native", threads=threads)
    return [np.asarray(leaf).tobytes() for leaf in g.tree.leaves(exe(*args))]


def same_bits(f, *args, counts=(2, 3, 4)):
    expected = bits(f, *args, threads=1)
    return all(bits(f, *args, threads=count) == expected for count in counts)


def workers():
    return [thread for thread in threading.enumerate() if thread.name == pool.NAME]


def mixed(x):
    """Elementwise, sums over rows, columns and all, a softmax, products, and a loop."""
    y = g.tanh(x) * g.exp(-x * x)
    weights = g.softmax(x @ (x.T @ y), axis=-1)
    return y, g.sum(y), g.mean(y, axis=0), g.max(y, axis=1), g.mean(weights * y), g.any(y > 0.4, axis=0), weights @ x.T


# Bits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_slow([name for name in OPS if name not in EFFECTS], 30))
def test_samples_have_the_same_bits_with_any_number_of_threads(name):
    calls = [sample.cast("f4") for sample in samples(name)]
    every, arrays = together(calls)
    gradient, _, has_one = summed(calls)
    with np.errstate(all="ignore"), everything_cut():
        for f in [every, gradient] if has_one else [every]:
            assert same_bits(f, *arrays, counts=(2, 3))


@examples(0.5)
@given(st.integers(0, 2**32 - 1))
def test_random_programs_have_the_same_bits_with_any_number_of_threads(seed):
    program = random_program(seed)
    with np.errstate(all="ignore"), everything_cut():
        assert same_bits(static.value_and_grad(program), list(program.inputs), counts=(2, 4))


@pytest.mark.parametrize("name", mostly_slow([*ROWS], 2))
def test_training_steps_have_the_same_bits_with_any_number_of_threads(name):
    row = ROWS[name]()
    assert same_bits(static.value_and_grad(row.loss), row.params, *row.inputs)


def test_all_kinds_of_kernels_have_the_same_bits_with_any_number_of_threads():
    assert same_bits(mixed, X)


def test_a_scan_has_the_same_bits_with_any_number_of_threads():
    def f(xs, w):
        return g.scan(lambda h, x: (g.tanh(h @ w + x), g.sum(h)), xs[0], xs)

    rng = np.random.default_rng(0)
    with everything_cut():
        assert same_bits(f, rng.normal(size=(7, 40, 30)).astype("f4"), rng.normal(size=(30, 30)).astype("f4"))


def test_long_sums_of_parts_are_near_the_truth():
    x = np.random.default_rng(0).normal(size=3_000_000).astype("f4")
    total, mean = static.compile(lambda x: (g.sum(x), g.mean(x)), x, backend="native", threads=2)(x)
    exact = np.sum(x.astype(np.float64))
    assert abs(total - exact) <= 2e-7 * np.sum(np.abs(x.astype(np.float64)))
    assert abs(mean - exact / x.size) <= 1e-7


# What is cut ----------------------------------------------------------------------------------------------------


def test_what_is_too_short_is_not_cut(monkeypatch, tmp_path):
    monkeypatch.setenv(machines.CACHE_SWITCH, str(tmp_path))  # what sharing takes here was measured on some other day
    monkeypatch.setattr(pool, "_pools", weakref.WeakValueDictionary())
    monkeypatch.setattr(pool, "_sharing_cost", lambda _: 2000)
    exe = static.compile(g.tanh, X[:10], backend="native", threads=2)
    assert [kernel.recipe.sizes for kernel in exe.kernels] == [(5000,)]
    assert not workers()
    long = static.compile(g.tanh, X, backend="native", threads=2)
    assert sum(kernel.count for kernel in long.kernels) == 2 * cores.DEALT
    monkeypatch.setattr(cores, "PAYS", 10**9)
    exe = static.compile(g.tanh, X, backend="native", threads=2)
    assert [kernel.count for kernel in exe.kernels] == [1]


def test_sharing_takes_the_least_that_was_measured_on_a_machine(monkeypatch, tmp_path):
    monkeypatch.setenv(machines.CACHE_SWITCH, str(tmp_path))
    measured = pool.Pool(3, host()).nanoseconds
    assert 0 < measured <= pool.SLOWEST
    for later, expected in ((10**9, measured), (0, measured), (-50, measured), (1, 1), (5, 1)):  # busy, or not at all
        monkeypatch.setattr(pool, "_sharing_cost", lambda _, later=later: later)
        assert pool.Pool(3, host()).nanoseconds == expected
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    monkeypatch.setattr(pool, "_sharing_cost", lambda _: 10**9)
    assert pool.Pool(3, host()).nanoseconds == pool.SLOWEST


def test_kernels_of_parts_can_be_read():
    exe = static.compile(g.sum, X, backend="native", threads=2)
    assert all(isinstance(kernel, binding.ShownKernel) and "loop" in kernel.ir for kernel in exe.kernels)


# Options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, None, "two"])
def test_what_is_no_number_of_threads_is_refused(threads):
    for make in (static.compile, static.jit):
        with pytest.raises(GraphError, match=r"threads is 1 or more, or 'all', not"):
            make(lambda x: x, *([X] if make is static.compile else []), backend="native", threads=threads)


def test_numpys_kernels_have_no_threads():
    with pytest.raises(GraphError, match=r"threads=2 is of native code; use backend='native'"):
        static.compile(lambda x: x, X, threads=2)
    with pytest.raises(GraphError, match=r"threads='all' is of native code"):
        static.jit(lambda x: x, threads="all")


def test_all_is_every_core_that_this_process_may_use(tmp_path):
    expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert pool.count("all") == expected
    f = static.jit(mixed, backend="native", threads="all")
    one = static.jit(mixed, backend="native")
    for a, b in zip(f(X), one(X), strict=True):
        np.testing.assert_array_equal(a, b)
    exe = static.compile(lambda x: x + 1, X, backend="native")
    exe.save(tmp_path / "graph.zip")
    np.testing.assert_array_equal(static.load(tmp_path / "graph.zip", backend="native", threads=2)(X), X + 1)


def test_without_posix_threads_everything_runs_in_one(monkeypatch):
    monkeypatch.setattr(pool.os, "name", "nt")
    assert pool.pool_of(4, host()) is None
    assert same_bits(mixed, X, counts=(2,))


# Threads --------------------------------------------------------------------------------------------------------


def test_threads_go_with_the_last_executable_that_uses_them():
    exes = [static.compile(f, X, backend="native", threads=3) for f in (g.tanh, g.exp)]
    assert len(workers()) == 2
    exes.pop()
    gc.collect()
    assert len(workers()) == 2
    exes.pop()
    gc.collect()
    assert not workers()


def test_threads_end_with_the_process():
    code = (
        "import numpy as np, static, graphs as g\n"
        "exe = static.compile(g.tanh, np.ones(10**6, 'f4'), backend='native', threads=3)\n"
        "exe(np.ones(10**6, 'f4')); print('ran')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ran\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_child_has_threads_of_its_own():
    exe = static.compile(mixed, X, backend="native", threads=2)
    expected = [a.tobytes() for a in exe(X)]
    child = os.fork()  # of a process that has no other threads just then, so that Python does not warn
    if not child:
        same = [a.tobytes() for a in exe(X)] == expected
        os._exit(0 if same and len(workers()) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [a.tobytes() for a in exe(X)] == expected
    assert len(workers()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_runs_a_step():
    exe = static.compile(mixed, X, backend="native", threads=2)
    expected = [a.tobytes() for a in exe(X)]
    results, ended = [], threading.Event()

    def running():
        while not ended.is_set():
            results.append([a.tobytes() for a in exe(X)] == expected)

    thread = threading.Thread(target=running)
    thread.start()
    for _ in range(5):
        child = os.fork()
        if not child:
            os._exit(0 if [a.tobytes() for a in exe(X)] == expected else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ended.set()
    thread.join()
    assert results
    assert all(results)


def test_calls_at_the_same_time_share_the_pool():
    exe = static.compile(mixed, X, backend="native", threads=3)
    expected = [a.tobytes() for a in exe(X)]
    results = []

    def calls():
        results.extend([a.tobytes() for a in exe(X)] == expected for _ in range(10))

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 30


def test_a_step_that_is_interrupted_leaves_the_pool_as_it_was():
    class StopError(Exception):
        pass

    def interrupt(*_):
        raise StopError

    def forever():
        signal.setitimer(signal.ITIMER_REAL, 0.005)  # here, as a busy machine may strike at once
        while True:
            exe(X)

    exe = static.compile(mixed, X, backend="native", threads=2)
    expected = [a.tobytes() for a in exe(X)]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(5):
            with pytest.raises(StopError):
                forever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [a.tobytes() for a in exe(X)] == expected


def test_an_op_that_fails_leaves_the_pool_as_it_was():
    def f(x, a):
        return g.linalg.inv(a), g.tanh(x)

    exe = static.compile(f, X, np.eye(2, dtype="f4"), backend="native", threads=2)
    with pytest.raises(GraphError, match="inv"):
        exe(X, np.zeros((2, 2), "f4"))
    np.testing.assert_array_equal(exe(X, np.eye(2, dtype="f4"))[1], static.compile(g.tanh, X, backend="native")(X))
