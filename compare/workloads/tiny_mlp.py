"""A network of tiny layers: the arithmetic is next to nothing, so what an engine spends on each op shows."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload
from compare.workloads.layers import Layer, dense_layers, glorot, mlp

BATCH, INPUTS, WIDTH = 8, 16, 32


def loss(params: dict[str, list[Layer]], x: Array, y: Array) -> Array:
    """The mean squared error of the network's outputs: f[B, 16], f[B, 1] -> a scalar."""
    return graphs.mean((mlp(params["layers"], x, graphs.tanh) - y) ** 2)


def make(depth: int, seed: int = 0) -> Case:
    """A tanh network 16-32-...-32-1 of `depth` hidden layers that learns its inputs' mean; Glorot init."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((BATCH, INPUTS), np.float32)
    layers = dense_layers(rng, (INPUTS, *[WIDTH] * depth, 1), glorot)
    return Case(loss, {"layers": layers}, ((x, x.mean(axis=1, keepdims=True)),), (BATCH,))


WORKLOAD = Workload(
    name="tiny_mlp",
    title="Tiny MLP",
    shows="The cost of an op beside its arithmetic, in a graph that never changes; the sizes are depths.",
    expect="static",
    kind="chains of ops",
    sizes={"small": {"depth": 2}, "medium": {"depth": 16}, "large": {"depth": 128}},
    make=make,
)
