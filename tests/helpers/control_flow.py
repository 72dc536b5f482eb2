"""Functions with control flow, and what the tests ask of both engines about them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from tests.helpers.engines import ENGINES

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.uniform(-1, 1, (2, 3))
W = RANDOM.uniform(-0.7, 0.7, (3, 3))
ROWS = RANDOM.uniform(-1, 1, (4, 3))

each_engine = pytest.mark.parametrize("engine", ENGINES)


def run(engine: str, f: Any, *args: Any) -> Any:
    """f(*args) as arrays."""
    if engine == "static":
        return static.compile(f, *args)(*args)
    result = f(*(dynamic.tensor(a) if isinstance(a, np.ndarray) else a for a in args))
    return g.tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, dynamic.Tensor) else np.asarray(leaf), result)


def close(found: Any, expected: Any) -> None:
    (left, structure), (right, wanted) = g.tree.flatten(found), g.tree.flatten(expected)
    assert structure == wanted
    for a, b in zip(left, right, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def agree(f: Any, *args: Any) -> None:
    """Equal values and gradients in both engines."""
    argnums = tuple(i for i, a in enumerate(args) if a.dtype.kind == "f")
    step = static.compile(static.value_and_grad(f, argnums), *args)
    close(step(*args), dynamic.value_and_grad(f, argnums)(*args))


def rnn(w: Any, xs: Any) -> Any:
    state, ys = g.scan(lambda s, x: (g.tanh(s @ w + x), (s * s).sum()), np.zeros(3), xs)
    return state.sum() + (ys * ys).sum()


def captured_two_deep(w: Any, x: Any) -> Any:
    scale = w.sum()

    def outer(s: Any, row: Any) -> Any:
        inner = g.scan(lambda t, r: (g.sin(t * scale + r * row), t), s, x)[0]
        return inner, g.cond(inner.sum() > 0, (inner * x[0]).sum, (w @ inner).sum)

    last, ys = g.scan(outer, x[0] * scale, x)
    return last.sum() + (ys**2).sum()


def dynamic_or_static(value: Any) -> Any:
    return static if isinstance(value, static.Symbol) else dynamic


def arguments(name: str, f: Any) -> tuple[Any, ...]:
    return (W, ROWS) if f.__code__.co_varnames[0] == "w" else (X, Y)


# Differentiable to second order in both engines.
DIFFERENTIABLE = {
    "cond": lambda x, y: g.cond(x.sum() > 0, lambda a: (a**3 * y).sum(), lambda a: (a * y).sum(), x),
    "cond not taken": lambda x, y: g.cond(x.sum() > 9, lambda a: (a**3 * y).sum(), lambda a: (g.exp(a) * y).sum(), x),
    "switch": lambda x, y: g.switch(g.astype(x.sum(), "int64") + 1, [(x**2).sum, (x * y).sum, y.sum]),
    "scan": rnn,
    "scan reverse": lambda w, xs: g.scan(lambda s, x: (g.tanh(w @ s + x), s * x), xs[0], xs, reverse=True)[1].sum(),
    "scan without xs": lambda x, y: g.scan(lambda s, _: (g.sin(s) * y, s), x, length=3)[1].sum(),
    "scan without state": lambda w, xs: (g.scan(lambda _, x: ((), g.tanh(w @ x)), (), xs)[1] ** 2).sum(),
    "scan that returns its operands": lambda x, y: sum(
        g.tree.leaves(g.scan(lambda s, _: (s, (s, y)), x * y, length=2))
    ).sum(),
    "fori_loop": lambda x, y: (g.fori_loop(0, 3, lambda i, s: g.sin(s * y) + i, x) ** 2).sum(),
    "counter in the state": lambda x, y: (
        g.scan(lambda s, _: ((s[0] + 1, g.sin(s[1]) * s[0] * y), ()), (1, x), length=3)[0][1] ** 2
    ).sum(),
    "number that becomes a float": lambda x, y: g.scan(lambda s, row: (s * row + x.sum(), ()), 0, y)[0],
    "closures two levels deep": captured_two_deep,
    "scan in scan": lambda w, xs: g.scan(
        lambda s, x: (g.scan(lambda t, y: (g.tanh(t @ w + y * x), ()), s, xs)[0], s.sum()), np.zeros(3), xs
    )[1].sum(),
    "cond in scan": lambda w, xs: g.scan(
        lambda s, x: (g.cond(x.sum() > 0, lambda t: g.sin(w @ t), lambda t: t * x, s), s.sum()), xs[0], xs
    )[1].sum(),
    "scan in cond": lambda w, xs: g.cond(xs.sum() > -99, lambda v: rnn(v, xs), lambda v: v.sum(), w),
    "only the last y": lambda w, xs: g.scan(lambda s, x: (g.tanh(s @ w + x), s), xs[0], xs)[1][-1].sum(),
    "nothing but the state": lambda w, xs: (g.scan(lambda s, x: (g.tanh(s @ w + x), s), xs[0], xs)[0] ** 2).sum(),
    "a gradient inside a body": lambda w, xs: g.scan(
        lambda s, x: (s + dynamic_or_static(xs).grad(lambda t: (g.sin(w @ t) * x).sum())(s), ()), xs[0], xs[:2]
    )[0].sum(),
}  # fmt: skip

# To second order in the dynamic engine, to first order in a graph.
LOOPS = {
    "while_loop": lambda x, y: (g.while_loop(lambda s: (s * s).sum() < 50, lambda s: s * 1.5 + y * x, x) ** 2).sum(),
    "no iteration": lambda x, y: (g.while_loop(lambda s: s.sum() > 1e9, lambda s: s * y, x * y) ** 2).sum(),
    "counter": lambda x, y: g.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, g.sin(s[1] * y)), (0, x))[1].sum(),
    "while in while": lambda x, y: g.while_loop(
        lambda s: s[0] < 2,
        lambda s: (s[0] + 1, g.while_loop(lambda t: t[0] < 3, lambda t: (t[0] + 1, g.sin(t[1] * y + x)), (0, s[1]))[1]),
        (0, x),
    )[1].sum(),
    "while in scan": lambda w, xs: g.scan(
        lambda s, x: (g.while_loop(lambda t: (t * t).sum() < 4, lambda t: 2 * t + w @ x, s) * 0.1, s.sum()), xs[0], xs
    )[1].sum(),
    "while in cond": lambda x, y: g.cond(
        x.sum() < 99, lambda: g.while_loop(lambda s: s.max() < 9, lambda s: s * 2 + y**2 + 1, x).sum(), x.sum
    ),
    "scan in while": lambda w, xs: g.while_loop(
        lambda s: (s * s).sum() < 30,
        lambda s: s * 2 + 1 + g.scan(lambda t, x: (g.tanh(w @ t + x), ()), s, xs)[0],
        xs[0],
    ).sum(),
    "bound that is computed": lambda x, y: g.fori_loop(
        0, g.astype(x.sum() * 0 + 3, "int64"), lambda i, s: g.sin(s * y), x
    ).sum(),
}  # fmt: skip
