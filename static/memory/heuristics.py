"""Heuristics that lay out thousands of buffers in milliseconds, and a beam search over skylines.

`Plan` is a planner's result. Read `best` and `place` for the heuristics, `search` for the beam.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

MANY = 4000  # buffers above which the quadratic heuristics would dominate the compile time
SOME = 600  # buffers up to which every order is tried
ROUNDS = 8  # rounds in which an order is improved
WORK = 100_000  # pairs of buffers that all rounds of an order may compare, about


def best(buffers: Sequence[Buffer], bound: int) -> list[int]:
    """Return the offsets of the heuristic with the lowest peak; the search stops at the first peak within `bound`."""
    lowest: list[int] = []
    for offsets in _candidates(buffers, bound):
        lowest = min(lowest or offsets, offsets, key=lambda offsets: peak(buffers, offsets))
        if peak(buffers, lowest) <= bound:
            break
    return lowest


def _candidates(buffers: Sequence[Buffer], bound: int) -> Iterator[list[int]]:
    yield best_fit(buffers)
    if len(buffers) <= MANY:
        yield greedy_by_size(buffers)
        yield greedy_by_start(buffers, int)
        yield greedy_by_start(buffers, int.bit_length)
    if len(buffers) <= SOME:
        orders = list(_orders(buffers))
        for _ in range(max(1, min(ROUNDS, WORK // len(buffers) ** 2))):
            for number, order in enumerate(orders):
                offsets = place(buffers, order)
                yield offsets
                orders[number] = _high_first(buffers, offsets, order, bound)


def _high_first(buffers: Sequence[Buffer], offsets: Sequence[int], order: Sequence[int], bound: int) -> list[int]:
    """Return the order with the buffers first that ended above the bound."""
    return sorted(order, key=lambda i: offsets[i] + buffers[i][2] <= bound)


def _orders(buffers: Sequence[Buffer]) -> Iterator[list[int]]:
    """Yield three orders of buffers that often work: by area, by lifetime, and by breadth (arXiv 2001.03288)."""
    index = range(len(buffers))
    yield sorted(index, key=lambda i: -(buffers[i][1] - buffers[i][0]) * buffers[i][2])
    yield sorted(index, key=lambda i: (buffers[i][0] - buffers[i][1], -buffers[i][2]))
    # For each buffer the most bytes that are alive at a step of its life.
    lower, upper, size = np.array(buffers, np.int64).T
    # Bytes alive rise only where a buffer starts, so the starts are all the steps that count.
    live = ((lower <= lower[:, None]) & (lower[:, None] < upper)) @ size
    inside = (lower[:, None] <= lower) & (lower < upper[:, None])
    breadth = [int(b) for b in np.where(inside, live, 0).max(axis=1)]
    yield sorted(index, key=lambda i: (-breadth[i], -buffers[i][2]))


def best_fit(buffers: Sequence[Buffer]) -> list[int]:
    """Return offsets as an allocator gives them in time order: the smallest hole that fits, else the end."""
    offsets = [0] * len(buffers)
    holes = _Holes()
    ending: list[tuple[int, int]] = []
    end = 0
    for i in sorted(range(len(buffers)), key=lambda i: (buffers[i][0], -buffers[i][2])):
        lower, upper, size = buffers[i]
        while ending and ending[0][0] <= lower:
            done = heapq.heappop(ending)[1]
            end = holes.free(offsets[done], offsets[done] + buffers[done][2], end)
        start = holes.take(size) if size else None
        offsets[i], end = (end, end + size) if start is None else (start, end)
        heapq.heappush(ending, (upper, i))
    return offsets


class _Holes:
    """The free holes between buffers, no two of them adjacent; found by start, by stop, and in order of size."""

    def __init__(self) -> None:
        self.stop: dict[int, int] = {}  # the stop of the hole at each start
        self.start: dict[int, int] = {}  # the start of the hole at each stop
        self.sizes: list[tuple[int, int]] = []  # size and start, sorted

    def free(self, start: int, stop: int, end: int) -> int:
        """Make [start, stop) a hole and join it with its neighbours; return the new end of the arena.

        A hole at the end of the arena lowers that end.
        """
        if start == stop:
            return end
        if stop in self.stop:
            stop = self._remove(stop)
        if start in self.start:
            start = self.start[start]
            self._remove(start)
        if stop == end:
            return start
        self._add(start, stop)
        return end

    def take(self, size: int) -> int | None:
        """Take `size` bytes from the smallest hole that has them (the first of several).

        Return their start, or None.
        """
        place = bisect.bisect_left(self.sizes, (size, 0))
        if place == len(self.sizes):
            return None
        start = self.sizes[place][1]
        stop = self._remove(start)
        if stop > start + size:
            self._add(start + size, stop)
        return start

    def _add(self, start: int, stop: int) -> None:
        self.stop[start], self.start[stop] = stop, start
        bisect.insort(self.sizes, (stop - start, start))

    def _remove(self, start: int) -> int:
        stop = self.stop.pop(start)
        del self.start[stop]
        del self.sizes[bisect.bisect_left(self.sizes, (stop - start, start))]
        return stop


def greedy_by_size(buffers: Sequence[Buffer]) -> list[int]:
    """Place the largest buffer first, each into the smallest gap that fits (Pisarchyk and Lee, arXiv 2001.03288)."""
    return place(buffers, sorted(range(len(buffers)), key=lambda i: (-buffers[i][2], buffers[i][0] - buffers[i][1])))


def greedy_by_start(buffers: Sequence[Buffer], magnitude: Callable[[int], int]) -> list[int]:
    """Place buffers by magnitude, the largest first, and those of one magnitude by start.

    Buffers of equal size are packed perfectly in this order.
    """
    order = sorted(range(len(buffers)), key=lambda i: (-magnitude(buffers[i][2]), buffers[i][0]))
    return place(buffers, order)


def place(buffers: Sequence[Buffer], order: Sequence[int]) -> list[int]:
    """Place each buffer, in order, into the smallest gap between placed buffers that live at the same time."""
    lower, upper, size = np.array(buffers, np.int64).reshape(-1, 3).T
    offsets = np.zeros(len(buffers), np.int64)
    placed = np.zeros(len(buffers), bool)
    for i in order:
        together = np.flatnonzero(placed & (lower < upper[i]) & (lower[i] < upper))
        together = together[np.argsort(offsets[together], kind="stable")]
        offsets[i] = _best_gap(offsets[together], size[together], int(size[i]))
        placed[i] = True
    return [int(o) for o in offsets]


def _best_gap(starts: np.ndarray, sizes: np.ndarray, size: int) -> int:
    if not len(starts):
        return 0
    ends = np.maximum.accumulate(starts + sizes)
    before = np.concatenate([[0], ends[:-1]])
    gaps = starts - before
    fits = np.flatnonzero(gaps >= size)
    return int(before[fits[np.argmin(gaps[fits])]]) if len(fits) else int(ends[-1])


Buffer = tuple[int, int, int]


class Plan(NamedTuple):
    """The start of each buffer, the bytes of the arena, and the most bytes that are live at one step.

    No plan has a `peak` below `lower_bound`.
    """

    offsets: tuple[int, ...]
    peak: int
    lower_bound: int

    @property
    def gap(self) -> float:
        """The distance of the peak from the lower bound, as a fraction of the lower bound."""
        return self.peak / self.lower_bound - 1 if self.lower_bound else 0.0


def peak(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Return the bytes of an arena that holds every buffer at its offset."""
    return max((offset + size for offset, (_, _, size) in zip(offsets, buffers, strict=True)), default=0)


def max_live(buffers: Sequence[Buffer]) -> int:
    """Return the most bytes that are alive at one step, which no plan can go below."""
    living = [b for b in buffers if b[0] < b[1]]
    # Sorted by time; at the same time, ends come before starts.
    changes = sorted([(lower, size) for lower, _, size in living] + [(upper, -size) for _, upper, size in living])
    return max(itertools.accumulate(change for _, change in changes), default=0)


def components(buffers: Sequence[Buffer]) -> list[list[int]]:
    """Return the indices of the buffers, split where nothing is alive, so that each part can be laid out alone.

    A buffer that is empty, or never alive, is in no part: it may lie anywhere.
    """
    parts: list[list[int]] = []
    end = 0
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i]):
        lower, upper, size = buffers[i]
        if lower == upper or not size:
            continue
        if not parts or lower >= end:
            parts.append([])
            end = upper
        parts[-1].append(i)
        end = max(end, upper)
    return parts


# Beam search ----------------------------------------------------------------------------------------------------------


Array = np.ndarray
PLACED = 1 << 60  # above every offset: a placed buffer is never the lowest


class Instance:
    """Buffers as arrays; time is divided into sections in which no buffer starts or ends."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        lower, upper, self.size = np.array(buffers, np.int64).T
        times = np.unique([lower, upper])
        self.lower, self.upper = np.searchsorted(times, lower), np.searchsorted(times, upper)
        sections = np.arange(len(times) - 1)
        self.covers = (self.lower[:, None] <= sections) & (sections < self.upper[:, None])
        self.meets = (self.lower[:, None] < self.upper) & (self.lower < self.upper[:, None])
        self.demand = self.covers * self.size[:, None]
        section, self.members = np.nonzero(self.covers.T)
        self.firsts = np.searchsorted(section, sections)
        self.bulk = self.size / self.size.max() + (upper - lower) / (upper - lower).max()

    def skyline(self, rest: Array) -> Array:
        """Return the lowest open offset in each section: (states, buffers) -> (states, sections)."""
        lowest: Array = np.minimum.reduceat(rest.take(self.members, axis=1), self.firsts, axis=1)
        return lowest


class Style(NamedTuple):
    """The preferences of a beam: `sharpness` weighs full sections, `flush` buffers level with a neighbour."""

    sharpness: float
    bulk: float
    flush: float


class States(NamedTuple):
    """Partial layouts, one per row."""

    rest: Array
    """The lowest offset that is still open to each buffer, `PLACED` for placed ones: (states, buffers)."""
    left: Array
    """The bytes still to be placed in each section: (states, sections)."""
    offsets: Array
    """The offsets of the placed buffers: (states, buffers)."""
    skyline: Array
    """The lowest offset at which an unplaced buffer can rest in each section: (states, sections)."""

    def take(self, rows: Array) -> States:
        """Return copies of the layouts in these rows."""
        return States(*(part[rows] for part in self))


def start(instance: Instance) -> States:
    """Return the one state in which nothing is placed."""
    nowhere = np.zeros((1, len(instance.size)), np.int64)
    return States(nowhere, instance.demand.sum(axis=0)[None], nowhere, instance.skyline(nowhere))


def neighbour_layouts(instance: Instance, order: Sequence[int], goal: int) -> Iterator[States]:
    """Yield the empty layout, then layouts with one buffer more each, as long as the goal is in reach."""
    states = start(instance)
    for i in order:
        yield states
        states = _drop_buffers(instance, states, np.zeros(1, int), np.array([i]))
        if _bounds(states).max() > goal:
            return


def search(
    instance: Instance, states: States, goal: int, width: int, style: Style, rng: np.random.Generator, deadline: float
) -> list[int] | None:
    """Return the offsets of a layout of at most `goal` bytes, None if the beam of `width` finds none in time."""
    while (states.rest < PLACED).any():
        if time.perf_counter() >= deadline:
            return None
        # The states, and after them for each the state whose niche stays empty until a buffer lies across it.
        section, fits = _niches(instance, states)
        across = instance.covers.T[section] & ~fits & (states.rest < PLACED)
        above = np.where(across, states.rest + instance.size, PLACED).min(axis=1)
        raised = np.where(fits, np.maximum(states.rest, above[:, None]), states.rest)
        refused = states._replace(rest=raised).take(np.flatnonzero(above < PLACED))
        refused = refused._replace(skyline=instance.skyline(refused.rest))
        refused = refused.take(np.flatnonzero(_bounds(refused).max(axis=1) <= goal))
        states = States(*(np.concatenate(parts) for parts in zip(states, refused, strict=True)))
        rows, chosen = _choices(instance, states, style, 3 * width, rng)
        states = _fittest(instance, _drop_buffers(instance, states, rows, chosen), goal, width, style, rng)
        if not len(states.rest):
            return None
    return [int(offset) for offset in states.offsets[0]]


def _niches(instance: Instance, states: States) -> tuple[Array, Array]:
    """Return each state's lowest section (the leftmost of several), and the buffers that fit there without a gap."""
    section = states.skyline.argmin(axis=1)
    floor = states.skyline[np.arange(len(section)), section]
    return section, (states.rest == floor[:, None]) & (instance.lower == section[:, None])


def _bounds(states: States) -> Array:
    """Return the least height at which each section can end; 0 where no bytes are left."""
    return np.where(states.left > 0, states.skyline + states.left, 0)


def _choices(
    instance: Instance, states: States, style: Style, most: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return `most` pairs of a state and a buffer to place next: each state's first choices come first."""
    rows, chosen = np.nonzero(_niches(instance, states)[1])
    if len(rows) <= most:
        return rows, chosen
    liking = style.bulk * instance.bulk[chosen] + style.flush * _flush(instance, states, rows, chosen)
    liking += 0.5 * rng.random(len(rows))
    by_row = np.lexsort((-liking, rows))
    place = np.empty(len(rows), int)
    place[by_row] = np.arange(len(rows)) - np.searchsorted(rows, rows[by_row])
    keep = np.lexsort((-liking, place))[:most]
    return rows[keep], chosen[keep]


def _flush(instance: Instance, states: States, rows: Array, chosen: Array) -> Array:
    """Return whether each buffer, once placed, would end level with the skyline to its left or right."""
    walls = np.pad(states.skyline, ((0, 0), (1, 1)), constant_values=-1)
    top = states.rest[rows, chosen] + instance.size[chosen]
    left, right = walls[rows, instance.lower[chosen]], walls[rows, instance.upper[chosen] + 1]
    level: Array = (top == left) | (top == right)
    return level


def _drop_buffers(instance: Instance, states: States, rows: Array, chosen: Array) -> States:
    """Return for each pair of a state and a buffer the state with the buffer at its lowest open place."""
    rest, left, offsets, _ = states.take(rows)
    pairs = np.arange(len(rows)), chosen
    offsets[pairs] = rest[pairs]
    top = rest[pairs] + instance.size[chosen]
    rest = np.maximum(rest, np.where(instance.meets[chosen], top[:, None], 0))
    rest[pairs] = PLACED
    return States(rest, left - instance.demand[chosen], offsets, instance.skyline(rest))


def _fittest(
    instance: Instance, states: States, goal: int, width: int, style: Style, rng: np.random.Generator
) -> States:
    """Return the `width` best of the states that can still meet the goal, without duplicates."""
    bounds = _bounds(states)
    tops = np.where(states.rest == PLACED, states.offsets + instance.size, 0).max(axis=1)
    able = np.flatnonzero(np.maximum(bounds.max(axis=1), tops) <= goal)
    states, bounds = states.take(able), bounds[able]
    strain = ((bounds / goal) ** style.sharpness).sum(axis=1)
    # Duplicates, placed in another order or with like buffers swapped, leave the same sections at the same heights.
    prints = bounds @ rng.random(bounds.shape[1]) + states.left @ rng.random(bounds.shape[1])
    _, distinct = np.unique(prints, return_index=True)
    return states.take(distinct[np.argsort(strain[distinct], kind="stable")[:width]])
