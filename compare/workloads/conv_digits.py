"""A small convolutional network on handwritten digits, one minibatch after another, all of one shape."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload
from compare.workloads.data import minibatches
from compare.workloads.layers import Layer, Weights, dense, dense_layers, he
from compare.workloads.mlp_digits import CLASSES

SIDE, KERNEL, POOL = 8, 3, 2
LEFT = (SIDE // POOL**2) ** 2
"""Pixels of a channel after both layers."""


def loss(params: dict[str, Layer], x: Array, y: Array) -> Array:
    """The mean cross entropy: f[B, 1, 8, 8] pixels, i[B] labels -> a scalar."""
    h = layer(params["second"], layer(params["first"], x))
    flat = graphs.reshape(h, (x.shape[0], -1))
    return graphs.cross_entropy(dense(params["last"], flat), y)


def layer(weights: Layer, x: Array) -> Array:
    """Convolution, relu, and the largest of each 2 by 2 pixels: f[B, C, N, N] -> f[B, D, N/2, N/2]."""
    h = graphs.conv2d(x, weights["weight"], weights["bias"], padding=KERNEL // 2)
    return graphs.max_pool2d(graphs.relu(h), POOL)


def filters(rng: np.random.Generator, inputs: int, outputs: int) -> Layer:
    """The parameters of a convolution; He init. The biases keep the many empty pixels off the corner of relu."""
    flat: Weights = he(rng, inputs * KERNEL**2, outputs)
    weight = np.ascontiguousarray(flat.T).reshape(outputs, inputs, KERNEL, KERNEL)
    return {"weight": weight, "bias": np.full(outputs, 0.1, np.float32)}


def make(channels: int, batch: int, batches: int, seed: int = 0) -> Case:
    """`batches` disjoint minibatches of `batch` digits."""
    rng = np.random.default_rng(seed)
    params = {
        "first": filters(rng, 1, channels),
        "second": filters(rng, channels, 2 * channels),
        "last": dense_layers(rng, (2 * channels * LEFT, CLASSES), he)[0],
    }
    examples = tuple((x.reshape(batch, 1, SIDE, SIDE), y) for x, y in minibatches(rng, batch, batches))
    return Case(loss, params, examples, (batch,) * batches)


WORKLOAD = Workload(
    name="conv_digits",
    title="Convnet on handwritten digits",
    shows="Ordinary training with large intermediates: windows of an image take more memory than the image.",
    expect="open",
    kind="networks over batches",
    sizes={
        "small": {"channels": 8, "batch": 16, "batches": 4},
        "medium": {"channels": 16, "batch": 64, "batches": 8},
        "large": {"channels": 64, "batch": 128, "batches": 8},
    },
    make=make,
)
