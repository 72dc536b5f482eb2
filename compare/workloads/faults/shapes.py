"""Shapes that do not fit: at the line at fault, or some lines later."""

from __future__ import annotations

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

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

FAULTS = (
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
