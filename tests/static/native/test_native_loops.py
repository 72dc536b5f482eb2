"""Scans as native code: a step runs the kernels of the one before on other places, and gives what Python loops give."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from graphs import TensorSpec

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

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


def near(found, expected):
    for a, b in zip(g.tree.leaves(found), g.tree.leaves(expected), strict=True):
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

    found = static.compile(f, xs_of(0), backend="native")(xs_of(0))
    np.testing.assert_array_equal(found[0], np.ones((3, 4)))
    assert found[1].shape == (0, 3, 4)


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
