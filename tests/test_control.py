"""Control flow in both engines: cond, switch, while_loop, scan and fori_loop, and their gradients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.cost import graph_cost
from graphs.errors import ControlFlowError, NotDifferentiableError, ShapeError
from graphs.testing import check_grads
from tests.engines import ENGINES
from tests.random_control import draw, evaluate

ROOT = Path(__file__).resolve().parent.parent
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.uniform(-1, 1, (2, 3))
W = RANDOM.uniform(-0.7, 0.7, (3, 3))
ROWS = RANDOM.uniform(-1, 1, (4, 3))

each_engine = pytest.mark.parametrize("engine", ENGINES)
second_order = pytest.mark.parametrize("order", [2], ids=["order 2"])


class State(NamedTuple):
    h: Any
    more: Any


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


# Values against plain Python ------------------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_cond_runs_one_branch(engine, scale):
    f = lambda x: g.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 2, x)  # noqa: E731
    x = np.array([1.0, -1.0, 2.0]) * scale
    close(run(engine, f, x), x * 2 if x.sum() > 0 else x - 2)


@each_engine
@pytest.mark.parametrize("truth", [2, 0, 0.5, 0.0, np.nan, True])
def test_cond_takes_any_number_as_python_does(engine, truth):
    number = np.asarray(truth)
    assert run(engine, lambda p: g.cond(p, lambda: 1.0, lambda: 0.0), number) == float(bool(number))
    assert run(engine, lambda p: g.cond(p, lambda: 1.0, lambda: 0.0), number[None]) == float(bool(number))


@each_engine
@pytest.mark.parametrize(("index", "expected"), [(-5, 0), (0, 0), (1, 1), (2, 2), (7, 2)])
def test_switch_brings_the_index_to_the_nearest_branch(engine, index, expected):
    branches = [lambda x, i=i: x + i for i in range(3)]
    close(run(engine, lambda i, x: g.switch(i, branches, x), np.array(index), X), X + expected)


@each_engine
def test_what_is_known_is_decided_by_python(engine):
    f = lambda x: g.cond(x.ndim == 1, lambda: x * 2, lambda: 1 / 0) + g.switch(1, [lambda: 1 / 0, lambda: x])  # noqa: E731
    close(run(engine, f, X), 3 * X)
    assert static.trace(f, X).op_counts() == {"multiply": 1, "add": 1}


@each_engine
@pytest.mark.parametrize("start", [0.5, 3.0, 100.0])
def test_while_loop_runs_until_the_condition_fails(engine, start):
    expected = np.full(3, start)
    while expected.sum() < 50:
        expected = expected * 1.5 + X**2
    found = run(
        engine, lambda x, s: g.while_loop(lambda s: s.sum() < 50, lambda s: s * 1.5 + x**2, s), X, np.full(3, start)
    )
    close(found, expected)


@each_engine
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_returns_the_last_state_and_all_ys(engine, reverse):
    state, ys = np.zeros(3), [None] * len(ROWS)
    for t in reversed(range(len(ROWS))) if reverse else range(len(ROWS)):
        state, ys[t] = np.tanh(state @ W + ROWS[t]), {"sum": state.sum(), "pair": (state, ROWS[t] * 2)}
    expected = {
        "sum": np.stack([y["sum"] for y in ys]),
        "pair": tuple(np.stack([y["pair"][i] for y in ys]) for i in (0, 1)),
    }

    def f(w: Any, xs: Any) -> Any:
        return g.scan(
            lambda s, x: (g.tanh(s @ w + x), {"sum": s.sum(), "pair": (s, x * 2)}), np.zeros(3), xs, reverse=reverse
        )

    close(run(engine, f, W, ROWS), (state, expected))


@each_engine
def test_fori_loop_counts(engine):
    f = lambda x: g.fori_loop(2, 5, lambda i, s: s * i + x, x)  # noqa: E731
    expected = X
    for i in range(2, 5):
        expected = expected * i + X
    close(run(engine, f, X), expected)
    close(run(engine, lambda x: g.fori_loop(3, 3, lambda i, s: s * i, x), X), X)
    close(run(engine, lambda x: g.fori_loop(3, 1, lambda i, s: s * i, x), X), X)


@each_engine
@pytest.mark.parametrize("count", [0, 1, 4])
def test_fori_loop_to_a_bound_that_is_computed(engine, count):
    f = lambda n, x: g.fori_loop(0, n + 1, lambda i, s: s * 0.5 + i, x)  # noqa: E731
    expected = X
    for i in range(count + 1):
        expected = expected * 0.5 + i
    close(run(engine, f, np.array(count), X), expected)
    agree(lambda n, x: (f(n, x) ** 2).sum(), np.array(count), X)


@each_engine
def test_containers_are_states_xs_and_results(engine):
    def f(x: Any, rows: Any) -> Any:
        start = {"pair": State(x, [x.sum(), None]), "label": "kept", "count": 0}

        def body(s: Any, row: Any) -> Any:
            h = g.tanh(s["pair"].h + row["a"])
            return {"pair": State(h, [h.sum() * row["b"], None]), "label": "kept", "count": s["count"] + 1}, State(
                h, ()
            )

        last, ys = g.scan(body, start, {"a": rows, "b": rows[:, 0]})
        assert last["label"] == "kept"
        return last["pair"], last["count"], ys

    pair, count, ys = run(engine, f, X, ROWS)
    h = X
    for row in ROWS:
        h = np.tanh(h + row)
    close(pair, State(h, [h.sum() * ROWS[-1, 0], None]))
    assert count == 4
    close(ys.h[-1], h)
    agree(lambda x, rows: g.sum(f(x, rows)[0].h * f(x, rows)[0].more[0]), X, ROWS)


@each_engine
def test_scan_by_length_alone(engine):
    state, ys = run(engine, lambda x: g.scan(lambda s, _: (s * 2, s), x, length=3), X)
    close((state, ys), (X * 8, np.stack([X, X * 2, X * 4])))


def test_no_step_at_all_in_a_graph():
    f = lambda x, rows: g.scan(lambda s, r: (s * r, {"y": r, "n": s.sum()}), x + 1, rows)  # noqa: E731
    empty = np.zeros((0, 3))
    state, ys = static.compile(f, X, empty)(X, empty)
    close(state, X + 1)
    assert (ys["y"].shape, ys["n"].shape) == ((0, 3), (0,))
    gradients = static.grad(lambda x, rows: (f(x, rows)[0] ** 2).sum(), (0, 1))(X, empty)
    close(gradients, (2 * (X + 1), empty))


# Numbers and dtypes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_in_the_state_takes_the_dtype_of_the_body(dtype):
    rows = ROWS.astype(dtype)
    for start in (0, 0.0, False):
        total, _ = run("static", lambda r, start=start: g.scan(lambda s, x: (s + x.sum(), ()), start, r), rows)
        assert total.dtype == dtype
        np.testing.assert_allclose(total, rows.sum(), rtol=1e-2)
    looped = run("static", lambda r: g.while_loop(lambda s: s < 5, lambda s: s + 1 + (r**2).sum(), 0), rows)
    assert looped.dtype == dtype


@each_engine
def test_counters_stay_integers(engine):
    f = lambda x: g.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5, g.logical_not(s[2])), (0, x, True))  # noqa: E731
    count, value, flag = run(engine, f, X.astype(np.float32))
    assert (count.dtype, int(count), bool(flag)) == (np.int64, 5, False)
    assert value.dtype == np.float32


@each_engine
def test_numbers_keep_the_dtype_of_float32(engine):
    x = X.astype(np.float32)
    assert (
        run(engine, lambda x: g.cond(x.sum() > 0, lambda a, s: a * s, lambda a, s: a + s, x, 2.0), x).dtype
        == np.float32
    )
    assert (
        run(engine, lambda x: g.cond(x.sum() > 9, lambda: x.sum(), lambda: g.sum(x) * 0 + 1.0), x).dtype == np.float32
    )


def test_a_number_from_one_branch_takes_the_dtype_of_the_other():
    x = X.astype(np.float32)
    exe = static.compile(lambda x: g.cond(x.sum() > 9, lambda: x.sum(), lambda: 0.0), x)
    assert (exe(x), exe(x).dtype) == (0, np.float32)
    agree(lambda x: g.cond(x.sum() > 9, lambda: x.sum(), lambda: 0.0), X)
    agree(lambda x: g.cond(x.sum() > -9, lambda: x.sum(), lambda: 0.0), X)


# Gradients against finite differences ---------------------------------------------------------------------------


def captured_two_deep(w: Any, x: Any) -> Any:
    scale = w.sum()

    def outer(s: Any, row: Any) -> Any:
        inner = g.scan(lambda t, r: (g.sin(t * scale + r * row), t), s, x)[0]
        return inner, g.cond(inner.sum() > 0, lambda: (inner * x[0]).sum(), lambda: (w @ inner).sum())

    last, ys = g.scan(outer, x[0] * scale, x)
    return last.sum() + (ys**2).sum()


DIFFERENTIABLE = {
    "cond": lambda x, y: g.cond(x.sum() > 0, lambda a: (a**3 * y).sum(), lambda a: (a * y).sum(), x),
    "cond not taken": lambda x, y: g.cond(x.sum() > 9, lambda a: (a**3 * y).sum(), lambda a: (g.exp(a) * y).sum(), x),
    "switch": lambda x, y: g.switch(g.astype(x.sum(), "int64") + 1, [lambda: (x**2).sum(), lambda: (x * y).sum(), lambda: y.sum()]),
    "scan": rnn,
    "scan reverse": lambda w, xs: g.scan(lambda s, x: (g.tanh(w @ s + x), s * x), xs[0], xs, reverse=True)[1].sum(),
    "scan without xs": lambda x, y: g.scan(lambda s, _: (g.sin(s) * y, s), x, length=3)[1].sum(),
    "scan without state": lambda w, xs: (g.scan(lambda _, x: ((), g.tanh(w @ x)), (), xs)[1] ** 2).sum(),
    "scan that returns its operands": lambda x, y: sum(g.tree.leaves(g.scan(lambda s, _: (s, (s, y)), x * y, length=2))).sum(),
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


def dynamic_or_static(value: Any) -> Any:
    return static if isinstance(value, static.Symbol) else dynamic


def arguments(name: str, f: Any) -> tuple[Any, ...]:
    return (W, ROWS) if f.__code__.co_varnames[0] == "w" else (X, Y)


@each_engine
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_to_second_order(engine, name):
    f = DIFFERENTIABLE[name]
    check_grads(f, arguments(name, f), order=2, engine=ENGINES[engine])


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_both_engines_agree(name):
    f = DIFFERENTIABLE[name]
    args = arguments(name, f)
    agree(f, *args)
    close(static.jvp(f, args, args), dynamic.jvp(f, args, args))
    close(static.hvp(f, args, args), dynamic.hvp(f, args, args))


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
        x.sum() < 99, lambda: g.while_loop(lambda s: s.max() < 9, lambda s: s * 2 + y**2 + 1, x).sum(), lambda: x.sum()
    ),
    "scan in while": lambda w, xs: g.while_loop(
        lambda s: (s * s).sum() < 30, lambda s: s * 2 + 1 + g.scan(lambda t, x: (g.tanh(w @ t + x), ()), s, xs)[0], xs[0]
    ).sum(),
    "bound that is computed": lambda x, y: g.fori_loop(0, g.astype(x.sum() * 0 + 3, "int64"), lambda i, s: g.sin(s * y), x).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_while_loops(name):
    f = LOOPS[name]
    args = arguments(name, f)
    check_grads(f, args, order=1, engine=static)
    check_grads(f, args, order=2, engine=dynamic)
    agree(f, *args)
    close(static.jvp(f, args, args), dynamic.jvp(f, args, args))


@pytest.mark.parametrize("name", LOOPS)
def test_a_second_gradient_of_a_while_loop_is_refused_in_a_graph(name):
    f = LOOPS[name]
    args = arguments(name, f)
    with pytest.raises(NotDifferentiableError, match="its gradient has no gradient in a graph .*; use scan") as caught:
        static.hvp(f, args, args)
    assert "test_control.py:" in str(caught.value)


def test_jacobians_through_control_flow():
    for f in (
        lambda w: g.scan(lambda s, x: (g.tanh(s @ w + x), s), np.zeros(3), ROWS)[1],
        lambda w: g.while_loop(lambda s: (s * s).sum() < 9, lambda s: s * 1.5 + w.sum(0), w[0]),
        lambda w: g.cond(w.sum() > 0, lambda: w @ w, lambda: w),
    ):
        close(static.jacobian(f)(W), dynamic.jacobian(f)(W))
    close(static.hessian(lambda w: rnn(w, ROWS))(W), dynamic.hessian(lambda w: rnn(w, ROWS))(W))


def test_one_trace_may_be_pulled_through_again_and_again():
    def f(x: Any, y: Any) -> Any:
        outputs, pullback = static.vjp(LOOPS["while_loop"], x, y)
        first, second = pullback(1.0), pullback(2.0)
        return outputs, first, second, static.grad(LOOPS["while_loop"])(x, y), static.grad(DIFFERENTIABLE["cond"])(x, y)

    value, first, second, again, other = static.compile(f, X, Y)(X, Y)
    close((value, first), dynamic.value_and_grad(LOOPS["while_loop"], (0, 1))(X, Y))
    close(second, tuple(2 * a for a in first))
    close(again, first[0])
    close(other, dynamic.grad(DIFFERENTIABLE["cond"])(X, Y))


def test_only_what_is_asked_for_is_differentiated():
    """Data that goes through a scan gets no cotangents, and so its gradient neither stacks nor sums any."""
    data = static.trace(static.grad(lambda w, xs: rnn(w, xs)), W, ROWS)
    both = static.trace(static.grad(lambda w, xs: rnn(w, xs), (0, 1)), W, ROWS)
    rows = [[node.attrs["rows"] for node in graph.calls if node.op.name == "scan"][-1] for graph in (data, both)]
    assert [len(r) for r in rows] == [0, 1]


def test_what_loops_keep_is_not_what_buffers_are_reused_for():
    """The first state of a loop is computed in the arena, which later nodes write to before the gradient reads it."""

    def f(x: Any) -> Any:
        last = g.while_loop(lambda s: s.sum() < 40, lambda s: s * s * 0.5 + 1, (x + 1) * 2)
        return g.exp(g.sin(last) * 3 + g.cos(last)).sum() * g.tanh(last).sum()

    agree(f, np.array([0.5, 1.0, 1.5]))
    for start in (-1.0, 50.0):  # with and without an iteration
        exe = static.compile(
            lambda x: (g.while_loop(lambda s: s < 40, lambda s: s * 2 + 9, x * 2), x * 3), np.array(start)
        )
        held = exe(np.array(start))
        before = [h.copy() for h in held]
        exe(np.array(start + 1))
        close(held, tuple(before))


# Random programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_random_nested_programs_agree(seed):
    rng = np.random.default_rng(seed)
    program = draw(rng, 3, 2, loops=seed % 2 == 0)
    x, y = rng.uniform(-1, 1, (2, 3))
    f = lambda x, y: g.sum(evaluate(program, [x, y]))  # noqa: E731
    agree(f, x, y)
    close(dynamic.value_and_grad(f)(x, y)[0], evaluate(program, [x, y]).sum())
    if seed % 10 == 0:
        close(static.jvp(f, (x, y), (y, x)), dynamic.jvp(f, (x, y), (y, x)))
    if seed % 10 == 1:
        close(static.hvp(f, (x, y), (y, x)), dynamic.hvp(f, (x, y), (y, x)))


# Symbolic lengths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_one_graph_for_every_length(reverse):
    def loss(w: Any, xs: Any) -> Any:
        state, ys = g.scan(lambda s, x: (g.tanh(s @ w + x), s * x), np.zeros(3), xs, reverse=reverse)
        return state.sum() + (ys**2).sum() + g.fori_loop(0, xs.shape[0], lambda i, s: g.sin(s + i), w[0]).sum()

    step = static.compile(static.value_and_grad(loss, (0, 1)), W, g.TensorSpec(("T", 3), "float64"))
    for length in (1, 2, 7):
        xs = np.random.default_rng(length).uniform(-1, 1, (length, 3))
        close(step(W, xs), dynamic.value_and_grad(loss, (0, 1))(W, xs))
    assert static.compile(loss, W, g.TensorSpec(("T", 3), "float64"))(W, np.zeros((0, 3))) == W[0].sum()


def test_symbolic_sizes_inside_a_body():
    def loss(x: Any, w: Any) -> Any:
        rows = g.scan(lambda s, row: (s + row.sum(), g.broadcast_to(s, x.shape[1:]) * row @ w), w.sum(), x)[1]
        return (rows**2).sum()

    spec = g.TensorSpec(("T", "N"), "float64")
    step = static.compile(static.grad(loss, (0, 1)), spec, g.TensorSpec(("N",), "float64"))
    for t, n in ((1, 1), (2, 3), (5, 2)):
        rng = np.random.default_rng(n)
        x, w = rng.uniform(-1, 1, (t, n)), rng.uniform(-1, 1, n)
        close(step(x, w), dynamic.grad(loss, (0, 1))(x, w))


def test_a_symbolic_length_without_xs():
    exe = static.compile(
        lambda x: g.scan(lambda s, _: (s * 2, s), 1.0, length=x.shape[0]), g.TensorSpec(("T",), "float64")
    )
    for n in (1, 3):
        last, ys = exe(np.zeros(n))
        assert (last, ys.tolist()) == (2.0**n, [2.0**i for i in range(n)])


# Refusals -------------------------------------------------------------------------------------------------------


IN_A_TRACE = {
    "dtypes of branches": (ShapeError, r"branches return \[f64\[3\]\] and \[f64\[\]\] .*; make them the same",
        lambda x: g.cond(x.sum() > 0, lambda: x.sum(), lambda: x)),
    "structures of branches": (ShapeError, "branches return .* return the same from each",
        lambda x: g.cond(x.sum() > 0, lambda: (x, x), lambda: x)),
    "shape of the state": (ShapeError, r"scan: the body turns a state of .*f64\[3\].* into .*f64\[\].*; keep shapes and",
        lambda x: g.scan(lambda s, _: (s.sum(), ()), x, length=2)),
    "dtype of the state": (ShapeError, "while_loop: the body turns a state of .*f64.* into .*f32.*; keep shapes and dtypes",
        lambda x: g.while_loop(lambda s: s.sum() < 1, lambda s: g.astype(s, "float32"), x)),
    "structure of the state": (ShapeError, "scan: the body turns a state laid out as .*; return the same structure",
        lambda x: g.scan(lambda s, _: ((s, s), ()), x, length=2)),
    "structure of a number": (ShapeError, "while_loop: the body turns a state laid out as",
        lambda x: g.while_loop(lambda s: s < 3, lambda s: (s, x), 0)),
    "static value": (ShapeError, "scan: the body turns 'a' into 'b' .*; only tensors change",
        lambda x: g.scan(lambda s, _: ((s[0], "b"), ()), (x, "a"), length=2)),
    "condition": (ShapeError, r"while_loop: the condition returns .*bool\[3\].*; return one bool",
        lambda x: g.while_loop(lambda s: s < 1, lambda s: s, x)),
    "python if in a body": (ControlFlowError, "a Python `if`",
        lambda x: g.scan(lambda s, _: (s if s.sum() > 0 else -s, ()), x, length=2)),
    "length that is computed": (ShapeError, "the length is a size, not a Symbol .*; with a computed number use while_loop",
        lambda x: g.scan(lambda s, _: (s, ()), x, length=g.astype(x.sum(), "int64"))),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_A_TRACE)
def test_refusals_in_a_trace(case):
    kind, words, f = IN_A_TRACE[case]
    with pytest.raises(kind, match=words) as caught:
        static.trace(f, X)
    assert "test_control.py:" in str(caught.value)


IN_BOTH = {
    "0-d xs": ("scan: a 0-d x has no first axis", lambda x: g.scan(lambda s, y: (s, y), x, x.sum())),
    "lengths": ("first axes of xs, and length, differ: 3, 2", lambda x: g.scan(lambda s, y: (s, y), x, (x, x[:2]))),
    "xs and length": ("differ: 3, 4", lambda x: g.scan(lambda s, y: (s, y), x, x, length=4)),
    "no length": ("without xs the number of steps is unknown .*; give length", lambda x: g.scan(lambda s, y: (s, y), x)),
    "float length": ("the length is a size, not a float", lambda x: g.scan(lambda s, y: (s, y), x, length=2.0)),
    "no pair": ("the body returns .*; return a pair", lambda x: g.scan(lambda s, y: s, x, x)),
    "no branch": ("switch: needs at least one branch", lambda x: g.switch(x.sum(), [])),
    "several decide": ("cond: one number decides", lambda x: g.cond(x > 0, lambda: x, lambda: x)),
    "several indices": (r"switch: one number decides, not \(3,\)", lambda x: g.switch(x, [lambda: x])),
}  # fmt: skip


@each_engine
@pytest.mark.parametrize("case", IN_BOTH)
def test_refusals_in_both_engines(engine, case):
    words, f = IN_BOTH[case]
    with pytest.raises(ShapeError, match=words) as caught:
        run(engine, f, X)
    assert "test_control.py:" in str(caught.value)


def test_symbolic_lengths_that_differ():
    specs = g.TensorSpec(("T", 3), "float64"), g.TensorSpec(("S", 3), "float64")
    with pytest.raises(ShapeError, match="differ: T, S"):
        static.trace(lambda a, b: g.scan(lambda s, x: (s, x[0] * x[1]), 0.0, (a, b)), *specs)


def test_no_step_at_all_has_no_shape_outside_a_graph():
    with pytest.raises(ShapeError, match="scan: over nothing"):
        g.scan(lambda s, x: (s, x), X, np.zeros((0, 3)))


def test_a_fault_inside_a_body_names_the_op_and_the_line():
    def f(x: Any, i: Any) -> Any:
        return g.scan(lambda s, j: (s + g.take(x, j), ()), 0.0, i)[0]

    exe = static.compile(f, X, np.array([0, 1]))
    with pytest.raises(ShapeError, match=r"take: .*out of bounds.*test_control.py:"):
        exe(X, np.array([0, 7]))
    assert exe(X, np.array([0, 1])) == X[0] + X[1]


def test_a_loop_is_differentiated_where_it_was_traced_to_be():
    """What a scan keeps is decided when it is traced."""
    exe = static.compile(lambda x: g.scan(lambda s, _: (s * 2, s), x, length=2)[0], X)
    assert [node.attrs["save"] for node in exe.graph.calls if node.op.name == "scan"] == [False]


# How often a body is traced -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "times"), [(X, 1), ((X, np.array(0)), 1), ((X, 0), 2), ((X, 0.0), 2)])
def test_a_body_is_traced_again_only_for_numbers(start, times):
    traced = []

    def body(s: Any, _: Any) -> Any:
        traced.append(1)
        return s, ()

    static.trace(lambda: g.scan(body, start, length=2)[0])
    assert len(traced) == times


def test_a_body_is_lowered_once_for_all_sizes(monkeypatch):
    from static.backends import numpy as backend

    exe = static.compile(static.grad(rnn), W, g.TensorSpec(("T", 3), "float64"))
    monkeypatch.setattr(backend, "lower", None)
    for length in (1, 2, 3):
        exe(W, ROWS[:length])


# Graphs with subgraphs ------------------------------------------------------------------------------------------


def everything(w: Any, xs: Any) -> Any:
    looped = LOOPS["while in scan"](w, xs)
    return g.cond(looped > 0, lambda: captured_two_deep(w, xs), lambda: looped) + rnn(w, xs)


LOADER = """
import sys
import numpy as np
import static

exe = static.load(sys.argv[1])
with np.load(sys.argv[2]) as given:
    for xs in (given["short"], given["long"]):
        print([np.asarray(r).tolist() for r in exe(given["w"], xs)])
"""


def test_saved_graphs_run_in_another_process(tmp_path):
    step = static.compile(static.value_and_grad(everything), W, g.TensorSpec(("T", 3), "float64"))
    step.save(tmp_path / "model.graph")
    np.savez(tmp_path / "given.npz", w=W, short=ROWS[:2], long=ROWS)
    command = [sys.executable, "-c", LOADER, str(tmp_path / "model.graph"), str(tmp_path / "given.npz")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    expected = [[np.asarray(r).tolist() for r in step(W, xs)] for xs in (ROWS[:2], ROWS)]
    assert done.stdout.splitlines() == [str(e) for e in expected]


def test_a_saved_jacobian_of_a_loop_holds_its_states(tmp_path):
    f = static.jacobian(lambda w: g.while_loop(lambda s: (s * s).sum() < 9, lambda s: s * 1.5 + w.sum(0), w[0]))
    exe = static.compile(f, W)
    exe.save(tmp_path / "model.graph")
    close(static.load(tmp_path / "model.graph")(W), exe(W))


def test_reports_count_what_bodies_hold():
    plain = static.compile(lambda w, xs: xs @ w, W, ROWS)
    looped = static.compile(
        lambda w, xs: g.scan(lambda s, x: (g.tanh(x @ w + s * np.arange(3.0)) * 2, s), X, xs), W, ROWS
    )
    inner = [graph for graph in looped.graph.nested() if graph is not looped.graph]
    assert len(inner) == 1
    report = looped.report()
    assert report.nodes == len(looped.graph) + len(inner[0])
    assert report.constant_bytes == sum(
        n.attrs["value"].nbytes for n in (*looped.graph.nodes, *inner[0].nodes) if "value" in n.attrs
    )
    assert report.structure_bytes > plain.report().structure_bytes
    assert looped.arena_bytes > looped.plan.peak  # the body has an arena of its own
    assert looped.plan.peak >= looped.plan.lower_bound
    assert str(report).startswith("<lambda>: ")


def test_graphs_print_with_their_bodies():
    lines = str(static.trace(rnn, W, ROWS)).splitlines()
    assert "scan(%2, %1, %0, body=<graph body, " in lines[2]
    assert lines[3].startswith("    graph body(%0 arg0: f64[3], %1 arg1: f64[3], %2 outer0: f64[3,3]) -> f64[3], f64[]")
    assert lines[2].endswith(lines[4][lines[4].index("# test_control.py:") :])
    assert any(line.startswith("      return %") for line in lines)


def test_graphs_with_different_bodies_differ():
    def looped(op: Any, index: int) -> Any:
        def f(x: Any, y: Any) -> Any:
            return g.switch(index + g.astype(x.sum(), "int64"), [lambda: op(x), lambda: x + y])

        return static.trace(f, X, Y)

    assert g.isomorphic(looped(g.sin, 0), looped(g.sin, 0))
    assert not g.isomorphic(looped(g.sin, 0), looped(g.cos, 0))
    scans = [
        static.trace(lambda x, op=op: g.scan(lambda s, _: (op(s), s), x, length=2), X) for op in (g.sin, g.cos, g.sin)
    ]
    assert [g.isomorphic(scans[0], other) for other in scans] == [True, False, True]


def test_costs():
    step = graph_cost(static.trace(lambda s, x, w: g.tanh(s @ w + x), X, X, W))
    fixed = graph_cost(static.trace(lambda w, xs: g.scan(lambda s, x: (g.tanh(s @ w + x), ()), X, xs)[0], W, ROWS))
    assert (fixed.flops, fixed.bytes) == (4 * step.flops, 4 * step.bytes)
    spec = g.TensorSpec(("T", 3), "float64")
    symbolic = graph_cost(static.trace(lambda w, xs: g.scan(lambda s, x: (g.tanh(s @ w + x), ()), X, xs)[0], W, spec))
    assert str(symbolic.flops) == f"{step.flops}*T"
    dear, cheap = (graph_cost(static.trace(f, X)) for f in (lambda x: g.tanh(x) + g.exp(x), lambda x: x * 2))
    branch = graph_cost(
        static.trace(lambda p, x: g.cond(p, lambda: g.tanh(x) + g.exp(x), lambda: x * 2), np.array(True), X)
    )
    assert branch.flops == dear.flops > cheap.flops
    assert branch.bytes >= dear.bytes
    loop = graph_cost(static.trace(lambda x: g.while_loop(lambda s: s.sum() < 5, lambda s: g.tanh(s) + g.exp(s), x), X))
    assert loop.flops >= dear.flops
