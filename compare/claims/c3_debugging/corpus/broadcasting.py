"""Shapes that fit by accident: nothing fails, and the value is wrong."""

from __future__ import annotations

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, TARGET, SQUARE = draw(10, 6, 3), draw(11, 6), draw(12, 6, 6)
LINE = {"weight": draw(13, 3, 1)}
GRID = {"weight": draw(14, 6, 6) / 3, "bias": draw(15, 6)}
WEIGHTS = abs(draw(16, 6))


def regression(p: Params, x: Array, y: Array) -> Array:
    """One output an example."""
    predicted = (x @ p["weight"])[:, 0]
    return mean_square(predicted - y)


def column_minus_row(p: Params, x: Array, y: Array) -> Array:
    """A column of predictions and a row of targets make a table of differences."""
    predicted = x @ p["weight"]  # fault
    return mean_square(predicted - y)


def normalised(p: Params, x: Array, y: Array) -> Array:
    """The mean of each row is taken away."""
    hidden = x @ p["weight"] + p["bias"]
    mean = g.mean(hidden, axis=1, keepdims=True)
    return mean_square(g.tanh(hidden - mean) - y)


def axis_not_kept_in_a_square(p: Params, x: Array, y: Array) -> Array:
    """As many examples as features, so that the wrong mean is taken from each."""
    hidden = x @ p["weight"] + p["bias"]
    mean = g.mean(hidden, axis=1)  # fault
    return mean_square(g.tanh(hidden - mean) - y)


def bias_down_the_batch(p: Params, x: Array, y: Array) -> Array:
    """The bias goes down the batch instead of along the features."""
    hidden = x @ p["weight"] + g.expand_dims(p["bias"], axis=1)  # fault
    mean = g.mean(hidden, axis=1, keepdims=True)
    return mean_square(g.tanh(hidden - mean) - y)


def weighted(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """Each example counts with its weight."""
    errors = g.square((x @ p["weight"])[:, 0] - y)
    return g.mean(errors * weights)


def weights_as_a_column(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """Every error meets every weight."""
    errors = g.square((x @ p["weight"])[:, 0] - y)
    return g.mean(errors * g.expand_dims(weights, axis=1))  # fault


FAULTS = (
    Fault("column minus row", "broadcasting", regression, LINE, ((X, TARGET),), column_minus_row),
    Fault("axis not kept in a square", "broadcasting", normalised, GRID, ((SQUARE, X @ draw(17, 3, 6)),),
          axis_not_kept_in_a_square),
    Fault("bias down the batch", "broadcasting", normalised, GRID, ((SQUARE, X @ draw(17, 3, 6)),),
          bias_down_the_batch),
    Fault("weights as a column", "broadcasting", weighted, LINE, ((X, TARGET, WEIGHTS),), weights_as_a_column),
)  # fmt: skip
