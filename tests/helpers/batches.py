"""Losses of sequences and trees, alone and in a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic.batching.batch import SCHEDULES
from graphs import tree

each_strategy = pytest.mark.parametrize("strategy", SCHEDULES)


def leaf(array):
    return dynamic.tensor(array, requires_grad=np.asarray(array).dtype.kind == "f")


def weighted(outs):
    """A scalar in which each element of each result counts otherwise."""
    total = 0.0
    for i, out in enumerate(outs):
        if out.dtype.kind == "f":
            weights = np.cos(np.arange(out.size, dtype=out.dtype) + i).reshape(out.shape)
            total = total + g.sum(out * weights)
    return total


# Random programs ----------------------------------------------------------------------------------------------------


WIDTH = 3


def parameters(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"table": (7, WIDTH), "w": (WIDTH, WIDTH), "u": (WIDTH, WIDTH), "b": (WIDTH,), "start": (WIDTH,)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def recurrent(params, words):
    """A loss of a sequence of any length: a step for each word, and ops on rows of all of them."""
    state, states = params["start"], []
    for x in g.embedding(params["table"], np.array(words)):
        state = g.tanh(x @ params["w"] + state @ params["u"] + params["b"])
        states.append(state)
    rows = g.stack(states)
    scores = g.log_softmax(g.relu(rows) @ params["u"] + params["b"], axis=-1)
    chosen = g.take_along_axis(scores, g.expand_dims(np.array(words) % WIDTH, -1))
    best = g.take(scores[-1], g.argmax(scores[0]))
    return g.mean(chosen) - best + g.max(rows, axis=(0, 1)) * g.sum(g.sort(rows, axis=0)[0] * state)


def branching(params, tree_):
    """A loss of a tree of any shape: `(word, children)`."""
    return g.sum(g.square(branch_state(params, tree_)))


def branch_state(params, tree_):
    word, children = tree_
    x = params["table"][word]
    if not children:
        return g.tanh(x * params["b"])
    states = [branch_state(params, child) for child in children]
    if len(children) == 1:
        return g.where(states[0] > 0, states[0] @ params["u"], x)
    joined = g.concat([g.reshape(s, (1, WIDTH)) for s in states])
    weights = g.softmax(joined @ x)
    return g.tanh(weights @ joined + g.mean(g.stack(states, axis=1), axis=1) * x[0] + g.flip(joined, axis=0)[0, :] / 2)


def mean_loss(loss, examples, strategy):
    def together(params):
        with dynamic.batched(strategy):
            return g.mean(g.stack([loss(params, example) for example in examples]))

    return together


def one_by_one(loss, examples):
    return lambda params: g.mean(g.stack([loss(params, example) for example in examples]))


def assert_same(loss, examples, strategy, params=None):
    params = params or parameters()
    expected = dynamic.value_and_grad(one_by_one(loss, examples))(params)
    got = dynamic.value_and_grad(mean_loss(loss, examples, strategy))(params)
    for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-10)


words = st.integers(0, 6)
trees = st.recursive(
    st.tuples(words, st.just(())), lambda inner: st.tuples(words, st.lists(inner, max_size=3).map(tuple)), max_leaves=6
)
