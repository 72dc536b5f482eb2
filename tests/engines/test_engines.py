"""Graphs told apart and found the same, and one symbolic graph against many of numbers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import dynamic
import graphs
import static
from static.passes import pipeline


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


def test_symbolic_sizes_give_what_numbers_give():
    def f(x: Any, w: Any) -> Any:
        hidden = graphs.tanh(x @ w)
        pooled = graphs.concat([hidden.mean(axis=0, keepdims=True), hidden], axis=0)
        return (graphs.softmax(pooled, axis=-1) * graphs.cumulative_sum(pooled, axis=0)).sum() / x.shape[0]

    spec = graphs.TensorSpec(("B", "D"), "float64"), graphs.TensorSpec(("D", "K"), "float64")
    # The same sums in the same order: the passes that may change the last digit know more of numbers.
    both = functools.partial(static.compile, static.value_and_grad(f, argnums=(0, 1)), passes=pipeline.SIMPLIFY)
    symbolic = both(*spec)
    rng = np.random.default_rng(0)
    for b, d, k in ((1, 1, 1), (2, 3, 4), (5, 1, 2), (7, 3, 3), (2, 3, 4)):
        x, w = rng.normal(size=(b, d)), rng.normal(size=(d, k))
        numbers = both(x, w)
        expected = dynamic.value_and_grad(f, argnums=(0, 1))(x, w)
        leaves = (graphs.tree.leaves(result) for result in (symbolic(x, w), numbers(x, w), expected))
        for named, fixed, eager in zip(*leaves, strict=True):
            np.testing.assert_array_equal(named, fixed)
            np.testing.assert_allclose(named, eager, rtol=1e-12, atol=1e-12)
