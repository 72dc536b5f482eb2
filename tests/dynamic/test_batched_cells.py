"""Cells in a batch: what runs once, and what is found for each."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dynamic
import graphs as g
from compare.workloads import rnn_text, tree_lstm
from graphs import GraphError, tree
from tests.helpers.batches import assert_same, each_strategy, leaf, weighted


@each_strategy
@pytest.mark.parametrize("workload", [tree_lstm, rnn_text])
def test_workloads(workload, strategy):
    case = workload.make(**workload.WORKLOAD.sizes["small"])
    params = tree.tree_map(lambda x: x.astype(np.float64), case.params)
    assert_same(lambda p, example: case.loss(p, *example), case.examples, strategy, params)


# Cells --------------------------------------------------------------------------------------------------------------


@each_strategy
@pytest.mark.parametrize(("workload", "step"), [(tree_lstm, "node_state"), (rnn_text, "step")])
def test_workloads_by_cells(workload, step, strategy, monkeypatch):
    monkeypatch.setattr(workload, step, dynamic.cell(getattr(workload, step)))
    test_workloads(workload, strategy)


def outcome(function, batched):
    """Values and gradients of three calls of a function of arrays, with what it returns in a batch or without."""
    rng = np.random.default_rng(0)
    w, xs = leaf(rng.standard_normal((3, 3))), [leaf(rng.standard_normal(3)) for _ in range(3)]
    rows = [np.arange(i, i + 3) for i in range(3)]
    if batched:
        with dynamic.batched():
            results = [function(w, [x * 1, row], "plain", scale=0.5) for x, row in zip(xs, rows, strict=True)]
            total = weighted([r for result in results for r in tree.leaves(result) if hasattr(r, "dtype")])
    else:
        results = [function(w, [x, row], "plain", scale=0.5) for x, row in zip(xs, rows, strict=True)]
        total = weighted([r for result in results for r in tree.leaves(result) if hasattr(r, "dtype")])
    total.backward()
    values = [np.asarray(g.stop_gradient(r)) if hasattr(r, "dtype") else r for r in tree.leaves(results)]
    return values, [v.grad.numpy() for v in (w, *xs)]


def views(w, pair, word, scale):
    x, row = pair
    return {"y": g.tanh(w @ x)[1:], "x": x[0], "both": (x, g.reshape(w, (-1,))[2:5] * scale), "word": word, "row": row}


def nested(w, pair, word, scale):
    return dynamic.cell(views)(w, [g.sin(pair[0]), pair[1]], word, scale=scale)["y"] * pair[0][:2]


def unruled(w, pair, word, scale):
    return g.roll(w * pair[0], 1) * scale, w[1] * 1, pair[1] * 2, g.take(w, pair[1] % 3) @ pair[0]


def silent(w, pair, word, scale):
    with dynamic.no_grad():
        frozen = pair[0] * scale
    return frozen * (w @ pair[0])


@pytest.mark.parametrize("function", [views, nested, unruled, silent])
def test_a_cell_is_its_function(function):
    (values, gradients), (by_cell, cell_gradients) = outcome(function, False), outcome(dynamic.cell(function), True)
    for x, y in zip(values, by_cell, strict=True):
        np.testing.assert_allclose(y, x) if isinstance(x, np.ndarray) else np.testing.assert_equal(y, x)
    for x, y in zip(gradients, cell_gradients, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


def test_a_cell_runs_once_for_each_structure():
    runs = []

    @dynamic.cell
    def step(states, power=1):
        runs.append(len(states))
        return g.sum(g.stack(states), axis=0) ** power

    x = dynamic.tensor([1.0, 2.0])
    with dynamic.batched() as batch:
        results = [step([x * 1] * n, power=p) for n, p in ((1, 1), (2, 1), (1, 1), (2, 1), (2, 3))]
    assert runs == [1, 2, 2]
    assert [r.tolist() for r in results] == [[1, 2], [2, 4], [1, 2], [2, 4], [8, 64]]
    assert batch.stats.mean_batch > 1
    assert step([x]).tolist() == [1, 2]  # outside a block it is the function itself
    assert step.__name__ == "step"


def test_a_cell_after_values_were_needed():
    double = dynamic.cell(lambda x: x * 2)
    with dynamic.batched():
        x = double(dynamic.tensor([1.0]))
        while x.sum() < 100:
            x = double(x)
    assert x.tolist() == [128.0]


def test_a_cell_looks_at_no_value():
    @dynamic.cell
    def f(x):
        return x * 2 if x.sum() > 0 else x

    with (
        dynamic.batched(),
        pytest.raises(g.ControlFlowError, match=r"needs the value .*test_batched_cells.py:\d+\); choose"),
    ):
        f(dynamic.tensor([1.0]))


def test_an_error_of_values_in_a_cell_names_its_line():
    @dynamic.cell
    def pick(table, i):
        return g.take(table, i)

    line = inspect.getsourcelines(pick)[1] + 2
    table = leaf(np.ones((3, 2)))
    with pytest.raises(GraphError, match=f"take: .*test_batched_cells.py:{line}") as caught, dynamic.batched():
        rows = [pick(table, np.array(i)) for i in (0, 1, 7)]
    assert "i64[]" in str(caught.value)
    assert len(rows) == 3
