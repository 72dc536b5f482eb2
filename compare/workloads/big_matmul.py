"""The control: nearly all the time goes into two matrix products, which both engines give to the same BLAS."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload

# The products sweep the caches, so that all else in a step runs from cold ones: some 0.3 ms of Python that the dynamic
# engine has and the static one has not. Of a side of 3072 that was 5% of a step, with any number of columns. A thin
# weight keeps the elementwise ops and the page faults of fresh buffers, side * COLUMNS floats each, out of sight.
COLUMNS = 4


def loss(params: dict[str, Array], x: Array) -> Array:
    """The mean square of x @ weight: f[N, K] -> a scalar."""
    return graphs.mean((x @ params["weight"]) ** 2)


def make(side: int, seed: int = 0) -> Case:
    """A product f32[side, side] @ f32[side, 4] of uniform and of normal numbers, scaled to a loss near 1."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((side, COLUMNS), np.float32) * np.float32(np.sqrt(12 / side))
    x = rng.random((side, side), np.float32)  # normal numbers would take longer to draw than all else in a worker
    x -= np.float32(0.5)
    return Case(loss, {"weight": weight}, ((x,),), (side,))


WORKLOAD = Workload(
    name="big_matmul",
    title="One large matrix product",
    shows="A control: one kernel does nearly all the work, so no way of building the graph can matter. Its size was "
    "chosen after a first run, in which a side of 3072 and more columns showed 5%: the products leave cold caches to "
    "the Python that the dynamic engine runs and the static one does not. The tie that it must show was not changed.",
    expect="tie",
    kind="control",
    sizes={"small": {"side": 6144}, "medium": {"side": 7168}, "large": {"side": 8192}},
    make=make,
)
