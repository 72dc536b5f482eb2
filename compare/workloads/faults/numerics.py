"""Wrong dtypes, NaN and infinity, and gradients that are wrong where the forward pass is right.

A dtype is refused by an op, or taken with another meaning. NaN is made in the forward or in the backward pass, and
shown at once or hidden. A gradient is cut, zero, or of a value that was changed.
"""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults import Array, Fault, Params, draw, healthy, mean_square

X, Y = draw(30, 6, 4), draw(31, 6, 2)
COUNTS = np.array([[1, 2, 3, 2], [0, 3, 1, 4], [5, 1, 1, 1], [2, 2, 2, 2], [1, 0, 6, 1], [3, 3, 1, 1]])
LABELS = np.array([0, 1, 1, 0, 1, 0])
LINE = {"weight": draw(32, 4, 2) / 2}
TABLE = {"table": draw(33, 5, 2)}


def shares(p: Params, counts: Array, y: Array) -> Array:
    """A linear layer on shares of counts."""
    share = counts / 8
    return mean_square(g.astype(share, y.dtype) @ p["weight"] - y)


def buckets(p: Params, x: Array, y: Array) -> Array:
    """A row of a table for each bucket that a feature falls into."""
    bucket = g.astype(g.clip(g.floor(x[:, 0] + 2), 0, 4), np.int64)
    return mean_square(g.take(p["table"], bucket, axis=0) - y)


def masked(p: Params, x: Array, y: Array) -> Array:
    """Features above 0 count, the others do not."""
    off = g.logical_not(x > 0)
    return mean_square(g.where(off, 0, x) @ p["weight"] - y)


def both_positive(p: Params, x: Array, y: Array) -> Array:
    """Features count where they and their neighbours are positive."""
    on = (x > 0) & (g.roll(x, 1, axis=1) > 0)
    return mean_square(g.where(on, x, 0) @ p["weight"] - y)


def labelled(p: Params, x: Array, labels: Array) -> Array:
    """The mean cross entropy."""
    labels = labels + 0
    return g.cross_entropy(x @ p["weight"], labels)


def widened(p: Params, x: Array, y: Array) -> Array:
    """Everything in float32."""
    x = x * np.float32(0.5)
    return mean_square(x @ p["weight"] - y)


DTYPES = (
    # integer division makes nearly every share 0
    Fault("whole numbers", healthy(shares, LINE, ((COUNTS, Y),)), "counts / 8", "counts // 8"),
    # an index that is still a float
    Fault(
        "fractional index",
        healthy(buckets, TABLE, ((X, Y),)),
        "g.astype(g.clip(g.floor(x[:, 0] + 2), 0, 4), np.int64)",
        "g.clip(g.floor(x[:, 0] + 2), 0, 4)",
    ),
    # a mask is no number
    Fault("negative of a mask", healthy(masked, LINE, ((X, Y),)), "g.logical_not(x > 0)", "-(x > 0)"),
    # a float stands where a comparison is meant
    Fault(
        "bits of a float", healthy(both_positive, LINE, ((X, Y),)), "(g.roll(x, 1, axis=1) > 0)", "g.roll(x, 1, axis=1)"
    ),
    # shows when they are looked up
    Fault("labels as floats", healthy(labelled, LINE, ((X, LABELS),)), "labels + 0", "labels + 0.0"),
    # one float64 array makes everything after it float64
    Fault("silently double", healthy(widened, LINE, ((X, Y),)), "np.float32(0.5)", "np.full((6, 4), 0.5)"),
)


# Numerics -------------------------------------------------------------------------------------------------------------


NUMERICS_X, NUMERICS_Y = draw(50, 5, 3), draw(51, 5, 4)
NUMERICS_LINE = {"weight": draw(52, 3, 4) / 2}
ZERO_ROW = np.concatenate([np.zeros((1, 3), np.float32), NUMERICS_X[1:]])
STATE = {"weight": draw(53, 4, 4) * 3}
START = draw(54, 2, 4)


def log_chances(p: Params, x: Array, y: Array) -> Array:
    """The logarithm of what relu lets through."""
    chances = g.relu(x @ p["weight"])
    return mean_square(g.log(chances + 0.1) - y)


def root(p: Params, x: Array, y: Array) -> Array:
    """The root of a sum of squares."""
    hidden = x @ p["weight"]
    return mean_square(g.sqrt(g.square(hidden) + 0.1) - y)


def normal_shares(p: Params, x: Array, y: Array) -> Array:
    """Each row divided by its sum."""
    hidden = g.relu(x @ p["weight"])
    return mean_square(hidden / (g.sum(hidden, axis=1, keepdims=True) + 0.1) - y)


def log_likelihood(p: Params, x: Array, y: Array) -> Array:
    """The first of four classes, from large scores."""
    scores = x @ p["weight"] * 100
    total = g.logsumexp(scores, axis=1)
    return g.mean(total - scores[:, 0]) / 100


def length(p: Params, x: Array, y: Array) -> Array:
    """The length of each row; the gradient of a root at 0 is avoided."""
    norm = g.sqrt(g.sum(g.square(x @ p["weight"]), axis=1) + 1e-3)
    return mean_square(norm - y[:, 0])


def guarded(p: Params, x: Array, y: Array) -> Array:
    """The root where it exists; the guard comes first."""
    hidden = x @ p["weight"]
    roots = g.sqrt(g.where(hidden > 0, hidden, 1))
    return mean_square(g.where(hidden > 0, roots, 0) - y)


def scaled(p: Params, x: Array, y: Array) -> Array:
    """A loss computed in float32."""
    hidden = x @ p["weight"] * 400
    squares = g.square(g.astype(hidden, np.float32))
    return g.mean(squares) / 160000 + mean_square(y)


def recurrent(p: Params, start: Array, y: Array) -> Array:
    """A state that stays between -1 and 1."""
    state = start
    for _ in range(60):
        state = g.tanh(state @ p["weight"])
    return mean_square(g.tanh(state) - y)


def looped(p: Params, start: Array, y: Array) -> Array:
    """The same loop as one op."""

    def body(_: Array, state: Array) -> Array:
        return g.tanh(state @ p["weight"])

    return mean_square(g.tanh(g.fori_loop(0, 60, body, start)) - y)


NUMERICS = (
    # what relu stops is 0
    Fault("log of zero", healthy(log_chances, NUMERICS_LINE, ((NUMERICS_X, NUMERICS_Y),)), "chances + 0.1", "chances"),
    # the square is forgotten
    Fault(
        "root of a negative", healthy(root, NUMERICS_LINE, ((NUMERICS_X, NUMERICS_Y),)), "g.square(hidden)", "hidden"
    ),
    # a row of zeros has the sum 0
    Fault(
        "zero by zero",
        healthy(normal_shares, NUMERICS_LINE, ((ZERO_ROW, NUMERICS_Y),)),
        "(g.sum(hidden, axis=1, keepdims=True) + 0.1)",
        "g.sum(hidden, axis=1, keepdims=True)",
    ),
    # the largest score is not taken away first
    Fault(
        "exponentials overflow",
        healthy(log_likelihood, NUMERICS_LINE, ((NUMERICS_X, NUMERICS_Y),)),
        "g.logsumexp(scores, axis=1)",
        "g.log(g.sum(g.exp(scores), axis=1))",
    ),
    # right forward; the gradient is 0 / 0 for the row of zeros
    Fault("gradient of a length at zero", healthy(length, NUMERICS_LINE, ((ZERO_ROW, NUMERICS_Y),)), " + 1e-3", ""),
    # NaN is made and hidden by the guard, and comes back with the gradient
    Fault(
        "guarded too late",
        healthy(guarded, NUMERICS_LINE, ((NUMERICS_X, NUMERICS_Y),)),
        "g.where(hidden > 0, hidden, 1)",
        "hidden",
    ),
    # squares of more than 255 do not fit into float16
    Fault("half overflows", healthy(scaled, NUMERICS_LINE, ((NUMERICS_X, NUMERICS_Y),)), "np.float32", "np.float16"),
    # a state that grows in each of 60 steps
    Fault(
        "state explodes",
        healthy(recurrent, STATE, ((START, NUMERICS_Y[:2]),)),
        'g.tanh(state @ p["weight"])',
        'state @ p["weight"]',
    ),
    # in the body of a loop that is one op
    Fault(
        "loop explodes",
        healthy(looped, STATE, ((START, NUMERICS_Y[:2]),)),
        'g.tanh(state @ p["weight"])',
        'state @ p["weight"]',
    ),
)


# Gradients ------------------------------------------------------------------------------------------------------------


GRADIENTS_X, GRADIENTS_Y = draw(70, 6, 3), draw(71, 6, 2)
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


NETWORK = healthy(network, NET, ((GRADIENTS_X, GRADIENTS_Y),))

GRADIENTS = (
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
    Fault(
        "changed in place",
        healthy(scaled_exponential, NET, ((GRADIENTS_X, GRADIENTS_Y),)),
        "hidden = hidden * 2",
        "hidden *= 2",
    ),
    # the first layer's weight is used twice, the second's never
    Fault("one layer twice", healthy(layers, TIED, ((GRADIENTS_X, GRADIENTS_Y),)), 'p["second"]', 'p["first"]'),
)


FAULTS = {"dtype": DTYPES, "numeric": NUMERICS, "gradient": GRADIENTS}
