"""Branch and bound: the least peak of a few buffers, proven."""

from __future__ import annotations

from collections.abc import Sequence

from static.memory.buffers import Buffer, max_live, peak

FEW = 32  # buffers of an instance that is searched, to the end where that does not take too long
WORK = 36_000  # placements tried, times the number of buffers, before it gives up: a few tens of milliseconds


class _GaveUpError(Exception):
    """More placements than allowed."""


def solve(buffers: Sequence[Buffer], offsets: Sequence[int], nodes: int | None = None) -> tuple[list[int], bool]:
    """Offsets with the least peak, no worse than the given ones, and whether that was proven with so many placements.

    Buffers must not be empty in time or in size. The search is over canonical layouts, as in MiniMalloc (Moffitt,
    ASPLOS 2023): each buffer rests on 0 or on another one, and they are placed in the order of their offsets.
    """
    search = _Search(buffers, list(offsets), WORK // max(1, len(buffers)) if nodes is None else nodes)
    try:
        search.visit(frozenset(range(len(buffers))), {}, [0] * len(buffers))
    except _GaveUpError:
        return search.best, False
    return search.best, True


class _Search:
    def __init__(self, buffers: Sequence[Buffer], best: list[int], nodes: int) -> None:
        self.buffers, self.best, self.nodes = buffers, best, nodes
        self.peak, self.bound = peak(buffers, best), max_live(buffers)
        self.steps = sorted({lower for lower, _, _ in buffers})
        self.meets = [
            frozenset(j for j, other in enumerate(buffers) if other[0] < b[1] and b[0] < other[1]) - {i}
            for i, b in enumerate(buffers)
        ]

    def visit(self, left: frozenset[int], placed: dict[int, int], rest: list[int]) -> None:
        """Every layout of the buffers `left` that may beat the best; `rest[i]` is the least offset still open to i."""
        if not left:
            self.best = [placed[i] for i in range(len(self.buffers))]
            self.peak = peak(self.buffers, self.best)
            return
        self.nodes -= 1
        if self.nodes < 0:
            raise _GaveUpError
        here = self._lowest(left, rest)
        for i in sorted(here, key=lambda i: -self.buffers[i][2]):
            if self.peak == self.bound:
                return
            self._descend(left - {i}, placed | {i: rest[i]}, self._on_top(i, left, rest))
        refused = self._refused(here, left, rest)
        if refused is not None:
            self._descend(left, placed, refused)

    def _descend(self, left: frozenset[int], placed: dict[int, int], rest: list[int]) -> None:
        if max(peak(self.buffers, rest), self._stacked(left, rest)) < self.peak:
            self.visit(left, placed, rest)

    def _lowest(self, left: frozenset[int], rest: list[int]) -> list[int]:
        """Those that can start at the lowest open offset, at the earliest step where one can."""
        floor, start = min((rest[i], self.buffers[i][0]) for i in left)
        return [i for i in left if rest[i] == floor and self.buffers[i][0] == start]

    def _on_top(self, i: int, left: frozenset[int], rest: list[int]) -> list[int]:
        top = rest[i] + self.buffers[i][2]
        above = self.meets[i] & left
        return [max(r, top) if j in above else r for j, r in enumerate(rest)]

    def _refused(self, here: list[int], left: frozenset[int], rest: list[int]) -> list[int] | None:
        """Where each buffer can rest if none of `here` takes the place: on one that is still to come."""
        raised = list(rest)
        for i in here:
            below = [rest[j] + self.buffers[j][2] for j in self.meets[i] & left]
            if not below:
                return None
            raised[i] = max(rest[i], min(below))
        return raised

    def _stacked(self, left: frozenset[int], rest: list[int]) -> int:
        """No layout ends lower: at some step, what is left there is stacked on the lowest place open to it."""
        highest = 0
        for step in self.steps:
            alive = [i for i in left if self.buffers[i][0] <= step < self.buffers[i][1]]
            if alive:
                highest = max(highest, min(rest[i] for i in alive) + sum(self.buffers[i][2] for i in alive))
        return highest
