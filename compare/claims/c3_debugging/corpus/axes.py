"""Right shapes, wrong axis or wrong reduction: nothing fails, and the value is wrong."""

from __future__ import annotations

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(20, 5, 4), draw(21, 5, 4)
SQUARE = {"weight": draw(22, 4, 4) / 2}
GATED = {"weight": draw(22, 4, 4) / 2, "scale": draw(23, 4)}


def classifier(p: Params, x: Array, y: Array) -> Array:
    """Probabilities over four classes, compared with y."""
    chances = g.softmax(x @ p["weight"], axis=1)
    return g.mean(g.sum(g.square(chances - y), axis=1))


def softmax_over_the_batch(p: Params, x: Array, y: Array) -> Array:
    """The classes compete across examples."""
    chances = g.softmax(x @ p["weight"], axis=0)  # fault
    return g.mean(g.sum(g.square(chances - y), axis=1))


def mean_for_sum(p: Params, x: Array, y: Array) -> Array:
    """The loss is smaller by the number of classes."""
    chances = g.softmax(x @ p["weight"], axis=1)
    return g.mean(g.mean(g.square(chances - y), axis=1))  # fault


def transposed_square(p: Params, x: Array, y: Array) -> Array:
    """A square weight is transposed, which its shape does not tell."""
    chances = g.softmax(x @ g.matrix_transpose(p["weight"]), axis=1)  # fault
    return g.mean(g.sum(g.square(chances - y), axis=1))


def gated(p: Params, x: Array, y: Array) -> Array:
    """Features normalised to unit length, then scaled."""
    hidden = g.tanh(x @ p["weight"])
    length = g.sqrt(g.sum(g.square(hidden), axis=1, keepdims=True) + 1e-3)
    return mean_square(hidden / length * p["scale"] - y)


def length_of_columns(p: Params, x: Array, y: Array) -> Array:
    """Normalised down the batch."""
    hidden = g.tanh(x @ p["weight"])
    length = g.sqrt(g.sum(g.square(hidden), axis=0, keepdims=True) + 1e-3)  # fault
    return mean_square(hidden / length * p["scale"] - y)


def forgotten_activation(p: Params, x: Array, y: Array) -> Array:
    """The layer is linear."""
    hidden = (x @ p["weight"]) * 1.0  # fault
    length = g.sqrt(g.sum(g.square(hidden), axis=1, keepdims=True) + 1e-3)
    return mean_square(hidden / length * p["scale"] - y)


def smoothed(p: Params, x: Array, y: Array) -> Array:
    """A running sum along each row."""
    total = g.cumulative_sum(x @ p["weight"], axis=1)
    return mean_square(total / 4 - y)


def summed_down_the_batch(p: Params, x: Array, y: Array) -> Array:
    """The sum runs through the examples."""
    total = g.cumulative_sum(x @ p["weight"], axis=0)  # fault
    return mean_square(total / 4 - y)


def wrong_sign(p: Params, x: Array, y: Array) -> Array:
    """The target is added to the prediction."""
    total = g.cumulative_sum(x @ p["weight"], axis=1)
    return mean_square(total / 4 + y)  # fault


FAULTS = (
    Fault("softmax over the batch", "wrong value", classifier, SQUARE, ((X, Y),), softmax_over_the_batch),
    Fault("mean for sum", "wrong value", classifier, SQUARE, ((X, Y),), mean_for_sum),
    Fault("transposed square", "wrong value", classifier, SQUARE, ((X, Y),), transposed_square),
    Fault("length of columns", "wrong value", gated, GATED, ((X, Y),), length_of_columns),
    Fault("forgotten activation", "wrong value", gated, GATED, ((X, Y),), forgotten_activation),
    Fault("summed down the batch", "wrong value", smoothed, SQUARE, ((X, Y),), summed_down_the_batch),
    Fault("wrong sign", "wrong value", smoothed, SQUARE, ((X, Y),), wrong_sign),
)
