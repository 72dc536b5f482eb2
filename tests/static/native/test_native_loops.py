"""Loops and branches as native code give what Python loops give, and Ctrl-C ends them."""

from __future__ import annotations

import _thread
import signal
import threading

import numpy as np
import pytest

import graphs as g
import static
from graphs import TensorSpec

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from tests.helpers.native_reference import in_python

rng = np.random.default_rng(0)
W, U = (rng.normal(size=(4, 4)).astype("f4") / 2 for _ in range(2))


def xs_of(length):
    return np.random.default_rng(length).normal(size=(length, 3, 4)).astype("f4")


def rnn(w, u, xs):
    def body(h, x):
        h = g.tanh(x @ w.T + h @ u)
        return h, h * 2

    h, ys = g.scan(body, g.zeros((3, 4), dtype="f4"), xs)
    return g.sum(h * h) + g.sum(ys * ys)


def swapped(w, u, xs):
    def body(state, x):
        a, b, kept, count = state
        return (b, a + x @ w, kept, count + 1), (a, a, b, x, kept)

    last, ys = g.scan(body, (xs[0] * 0, xs[0] * 2, u, 0), xs)
    return last, ys


def nested(w, u, xs):
    def outer(h, x):
        def inner(k, row):
            k = g.tanh(k @ u + row)
            return k, k

        k, ys = g.scan(inner, h[0], x @ w)
        return h * 0.5 + k, ys

    h, ys = g.scan(outer, xs[0], xs)
    return g.sum(h) + g.sum(ys * ys)


def turned(w, u, xs):
    turned = g.permute_dims(xs, (2, 1, 0))

    def body(h, x):
        return h + x, g.sum(h @ g.matrix_transpose(h) @ x, axis=0)

    return g.scan(body, g.zeros((3, xs.shape[0]), dtype="f4"), turned)


def in_arena(w, u, xs):
    """Two loops whose matrices are computed, and may lie at one place after another."""
    h = xs[0]
    for factor in (1.0, 2.0):
        v = g.exp(w * factor)
        h, _ = g.scan(lambda h, x, v=v: (g.tanh(h @ v.T + x), ()), h, xs)
    return g.sum(h)


FUNCTIONS = [rnn, swapped, nested, turned, in_arena]
DIFFERENTIABLE = [rnn, nested, in_arena]


def near(actual, expected):
    for a, b in zip(g.tree.leaves(actual), g.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_scan_of_any_length(f, length):
    args = W, U, xs_of(length)
    exe = static.compile(f, *args, backend="native")
    for _ in range(2):
        near(exe(*args), static.compile(f, *args)(*args))
    assert "_body" not in exe.source, "a loop that Python runs"


@pytest.mark.parametrize("length", [1, 2, 3, 6])
@pytest.mark.parametrize("f", DIFFERENTIABLE)
def test_its_gradient(f, length):
    args, step = (W, U, xs_of(length)), static.value_and_grad(f, (0, 1, 2))
    exe = static.compile(step, *args, backend="native")
    near(exe(*args), static.compile(step, *args)(*args))
    assert "_body" not in exe.source


def test_no_steps():
    def f(xs):
        return g.scan(lambda h, x: (h + x, h * x), g.ones((3, 4), dtype="f4"), xs)

    actual = static.compile(f, xs_of(0), backend="native")(xs_of(0))
    np.testing.assert_array_equal(actual[0], np.ones((3, 4)))
    assert actual[1].shape == (0, 3, 4)


def test_a_symbolic_length():
    exe = static.compile(rnn, W, U, TensorSpec(("T", 3, 4), np.float32), backend="native")
    for length in (5, 1, 12, 5):
        args = W, U, xs_of(length)
        near(exe(*args), static.compile(rnn, *args)(*args))


def test_a_loop_with_an_op_that_is_not_native_runs_in_python():
    def f(w, xs):
        return g.scan(lambda h, x: (g.sort(h @ w + x, axis=0), ()), xs[0], xs)[0]

    exe = static.compile(f, W, xs_of(4), backend="native")
    assert "_body" in exe.source
    near(exe(W, xs_of(4)), static.compile(f, W, xs_of(4))(W, xs_of(4)))


def test_steps_share_their_kernels():
    args = W, U, xs_of(50)
    exe = static.compile(rnn, *args, backend="native")
    assert len(exe.kernels) < 12
    assert max(kernel.count for kernel in exe.kernels) >= 50


# Loops that decide, and branches ------------------------------------------------------------------------------------

X = np.linspace(0.1, 1, 12).astype("f4").reshape(3, 4)


def newton(x, n):
    return g.while_loop(lambda s: g.any(g.abs(s * s - x) > 1e-4), lambda s: 0.5 * (s + x / s), x + n * n)


def rotated(x, n):
    """A state that changes places, one that stays, and one that is handed out in another place than it came in."""

    def body(s):
        a, b, kept, count = s
        return b, a @ W + g.exp(-b), kept, count + 1

    a, b, kept, count = g.while_loop(lambda s: s[3] < n, body, (x, x * 2, x.T, n * 0))
    return count, kept, b + a, a


def never(x, n):
    return g.while_loop(lambda s: g.sum(s[0]) < -1, lambda s: (s[1], s[0]), (x, x * g.astype(n, np.float32)))


def inner_loop(x, n):
    """A loop in a loop, whose number of turns differs."""

    def body(s):
        x, i = s
        x, _ = g.while_loop(lambda t: t[1] < i, lambda t: (g.tanh(t[0] @ W) + 0.1, t[1] + 1), (x, 0))
        return x, i + 1

    return g.while_loop(lambda s: s[1] < n, body, (x, n * 0))[0]


def in_a_scan(x, n):
    """A loop and branches in each step of a scan, on other places each time."""

    def body(h, row):
        h = g.while_loop(lambda s: g.sum(s * s) > 1, lambda s: s * 0.5, h + row)
        h = g.cond(g.sum(row) > 2, lambda h: h @ W, lambda h: h + 1, h)
        return h, h * 2

    return g.scan(body, g.zeros(4, dtype="f4") + g.astype(n, np.float32), g.concat([x, x * 2, x, -x]))


def scan_inside(x, n):
    """A scan in each turn of a loop."""

    def body(s):
        x, i = s
        h, ys = g.scan(lambda h, row: (g.tanh(h @ W + row), h), x[0], x)
        return ys + h, i + 1

    return g.while_loop(lambda s: s[1] < n, body, (x, n * 0))[0]


def branches(x, n):
    a = g.switch(n - 2, [lambda x: x + 1, lambda x: x, lambda x: x.T.reshape(3, 4) @ W], x)
    b, c = g.cond(n > 2, lambda x: (x, x), lambda x: (x * 3, g.max(x, axis=0) + x), a * 2)
    d = g.switch(g.astype(n, np.int32), [g.sum, g.max], a)
    return a, b + c, d, c


def branch_in_loop(x, n):
    def body(s):
        x, i = s
        x = g.cond(g.sum(x) > 10, lambda x: x * 0.3, lambda x: g.cond(i > 2, lambda x: x + 2, lambda x: x + 1, x), x)
        return x, i + 1

    return g.while_loop(lambda s: s[1] < n * 3, body, (x, n * 0))


def counted(x, n):
    return g.fori_loop(0, n, lambda i, s: s * 0.5 + i, x)


DECIDING = [newton, rotated, never, inner_loop, in_a_scan, scan_inside, branches, branch_in_loop, counted]


@pytest.mark.parametrize("f", DECIDING)
def test_loops_and_branches_decide_as_numpys_do(f):
    exe, expected = (static.compile(f, X, np.array(3), backend=backend) for backend in ("native", "numpy"))
    assert not any(word in exe.source for word in ("_body", "_branches", "_condition")), exe.source
    for n in (0, 1, 2, 5, 4, 3, -1):
        near(exe(X, np.array(n)), expected(X, np.array(n)))
    near(exe(X[::-1], np.array(4)), expected(X[::-1], np.array(4)))


@pytest.mark.parametrize("f", [rotated, inner_loop, in_a_scan, branches])
def test_the_reference_in_python_loops_and_branches_too(f):
    native = static.compile(f, X, np.array(2), backend="native")
    with in_python():
        reference = static.compile(f, X, np.array(2), backend="native")
        for n in (2, 0, 5):
            near(reference(X, np.array(n)), native(X, np.array(n)))


def test_results_of_a_loop_are_the_callers():
    exe = static.compile(never, X, np.array(1), backend="native")
    first = exe(X, np.array(1))
    second = exe(X * 2, np.array(1))
    np.testing.assert_array_equal(first[0], X)
    np.testing.assert_array_equal(second[0], X * 2)
    assert not np.shares_memory(first[0], X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: g.while_loop(lambda s: g.sum(s) < n, lambda s: g.sort(s + 1, axis=0), x),
        lambda x, n: g.cond(n > 1, lambda x: g.sort(x, axis=0), lambda x: x + 1, x),
        lambda x, n: g.cond(n > 1, lambda x: x, lambda x: x * 2, g.astype(x, np.float16)),
        static.grad(lambda x, n: g.sum(g.while_loop(lambda s: g.sum(s) < n, lambda s: s * 1.5 + 1, x))),
    ],
    ids=["sort in a loop", "sort in a branch", "float16", "history"],
)
def test_what_is_not_native_all_through_runs_in_python(f):
    exe, expected = (static.compile(f, X, np.array(3), backend=backend) for backend in ("native", "numpy"))
    assert any(word in exe.source for word in ("_body", "_branches", "_step"))
    for n in (0, 3, 50):
        near(exe(X, np.array(n)), expected(X, np.array(n)))


def test_symbolic_sizes_in_a_loop():
    specs = TensorSpec(("N", 4), np.float32), TensorSpec((), np.int64)
    exe = static.compile(inner_loop, *specs, backend="native")
    for rows in (3, 1, 7, 3):
        x = np.ones((rows, 4), "f4")
        near(exe(x, np.array(4)), static.compile(inner_loop, x, np.array(4))(x, np.array(4)))


def endless(x, n):
    return g.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 0.5 + 1, s[1] + 1), (x, n * 0))


def nested_endless(x, n):
    """Nobody of the loops inside takes long."""
    return g.while_loop(lambda s: s[1] < n, lambda s: (endless(s[0], s[1] * 0 + 3)[0], s[1] + 1), (x, n * 0))


@pytest.fixture
def heard():
    """Ctrl-C is heard, as it is not in a job that a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("f", [endless, nested_endless, lambda x, n: endless(endless(x, n)[0], n)])
def test_ctrl_c_ends_a_loop(f):
    exe = static.compile(f, X, np.array(1), backend="native")
    before = exe(X, np.array(4))
    pressed = threading.Timer(0.05, _thread.interrupt_main)
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        exe(X, np.array(2**62))
    near(exe(X, np.array(4)), before)


def test_other_threads_run_during_a_loop():
    exe = static.compile(endless, X, np.array(1), backend="native")
    thread = threading.Thread(target=exe, args=(X, np.array(3_000_000)))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    assert turns > 100
