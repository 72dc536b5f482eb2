"""Functions as a user's own, which `graphduel compare` measures, of about 5 us, 1 ms and 100 ms a call.

A longer function is a number of equal parts, and a slower one has more of them. To run one call of twenty twice would
not do: a block of 4 ms holds 4 calls of 1 ms, so that some blocks would be 25% slower, and the others not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import graphs
from compare.own.case import case_of
from compare.records.job import Job
from compare.workloads import Case, Workload

PARTS = 100
"""Parts of a longer function: each is 1% of its work."""
SIZES = {
    "5 us": {"side": 4, "parts": 1},
    "1 ms": {"side": 56, "parts": PARTS},
    "100 ms": {"side": 384, "parts": PARTS},
}
"""The side of the matrices and the number of parts, by how long a call takes, about."""
NAME = "own"
SOURCE = f"{__name__}:WORKLOAD"


def make(side: int, parts: int) -> Case:
    """The case of a function of `parts` layers, f[side, side] in float32, without gradients."""

    def layers(x: Any, w: Any) -> Any:
        for _ in range(parts):
            x = graphs.tanh(x @ w)
        return x

    rng = np.random.default_rng(0)
    x, w = (rng.normal(0, side**-0.5, (side, side)).astype(np.float32) for _ in range(2))
    return case_of(layers, [(x, w)], False, None)


WORKLOAD = Workload(NAME, "A function of one's own", "Layers of equal work.", "open", "own", SIZES, make)


class Divided(NamedTuple):
    """Work of so many equal parts, and the case with another number of them."""

    parts: int
    case: Callable[[int], Case]


def divided(job: Job) -> Divided | None:
    """How the work of a job is divided; None where it has no parts."""
    size = SIZES.get(str(job.size), {}) if job.source == SOURCE else {}
    return Divided(size["parts"], partial(make, size["side"])) if size.get("parts", 1) > 1 else None
