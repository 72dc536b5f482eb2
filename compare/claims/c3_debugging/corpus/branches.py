"""The wrong branch is taken, or the branch is asked of a value that a trace does not have."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(60, 5, 3), draw(61, 5, 4)
LINE = {"weight": draw(62, 3, 4) / 2}
SCORES = {"query": draw(63, 3, 4) / 2}
VISIBLE = np.tril(np.ones((5, 5), bool))


def leaky(p: Params, x: Array, y: Array) -> Array:
    """A leaky relu by where."""
    hidden = x @ p["weight"]
    return mean_square(g.where(hidden > 0, hidden, hidden * 0.1) - y)


def where_inverted(p: Params, x: Array, y: Array) -> Array:
    """The comparison points the wrong way."""
    hidden = x @ p["weight"]
    return mean_square(g.where(hidden < 0, hidden, hidden * 0.1) - y)  # fault


def huber(p: Params, x: Array, y: Array) -> Array:
    """Large errors count linearly."""
    error = g.mean(g.square(x @ p["weight"] - y))
    return g.cond(error > 1, g.sqrt, g.square, error)


def branches_swapped(p: Params, x: Array, y: Array) -> Array:
    """Small errors count linearly."""
    error = g.mean(g.square(x @ p["weight"] - y))
    return g.cond(error > 1, g.square, g.sqrt, error)  # fault


def causal(p: Params, x: Array, y: Array, visible: Array) -> Array:
    """Attention that sees only what came before."""
    query = x @ p["query"]
    scores = g.where(visible, query @ g.matrix_transpose(query), -1e9)
    return mean_square(g.softmax(scores, axis=1) @ query - y)


def mask_inverted(p: Params, x: Array, y: Array, visible: Array) -> Array:
    """Attention that sees only what comes after."""
    query = x @ p["query"]
    scores = g.where(visible, -1e9, query @ g.matrix_transpose(query))  # fault
    return mean_square(g.softmax(scores, axis=1) @ query - y)


def limited(p: Params, x: Array, y: Array) -> Array:
    """Outputs between -0.5 and 2."""
    return mean_square(g.clip(x @ p["weight"], -0.5, 2) - y)


def limits_swapped(p: Params, x: Array, y: Array) -> Array:
    """A minimum above the maximum makes everything the maximum."""
    return mean_square(g.clip(x @ p["weight"], 2, -0.5) - y)  # fault


def signed(p: Params, x: Array, y: Array) -> Array:
    """Doubled if the sum is positive, else lowered by 2; as ops."""
    hidden = x @ p["weight"]
    hidden = g.where(g.sum(hidden) > 0, hidden * 2, hidden - 2)
    return mean_square(hidden - y)


def if_on_a_value(p: Params, x: Array, y: Array) -> Array:
    """The same in plain Python, which a trace cannot decide."""
    hidden = x @ p["weight"]
    hidden = hidden * 2 if g.sum(hidden) > 0 else hidden - 2  # fault
    return mean_square(hidden - y)


def rescaled(p: Params, x: Array, y: Array) -> Array:
    """Divided by the largest value, taken as a constant."""
    hidden = g.tanh(x @ p["weight"])
    largest = g.stop_gradient(g.max(g.abs(hidden)))
    return mean_square(hidden / largest - y)


def number_of_a_value(p: Params, x: Array, y: Array) -> Array:
    """The same through a Python number."""
    hidden = g.tanh(x @ p["weight"])
    largest = float(g.max(g.abs(hidden)))  # fault
    return mean_square(hidden / largest - y)


FAULTS = (
    Fault("where inverted", "branch", leaky, LINE, ((X, Y),), where_inverted),
    Fault("branches swapped", "branch", huber, LINE, ((X, Y),), branches_swapped),
    Fault("mask inverted", "branch", causal, SCORES, ((X, Y, VISIBLE),), mask_inverted),
    Fault("limits swapped", "branch", limited, LINE, ((X, Y),), limits_swapped),
    Fault("if on a value", "branch", signed, LINE, ((X, Y),), if_on_a_value),
    Fault("number of a value", "branch", rescaled, LINE, ((X, Y),), number_of_a_value),
)
