"""Nodes of trees with any number of children, as cells."""

from __future__ import annotations

import numpy as np

import dynamic
import graphs as g

WIDTH = 3


def leaf(array):
    return dynamic.tensor(array, requires_grad=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def parameters(seed=0):
    return {
        "w": numbers(WIDTH, WIDTH, seed=seed),
        "u": numbers(WIDTH, WIDTH, seed=seed + 1),
        "b": numbers(WIDTH, seed=2),
    }


# Nodes of trees with any number of children -------------------------------------------------------------------------


def summed(params, x, states):
    """What each child passes on depends on the parent, as in a Child-Sum Tree-LSTM."""
    if not states:
        return g.tanh(x * params["b"])
    rows = g.stack(states)
    gates = g.sigmoid(x @ params["u"] + rows @ params["w"])
    return g.tanh(g.sum(gates * rows, axis=0) + params["b"] * x)


def averaged(params, x, states):
    return g.tanh(x @ params["w"] + (g.sum(g.stack(states), axis=0) / len(states) if states else params["b"]))


def attended(params, x, states):
    """A softmax over the children: their number counts."""
    if not states:
        return x * params["b"]
    rows = g.stack(states)
    return g.softmax(rows @ x) @ rows + g.max(rows, axis=0) * params["b"]


def chained(params, x, states):
    """Joined from parts and other shapes of the children, and one of them used alone."""
    if not states:
        return g.sin(x)
    pairs = g.concat([g.reshape(s, (1, WIDTH)) for s in states] + [g.expand_dims(s, 0) for s in states])
    tails = g.concat([s[1:] for s in states])
    return g.tanh(g.sum(pairs @ params["u"], axis=(0,)) + states[0] * g.sum(tails * tails)) + g.where(x > 0, x, 0)


NODES = [summed, averaged, attended, chained]


def state_of(node, params, tree_):
    word, children = tree_
    return node(params, params["table"][word], [state_of(node, params, child) for child in children])


def mean_square(node, params, examples):
    return g.mean(g.stack([g.sum(g.square(state_of(node, params, example))) for example in examples]))


def with_table(params):
    return params | {"table": numbers(7, WIDTH, seed=3)}


def in_batch(node, examples, strategy="path"):
    def loss(params):
        with dynamic.batched(strategy):
            return mean_square(dynamic.cell(node), params, examples)

    return loss


A, B = (1, ()), (2, ())
BUSHES = ((0, (A, B, A)), (3, (A, (4, (B,)))), (5, ((6, (A, B)), B)))
