"""The model is right, and the update is wrong."""

from __future__ import annotations

from compare.workloads.faults.fault import RATE, Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(80, 6, 3), draw(81, 6, 3)
NET = {"first": draw(82, 3, 3) / 2, "second": draw(83, 3, 3) / 2, "bias": draw(84, 3)}


def network(p: Params, x: Array, y: Array) -> Array:
    """Two linear layers."""
    hidden = x @ p["first"]
    return mean_square(hidden @ p["second"] + p["bias"] - y)


def descended(p: Params, gradients: Params) -> Params:
    """One step of gradient descent."""
    return {name: p[name] - gradients[name] * RATE for name in p}


NETWORK = healthy(network, NET, ((X, Y),), update=descended)

FAULTS = (
    # gradient ascent
    Fault("uphill", NETWORK, "p[name] -", "p[name] +", descended),
    # a learning rate that overshoots
    Fault("far too fast", NETWORK, "RATE", "(RATE * 400)", descended),
    # two of one shape change places
    Fault(
        "gradients swapped",
        NETWORK,
        "return {name: p[name] - gradients[name] * RATE for name in p}",
        'gradients = {**gradients, "first": gradients["second"], "second": gradients["first"]}\n'
        "    return {name: p[name] - gradients[name] * RATE for name in p}  # fault",
        descended,
    ),
    # one parameter is never updated
    Fault("bias left out", NETWORK, "RATE", '(RATE if name != "bias" else 0)', descended),
    # weights grow
    Fault("decay with the wrong sign", NETWORK, "p[name] -", "p[name] * (1 + RATE / 10) -", descended),
)
