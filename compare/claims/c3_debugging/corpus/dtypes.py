"""Wrong dtypes: refused by an op, or taken with another meaning."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

X, Y = draw(30, 6, 4), draw(31, 6, 2)
COUNTS = np.array([[1, 2, 3, 2], [0, 3, 1, 4], [5, 1, 1, 1], [2, 2, 2, 2], [1, 0, 6, 1], [3, 3, 1, 1]])
LABELS = np.array([0, 1, 1, 0, 1, 0])
LINE = {"weight": draw(32, 4, 2) / 2}
TABLE = {"table": draw(33, 5, 2)}


def shares(p: Params, counts: Array, y: Array) -> Array:
    """A linear layer on shares of counts."""
    share = counts / 8
    return mean_square(g.astype(share, y.dtype) @ p["weight"] - y)


def whole_numbers(p: Params, counts: Array, y: Array) -> Array:
    """Integer division makes nearly every share 0."""
    share = counts // 8  # fault
    return mean_square(g.astype(share, y.dtype) @ p["weight"] - y)


def buckets(p: Params, x: Array, y: Array) -> Array:
    """A row of a table for each bucket that a feature falls into."""
    bucket = g.astype(g.clip(g.floor(x[:, 0] + 2), 0, 4), np.int64)
    return mean_square(g.take(p["table"], bucket, axis=0) - y)


def fractional_index(p: Params, x: Array, y: Array) -> Array:
    """An index that is still a float."""
    bucket = g.clip(g.floor(x[:, 0] + 2), 0, 4)  # fault
    return mean_square(g.take(p["table"], bucket, axis=0) - y)


def masked(p: Params, x: Array, y: Array) -> Array:
    """Features above 0 count, the others do not."""
    off = g.logical_not(x > 0)
    return mean_square(g.where(off, 0, x) @ p["weight"] - y)


def negative_of_a_mask(p: Params, x: Array, y: Array) -> Array:
    """A mask is no number."""
    off = -(x > 0)  # fault
    return mean_square(g.where(off, 0, x) @ p["weight"] - y)


def both_positive(p: Params, x: Array, y: Array) -> Array:
    """Features count where they and their neighbours are positive."""
    on = (x > 0) & (g.roll(x, 1, axis=1) > 0)
    return mean_square(g.where(on, x, 0) @ p["weight"] - y)


def bits_of_a_float(p: Params, x: Array, y: Array) -> Array:
    """A float stands where a comparison is meant."""
    on = (x > 0) & g.roll(x, 1, axis=1)  # fault
    return mean_square(g.where(on, x, 0) @ p["weight"] - y)


def labelled(p: Params, x: Array, labels: Array) -> Array:
    """The mean cross entropy."""
    labels = labels + 0
    return g.cross_entropy(x @ p["weight"], labels)


def labels_as_floats(p: Params, x: Array, labels: Array) -> Array:
    """Classes are turned into floats, which shows when they are looked up."""
    labels = labels + 0.0  # fault
    return g.cross_entropy(x @ p["weight"], labels)


def widened(p: Params, x: Array, y: Array) -> Array:
    """Everything in float32."""
    x = x * np.float32(0.5)
    return mean_square(x @ p["weight"] - y)


def silently_double(p: Params, x: Array, y: Array) -> Array:
    """One float64 array makes everything after it float64."""
    x = x * np.full((6, 4), 0.5)  # fault
    return mean_square(x @ p["weight"] - y)


FAULTS = (
    Fault("whole numbers", "dtype", shares, LINE, ((COUNTS, Y),), whole_numbers),
    Fault("fractional index", "dtype", buckets, TABLE, ((X, Y),), fractional_index),
    Fault("negative of a mask", "dtype", masked, LINE, ((X, Y),), negative_of_a_mask),
    Fault("bits of a float", "dtype", both_positive, LINE, ((X, Y),), bits_of_a_float),
    Fault("labels as floats", "dtype", labelled, LINE, ((X, LABELS),), labels_as_floats),
    Fault("silently double", "dtype", widened, LINE, ((X, Y),), silently_double),
)
