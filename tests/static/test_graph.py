"""static.GraphBuilder: define and run gives what tracing gives, and what is fed wrong is named."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError, DTypeError, GraphError, NotDifferentiableError, ShapeError
from static.passes.pipeline import REPLAY

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


def loss_of(x, w):
    return g.mean(g.tanh(x @ w) ** 2)


@pytest.fixture
def model():
    graph = static.GraphBuilder("model")
    return graph, graph.placeholder("x", ("B", 3)), graph.placeholder("w", (3, 2))


def test_a_step_is_that_of_a_traced_function(model):
    graph, x, w = model
    loss = loss_of(x, w)
    step = graph.compile({"loss": loss, "gradients": graph.gradients(loss, (x, [w])), "rows": x.shape[0] * 1.0})
    traced = static.compile(static.value_and_grad(loss_of, (0, 1)), g.TensorSpec(("B", 3)), W)
    for rows in (X, X[:1], X[:0], np.concatenate([X, X])):
        with np.errstate(invalid="ignore", divide="ignore"):  # the mean of no rows
            found = step.run({"x": rows, "w": W})
            value, (of_x, of_w) = traced(rows, W)
        np.testing.assert_array_equal(found["loss"], value)
        np.testing.assert_array_equal(found["gradients"][0], of_x)
        np.testing.assert_array_equal(found["gradients"][1][0], of_w)
        assert found["rows"] == len(rows)


def test_gradients_go_through_values_that_are_asked_for_too(model):
    graph, x, w = model
    hidden = g.tanh(x @ w)
    loss = g.mean(hidden**2)
    of_hidden, of_w, alone = graph.run(
        [*graph.gradients(loss, [hidden, w]), graph.gradients(loss, w)], {"x": X, "w": W}
    )
    np.testing.assert_allclose(of_hidden, 2 * np.tanh(X @ W) / 4, rtol=1e-6)
    np.testing.assert_array_equal(of_w, alone)
    np.testing.assert_allclose(of_w, dynamic.grad(loss_of, 1)(X, W), rtol=1e-6)


def test_gradients_of_gradients_and_of_what_does_not_matter():
    graph = static.GraphBuilder()
    x, other = graph.placeholder("x", (), "float64"), graph.placeholder("other", (2,), "float64")
    slope = graph.gradients(x**3, x)
    found = graph.run(
        {"second": graph.gradients(slope, x), "none": graph.gradients(slope, other)},
        {"x": np.float64(2), "other": np.ones(2)},
    )
    assert found["second"] == 12
    assert found["none"].tolist() == [0, 0]


def test_control_flow_and_transforms_in_a_block_are_those_of_the_graph(model):
    graph, x, w = model
    with graph:
        total, rows = g.scan(lambda s, row: (s + g.sum(row @ w), s), g.zeros((), np.float32), x)
        chosen = g.cond(total > 0, g.sin, g.cos, total)
        inner = static.grad(lambda v: g.sum(g.exp(v)))(x)
    found = graph.run((total, rows, chosen, inner, graph.gradients(chosen, w)), {"x": X, "w": W})
    sums = np.cumsum((X @ W).sum(axis=1))
    np.testing.assert_allclose(found[0], sums[-1], rtol=1e-6)
    np.testing.assert_allclose(found[1], [0, sums[0]], rtol=1e-6)
    np.testing.assert_allclose(found[2], np.sin(sums[-1]) if sums[-1] > 0 else np.cos(sums[-1]), rtol=1e-6)
    np.testing.assert_allclose(found[3], np.exp(X), rtol=1e-6)
    derivative = np.cos(sums[-1]) if sums[-1] > 0 else -np.sin(sums[-1])
    np.testing.assert_allclose(found[4], derivative * np.repeat(X.sum(axis=0)[:, None], 2, axis=1), rtol=1e-5)


def test_only_what_the_outputs_need_is_fed_and_printed(model, capsys):
    graph, x, w = model
    unused = graph.placeholder("unused", ())
    g.print(unused, "unused")
    doubled = g.print(x, "x") * 2
    step = graph.compile(doubled)
    assert [str(spec) for spec in step.specs] == ["f32[B,3]"]
    np.testing.assert_array_equal(step.run({"x": X, "unused": 1}), 2 * X)
    assert capsys.readouterr().err.startswith("x: f32[2,3]")
    with pytest.raises(GraphError, match=r"the placeholder 'w', f32\[3,2\], is not fed \(test_graph.py"):
        graph.run(x @ w, {"x": X})


def test_a_size_that_no_output_reads_is_told_by_a_placeholder(model):
    graph, x, _ = model
    with graph:
        ones = g.ones(x.shape)
    assert graph.run(ones, {"x": X}).shape == (2, 3)


def test_what_is_fed_wrong_is_named(model):
    graph, x, w = model
    step = graph.compile(loss_of(x, w))
    for feed, error, words in (
        ({"x": X}, GraphError, "'w', .* is not fed"),
        ({"x": X, "w": W, "v": W}, GraphError, "no placeholder is named 'v' .* there are w, x"),
        ({"x": X[:, :2], "w": W}, ShapeError, "x: a dimension compiled as 3 is 2"),
        ({"x": X[0], "w": W}, ShapeError, r"x: compiled for f32\[B,3\], got 1 axes"),
        ({"x": X.astype(int), "w": W}, DTypeError, r"x: compiled for f32\[B,3\], got int64"),
    ):
        with pytest.raises(error, match=words):
            step.run(feed)


def test_one_name_with_two_sizes_is_named():
    graph = static.GraphBuilder()
    x, y = graph.placeholder("x", ("B",)), graph.placeholder("y", ("B",))
    step = graph.compile(x + y)
    with pytest.raises(ShapeError, match=r"B\b.* 2\b.* 3\b|B\b.* 3\b.* 2\b"):
        step.run({"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)})


def test_values_of_two_graphs_do_not_mix(model):
    graph, x, _ = model
    other = static.GraphBuilder("other").placeholder("y", ("B", 3))
    with pytest.raises(ControlFlowError, match=r"add: a symbol of another trace or graph, f32\[B,3\] \+ f32\[B,3\]"):
        _ = x + other
    for refused in (
        lambda: graph.compile(other),
        lambda: graph.gradients(g.sum(other), x),
        lambda: graph.gradients(g.sum(x), other),
    ):
        with pytest.raises(GraphError, match="another graph"):
            refused()
    with pytest.raises(ControlFlowError, match="another trace or graph"):
        static.compile(lambda a: a + x, X)


def test_what_has_no_gradient_or_a_name_that_is_taken_is_refused(model):
    graph, x, w = model
    with pytest.raises(NotDifferentiableError, match="only scalars"):
        graph.gradients(x @ w, w)
    with pytest.raises(NotDifferentiableError, match="int"):
        graph.gradients(g.sum(x), graph.placeholder("i", (2,), "int64"))
    with pytest.raises(GraphError, match="named 'x' exists already"):
        graph.placeholder("x", ())


def test_a_graph_grows_after_it_has_been_compiled_and_constants_are_copies(model):
    graph, x, w = model
    array = np.ones(3, np.float32)
    shifted = x + graph.constant(array)
    array[:] = 7
    first = graph.compile(shifted, passes=REPLAY, arena=False)
    second = graph.compile(shifted @ w)
    np.testing.assert_array_equal(first.run({"x": X}), X + 1)
    np.testing.assert_allclose(second.run({"x": X, "w": W}), (X + 1) @ W, rtol=1e-6)
    assert repr(graph).startswith("<graph model(x: f32[B,3], w: f32[3,2])")


def test_runs_of_the_same_outputs_are_compiled_once(model):
    graph, x, w = model
    loss = loss_of(x, w)
    for _ in range(2):
        graph.run(loss, {"x": X, "w": W})
    assert len(graph._compiled) == 1


def test_it_is_an_executable_like_any_other(model, tmp_path):
    graph, x, w = model
    step = graph.compile([loss_of(x, w)])
    step.save(tmp_path / "step.graph")
    feed = {"x": X, "w": W}
    np.testing.assert_array_equal(static.load(tmp_path / "step.graph")(feed), step.run(feed))
    assert "tanh" in [step.node.op.name for step in static.debug.steps(step, feed)]
    assert static.debug.check(step, feed) == step(feed)
