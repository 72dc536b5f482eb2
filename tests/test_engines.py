"""The two engines against each other and against NumPy, on random graphs: values, gradients, and the graph itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs
import static
from tests.random_programs import BINARY, UNARY, random_program

SEEDS = range(200)
STEP = 1e-6


def close(one: Any, other: Any, tolerance: float) -> None:
    for a, b in zip(graphs.tree.leaves(one), graphs.tree.leaves(other), strict=True):
        scale = 1 + np.max(np.abs(b), initial=0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def equal(one: Any, other: Any) -> None:
    for a, b in zip(graphs.tree.leaves(one), graphs.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("block", range(10))
def test_values_and_gradients_of_random_graphs_agree(block):
    """NumPy evaluates the same function at once; both engines give its value, and one another's gradients."""
    for seed in SEEDS[block::10]:
        print(f"seed {seed}")
        f, point = random_program(seed)
        expected = f(point)  # arrays only: every op runs at once, with no engine
        value, gradient = dynamic.value_and_grad(f)(point)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        compiled = [static.compile(static.value_and_grad(f), point, arena=arena) for arena in (True, False)]
        for exe in compiled:
            for _ in range(2):  # the second call finds the arena as the first left it
                close(exe(point), (value, gradient), 1e-13)
        close(compiled[0](point), compiled[1](point), 1e-13)


@pytest.mark.parametrize("seed", SEEDS[::20])
def test_gradients_of_random_graphs_equal_finite_differences(seed):
    f, point = random_program(seed)
    gradient = dynamic.grad(f)(point)
    rng = np.random.default_rng(seed)
    direction = [rng.normal(size=x.shape) for x in point]
    ahead, behind = (f([x + s * STEP * d for x, d in zip(point, direction, strict=True)]) for s in (1, -1))
    slope = sum(float(np.sum(g * d)) for g, d in zip(gradient, direction, strict=True))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * STEP), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("block", range(4))
def test_the_tape_and_the_unoptimised_graph_are_one_graph(block):
    for seed in SEEDS[block::8]:
        print(f"seed {seed}")
        f, point = random_program(seed)
        for one, other in ((f, f), (dynamic.value_and_grad(f), static.value_and_grad(f))):
            recorded, traced = dynamic.record(one, point), static.trace(other, point)
            assert recorded.op_counts() == traced.op_counts()
            assert graphs.isomorphic(recorded, traced)


def test_different_graphs_are_told_apart():
    """The comparison above is worth something: it fails where it should."""
    graph = static.trace(lambda x, y: (x - y) * x, np.ones(2), np.ones(2))
    others = [
        lambda x, y: (y - x) * x,
        lambda x, y: (x - y) * y,
        lambda x, y: (x - y) + x,
        lambda x, y: (x - y) * x * 1,
    ]
    assert not any(graphs.isomorphic(graph, dynamic.record(f, np.ones(2), np.ones(2))) for f in others)
    assert graphs.isomorphic(graph, dynamic.record(lambda x, y: (x - y) * x, np.ones(2), np.ones(2)))


def test_twins_are_compared_without_a_search_that_explodes():
    """The same op on the same input many times: which is which does not matter, how they are shared does."""

    def twins(x: Any) -> Any:
        return sum(graphs.tanh(x) * graphs.tanh(x) for _ in range(40)).sum()

    assert graphs.isomorphic(static.trace(twins, np.ones(2)), dynamic.record(twins, np.ones(2)))

    def pair(x: Any, crossed: bool) -> Any:
        a, b = graphs.tanh(x), graphs.tanh(x)
        return (a * b + a * b if crossed else a * a + b * b).sum()

    crossed, straight = (static.trace(pair, np.ones(2), crossed) for crossed in (True, False))
    assert crossed.op_counts() == straight.op_counts()
    assert not graphs.isomorphic(crossed, straight)


@pytest.mark.parametrize("block", range(2))
def test_float32_differs_from_float64_by_rounding_alone(block):
    for seed in SEEDS[block::20]:
        f, point = random_program(seed)
        single = [x.astype(np.float32) for x in point]
        value, gradient = dynamic.value_and_grad(f)(single)
        equal(static.compile(static.value_and_grad(f), single)(single), (value, gradient))
        assert value.dtype == np.float32
        assert all(g.dtype == np.float32 for g in gradient)
        exact = f([x.astype(np.float64) for x in single])
        np.testing.assert_allclose(value, exact, rtol=1e-3, atol=1e-3)


def test_symbolic_sizes_give_what_numbers_give():
    def f(x: Any, w: Any) -> Any:
        hidden = graphs.tanh(x @ w)
        pooled = graphs.concat([hidden.mean(axis=0, keepdims=True), hidden], axis=0)
        return (graphs.softmax(pooled, axis=-1) * graphs.cumulative_sum(pooled, axis=0)).sum() / x.shape[0]

    spec = graphs.TensorSpec(("B", "D"), "float64"), graphs.TensorSpec(("D", "K"), "float64")
    symbolic = static.compile(static.value_and_grad(f, argnums=(0, 1)), *spec)
    rng = np.random.default_rng(0)
    for b, d, k in ((1, 1, 1), (2, 3, 4), (5, 1, 2), (7, 3, 3), (2, 3, 4)):
        x, w = rng.normal(size=(b, d)), rng.normal(size=(d, k))
        numbers = static.compile(static.value_and_grad(f, argnums=(0, 1)), x, w)
        equal(symbolic(x, w), numbers(x, w))
        close(symbolic(x, w), dynamic.value_and_grad(f, argnums=(0, 1))(x, w), 1e-12)


def test_random_programs_reach_most_of_what_they_are_made_of():
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        f, point = random_program(seed)
        counts.update(static.trace(f, point).op_counts())
    assert len(counts) >= 20
    assert min(counts[name] for name in ("matmul", "concat", "take", "permute_dims", "broadcast_to", "where")) > 10
    assert len(UNARY) + len(BINARY) > 15
