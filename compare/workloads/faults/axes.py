"""Right shapes, wrong axis or wrong reduction: nothing fails, and the value is wrong."""

from __future__ import annotations

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(20, 5, 4), draw(21, 5, 4)
SQUARE = {"weight": draw(22, 4, 4) / 2}
GATED = {"weight": draw(22, 4, 4) / 2, "scale": draw(23, 4)}


def classifier(p: Params, x: Array, y: Array) -> Array:
    """Probabilities over four classes, compared with y."""
    chances = g.softmax(x @ p["weight"], axis=1)
    return g.mean(g.sum(g.square(chances - y), axis=1))


def gated(p: Params, x: Array, y: Array) -> Array:
    """Features normalised to unit length, then scaled."""
    hidden = g.tanh(x @ p["weight"])
    length = g.sqrt(g.sum(g.square(hidden), axis=1, keepdims=True) + 1e-3)
    return mean_square(hidden / length * p["scale"] - y)


def smoothed(p: Params, x: Array, y: Array) -> Array:
    """A running sum along each row."""
    total = g.cumulative_sum(x @ p["weight"], axis=1)
    return mean_square(total / 4 - y)


CLASSIFIER = healthy(classifier, SQUARE, ((X, Y),))
GATE = healthy(gated, GATED, ((X, Y),))
SMOOTHED = healthy(smoothed, SQUARE, ((X, Y),))

FAULTS = (
    # the classes compete across examples
    Fault("softmax over the batch", CLASSIFIER, 'p["weight"], axis=1', 'p["weight"], axis=0'),
    # the loss is smaller by the number of classes
    Fault("mean for sum", CLASSIFIER, "g.sum", "g.mean"),
    # a square weight, whose shape does not tell
    Fault("transposed square", CLASSIFIER, 'p["weight"]', 'g.matrix_transpose(p["weight"])'),
    # normalised down the batch
    Fault("length of columns", GATE, "axis=1", "axis=0"),
    # the layer is linear
    Fault("forgotten activation", GATE, 'g.tanh(x @ p["weight"])', '(x @ p["weight"]) * 1.0'),
    # the sum runs through the examples
    Fault("summed down the batch", SMOOTHED, "axis=1", "axis=0"),
    # the target is added to the prediction
    Fault("wrong sign", SMOOTHED, "- y", "+ y"),
)
