"""What the heuristics leave is improved, one independent component after the other, the highest first."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from static.memory import beam, exact
from static.memory.buffers import Buffer, components, max_live, peak
from static.memory.greedy import MANY

NARROW = 4  # states of the narrowest beam
CELLS = 1 << 21  # numbers in one array of a beam, about; it bounds the width
WIDE = 64
FRESH = 8  # attempts from nothing, before there is a layout worth keeping a part of
AMBITION = 0.0, 0.1, 0.3  # how much of the gap an attempt shall close
SHARPNESS = 60.0, 120.0, 300.0


def improve(buffers: Sequence[Buffer], offsets: Sequence[int], deadline: float | None) -> list[int]:
    """Offsets no worse than the given ones: of what is very small the best there are; else until `deadline`, if any.

    `deadline` is a time of `time.perf_counter`.
    """
    best, bound = [0] * len(buffers), max_live(buffers)
    parts = [_Part(index, buffers, offsets) for index in components(buffers)]
    while parts:
        highest = max(parts, key=lambda part: part.peak)
        if highest.proven or highest.peak <= bound or not highest.improve(bound, deadline):
            break
    for part in parts:
        for i, offset in zip(part.index, part.offsets, strict=True):
            best[i] = offset
    return best


class _Part:
    """The buffers of one component, with their best layout so far."""

    def __init__(self, index: list[int], buffers: Sequence[Buffer], offsets: Sequence[int]) -> None:
        self.index, self.buffers = index, [buffers[i] for i in index]
        self.rng, self.rounds, self.proven = np.random.default_rng(len(index)), 0, False
        self.instance: beam.Instance | None = None
        self._keep([offsets[i] for i in index])

    def _keep(self, offsets: list[int]) -> None:
        self.offsets, self.peak = offsets, peak(self.buffers, offsets)

    def improve(self, bound: int, deadline: float | None) -> bool:
        """One more attempt at a layout below the best; False if there is none left to make."""
        self.rounds += 1
        if self.rounds == 1 and len(self.buffers) <= exact.FEW:
            offsets, self.proven = exact.solve(self.buffers, self.offsets)
            self._keep(offsets)
            return True
        if deadline is None or len(self.buffers) > MANY or time.perf_counter() >= deadline:
            return False
        found = self._beam(bound, deadline)
        if found is not None:
            self._keep(found)
        return True

    def _beam(self, bound: int, deadline: float) -> list[int] | None:
        """A beam in a style and for a goal drawn at random, from nothing or from the lower part of the best layout."""
        self.instance = self.instance or beam.Instance(self.buffers)
        style = beam.Style(float(self.rng.choice(SHARPNESS)), *self.rng.choice([0.0, 1.0, 3.0], 2))
        goal = self.peak - 1 - int((self.peak - 1 - bound) * self.rng.choice(AMBITION))
        fresh = self.rounds <= FRESH or self.rng.random() < 0.4
        states = beam.start(self.instance) if fresh else self._lower_part(self.instance, goal)
        return beam.search(self.instance, states, goal, self._width(self.instance), style, self.rng, deadline)

    def _lower_part(self, instance: beam.Instance, goal: int) -> beam.States:
        """The best layout, as it lies or upside down, cut off at random below where it can no longer meet the goal."""
        if self.rng.random() < 0.5:
            sizes = [size for _, _, size in self.buffers]
            self._keep([self.peak - offset - size for offset, size in zip(self.offsets, sizes, strict=True)])
        order = sorted(range(len(self.buffers)), key=lambda i: (self.offsets[i], self.buffers[i]))
        grown = list(beam.grown(instance, order, goal))
        return grown[int(len(grown) * self.rng.random() ** 0.5)]

    def _width(self, instance: beam.Instance) -> int:
        """4, 8, 4, 16, 4, 8, 4, 32, ...: as much time for each width, as in Luby et al. (1993)."""
        return max(1, min(NARROW * (self.rounds & -self.rounds), WIDE, CELLS // len(instance.members)))
