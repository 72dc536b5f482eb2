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


def select(x: Array) -> Array:
    """The branch without control flow, which computes both sides and selects: f[N] -> f[N]."""
    return graphs.where(graphs.sum(x) > 0, x * 2, x - 2)


def loss(params: dict[str, Array], x: Array) -> Array:
    """The sum of the branch. The parameter is added to x, so that its gradient is the gradient at x."""
    return graphs.sum(branch(x + params["offset"]))


def static_loss(params: dict[str, Array], x: Array) -> Array:
    """The same sum, as a graph that is traced and not converted can say it."""
    return graphs.sum(select(x + params["offset"]))


def make(repeats: int) -> Case:
    """One example for each side, f32[3 repeats], and an offset of zeros."""
    examples = tuple((np.tile(np.array(side, np.float32), repeats),) for side in (POSITIVE, NEGATIVE))
    n = len(POSITIVE) * repeats
    return Case(loss, {"offset": np.zeros(n, np.float32)}, examples, (n, n), static_loss=static_loss)


WORKLOAD = Workload(
    name="branch_on_sum",
    title="Branch on a sum",
    shows="Control flow that depends on values: one side is computed, or both and then one is selected.",
    expect="open",
    sizes={"small": {"repeats": 1}, "medium": {"repeats": 10_000}, "large": {"repeats": 1_000_000}},
    make=make,
    policies=("exact", "converted"),
)
