"""Shapes that do not fit: at the line at fault, or some lines later."""

from __future__ import annotations

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(0, 6, 3), draw(1, 6, 2)
WIDE = {"first": draw(2, 3, 8) / 2, "bias": draw(3, 8), "second": draw(4, 8, 2) / 3}
PAIR = {"weight": draw(5, 6, 2) / 3}
KEYS = {"query": draw(6, 3, 4) / 2, "key": draw(7, 3, 4) / 2, "value": draw(8, 3, 2) / 2}
SKIP = {"first": WIDE["first"], "bias": WIDE["bias"], "second": draw(9, 11, 2) / 4}


def perceptron(p: Params, x: Array, y: Array) -> Array:
    """A hidden layer and a linear one."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    return mean_square(hidden @ p["second"] - y)


def bias_of_another_layer(p: Params, x: Array, y: Array) -> Array:
    """The hidden layer's bias is added to the output."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    return mean_square(hidden @ p["second"] + p["bias"] - y)  # fault


def batch_flattened(p: Params, x: Array, y: Array) -> Array:
    """The batch axis is flattened away, which shows at the next product."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    hidden = g.reshape(hidden, (-1,))  # fault
    hidden = hidden * 1.0
    return mean_square(hidden @ p["second"] - y)


def reshaped_to_another_size(p: Params, x: Array, y: Array) -> Array:
    """A reshape that does not keep the number of elements."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    hidden = g.reshape(hidden, (8, 8))  # fault
    return mean_square(hidden @ p["second"] - y)


def pairs(p: Params, x: Array, y: Array) -> Array:
    """A linear layer on features and their squares."""
    both = g.concat([x, x * x], axis=1)
    both = both - 0.5
    return mean_square(both @ p["weight"] - y)


def concatenated_along_the_batch(p: Params, x: Array, y: Array) -> Array:
    """Features are put below each other instead of side by side."""
    both = g.concat([x, x * x], axis=0)  # fault
    both = both - 0.5
    return mean_square(both @ p["weight"] - y)


def stacked_for_concatenated(p: Params, x: Array, y: Array) -> Array:
    """A new axis where none is wanted."""
    both = g.stack([x, x * x], axis=1)  # fault
    both = both - 0.5
    return mean_square(both @ p["weight"] - y)


def attention(p: Params, x: Array, y: Array) -> Array:
    """One head of attention over six positions."""
    query, key, value = x @ p["query"], x @ p["key"], x @ p["value"]
    scores = query @ g.matrix_transpose(key)
    return mean_square(g.softmax(scores, axis=1) @ value - y)


def missing_transpose(p: Params, x: Array, y: Array) -> Array:
    """The keys are not transposed."""
    query, key, value = x @ p["query"], x @ p["key"], x @ p["value"]
    scores = query @ key  # fault
    return mean_square(g.softmax(scores, axis=1) @ value - y)


def centred(p: Params, x: Array, y: Array) -> Array:
    """The mean of each row is taken away."""
    hidden = x @ p["first"] + p["bias"]
    mean = g.mean(hidden, axis=1, keepdims=True)
    return mean_square(g.tanh(hidden - mean) @ p["second"] - y)


def axis_not_kept(p: Params, x: Array, y: Array) -> Array:
    """The mean lost the axis that it should broadcast along."""
    hidden = x @ p["first"] + p["bias"]
    mean = g.mean(hidden, axis=1)  # fault
    return mean_square(g.tanh(hidden - mean) @ p["second"] - y)


def skip(p: Params, x: Array, y: Array) -> Array:
    """The output layer sees the input as well."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    hidden = g.concat([hidden, x], axis=1)
    return mean_square(hidden @ p["second"] - y)


def skip_forgotten(p: Params, x: Array, y: Array) -> Array:
    """The input is not put beside the hidden layer."""
    hidden = g.tanh(x @ p["first"] + p["bias"])
    hidden = hidden * 1.0  # fault
    return mean_square(hidden @ p["second"] - y)


FAULTS = (
    Fault("bias of another layer", "shape", perceptron, WIDE, ((X, Y),), bias_of_another_layer),
    Fault("batch flattened", "shape", perceptron, WIDE, ((X, Y),), batch_flattened),
    Fault("reshaped to another size", "shape", perceptron, WIDE, ((X, Y),), reshaped_to_another_size),
    Fault("concatenated along the batch", "shape", pairs, PAIR, ((X, Y),), concatenated_along_the_batch),
    Fault("stacked for concatenated", "shape", pairs, PAIR, ((X, Y),), stacked_for_concatenated),
    Fault("missing transpose", "shape", attention, KEYS, ((X, Y),), missing_transpose),
    Fault("axis not kept", "shape", centred, WIDE, ((X, Y),), axis_not_kept),
    Fault("skip connection forgotten", "shape", skip, SKIP, ((X, Y),), skip_forgotten),
)
