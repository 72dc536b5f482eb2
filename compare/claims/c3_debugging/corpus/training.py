"""The model is right, and the update is wrong."""

from __future__ import annotations

from compare.claims.c3_debugging.base import RATE, Array, Fault, Params, draw, mean_square

X, Y = draw(80, 6, 3), draw(81, 6, 3)
NET = {"first": draw(82, 3, 3) / 2, "second": draw(83, 3, 3) / 2, "bias": draw(84, 3)}


def network(p: Params, x: Array, y: Array) -> Array:
    """Two linear layers."""
    hidden = x @ p["first"]
    return mean_square(hidden @ p["second"] + p["bias"] - y)


def uphill(p: Params, gradients: Params) -> Params:
    """Gradient ascent."""
    return {name: p[name] + gradients[name] * RATE for name in p}  # fault


def far_too_fast(p: Params, gradients: Params) -> Params:
    """A learning rate that overshoots."""
    return {name: p[name] - gradients[name] * (RATE * 400) for name in p}  # fault


def gradients_swapped(p: Params, gradients: Params) -> Params:
    """Two gradients of one shape change places."""
    gradients = {**gradients, "first": gradients["second"], "second": gradients["first"]}
    return {name: p[name] - gradients[name] * RATE for name in p}  # fault


def bias_left_out(p: Params, gradients: Params) -> Params:
    """One parameter is never updated."""
    return {name: p[name] - gradients[name] * (RATE if name != "bias" else 0) for name in p}  # fault


def decay_with_the_wrong_sign(p: Params, gradients: Params) -> Params:
    """Weight decay that lets weights grow."""
    return {name: p[name] * (1 + RATE / 10) - gradients[name] * RATE for name in p}  # fault


def _fault(name: str, update: object) -> Fault:
    return Fault(name, "training", network, NET, ((X, Y),), faulty_update=update)  # type: ignore[arg-type]


FAULTS = (
    _fault("uphill", uphill),
    _fault("far too fast", far_too_fast),
    _fault("gradients swapped", gradients_swapped),
    _fault("bias left out", bias_left_out),
    _fault("decay with the wrong sign", decay_with_the_wrong_sign),
)
