"""A chain of elementwise ops on long vectors: memory traffic, temporaries, and what fusing could save."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload

ROUNDS = 4


def loss(params: dict[str, Array]) -> Array:
    """The mean square of x after four rounds of `h = tanh(h a + b) exp(-h^2) + h / 2`: three f[N] -> a scalar."""
    h = params["x"]
    for _ in range(ROUNDS):
        h = graphs.tanh(h * params["a"] + params["b"]) * graphs.exp(-h * h) + h / 2
    return graphs.mean(h * h)


def make(elements: int, seed: int = 0) -> Case:
    """Vectors f32[elements]: x standard normal, a near 1, b near 0. All are parameters, so an example is empty."""
    x, a, b = np.random.default_rng(seed).standard_normal((3, elements), np.float32)
    return Case(loss, {"x": x, "a": 1 + a / 10, "b": b / 10}, ((),), (elements,))


WORKLOAD = Workload(
    name="elementwise_chain",
    title="Elementwise chain",
    shows="Memory traffic and temporaries: a plan can reuse and fuse them, a tape frees them as it goes.",
    expect="open",
    kind="chains of ops",
    sizes={"small": {"elements": 20_000}, "medium": {"elements": 400_000}, "large": {"elements": 4_000_000}},
    make=make,
)
