"""Control flow in both engines: values, dtypes, symbolic lengths, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError, ShapeError
from tests.helpers.control_flow import ROWS, W, X, agree, close, each_engine, rnn, run


class State(NamedTuple):
    h: Any
    more: Any


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
def test_counters_beside_float32_are_numbers(engine):
    """As in plain Python, where a number takes the dtype of the array: not float64."""
    x = X.astype(np.float32)

    def f(x: Any) -> Any:
        n, ys = g.scan(lambda i, row: (i + 1, row * i + x / (i + 2) - (i * 0.5) ** 2), 0, x)
        s, c = g.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * -s[1] + 0.5 * s[1], s[1] + 1), (x, 1))
        return (
            ys,
            s,
            x * n + c,
            g.fori_loop(1, 3, lambda i, s: s * i + x[i], x),
            g.fori_loop(0, n, lambda i, s: s + i, x),
        )

    expected = f(x)
    assert all(leaf.dtype == np.float32 for leaf in expected)
    for leaf, wanted in zip(run(engine, f, x), expected, strict=True):
        assert leaf.dtype == np.float32
        np.testing.assert_allclose(leaf, wanted, rtol=1e-6)


@each_engine
def test_numbers_keep_the_dtype_of_float32(engine):
    x = X.astype(np.float32)
    assert (
        run(engine, lambda x: g.cond(x.sum() > 0, lambda a, s: a * s, lambda a, s: a + s, x, 2.0), x).dtype
        == np.float32
    )
    assert run(engine, lambda x: g.cond(x.sum() > 9, x.sum, lambda: g.sum(x) * 0 + 1.0), x).dtype == np.float32


def test_a_number_from_one_branch_takes_the_dtype_of_the_other():
    x = X.astype(np.float32)
    exe = static.compile(lambda x: g.cond(x.sum() > 9, x.sum, lambda: 0.0), x)
    assert (exe(x), exe(x).dtype) == (0, np.float32)
    agree(lambda x: g.cond(x.sum() > 9, x.sum, lambda: 0.0), X)
    agree(lambda x: g.cond(x.sum() > -9, x.sum, lambda: 0.0), X)


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
        lambda x: g.cond(x.sum() > 0, x.sum, lambda: x)),
    "structures of branches": (ShapeError, "branches return .* return the same from each",
        lambda x: g.cond(x.sum() > 0, lambda: (x, x), lambda: x)),
    "shape of the state": (ShapeError, r"scan: the body turns a state of .*f64\[3\].* into .*f64\[\].*; keep",
        lambda x: g.scan(lambda s, _: (s.sum(), ()), x, length=2)),
    "dtype of the state": (ShapeError, "while_loop: the body turns a state of .*f64.* into .*f32.*; keep",
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
    "length that is computed": (ShapeError, "the length is a size, not a Symbol .*; with a computed",
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
    "no length": ("the number of steps is unknown .*; give length", lambda x: g.scan(lambda s, y: (s, y), x)),
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
    from static.codegen import lowering

    exe = static.compile(static.grad(rnn), W, g.TensorSpec(("T", 3), "float64"))
    monkeypatch.setattr(lowering, "lower", None)
    for length in (1, 2, 3):
        exe(W, ROWS[:length])


OF_COUNTERS = {
    "bits": lambda x, i: x * (i & 1),
    "shift": lambda x, i: x * (i >> 1),
    "round": lambda x, i: x * round(i),
    "bools added": lambda x, i: x * ((i > 0) + (i > 1)),
    "bool and True": lambda x, i: x * (True + (i > 1)),
    "bools subtracted": lambda x, i: x * ((i > 0) - (i > 1)),
    "bool negated": lambda x, i: x * -(i > 0),
    "bool inverted": lambda x, i: x * ~(i > 0),
    "bool and float": lambda x, i: x * ((i > 1) * 2.5),
    "both bools": lambda x, i: x * ((i > 0) & (i > 1)),
    "half": lambda x, i: x * (i / 2),
    "power": lambda x, i: x * 2**i,
    "a function's result": lambda x, i: x * g.multiply(i, 2),  # an array, as in Python
    "an array's test": lambda x, i: x * ((x > 1) + (x > 0)),
}


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # Python's own, from 3.12 on
@pytest.mark.parametrize("name", OF_COUNTERS)
def test_operators_of_loop_counters_are_pythons(name):
    f, x = OF_COUNTERS[name], np.float32([1, 2])
    found = static.jit(lambda x: g.scan(lambda i, _: (i + 1, f(x, i)), 1, None, length=3)[1])(x)
    wanted = np.stack([f(x, i) for i in (1, 2, 3)])
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.asarray(dynamic.tensor(wanted)).dtype


def masked(x):
    i, k = 1, 0
    while k * x.sum() < 180:
        i = (i * 3 & -4) + 3
        k = k + 1
    return x * i


def divided(x):
    i, k = 1, 0
    while k * x.sum() < 180:
        i = i * 3 % (i * 2 + 7)
        k = k + 1
    return x * i


def doubled(x):
    i, j, k = -2, -3, 0
    while k * x.sum() < 180:
        i, j = (i & j) - 1, i & j
        k = k + 1
    return x * i


def bounded(x):
    i, k = 1, 0
    while k * x.sum() < 180:
        i = (i * 3 & 63) + i * 5 % 7
        k = k + 1
    return x * i


def test_what_bounds_an_int_of_a_converted_loop_is_a_mask_that_is_not_negative_or_a_bounded_divisor():
    x = np.array([1.0, 2.0])
    for f in (masked, divided, doubled):
        with pytest.raises(ControlFlowError, match="may outgrow the 64 bits"):
            static.jit(f, convert=True)(x)
    np.testing.assert_array_equal(static.jit(bounded, convert=True)(x), bounded(x))
