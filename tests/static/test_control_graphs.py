"""Graphs that hold subgraphs: saved, counted, printed, compared, and what they cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError, ShapeError
from graphs.ir import CONSTANT, graph_cost
from static.passes import pipeline
from tests.helpers.control_flow import LOOPS, ROWS, W, X, Y, captured_two_deep, close, rnn

ROOT = Path(__file__).resolve().parents[2]


# Graphs with subgraphs ------------------------------------------------------------------------------------------


def everything(w: Any, xs: Any) -> Any:
    looped = LOOPS["while in scan"](w, xs)
    return g.cond(looped > 0, lambda: captured_two_deep(w, xs), lambda: looped) + rnn(w, xs)


LOADER = """
import sys
import numpy as np
import pytest
import static

exe = static.load(sys.argv[1])
with np.load(sys.argv[2]) as given:
    for xs in (given["short"], given["long"]):
        print([np.asarray(r).tolist() for r in exe(given["w"], xs)])
"""


@pytest.mark.slow
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
    assert looped.arena_bytes == looped.plan.peak >= looped.plan.lower_bound > 0  # with that of the body
    assert str(report).startswith("<lambda>: ")


def test_graphs_print_with_their_bodies():
    lines = str(static.trace(rnn, W, ROWS)).splitlines()
    assert "scan(%2, %1, %0, body=<graph body, " in lines[2]
    assert lines[3].startswith("    graph body(%0 arg0: f64[3], %1 arg1: f64[3], %2 outer0: f64[3,3]) -> f64[3], f64[]")
    assert "# control_flow.py:" in lines[2]
    assert "# control_flow.py:" in lines[4]
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


def test_compiled_code_gives_what_the_graph_gives_node_by_node():
    exe = static.compile(static.value_and_grad(everything), W, ROWS)
    close(exe(W, ROWS), exe.graph(W, ROWS))


def test_padded_scans_equal_unpadded_ones():
    def loss(w: Any, xs: Any, mask: Any) -> Any:
        def step(s: Any, x: Any) -> Any:
            return g.where(x[1], g.tanh(s @ w + x[0]), s), ()

        return (g.scan(step, X, (xs, mask))[0] ** 2).sum()

    step = static.jit(static.value_and_grad(loss), shapes="bucket", dims=(None, ("T", None), ("T",)))
    for length in (3, 4, 2):
        xs, mask = ROWS[:length], np.ones(length, bool)
        close(step(W, xs, mask), dynamic.value_and_grad(loss)(W, xs, mask))
    assert step.stats.compiles == 2


# Numbers in the state of a loop and from a branch, and values as keys


@pytest.mark.parametrize("value", [-1.0, 2.0])
def test_a_loop_without_a_step_gives_the_number_that_it_began_with(value):
    """Also where a step would make an integer of it."""

    def f(x):
        return g.while_loop(lambda s: s[0] < x, lambda s: (s[0] + 1, 1), (0, 0.5))[1] * 1.0

    assert float(static.jit(f)(np.array(value))) == f(np.float64(value)) == (0.5 if value < 0 else 1.0)


def test_a_number_that_no_dtype_of_the_step_holds_is_refused():
    def f(x):
        return g.while_loop(lambda s: s[0] < x, lambda s: (s[0] + 1, g.argmax(g.ones(2))), (0, 0.5))[1]

    with pytest.raises(ShapeError, match="while_loop"):
        static.jit(f)(np.array(1.0))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_that_branches_return_stay_numbers(dtype):
    def f(x):
        return x * g.cond(x > 0, lambda: 0.1, lambda: 0.2) + g.cond(x > 0, lambda: 1, lambda: 2.5)

    for value in (-1.0, 1.0):
        x = np.array(value, dtype)
        found = static.jit(f)(x)
        assert found.dtype == dtype
        assert found == f(x)


@pytest.mark.parametrize("use", [lambda i: i in {0, 1}, lambda i: {i: 1}, {0: 1}.get, hash])
def test_a_symbol_is_no_key(use):
    """By its identity it would be in no set, whatever it comes to."""
    with pytest.raises(ControlFlowError, match=r"argmax: a set, the key of a dict.*test_control_graphs.py"):
        static.jit(lambda x: g.sum(x) * (2.0 if use(g.argmax(x)) else 3.0))(np.ones(2))


def caught(x: Any) -> Any:
    try:
        y = x * 2 if g.sum(x) > 0 else x
    except Exception:  # noqa: BLE001  (what a user may write)
        y = x * 5
    return g.sum(y)


def caught_in_a_branch(x: Any) -> Any:
    return g.cond(x[0] > 0, lambda: caught(x), lambda: g.sum(x))


@pytest.mark.parametrize("function", [caught, caught_in_a_branch])
@pytest.mark.parametrize("transform", [lambda f: f, static.value_and_grad])
def test_a_function_that_catches_a_refusal_is_refused(function, transform):
    """Its handler would be compiled for every value, where the dynamic engine runs it for none."""
    assert dynamic.value_and_grad(caught)(np.ones(2))[0] == 4.0
    with pytest.raises(ControlFlowError, match=r"greater: a Python `if`.*test_control_graphs.py"):
        static.jit(transform(function))(np.ones(2))


def tried(question):
    def f(x: Any) -> Any:
        try:
            many = question(x)
        except Exception:  # noqa: BLE001  (what a user may write)
            many = 7
        return g.sum(x) * many

    return f


QUESTIONS = {
    "a comparison": lambda x: x.shape[0] > 3,
    "equality": lambda x: 2 if x.shape[0] == 3 else 1,
    "truth": lambda x: 1 if x.shape[0] - 1 else 3,
    "a number": lambda x: int(x.shape[0]),
    "a range": lambda x: len(range(x.shape[0])),
    "the length": len,
    "a loop": lambda x: sum(1 for _ in x),
    "an array of NumPy's": lambda x: np.zeros(x.shape[0]).size,
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("transform", [lambda f: f, static.value_and_grad])
def test_a_function_that_catches_a_question_about_a_size_is_refused(question, transform):
    with pytest.raises(ControlFlowError, match=r"symbolic dim.*test_control_graphs.py"):
        static.compile(transform(tried(question)), g.TensorSpec(("N",), np.float64))
    assert static.jit(tried(question))(np.ones(4)) == dynamic.value_and_grad(tried(question))(np.ones(4))[0]


def test_what_ops_ask_of_sizes_is_no_question_of_the_users():
    def f(x):
        try:
            return g.sum(g.diagonal(x, 1))
        except ShapeError:
            return g.sum(x)

    traced = static.compile(f, g.TensorSpec(("N", "N"), np.float64))
    assert traced(np.ones((3, 3))) == 9


def test_a_refusal_of_one_trace_is_none_of_the_next():
    jitted = static.jit(lambda x, asks: caught(x) if asks else g.sum(x))
    with pytest.raises(ControlFlowError):
        jitted(np.ones(2), True)
    assert jitted(np.ones(2), False) == 2.0


# What the gradient of a scan computes again -----------------------------------------------------------------------


def turning(w: Any, xs: Any, reverse: bool) -> Any:
    """A scan whose states change places, and are read as outputs by the rules of tanh and exp."""

    def body(state: Any, x: Any) -> Any:
        h, before = state
        return (g.tanh(h @ w + x) * g.exp(-before), h), h * before

    (h, before), ys = g.scan(body, (xs[0], xs[1] * 0.5), xs, reverse=reverse)
    return g.sum(h * before) + g.sum(ys * ys)


@pytest.mark.diagonal("reverse", "length")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [2, 3, len(ROWS)])
def test_the_gradient_of_a_scan_with_states_that_are_known(length, reverse):
    w, xs = np.random.default_rng(0).normal(size=(3, 3)) / 2, ROWS[:length]
    for order in (1, 2):

        def derived(engine: Any, order: int = order) -> Any:
            def f(w: Any) -> Any:
                return turning(w, xs, reverse)

            return engine.grad(f) if order == 1 else engine.grad(lambda w: g.sum(engine.grad(f)(w) ** 2))

        close(static.compile(derived(static), w)(w), derived(dynamic)(w))


def test_the_state_after_a_step_is_not_computed_again():
    def all_ops(graph: Any) -> list[str]:
        inner = [name for node in graph.nodes for one in node.subgraphs for name in all_ops(one)]
        return [*(node.op.name for node in graph.nodes), *inner]

    def loss(w: Any, xs: Any) -> Any:
        return g.sum(g.scan(lambda h, x: (g.tanh(h @ w + x), ()), xs[0], xs)[0])

    w = np.eye(3)
    compiled = static.compile(static.grad(loss), w, ROWS, passes=pipeline.SIMPLIFY)
    assert all_ops(compiled.graph).count("tanh") == 1
    symbolic = static.compile(static.grad(loss), w, g.TensorSpec(("T", 3), "float64"), passes=pipeline.SIMPLIFY)
    assert all_ops(symbolic.graph).count("tanh") == 2  # of no steps there would be no last state
    for rows in (ROWS, ROWS[:1]):
        close(symbolic(w, rows), static.compile(static.grad(loss), w, rows)(w, rows))


def test_a_state_that_no_rule_reads_is_not_put_together():
    step = static.grad(lambda w, xs: g.sum(g.scan(lambda h, x: (h * w + x, ()), xs[0], xs)[0]))
    assert "concat" not in static.compile(step, np.ones(3), ROWS).graph.op_counts()


def test_zeros_of_all_branches_are_one_array():
    """The gradient of a branch is zeros for every weight that another branch reads."""
    weights = [np.full((40, 40), float(i)) for i in range(6)]

    def loss(weights, x):
        total = g.sum(x)
        for w in weights:
            total = g.cond(total > 0, lambda w=w, t=total: t + g.sum(w * x), lambda t=total: t * 2)
        return total

    exe = static.compile(static.value_and_grad(loss), weights, np.ones(40))
    constants = [node for graph in exe.graph.nested() for node in graph.nodes if node.op is CONSTANT]
    zeros = [node.attrs["value"] for node in constants if node.spec.shape == (40, 40) and not node.attrs["value"].any()]
    assert len(zeros) > 1
    assert len(set(map(id, zeros))) == 1
    value, gradients = exe(weights, np.ones(40))
    for got, expected in zip(gradients, dynamic.grad(loss)(weights, np.ones(40)), strict=True):
        np.testing.assert_array_equal(got, expected)
        got[...] = 7
    again = exe(weights, np.ones(40))
    assert again[0] == value
    assert not any((gradient == 7).any() for gradient in again[1])
