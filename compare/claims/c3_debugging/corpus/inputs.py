"""The model is right, and it is given wrong data."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Example, Fault, Params, draw, mean_square

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


def targets_as_a_column() -> tuple[Example, ...]:
    """Targets with an axis too many broadcast to a table."""
    return ((X, TARGET[:, None]),)  # fault


def doubles() -> tuple[Example, ...]:
    """Data read as float64."""
    return ((X.astype(np.float64), Y),)  # fault


def raw_integers() -> tuple[Example, ...]:
    """Data never scaled, nor made floats."""
    return ((np.asarray(X * 100).astype(np.int64), Y),)  # fault


def one_target_for_all() -> tuple[Example, ...]:
    """The first target, for the whole batch."""
    return ((X, Y[:1]),)  # fault


def swapped() -> tuple[Example, ...]:
    """Inputs and targets change places; they have one shape."""
    return ((Y, X),)  # fault


def shuffled_apart() -> tuple[Example, ...]:
    """Targets in another order than inputs."""
    return ((X, Y[::-1].copy()),)  # fault


FAULTS = (
    Fault("targets as a column", "data", scalar, NET, ((X, TARGET),), faulty_examples=targets_as_a_column),
    Fault("doubles", "data", network, NET, ((X, Y),), faulty_examples=doubles),
    Fault("raw integers", "data", network, NET, ((X, Y),), faulty_examples=raw_integers),
    Fault("one target for all", "data", network, NET, ((X, Y),), faulty_examples=one_target_for_all),
    Fault("swapped", "data", network, NET, ((X, Y),), faulty_examples=swapped),
    Fault("shuffled apart", "data", network, NET, ((X, Y),), faulty_examples=shuffled_apart),
)
