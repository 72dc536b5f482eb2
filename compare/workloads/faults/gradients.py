"""Right forward, wrong gradient: cut, zero, or of a value that was changed."""

from __future__ import annotations

import numpy as np  # noqa: F401  (faulty lines use it)

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(70, 6, 3), draw(71, 6, 2)
NET = {"first": draw(72, 3, 5) / 2, "bias": draw(73, 5), "second": draw(74, 5, 2) / 2}
TIED = {"first": draw(75, 3, 3) / 2, "second": draw(76, 3, 3) / 2, "last": draw(77, 3, 2) / 2}


def network(p: Params, x: Array, y: Array) -> Array:
    """A hidden layer and a linear one."""
    hidden = g.sigmoid(x @ p["first"] + p["bias"])
    hidden = hidden * 1.0
    return mean_square(hidden @ p["second"] - y)


def scaled_exponential(p: Params, x: Array, y: Array) -> Array:
    """Twice an exponential."""
    hidden = g.exp((x @ p["first"] + p["bias"]) / 4)
    hidden = hidden * 2
    return mean_square(hidden @ p["second"] - y)


def layers(p: Params, x: Array, y: Array) -> Array:
    """Two layers of one shape, and a last one."""
    hidden = g.tanh(x @ p["first"])
    hidden = g.tanh(hidden @ p["second"])
    return mean_square(hidden @ p["last"] - y)


NETWORK = healthy(network, NET, ((X, Y),))

FAULTS = (
    # left behind
    Fault("stopped", NETWORK, "hidden * 1.0", "g.stop_gradient(hidden)"),
    # the gradient is 0 everywhere
    Fault("rounded", NETWORK, "hidden * 1.0", "g.round(hidden * 8) / 8"),
    # integers carry no gradient
    Fault("through integers", NETWORK, "hidden * 1.0", "g.astype(g.astype(hidden * 100, np.int64), np.float32) / 100"),
    # a comparison in place of an activation
    Fault(
        "step function",
        NETWORK,
        'g.sigmoid(x @ p["first"] + p["bias"])',
        'g.astype(x @ p["first"] + p["bias"] > 0, np.float32)',
    ),
    Fault("bias never used", NETWORK, ' + p["bias"]', ""),
    # the values leave the engine
    Fault("through numpy", NETWORK, "hidden * 1.0", "np.asarray(hidden) * np.float32(1.0)"),
    # the gradient of exp needs the value that is overwritten
    Fault("changed in place", healthy(scaled_exponential, NET, ((X, Y),)), "hidden = hidden * 2", "hidden *= 2"),
    # the first layer's weight is used twice, the second's never
    Fault("one layer twice", healthy(layers, TIED, ((X, Y),)), 'p["second"]', 'p["first"]'),
)
