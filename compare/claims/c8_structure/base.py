"""What a structure edit is: a training run in which the model changes, written in one way or in two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import graphs as g
from compare.workloads.data import load_digits
from compare.workloads.layers import Layer, he

Array = Any
Params = dict[str, Any]
Options = tuple[Any, ...]

STEPS = 24
HALF = STEPS // 2
BATCH = 64
PIXELS, WIDTH, INNER, CLASSES = 64, 48, 32, 10
BLOCKS = 3


@cache
def _digits() -> tuple[Array, Array]:
    x, y, _, _ = load_digits()
    return x, y


def digits(step: int) -> tuple[Array, Array]:
    """A batch of handwritten digits: f32[64, 64] pixels, i64[64] labels, the same for the same step."""
    x, y = _digits()
    start = step * BATCH % (len(x) - BATCH)
    return x[start : start + BATCH], y[start : start + BATCH]


def unchanged(_: int, params: Params) -> Params:
    """Most versions keep their parameters as they are."""
    return params


def no_options(_: int, __: float) -> Options:
    """Most versions need no options."""
    return ()


@dataclass(frozen=True)
class Version:
    """One way to write a training run in which the model changes.

    loss      `loss(params, *batch, *options) -> scalar`; options that are no arrays are decided by Python
    init      the parameters before the first step
    change    `change(step, params)`: the parameters as a step finds them; an edit may add, drop or resize some
    options   `options(step, last loss)`: what else the loss is given
    batch     `batch(step)`
    dims      the axes that vary, a name or None per axis of each argument of the loss; () where none does
    """

    loss: Callable[..., Any]
    init: Callable[[], Params]
    change: Callable[[int, Params], Params] = unchanged
    options: Callable[[int, float], Options] = no_options
    batch: Callable[[int], tuple[Array, ...]] = digits
    dims: Options = ()


@dataclass(frozen=True)
class Edit:
    """A change of structure during training.

    `plain` is how one would write it at once, with Python deciding. `foreseen` is the same training by a graph that
    holds the change as a branch, a mask or a symbolic size; None where nobody could have known.
    """

    name: str
    plain: Version
    foreseen: Version | None = None


# The model that most edits change: blocks with a way around them ------------------------------------------------


def dense(random: np.random.Generator, inputs: int, outputs: int) -> Layer:
    """A layer with initial weights."""
    return {"weight": he(random, inputs, outputs), "bias": np.zeros(outputs, np.float32)}


def block(random: np.random.Generator, inner: int = INNER) -> dict[str, Layer]:
    """A block with that many inner units; its second layer starts small, so that the block does little at first."""
    down = dense(random, inner, WIDTH)
    return {"up": dense(random, WIDTH, inner), "down": {**down, "weight": down["weight"] / np.float32(10)}}


def model() -> Params:
    """The parameters of a residual network on digits."""
    random = np.random.default_rng(0)
    return {
        "first": dense(random, PIXELS, WIDTH),
        "blocks": [block(random) for _ in range(BLOCKS)],
        "last": dense(random, WIDTH, CLASSES),
    }


def linear(layer: Layer, x: Array) -> Array:
    """x @ weight + bias."""
    return x @ layer["weight"] + layer["bias"]


def around(layers: dict[str, Layer], hidden: Array) -> Array:
    """A block added to what goes around it."""
    return hidden + linear(layers["down"], g.relu(linear(layers["up"], hidden)))


def residual_loss(params: Params, x: Array, y: Array) -> Array:
    """The mean cross entropy of a residual network with any number of blocks."""
    hidden = g.relu(linear(params["first"], x))
    for layers in params["blocks"]:
        hidden = around(layers, hidden)
    return g.cross_entropy(linear(params["last"], hidden), y)
