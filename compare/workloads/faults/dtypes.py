"""Wrong dtypes: refused by an op, or taken with another meaning."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

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


FAULTS = (
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
