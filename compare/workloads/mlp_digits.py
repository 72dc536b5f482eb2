"""Ordinary training: an MLP on the handwritten digits, one minibatch after another, all of one shape."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload
from compare.workloads.data import minibatches
from compare.workloads.layers import Layer, dense_layers, he, mlp

PIXELS, CLASSES = 64, 10


def logits(params: dict[str, list[Layer]], x: Array) -> Array:
    """The scores of the ten classes: f[B, 64] -> f[B, 10]."""
    return mlp(params["layers"], x, graphs.relu)


def loss(params: dict[str, list[Layer]], x: Array, y: Array) -> Array:
    """The mean cross entropy: f[B, 64] pixels, i[B] labels -> a scalar."""
    return graphs.cross_entropy(logits(params, x), y)


def init(hidden: int, seed: int = 0) -> dict[str, list[Layer]]:
    """The parameters of a relu network 64-hidden-hidden/2-10; He init."""
    widths = (PIXELS, hidden, hidden // 2, CLASSES)
    return {"layers": dense_layers(np.random.default_rng(seed), widths, he)}


def make(hidden: int, batch: int, batches: int, seed: int = 0) -> Case:
    """`batches` disjoint minibatches of `batch` digits."""
    examples = minibatches(np.random.default_rng(seed), batch, batches)
    return Case(loss, init(hidden, seed), examples, (batch,) * batches)


WORKLOAD = Workload(
    name="mlp_digits",
    title="MLP on handwritten digits",
    shows="Ordinary training on real data: many minibatches through one graph of moderate kernels.",
    expect="open",
    kind="networks over batches",
    sizes={
        "small": {"hidden": 128, "batch": 64, "batches": 4},
        "medium": {"hidden": 512, "batch": 128, "batches": 8},
        "large": {"hidden": 2048, "batch": 128, "batches": 11},
    },
    make=make,
)
