"""A fixed point found by iteration, as an equilibrium model finds it (Bai, Kolter and Koltun, 2019), and its gradients.

How many iterations it takes depends on the values. Gradients go back through all of them.
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.layers import Weights

ENOUGH = 1e-5
"""The largest change of a state that still counts as one: far above what float32 rounds to, far below a tolerance."""


def step(params: Params, z: Array, x: Array) -> Array:
    """The next state: f[B, W], f[B, W] -> f[B, W]."""
    return graphs.tanh(z @ params["weight"] + x + params["bias"])


def change(z: Array, before: Array) -> Array:
    """How far a state has moved at most."""
    return graphs.max(graphs.abs(graphs.stop_gradient(z - before)))


def loss(params: Params, x: Array) -> Array:
    """The mean square of the fixed point for an input, f[B, W] -> a scalar, by a Python loop."""
    z, before = step(params, x, x), x
    while change(z, before) > ENOUGH:
        z, before = step(params, z, x), z
    return graphs.mean(z * z)


def static_loss(params: Params, x: Array) -> Array:
    """The same, with the loop as one op."""
    z, _ = graphs.while_loop(
        lambda state: change(*state) > ENOUGH,
        lambda state: (step(params, state[0], x), state[0]),
        (step(params, x, x), x),
    )
    return graphs.mean(z * z)


def contraction(rng: np.random.Generator, width: int, rate: float) -> Weights:
    """A matrix whose largest singular value is `rate`, so that iteration converges about as fast: f[W, W]."""
    weight = rng.standard_normal((width, width))
    return np.asarray(rate * weight / np.linalg.norm(weight, 2), np.float32)


def make(width: int, batch: int, examples: int, seed: int = 0) -> Case:
    """Inputs of rising scale: the larger, the flatter is tanh and the sooner the loop ends."""
    rng = np.random.default_rng(seed)
    params = {"weight": contraction(rng, width, 0.9), "bias": np.zeros(width, np.float32)}
    scales = np.geomspace(0.1, 10, examples).astype(np.float32)
    inputs = tuple((scale * rng.standard_normal((batch, width), np.float32),) for scale in scales)
    return Case(loss, params, inputs, (batch,) * examples, static_loss=static_loss)


WORKLOAD = Workload(
    name="fixed_point",
    title="Fixed-point iteration",
    shows="A loop until convergence: Python decides after each step, or a loop op does inside the graph.",
    expect="open",
    kind="loops until done",
    sizes={
        "small": {"width": 16, "batch": 4, "examples": 6},
        "medium": {"width": 64, "batch": 32, "examples": 12},
        "large": {"width": 256, "batch": 128, "examples": 24},
    },
    make=make,
    policies=("exact", "converted"),
)
