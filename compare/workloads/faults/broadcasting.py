"""Shapes that fit by accident: nothing fails, and the value is wrong."""

from __future__ import annotations

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

X, TARGET, SQUARE = draw(10, 6, 3), draw(11, 6), draw(12, 6, 6)
LINE = {"weight": draw(13, 3, 1)}
GRID = {"weight": draw(14, 6, 6) / 3, "bias": draw(15, 6)}
WEIGHTS = abs(draw(16, 6))


def regression(p: Params, x: Array, y: Array) -> Array:
    """One output an example."""
    predicted = (x @ p["weight"])[:, 0]
    return mean_square(predicted - y)


def normalised(p: Params, x: Array, y: Array) -> Array:
    """The mean of each row is taken away."""
    hidden = x @ p["weight"] + p["bias"]
    mean = g.mean(hidden, axis=1, keepdims=True)
    return mean_square(g.tanh(hidden - mean) - y)


def weighted(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """Each example counts with its weight."""
    errors = g.square((x @ p["weight"])[:, 0] - y)
    return g.mean(errors * weights)


NORMALISED = healthy(normalised, GRID, ((SQUARE, X @ draw(17, 3, 6)),))

FAULTS = (
    # a column of predictions and a row of targets make a table of differences
    Fault("column minus row", healthy(regression, LINE, ((X, TARGET),)), '(x @ p["weight"])[:, 0]', 'x @ p["weight"]'),
    # as many examples as features, so that the wrong mean is taken from each
    Fault("axis not kept in a square", NORMALISED, ", keepdims=True", ""),
    # instead of along the features
    Fault("bias down the batch", NORMALISED, 'p["bias"]', 'g.expand_dims(p["bias"], axis=1)'),
    # every error meets every weight
    Fault(
        "weights as a column",
        healthy(weighted, LINE, ((X, TARGET, WEIGHTS),)),
        "errors * weights",
        "errors * g.expand_dims(weights, axis=1)",
    ),
)
