"""Memory planning: offsets in one arena for buffers whose lifetimes are known.

A buffer is `(lower, upper, size)`: it lives in the half-open interval of steps [lower, upper) and takes `size` bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Buffer = tuple[int, int, int]

ALIGNMENT = 64  # a cache line, so that no two buffers share one
MANY = 4000  # buffers above which the quadratic heuristic would dominate the compile time


class Plan(NamedTuple):
    """Where each buffer starts, the bytes of the arena, and the most bytes that are live at one step.

    No plan has a `peak` below `lower_bound`.
    """

    offsets: tuple[int, ...]
    peak: int
    lower_bound: int

    @property
    def gap(self) -> float:
        """How far the peak lies above the lower bound, as a fraction of it."""
        return self.peak / self.lower_bound - 1 if self.lower_bound else 0.0


def plan(buffers: Sequence[Buffer], alignment: int = 1) -> Plan:
    """The better of two heuristics; above `MANY` buffers the first alone, which is close to linear.

    Raises ValueError for a lifetime that ends before it starts or a negative size.
    """
    for lower, upper, size in buffers:
        if lower > upper or size < 0:
            raise ValueError(
                f"a buffer lives in [lower, upper) and has a size of 0 or more, got {(lower, upper, size)}"
            )
    rounded = [(lower, upper, -(-size // alignment) * alignment) for lower, upper, size in buffers]
    heuristics = (best_fit,) if len(buffers) > MANY else (best_fit, greedy_by_size)
    candidates = [heuristic(rounded) for heuristic in heuristics]
    peaks = [max((o + b[2] for o, b in zip(offsets, rounded, strict=True)), default=0) for offsets in candidates]
    best = peaks.index(min(peaks))
    return Plan(tuple(candidates[best]), peaks[best], max_live(rounded))


def best_fit(buffers: Sequence[Buffer]) -> list[int]:
    """Offsets as an allocator gives them in the order of time: the smallest hole that fits, else the end grows."""
    offsets = [0] * len(buffers)
    holes: dict[int, int] = {}  # start -> end, never adjacent
    ending: list[tuple[int, int]] = []
    end = 0
    for i in sorted(range(len(buffers)), key=lambda i: (buffers[i][0], -buffers[i][2])):
        lower, upper, size = buffers[i]
        while ending and ending[0][0] <= lower:
            done = heapq.heappop(ending)[1]
            end = _free(holes, offsets[done], offsets[done] + buffers[done][2], end)
        fitting = [(stop - start, start) for start, stop in holes.items() if stop - start >= size]
        if fitting and size:
            offsets[i] = min(fitting)[1]
            stop = holes.pop(offsets[i])
            if stop > offsets[i] + size:
                holes[offsets[i] + size] = stop
        else:
            offsets[i], end = end, end + size
        heapq.heappush(ending, (upper, i))
    return offsets


def _free(holes: dict[int, int], start: int, stop: int, end: int) -> int:
    """Make [start, stop) a hole, joined with its neighbours; a hole at the end shrinks the arena's end."""
    if start == stop:
        return end
    stop = holes.pop(stop, stop)
    before = next((s for s, e in holes.items() if e == start), None)
    if before is not None:
        start = before
        del holes[before]
    if stop == end:
        return start
    holes[start] = stop
    return end


def greedy_by_size(buffers: Sequence[Buffer]) -> list[int]:
    """The largest buffer first, each into the smallest gap that fits (Pisarchyk and Lee, arXiv 2001.03288)."""
    sizes = [size for _, _, size in buffers]
    order = sorted(range(len(buffers)), key=lambda i: (-sizes[i], buffers[i][0] - buffers[i][1]))
    return _place(buffers, sizes, order)


def _place(buffers: Sequence[Buffer], sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """Each buffer, in order, into the smallest gap between the placed buffers that live at the same time."""
    lower = np.array([b[0] for b in buffers], np.int64)
    upper = np.array([b[1] for b in buffers], np.int64)
    size = np.array(sizes, np.int64)
    offsets = np.zeros(len(buffers), np.int64)
    placed: list[int] = []
    for i in order:
        index = np.array(placed, np.int64)
        together = index[(lower[index] < upper[i]) & (lower[i] < upper[index])] if placed else index
        together = together[np.argsort(offsets[together], kind="stable")]
        offsets[i] = _best_gap(offsets[together], size[together], sizes[i])
        placed.append(i)
    return [int(o) for o in offsets]


def _best_gap(starts: np.ndarray, sizes: np.ndarray, size: int) -> int:
    if not len(starts):
        return 0
    ends = np.maximum.accumulate(starts + sizes)
    before = np.concatenate([[0], ends[:-1]])
    gaps = starts - before
    fits = np.flatnonzero(gaps >= size)
    return int(before[fits[np.argmin(gaps[fits])]]) if len(fits) else int(ends[-1])


def max_live(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive at one step: no plan can do better."""
    living = [b for b in buffers if b[0] < b[1]]
    # Sorted by time, and at one time what ends before what starts.
    changes = sorted([(lower, size) for lower, _, size in living] + [(upper, -size) for _, upper, size in living])
    return max(itertools.accumulate(change for _, change in changes), default=0)
