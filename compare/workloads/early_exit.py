"""Early exit: a residual network stops at the first block that is sure of a digit (Teerapittayanon et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.data import load_digits
from compare.workloads.layers import Layer, dense, dense_layers, he
from compare.workloads.mlp_digits import CLASSES, PIXELS

Block = dict[str, Layer]

SURE = 0.5
"""The probability of the likeliest class from which on a block is sure."""


def loss(params: Params, x: Array, y: Array) -> Array:
    """The cross entropy of a digit at the exit it takes: f[64], i[] -> a scalar."""
    h = graphs.relu(dense(params["first"], x))
    for block in params["blocks"]:
        h, logits = apply_block(block, h)
        if sure(logits) > SURE:
            break
    return graphs.cross_entropy(logits, y)


def static_loss(params: Params, x: Array, y: Array) -> Array:
    """The same, with all that follows an exit in a branch of the graph."""
    return graphs.cross_entropy(exit_scores(params["blocks"], graphs.relu(dense(params["first"], x))), y)


def exit_scores(blocks: Sequence[Block], h: Array) -> Array:
    """The scores at the exit taken, from the first of these blocks on: f[W] -> f[10]."""
    h, logits = apply_block(blocks[0], h)
    if len(blocks) == 1:
        return logits
    return graphs.cond(sure(logits) > SURE, lambda: logits, lambda: exit_scores(blocks[1:], h))


def apply_block(block: Block, h: Array) -> tuple[Array, Array]:
    """A block added to what goes around it, and its scores of the ten classes: f[W] -> f[W], f[10]."""
    h = h + dense(block["down"], graphs.relu(dense(block["up"], h)))
    return h, dense(block["exit"], h)


def sure(logits: Array) -> Array:
    """The probability of the likeliest class."""
    return graphs.max(graphs.softmax(logits))


def init(width: int, blocks: int, seed: int = 0) -> Params:
    """The parameters; He init."""
    rng = np.random.default_rng(seed)
    return {
        "first": dense_layers(rng, (PIXELS, width), he)[0],
        "blocks": [init_block(rng, width) for _ in range(blocks)],
    }


def init_block(rng: np.random.Generator, width: int) -> Block:
    """The parameters of one block."""
    up, down = dense_layers(rng, (width, width, width), he)
    out = dense_layers(rng, (width, CLASSES), he)[0]
    return {
        "up": up,
        "down": {**down, "weight": down["weight"] / np.float32(2)},
        "exit": out,
    }


def make(width: int, blocks: int, digits: int, seed: int = 0) -> Case:
    """`digits` digits, each an example."""
    x, y, _, _ = load_digits()
    chosen = np.random.default_rng(seed).permutation(len(x))[:digits]
    examples = tuple((x[i], np.asarray(y[i])) for i in chosen)
    return Case(loss, init(width, blocks, seed), examples, (1,) * digits, static_loss=static_loss)


WORKLOAD = Workload(
    name="early_exit",
    title="Early exit on digits",
    shows="Depth that depends on values: Python leaves the loop, a graph holds the rest as a branch that is not run.",
    expect="open",
    kind="structure that varies",
    sizes={
        "small": {"width": 48, "blocks": 6, "digits": 12},
        "medium": {"width": 128, "blocks": 6, "digits": 24},
        "large": {"width": 512, "blocks": 8, "digits": 24},
    },
    make=make,
    policies=("exact", "converted"),
)
