"""Right forward, wrong gradient: cut, zero, or of a value that was changed."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(70, 6, 3), draw(71, 6, 2)
NET = {"first": draw(72, 3, 5) / 2, "bias": draw(73, 5), "second": draw(74, 5, 2) / 2}
TIED = {"first": draw(75, 3, 3) / 2, "second": draw(76, 3, 3) / 2, "last": draw(77, 3, 2) / 2}


def network(p: Params, x: Array, y: Array) -> Array:
    """A hidden layer and a linear one."""
    hidden = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = hidden * 1.0
    return mean_square(hidden @ p["second"] - y)


def stopped(p: Params, x: Array, y: Array) -> Array:
    """A stop_gradient is left behind."""
    hidden = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = g.stop_gradient(hidden)  # fault
    return mean_square(hidden @ p["second"] - y)


def rounded(p: Params, x: Array, y: Array) -> Array:
    """Rounding has the gradient 0 everywhere."""
    hidden = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = g.round(hidden * 8) / 8  # fault
    return mean_square(hidden @ p["second"] - y)


def through_integers(p: Params, x: Array, y: Array) -> Array:
    """Integers carry no gradient."""
    hidden = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = g.astype(g.astype(hidden * 100, np.int64), np.float32) / 100  # fault
    return mean_square(hidden @ p["second"] - y)


def step_function(p: Params, x: Array, y: Array) -> Array:
    """A comparison in place of an activation."""
    hidden = g.astype(x @ p["first"] + p["bias"] > 0, np.float32)  # fault
    hidden = hidden * 1.0
    return mean_square(hidden @ p["second"] - y)


def bias_never_used(p: Params, x: Array, y: Array) -> Array:
    """The bias is forgotten."""
    hidden = g.sigmoid(x @ p["first"])  # fault
    hidden = hidden * 1.0
    return mean_square(hidden @ p["second"] - y)


def through_numpy(p: Params, x: Array, y: Array) -> Array:
    """The values leave the engine."""
    hidden: Any = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = np.asarray(hidden) * np.float32(1.0)  # fault
    return mean_square(hidden @ p["second"] - y)


def scaled_exponential(p: Params, x: Array, y: Array) -> Array:
    """Twice an exponential."""
    hidden = g.exp((x @ p["first"] + p["bias"]) / 4)
    hidden = hidden * 2
    return mean_square(hidden @ p["second"] - y)


def changed_in_place(p: Params, x: Array, y: Array) -> Array:
    """The gradient of exp needs the value that is overwritten."""
    hidden = g.exp((x @ p["first"] + p["bias"]) / 4)
    hidden *= 2  # fault
    return mean_square(hidden @ p["second"] - y)


def layers(p: Params, x: Array, y: Array) -> Array:
    """Two layers of one shape, and a last one."""
    hidden = g.tanh(x @ p["first"])
    hidden = g.tanh(hidden @ p["second"])
    return mean_square(hidden @ p["last"] - y)


def one_layer_twice(p: Params, x: Array, y: Array) -> Array:
    """The first layer's weight is used twice, the second's never."""
    hidden = g.tanh(x @ p["first"])
    hidden = g.tanh(hidden @ p["first"])  # fault
    return mean_square(hidden @ p["last"] - y)


FAULTS = (
    Fault("stopped", "gradient", network, NET, ((X, Y),), stopped),
    Fault("rounded", "gradient", network, NET, ((X, Y),), rounded),
    Fault("through integers", "gradient", network, NET, ((X, Y),), through_integers),
    Fault("step function", "gradient", network, NET, ((X, Y),), step_function),
    Fault("bias never used", "gradient", network, NET, ((X, Y),), bias_never_used),
    Fault("through numpy", "gradient", network, NET, ((X, Y),), through_numpy),
    Fault("changed in place", "gradient", scaled_exponential, NET, ((X, Y),), changed_in_place),
    Fault("one layer twice", "gradient", layers, TIED, ((X, Y),), one_layer_twice),
)
