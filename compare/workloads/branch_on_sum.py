"""The textbook branch: `y = 2x` if the sum of x is positive, else `y = x - 2`."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload

# One example for each side of the branch; repeated whole, so that the sign of their sums stays.
POSITIVE = (1.0, -1.0, 2.0)
NEGATIVE = (-3.0, -2.0, -1.0)


def branch(x: Array) -> Array:
    """The branch in ordinary Python, as articles write it: it looks at the sum and computes one side, f[N] -> f[N]."""
    if graphs.sum(x) > 0:
        y = x * 2
    else:
        y = x - 2
    return y


def loss(params: dict[str, Array], x: Array) -> Array:
    """The sum of the branch. The parameter is added to x, so that its gradient is the gradient at x."""
    return graphs.sum(branch(x + params["offset"]))


def make(repeats: int) -> Case:
    """One example for each side, f32[3 repeats], and an offset of zeros."""
    examples = tuple((np.tile(np.array(side, np.float32), repeats),) for side in (POSITIVE, NEGATIVE))
    n = len(POSITIVE) * repeats
    return Case(loss, {"offset": np.zeros(n, np.float32)}, examples, (n, n), branches=True)


WORKLOAD = Workload(
    name="branch_on_sum",
    title="Branch on a sum",
    shows="Control flow that depends on values: one side is computed, by a branch of Python or of the graph.",
    expect="open",
    kind="structure that varies",
    sizes={"small": {"repeats": 1}, "medium": {"repeats": 10_000}, "large": {"repeats": 1_000_000}},
    make=make,
)
