"""Functions of a user's own, in a module that workers can import."""

import math

import numpy as np

import graphs as g

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((4, 3), np.float32), "b": np.zeros(3, np.float32)}
X = RNG.standard_normal((5, 4), np.float32)
LENGTHS = (3, 6, 3, 9)


def loss(params, x):
    return g.mean(g.tanh(x @ params["w"] + params["b"]) ** 2)


def branch(params, x):
    y = x @ params["w"]
    return g.sum(y) if g.sum(y) > 0 else g.mean(y)


def asks(params, x):
    y = x @ params["w"]
    return g.sum(y) * math.gamma(g.mean(y).item())


def square(x):
    return g.sum(x * x)


def masked(scale, x, mask):
    return g.sum(g.where(mask, g.exp(x * scale), 0))


def unmasked(scale, x):
    return g.sum(g.exp(x * scale))


def outputs(x):
    return {"all": g.softmax(x, axis=-1), "top": g.max(x, axis=-1)}


def wrong(params, x):
    return g.sum(x @ params["nothing"])


class Moody:
    """Gives something else on every call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return g.sum(x * self.calls)


inputs = [(PARAMS, X)]
QUICK = {"processes": 0, "seconds": 0.01}


def stream(dtype=np.float32):
    """Calls of `square` that vary in size, the argument differentiated among them."""
    return [(np.arange(1, n + 1, dtype=dtype) / n,) for n in LENGTHS]


def masks():
    """Calls of `masked`."""
    return [(np.float32(0.5), np.linspace(0, 1, n, dtype=np.float32), np.ones(n, bool)) for n in LENGTHS]


STREAM, MASKS = stream(), masks()
