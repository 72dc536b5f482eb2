"""A deep chain of tiny ops: oscillators followed through hundreds of steps, where an op as such is what takes time."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Workload

NUMBERS = 8
STEP = 0.05


def make(steps: int, seed: int = 0) -> Case:
    """Eight oscillators followed for that many steps, four ops each. All are parameters, so an example is empty."""

    def loss(params: dict[str, Array]) -> Array:
        """The mean square of where they end, by the symplectic Euler method: energies neither vanish nor grow."""
        place, speed = params["place"], params["speed"]
        for _ in range(steps):
            speed = speed - place * STEP
            place = place + speed * STEP
        return graphs.mean(place * place)

    place, speed = np.random.default_rng(seed).standard_normal((2, NUMBERS), np.float32)
    return Case(loss, {"place": place, "speed": speed}, ((),), (steps,))


WORKLOAD = Workload(
    name="deep_chain",
    title="Deep chain of tiny ops",
    shows="The cost of a node, and of a structure that is deep: a graph never changes, and a tape is built each run.",
    expect="static",
    kind="chains of ops",
    sizes={"small": {"steps": 50}, "medium": {"steps": 200}, "large": {"steps": 500}},
    make=make,
)
