"""Beam search over skylines: many layouts grow at once from the bottom of the arena, and the most promising are kept.

The canonical layouts and the bound for each section of time are those of MiniMalloc (Moffitt, ASPLOS 2023), the
lowest and leftmost niche of the skyline first is the order of Burke et al. (Operations Research 52(4), 2004).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from static.memory.heuristics import Buffer

Array = np.ndarray
PLACED = 1 << 60  # above every offset: what is placed already is never the lowest


class Instance:
    """Buffers as arrays, their lifetimes in sections of time in which nothing starts or ends."""

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
        """The lowest open offset in each section: (states, buffers) -> (states, sections)."""
        lowest: Array = np.minimum.reduceat(rest.take(self.members, axis=1), self.firsts, axis=1)
        return lowest


class Style(NamedTuple):
    """What a beam prefers: `sharpness` weighs the fullest sections, `flush` what ends level with a neighbour."""

    sharpness: float
    bulk: float
    flush: float


class States(NamedTuple):
    """Partial layouts, a row for each."""

    rest: Array
    """The lowest offset still open to each buffer, PLACED for the placed ones: (states, buffers)."""
    left: Array
    """The bytes still to be placed in each section: (states, sections)."""
    offsets: Array
    """(states, buffers), of the placed ones."""
    skyline: Array
    """For each section, the lowest place at which something that is left can rest: (states, sections)."""

    def take(self, rows: Array) -> States:
        """The layouts of these rows, as copies."""
        return States(*(part[rows] for part in self))


def start(instance: Instance) -> States:
    """Nothing is placed."""
    nowhere = np.zeros((1, len(instance.size)), np.int64)
    return States(nowhere, instance.demand.sum(axis=0)[None], nowhere, instance.skyline(nowhere))


def grown(instance: Instance, order: Sequence[int], goal: int) -> Iterator[States]:
    """Nothing, then the layouts that come of dropping one buffer after the other, while they can meet the goal."""
    states = start(instance)
    for i in order:
        yield states
        states = _dropped(instance, states, np.zeros(1, int), np.array([i]))
        if _bounds(states).max() > goal:
            return


def search(
    instance: Instance, states: States, goal: int, width: int, style: Style, rng: np.random.Generator, deadline: float
) -> list[int] | None:
    """The offsets of a layout that takes at most `goal` bytes; None if the beam of `width` meets none in time."""
    while (states.rest < PLACED).any():
        if time.perf_counter() >= deadline:
            return None
        states = _with_refusals(instance, states, goal)
        rows, chosen = _choices(instance, states, style, 3 * width, rng)
        states = _fittest(instance, _dropped(instance, states, rows, chosen), goal, width, style, rng)
        if not len(states.rest):
            return None
    return [int(offset) for offset in states.offsets[0]]


def _niches(instance: Instance, states: States) -> tuple[Array, Array]:
    """The lowest section of each state, the leftmost of several, and the buffers that fit there without a gap."""
    section = states.skyline.argmin(axis=1)
    floor = states.skyline[np.arange(len(section)), section]
    return section, (states.rest == floor[:, None]) & (instance.lower == section[:, None])


def _with_refusals(instance: Instance, states: States, goal: int) -> States:
    """The states, and after each the one in which the niche stays empty until something lies across it."""
    section, fits = _niches(instance, states)
    across = instance.covers.T[section] & ~fits & (states.rest < PLACED)
    above = np.where(across, states.rest + instance.size, PLACED).min(axis=1)
    raised = np.where(fits, np.maximum(states.rest, above[:, None]), states.rest)
    refused = states._replace(rest=raised).take(np.flatnonzero(above < PLACED))
    refused = refused._replace(skyline=instance.skyline(refused.rest))
    refused = refused.take(np.flatnonzero(_bounds(refused).max(axis=1) <= goal))
    return States(*(np.concatenate(parts) for parts in zip(states, refused, strict=True)))


def _bounds(states: States) -> Array:
    """The least height at which each section can end; 0 where nothing is left."""
    return np.where(states.left > 0, states.skyline + states.left, 0)


def _choices(
    instance: Instance, states: States, style: Style, most: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Pairs of a state and a buffer to place next, `most` of them: each state's favourite first, then the second."""
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
    """Whether each buffer, once placed, would end level with what is to its left or right."""
    walls = np.pad(states.skyline, ((0, 0), (1, 1)), constant_values=-1)
    top = states.rest[rows, chosen] + instance.size[chosen]
    left, right = walls[rows, instance.lower[chosen]], walls[rows, instance.upper[chosen] + 1]
    level: Array = (top == left) | (top == right)
    return level


def _dropped(instance: Instance, states: States, rows: Array, chosen: Array) -> States:
    """For each pair of a state and a buffer, the state with the buffer at the lowest place open to it."""
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
    """The `width` best of those that can still meet the goal, each kind once."""
    bounds = _bounds(states)
    tops = np.where(states.rest == PLACED, states.offsets + instance.size, 0).max(axis=1)
    able = np.flatnonzero(np.maximum(bounds.max(axis=1), tops) <= goal)
    states, bounds = states.take(able), bounds[able]
    strain = ((bounds / goal) ** style.sharpness).sum(axis=1)
    # What was placed in another order, or with like buffers swapped, leaves the same sections at the same heights.
    prints = bounds @ rng.random(bounds.shape[1]) + states.left @ rng.random(bounds.shape[1])
    _, distinct = np.unique(prints, return_index=True)
    return states.take(distinct[np.argsort(strain[distinct], kind="stable")[:width]])
