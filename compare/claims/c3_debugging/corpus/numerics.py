"""NaN and infinity, made in the forward or in the backward pass, shown at once or hidden."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(50, 5, 3), draw(51, 5, 4)
LINE = {"weight": draw(52, 3, 4) / 2}
ZERO_ROW = np.concatenate([np.zeros((1, 3), np.float32), X[1:]])
STATE = {"weight": draw(53, 4, 4) * 3}
START = draw(54, 2, 4)


def log_chances(p: Params, x: Array, y: Array) -> Array:
    """The logarithm of what relu lets through."""
    chances = g.relu(x @ p["weight"])
    return mean_square(g.log(chances + 0.1) - y)


def log_of_zero(p: Params, x: Array, y: Array) -> Array:
    """What relu stops is 0."""
    chances = g.relu(x @ p["weight"])
    return mean_square(g.log(chances) - y)  # fault


def root(p: Params, x: Array, y: Array) -> Array:
    """The root of a sum of squares."""
    hidden = x @ p["weight"]
    return mean_square(g.sqrt(g.square(hidden) + 0.1) - y)


def root_of_a_negative(p: Params, x: Array, y: Array) -> Array:
    """The square is forgotten."""
    hidden = x @ p["weight"]
    return mean_square(g.sqrt(hidden + 0.1) - y)  # fault


def shares(p: Params, x: Array, y: Array) -> Array:
    """Each row divided by its sum."""
    hidden = g.relu(x @ p["weight"])
    return mean_square(hidden / (g.sum(hidden, axis=1, keepdims=True) + 0.1) - y)


def zero_by_zero(p: Params, x: Array, y: Array) -> Array:
    """A row of zeros has the sum 0."""
    hidden = g.relu(x @ p["weight"])
    return mean_square(hidden / g.sum(hidden, axis=1, keepdims=True) - y)  # fault


def log_likelihood(p: Params, x: Array, y: Array) -> Array:
    """The first of four classes, from large scores."""
    scores = x @ p["weight"] * 100
    total = g.logsumexp(scores, axis=1)
    return g.mean(total - scores[:, 0]) / 100


def exponentials_overflow(p: Params, x: Array, y: Array) -> Array:
    """The largest score is not taken away first."""
    scores = x @ p["weight"] * 100
    total = g.log(g.sum(g.exp(scores), axis=1))  # fault
    return g.mean(total - scores[:, 0]) / 100


def length(p: Params, x: Array, y: Array) -> Array:
    """The length of each row; the gradient of a root at 0 is avoided."""
    norm = g.sqrt(g.sum(g.square(x @ p["weight"]), axis=1) + 1e-3)
    return mean_square(norm - y[:, 0])


def gradient_of_a_length_at_zero(p: Params, x: Array, y: Array) -> Array:
    """Right forward; the gradient is 0 / 0 for the row of zeros."""
    norm = g.sqrt(g.sum(g.square(x @ p["weight"]), axis=1))  # fault
    return mean_square(norm - y[:, 0])


def guarded(p: Params, x: Array, y: Array) -> Array:
    """The root where it exists; the guard comes first."""
    hidden = x @ p["weight"]
    roots = g.sqrt(g.where(hidden > 0, hidden, 1))
    return mean_square(g.where(hidden > 0, roots, 0) - y)


def guarded_too_late(p: Params, x: Array, y: Array) -> Array:
    """NaN is made and hidden by the guard, and comes back with the gradient."""
    hidden = x @ p["weight"]
    roots = g.sqrt(hidden)  # fault
    return mean_square(g.where(hidden > 0, roots, 0) - y)


def scaled(p: Params, x: Array, y: Array) -> Array:
    """A loss computed in float32."""
    hidden = x @ p["weight"] * 400
    squares = g.square(g.astype(hidden, np.float32))
    return g.mean(squares) / 160000 + mean_square(y)


def half_overflows(p: Params, x: Array, y: Array) -> Array:
    """Squares of more than 255 do not fit into float16."""
    hidden = x @ p["weight"] * 400
    squares = g.square(g.astype(hidden, np.float16))  # fault
    return g.mean(squares) / 160000 + mean_square(y)


def recurrent(p: Params, start: Array, y: Array) -> Array:
    """A state that stays between -1 and 1."""
    state = start
    for _ in range(60):
        state = g.tanh(state @ p["weight"])
    return mean_square(g.tanh(state) - y)


def state_explodes(p: Params, start: Array, y: Array) -> Array:
    """A state that grows in each of 60 steps."""
    state = start
    for _ in range(60):
        state = state @ p["weight"]  # fault
    return mean_square(g.tanh(state) - y)


def looped(p: Params, start: Array, y: Array) -> Array:
    """The same loop as one op."""

    def body(_: Array, state: Array) -> Array:
        return g.tanh(state @ p["weight"])

    return mean_square(g.tanh(g.fori_loop(0, 60, body, start)) - y)


def loop_explodes(p: Params, start: Array, y: Array) -> Array:
    """The fault is in the body of a loop that is one op."""

    def body(_: Array, state: Array) -> Array:
        return state @ p["weight"]  # fault

    return mean_square(g.tanh(g.fori_loop(0, 60, body, start)) - y)


FAULTS = (
    Fault("log of zero", "numeric", log_chances, LINE, ((X, Y),), log_of_zero),
    Fault("root of a negative", "numeric", root, LINE, ((X, Y),), root_of_a_negative),
    Fault("zero by zero", "numeric", shares, LINE, ((ZERO_ROW, Y),), zero_by_zero),
    Fault("exponentials overflow", "numeric", log_likelihood, LINE, ((X, Y),), exponentials_overflow),
    Fault("gradient of a length at zero", "numeric", length, LINE, ((ZERO_ROW, Y),), gradient_of_a_length_at_zero),
    Fault("guarded too late", "numeric", guarded, LINE, ((X, Y),), guarded_too_late),
    Fault("half overflows", "numeric", scaled, LINE, ((X, Y),), half_overflows),
    Fault("state explodes", "numeric", recurrent, STATE, ((START, Y[:2]),), state_explodes),
    Fault("loop explodes", "numeric", looped, STATE, ((START, Y[:2]),), loop_explodes),
)
