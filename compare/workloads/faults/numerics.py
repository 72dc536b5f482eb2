"""NaN and infinity, made in the forward or in the backward pass, shown at once or hidden."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(50, 5, 3), draw(51, 5, 4)
LINE = {"weight": draw(52, 3, 4) / 2}
ZERO_ROW = np.concatenate([np.zeros((1, 3), np.float32), X[1:]])
STATE = {"weight": draw(53, 4, 4) * 3}
START = draw(54, 2, 4)


def log_chances(p: Params, x: Array, y: Array) -> Array:
    """The logarithm of what relu lets through."""
    chances = g.relu(x @ p["weight"])
    return mean_square(g.log(chances + 0.1) - y)


def root(p: Params, x: Array, y: Array) -> Array:
    """The root of a sum of squares."""
    hidden = x @ p["weight"]
    return mean_square(g.sqrt(g.square(hidden) + 0.1) - y)


def shares(p: Params, x: Array, y: Array) -> Array:
    """Each row divided by its sum."""
    hidden = g.relu(x @ p["weight"])
    return mean_square(hidden / (g.sum(hidden, axis=1, keepdims=True) + 0.1) - y)


def log_likelihood(p: Params, x: Array, y: Array) -> Array:
    """The first of four classes, from large scores."""
    scores = x @ p["weight"] * 100
    total = g.logsumexp(scores, axis=1)
    return g.mean(total - scores[:, 0]) / 100


def length(p: Params, x: Array, y: Array) -> Array:
    """The length of each row; the gradient of a root at 0 is avoided."""
    norm = g.sqrt(g.sum(g.square(x @ p["weight"]), axis=1) + 1e-3)
    return mean_square(norm - y[:, 0])


def guarded(p: Params, x: Array, y: Array) -> Array:
    """The root where it exists; the guard comes first."""
    hidden = x @ p["weight"]
    roots = g.sqrt(g.where(hidden > 0, hidden, 1))
    return mean_square(g.where(hidden > 0, roots, 0) - y)


def scaled(p: Params, x: Array, y: Array) -> Array:
    """A loss computed in float32."""
    hidden = x @ p["weight"] * 400
    squares = g.square(g.astype(hidden, np.float32))
    return g.mean(squares) / 160000 + mean_square(y)


def recurrent(p: Params, start: Array, y: Array) -> Array:
    """A state that stays between -1 and 1."""
    state = start
    for _ in range(60):
        state = g.tanh(state @ p["weight"])
    return mean_square(g.tanh(state) - y)


def looped(p: Params, start: Array, y: Array) -> Array:
    """The same loop as one op."""

    def body(_: Array, state: Array) -> Array:
        return g.tanh(state @ p["weight"])

    return mean_square(g.tanh(g.fori_loop(0, 60, body, start)) - y)


FAULTS = (
    # what relu stops is 0
    Fault("log of zero", healthy(log_chances, LINE, ((X, Y),)), "chances + 0.1", "chances"),
    # the square is forgotten
    Fault("root of a negative", healthy(root, LINE, ((X, Y),)), "g.square(hidden)", "hidden"),
    # a row of zeros has the sum 0
    Fault(
        "zero by zero",
        healthy(shares, LINE, ((ZERO_ROW, Y),)),
        "(g.sum(hidden, axis=1, keepdims=True) + 0.1)",
        "g.sum(hidden, axis=1, keepdims=True)",
    ),
    # the largest score is not taken away first
    Fault(
        "exponentials overflow",
        healthy(log_likelihood, LINE, ((X, Y),)),
        "g.logsumexp(scores, axis=1)",
        "g.log(g.sum(g.exp(scores), axis=1))",
    ),
    # right forward; the gradient is 0 / 0 for the row of zeros
    Fault("gradient of a length at zero", healthy(length, LINE, ((ZERO_ROW, Y),)), " + 1e-3", ""),
    # NaN is made and hidden by the guard, and comes back with the gradient
    Fault("guarded too late", healthy(guarded, LINE, ((X, Y),)), "g.where(hidden > 0, hidden, 1)", "hidden"),
    # squares of more than 255 do not fit into float16
    Fault("half overflows", healthy(scaled, LINE, ((X, Y),)), "np.float32", "np.float16"),
    # a state that grows in each of 60 steps
    Fault(
        "state explodes",
        healthy(recurrent, STATE, ((START, Y[:2]),)),
        'g.tanh(state @ p["weight"])',
        'state @ p["weight"]',
    ),
    # in the body of a loop that is one op
    Fault(
        "loop explodes", healthy(looped, STATE, ((START, Y[:2]),)), 'g.tanh(state @ p["weight"])', 'state @ p["weight"]'
    ),
)
