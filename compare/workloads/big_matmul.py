"""The control: nearly all the time goes into two matrix products, which both engines give to the same BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Case, Workload

Array = Any

# A step allocates side * COLUMNS floats at a time and reads side^2: with a thin weight, neither the elementwise ops nor
# the page faults of fresh buffers are seen beside the products. With 64 columns they were still 8% of a step.
COLUMNS = 12


def loss(params: dict[str, Array], x: Array) -> Array:
    """The mean square of x @ weight: f[N, K] -> a scalar."""
    return graphs.mean((x @ params["weight"]) ** 2)


def make(side: int, seed: int = 0) -> Case:
    """A product f32[side, side] @ f32[side, 12] of standard normal numbers, scaled to a loss near 1."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((side, COLUMNS), np.float32) / np.float32(np.sqrt(side))
    return Case(loss, {"weight": weight}, ((rng.standard_normal((side, side), np.float32),),), (side,))


WORKLOAD = Workload(
    name="big_matmul",
    title="One large matrix product",
    shows="A control: one kernel does nearly all the work, so no way of building the graph can matter.",
    expect="tie",
    sizes={"small": {"side": 3072}, "medium": {"side": 4096}, "large": {"side": 5120}},
    make=make,
)
