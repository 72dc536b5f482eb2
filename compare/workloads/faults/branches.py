"""The wrong branch is taken, or the branch is asked of a value that a trace does not have."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(60, 5, 3), draw(61, 5, 4)
LINE = {"weight": draw(62, 3, 4) / 2}
SCORES = {"query": draw(63, 3, 4) / 2}
VISIBLE = np.tril(np.ones((5, 5), bool))


def leaky(p: Params, x: Array, y: Array) -> Array:
    """A leaky relu by where."""
    hidden = x @ p["weight"]
    return mean_square(g.where(hidden > 0, hidden, hidden * 0.1) - y)


def huber(p: Params, x: Array, y: Array) -> Array:
    """Large errors count linearly."""
    error = g.mean(g.square(x @ p["weight"] - y))
    return g.cond(error > 1, g.sqrt, g.square, error)


def causal(p: Params, x: Array, y: Array, visible: Array) -> Array:
    """Attention that sees only what came before."""
    query = x @ p["query"]
    scores = g.where(visible, query @ g.matrix_transpose(query), -1e9)
    return mean_square(g.softmax(scores, axis=1) @ query - y)


def limited(p: Params, x: Array, y: Array) -> Array:
    """Outputs between -0.5 and 2."""
    return mean_square(g.clip(x @ p["weight"], -0.5, 2) - y)


def signed(p: Params, x: Array, y: Array) -> Array:
    """Doubled if the sum is positive, else lowered by 2; as ops."""
    hidden = x @ p["weight"]
    hidden = g.where(g.sum(hidden) > 0, hidden * 2, hidden - 2)
    return mean_square(hidden - y)


def rescaled(p: Params, x: Array, y: Array) -> Array:
    """Divided by the largest value, taken as a constant."""
    hidden = g.tanh(x @ p["weight"])
    largest = g.stop_gradient(g.max(g.abs(hidden)))
    return mean_square(hidden / largest - y)


FAULTS = (
    # the comparison points the wrong way
    Fault("where inverted", healthy(leaky, LINE, ((X, Y),)), "hidden > 0", "hidden < 0"),
    # small errors count linearly
    Fault("branches swapped", healthy(huber, LINE, ((X, Y),)), "g.sqrt, g.square", "g.square, g.sqrt"),
    # attention that sees only what comes after
    Fault(
        "mask inverted",
        healthy(causal, SCORES, ((X, Y, VISIBLE),)),
        "query @ g.matrix_transpose(query), -1e9",
        "-1e9, query @ g.matrix_transpose(query)",
    ),
    # a minimum above the maximum makes everything the maximum
    Fault("limits swapped", healthy(limited, LINE, ((X, Y),)), "-0.5, 2", "2, -0.5"),
    # the same in plain Python, which a trace cannot decide
    Fault(
        "if on a value",
        healthy(signed, LINE, ((X, Y),)),
        "g.where(g.sum(hidden) > 0, hidden * 2, hidden - 2)",
        "hidden * 2 if g.sum(hidden) > 0 else hidden - 2",
    ),
    # the same through a Python number
    Fault("number of a value", healthy(rescaled, LINE, ((X, Y),)), "g.stop_gradient(", "float("),
)
