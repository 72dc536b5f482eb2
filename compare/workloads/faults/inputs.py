"""The model is right, and it is given wrong data, or its update is wrong."""

from __future__ import annotations

import numpy as np  # noqa: F401  (faulty lines use it)

import graphs as g
from compare.workloads.faults import RATE, Array, Example, Fault, Params, draw, healthy, mean_square

X, Y, TARGET = draw(100, 6, 3), draw(101, 6, 3), draw(102, 6)
NET = {"first": draw(103, 3, 4) / 2, "second": draw(104, 4, 3) / 2}


def network(p: Params, x: Array, y: Array) -> Array:
    """Three outputs."""
    hidden = g.tanh(x @ p["first"])
    return mean_square(hidden @ p["second"] - y)


def scalar(p: Params, x: Array, y: Array) -> Array:
    """One output, the mean of three."""
    hidden = g.tanh(x @ p["first"])
    return mean_square(g.mean(hidden @ p["second"], axis=1) - y)


def batch() -> tuple[Example, ...]:
    """Inputs and targets."""
    return ((X, Y),)


def column() -> tuple[Example, ...]:
    """Inputs and one target each."""
    return ((X, TARGET),)


NETWORK = healthy(network, NET, batch())

INPUTS = (
    # an axis too many broadcasts to a table
    Fault("targets as a column", healthy(scalar, NET, column()), "TARGET", "TARGET[:, None]", column),
    # read as float64
    Fault("doubles", NETWORK, "X", "X.astype(np.float64)", batch),
    # never scaled, nor made floats
    Fault("raw integers", NETWORK, "X", "np.asarray(X * 100).astype(np.int64)", batch),
    # the first target, for the whole batch
    Fault("one target for all", NETWORK, "Y", "Y[:1]", batch),
    # inputs and targets change places; they have one shape
    Fault("swapped", NETWORK, "X, Y", "Y, X", batch),
    # targets in another order than inputs
    Fault("shuffled apart", NETWORK, "Y", "Y[::-1].copy()", batch),
)


# Training -------------------------------------------------------------------------------------------------------------


TRAINING_X, TRAINING_Y = draw(80, 6, 3), draw(81, 6, 3)
DESCENT_NET = {"first": draw(82, 3, 3) / 2, "second": draw(83, 3, 3) / 2, "bias": draw(84, 3)}


def two_layers(p: Params, x: Array, y: Array) -> Array:
    """Two linear layers."""
    hidden = x @ p["first"]
    return mean_square(hidden @ p["second"] + p["bias"] - y)


def descended(p: Params, gradients: Params) -> Params:
    """One step of gradient descent."""
    return {name: p[name] - gradients[name] * RATE for name in p}


DESCENT = healthy(two_layers, DESCENT_NET, ((TRAINING_X, TRAINING_Y),), update=descended)

TRAINING = (
    # gradient ascent
    Fault("uphill", DESCENT, "p[name] -", "p[name] +", descended),
    # a learning rate that overshoots
    Fault("far too fast", DESCENT, "RATE", "(RATE * 400)", descended),
    # two of one shape change places
    Fault(
        "gradients swapped",
        DESCENT,
        "return {name: p[name] - gradients[name] * RATE for name in p}",
        'gradients = {**gradients, "first": gradients["second"], "second": gradients["first"]}\n'
        "    return {name: p[name] - gradients[name] * RATE for name in p}  # fault",
        descended,
    ),
    # one parameter is never updated
    Fault("bias left out", DESCENT, "RATE", '(RATE if name != "bias" else 0)', descended),
    # weights grow
    Fault("decay with the wrong sign", DESCENT, "p[name] -", "p[name] * (1 + RATE / 10) -", descended),
)


FAULTS = {"data": INPUTS, "training": TRAINING}
