"""Shapes that do not fit, or fit by accident, a wrong axis, and indices and slices that are off.

The error is raised at the line at fault, or some lines later, or nothing fails and the value is wrong.
"""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(0, 6, 3), draw(1, 6, 2)
WIDE = {"first": draw(2, 3, 8) / 2, "bias": draw(3, 8), "second": draw(4, 8, 2) / 3}
PAIR = {"weight": draw(5, 6, 2) / 3}
KEYS = {"query": draw(6, 3, 4) / 2, "key": draw(7, 3, 4) / 2, "value": draw(8, 3, 2) / 2}
SKIP = {"first": WIDE["first"], "bias": WIDE["bias"], "second": draw(9, 11, 2) / 4}


def perceptron(p: Params, x: Array, y: Array) -> Array:
    """A hidden layer and a linear one."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    return mean_square(hidden @ p["second"] - y)


def pairs(p: Params, x: Array, y: Array) -> Array:
    """A linear layer on features and their squares."""
    both = g.concat([x, x * x], axis=1)
    both = both - 0.5
    return mean_square(both @ p["weight"] - y)


def attention(p: Params, x: Array, y: Array) -> Array:
    """One head of attention over six positions."""
    query, key, value = x @ p["query"], x @ p["key"], x @ p["value"]
    scores = query @ g.matrix_transpose(key)
    return mean_square(g.softmax(scores, axis=1) @ value - y)


def centred(p: Params, x: Array, y: Array) -> Array:
    """The mean of each row is taken away."""
    hidden = x @ p["first"] + p["bias"]
    mean = g.mean(hidden, axis=1, keepdims=True)
    return mean_square(g.tanh(hidden - mean) @ p["second"] - y)


def skip(p: Params, x: Array, y: Array) -> Array:
    """The output layer sees the input as well."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    hidden = g.concat([hidden, x], axis=1)
    return mean_square(hidden @ p["second"] - y)


PERCEPTRON = healthy(perceptron, WIDE, ((X, Y),))
PAIRS = healthy(pairs, PAIR, ((X, Y),))

SHAPES = (
    Fault("bias of another layer", PERCEPTRON, 'p["second"]', 'p["second"] + p["bias"]'),
    # the batch axis is flattened away, which shows at the next product
    Fault(
        "batch flattened",
        PERCEPTRON,
        "return",
        "hidden = g.reshape(hidden, (-1,))\n    hidden = hidden * 1.0\n    return",
    ),
    # a reshape that does not keep the number of elements
    Fault("reshaped to another size", PERCEPTRON, "return", "hidden = g.reshape(hidden, (8, 8))\n    return"),
    # features are put below each other instead of side by side
    Fault("concatenated along the batch", PAIRS, "axis=1", "axis=0"),
    Fault("stacked for concatenated", PAIRS, "concat", "stack"),
    Fault("missing transpose", healthy(attention, KEYS, ((X, Y),)), "g.matrix_transpose(key)", "key"),
    # the mean lost the axis that it should broadcast along
    Fault("axis not kept", healthy(centred, WIDE, ((X, Y),)), ", keepdims=True", ""),
    # the input is not put beside the hidden layer
    Fault("skip connection forgotten", healthy(skip, SKIP, ((X, Y),)), "g.concat([hidden, x], axis=1)", "hidden * 1.0"),
)


# Axes -----------------------------------------------------------------------------------------------------------------


AXES_X, AXES_Y = draw(20, 5, 4), draw(21, 5, 4)
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


CLASSIFIER = healthy(classifier, SQUARE, ((AXES_X, AXES_Y),))
GATE = healthy(gated, GATED, ((AXES_X, AXES_Y),))
SMOOTHED = healthy(smoothed, SQUARE, ((AXES_X, AXES_Y),))

AXES = (
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


# Broadcasting ---------------------------------------------------------------------------------------------------------


BROADCASTING_X, TARGET, BROADCASTING_SQUARE = draw(10, 6, 3), draw(11, 6), draw(12, 6, 6)
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


NORMALISED = healthy(normalised, GRID, ((BROADCASTING_SQUARE, BROADCASTING_X @ draw(17, 3, 6)),))

BROADCASTING = (
    # a column of predictions and a row of targets make a table of differences
    Fault(
        "column minus row",
        healthy(regression, LINE, ((BROADCASTING_X, TARGET),)),
        '(x @ p["weight"])[:, 0]',
        'x @ p["weight"]',
    ),
    # as many examples as features, so that the wrong mean is taken from each
    Fault("axis not kept in a square", NORMALISED, ", keepdims=True", ""),
    # instead of along the features
    Fault("bias down the batch", NORMALISED, 'p["bias"]', 'g.expand_dims(p["bias"], axis=1)'),
    # every error meets every weight
    Fault(
        "weights as a column",
        healthy(weighted, LINE, ((BROADCASTING_X, TARGET, WEIGHTS),)),
        "errors * weights",
        "errors * g.expand_dims(weights, axis=1)",
    ),
)


# Indices --------------------------------------------------------------------------------------------------------------


WORDS = np.array([3, 1, 4, 1, 5, 0])
SERIES, INDICES_Y = draw(40, 8, 2), draw(41, 6, 3)
TABLE = {"table": draw(42, 6, 3)}
INDICES_SQUARE = {"table": draw(43, 6, 6)}
STEP = {"weight": draw(44, 2, 2) / 2}


def lookup(p: Params, words: Array, y: Array) -> Array:
    """A row of the table for each word."""
    words = words + 0
    return mean_square(g.take(p["table"], words, axis=0) - y)


def chosen(p: Params, words: Array, y: Array) -> Array:
    """Rows of a square table."""
    rows = g.take(p["table"], words, axis=0)
    return mean_square(rows[:, :3] - y)


def forecast(p: Params, series: Array) -> Array:
    """Each value from the one before it."""
    before, after = series[:-1], series[1:]
    return mean_square(g.tanh(before @ p["weight"]) - after)


LOOKUP = healthy(lookup, TABLE, ((WORDS, INDICES_Y),))
CHOSEN = healthy(chosen, INDICES_SQUARE, ((WORDS, INDICES_Y),))
FORECAST = healthy(forecast, STEP, ((SERIES,),))

INDICES = (
    # words are counted from 1, the table from 0
    Fault("one past the end", LOOKUP, "words + 0", "words + 1"),
    # the first word becomes the last row
    Fault("wrapped around", LOOKUP, "words + 0", "words - 1"),
    Fault("columns for rows", CHOSEN, "axis=0", "axis=1"),
    # a column that is not there
    Fault("beyond the last column", CHOSEN, "(rows[:, :3] - y)", "(rows[:, 2:5] - y) + g.mean(rows[:, 6])"),
    # each value from itself
    Fault("off by one", FORECAST, "series[1:]", "series[:-1]"),
    # the slices have different lengths
    Fault("last value lost", FORECAST, "series[:-1]", "series[:-2]"),
)


FAULTS = {"shape": SHAPES, "wrong value": AXES, "broadcasting": BROADCASTING, "index": INDICES}
