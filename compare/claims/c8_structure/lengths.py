"""An edit of the data: sequences that grow while a recurrent network trains on them."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c8_structure.base import BATCH, CLASSES, STEPS, Array, Edit, Params, Version, dense, digits, linear

SIDE, STATE = 8, 32
LENGTHS = (2, 4, 6, 8)


def growing(step: int) -> tuple[Array, Array]:
    """The first rows of each digit, more of them with every quarter of the training."""
    x, y = digits(step)
    length = LENGTHS[step * len(LENGTHS) // STEPS]
    return x.reshape(BATCH, SIDE, SIDE)[:, :length], y


def recurrent() -> Params:
    """The parameters of a recurrent network that reads a digit row by row."""
    random = np.random.default_rng(3)
    return {
        "row": dense(random, SIDE, STATE),
        "state": dense(random, STATE, STATE)["weight"] / np.float32(2),
        "last": dense(random, STATE, CLASSES),
    }


def _next(params: Params, state: Array, row: Array) -> Array:
    return g.tanh(linear(params["row"], row) + state @ params["state"])


def unrolled_loss(params: Params, x: Array, y: Array) -> Array:
    """A Python loop over the rows there are."""
    state = g.zeros((BATCH, STATE), np.float32)
    for t in range(x.shape[1]):
        state = _next(params, state, x[:, t])
    return g.cross_entropy(linear(params["last"], state), y)


def scanned_loss(params: Params, x: Array, y: Array) -> Array:
    """One loop for any number of rows."""
    start = g.zeros((BATCH, STATE), np.float32)
    state, _ = g.scan(lambda state, row: (_next(params, state, row), ()), start, g.permute_dims(x, (1, 0, 2)))
    return g.cross_entropy(linear(params["last"], state), y)


_VARYING = (None, (None, "T", None), (None,))

EDITS = (
    Edit(
        "longer sequences",
        Version(unrolled_loss, recurrent, batch=growing),
        Version(scanned_loss, recurrent, batch=growing, dims=_VARYING),
    ),
)
