"""Memories that a network writes and reads: a stack of strengths, slots by use, the nearest key, a ring."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal, scalar

SLOTS = 3


def neural_stack(values: Array, pushes: Array, pops: Array) -> Array:
    """A stack whose entries have strengths, so that one may pop a part of them: f[T, N], f[T], f[T] -> f[N]."""
    strengths: list[Array] = []
    for push, left in zip(pushes, pops, strict=True):
        for i in reversed(range(len(strengths))):
            if left <= 0:
                break
            taken = min(strengths[i], left)
            strengths[i] = strengths[i] - taken
            left = left - taken
        strengths.append(push)
    read, left = values[0] * 0, 1.0
    for i in reversed(range(len(strengths))):
        used = min(strengths[i], left)
        read = read + used * values[i]
        left = left - used
        if left <= 0:
            break
    return read


def neural_stack_graph(values: Array, pushes: Array, pops: Array) -> Array:
    """What is left is zero after a break, and so is what is taken then."""
    strengths: list[Array] = []
    for push, left in zip(pushes, pops, strict=True):
        for i in reversed(range(len(strengths))):
            taken = graphs.minimum(strengths[i], left)
            strengths[i] = strengths[i] - taken
            left = left - taken
        strengths.append(push)
    read, left = values[0] * 0, 1.0
    for i in reversed(range(len(strengths))):
        used = graphs.minimum(strengths[i], left)
        read = read + used * values[i]
        left = left - used
    return read


def least_used(writes: Array, use: Array) -> Array:
    """Each value goes into the slot that was used least, and uses it: f[T, N], f[3] -> f[3, N]."""
    slots, used = [writes[0] * 0] * SLOTS, list(use)
    for write in writes:
        place = int(graphs.argmin(graphs.stack(used)))
        slots[place] = graphs.tanh(slots[place] + write)
        used[place] = used[place] + 1
    return graphs.stack(slots)


def least_used_graph(writes: Array, use: Array) -> Array:
    """The slots are one array, and the place a mask."""
    places, slots, used = np.arange(SLOTS), graphs.stack([writes[0] * 0] * SLOTS), use
    for write in writes:
        chosen = places == graphs.argmin(used)
        slots = graphs.where(graphs.expand_dims(chosen, axis=1), graphs.tanh(slots + write), slots)
        used = graphs.where(chosen, used + 1, used)
    return slots


def nearest(params: Mapping[str, Array], x: Array, reach: Array) -> Array:
    """The entry whose key is nearest, or a new one where none is within reach: f[K, N] each, f[N], f[] -> f[N]."""
    best, place = graphs.sum((params["keys"][0] - x) ** 2), 0
    for i in range(1, params["keys"].shape[0]):
        distance = graphs.sum((params["keys"][i] - x) ** 2)
        if distance < best:
            best, place = distance, i
    if best > reach:
        return graphs.tanh(x * graphs.sum(params["keys"]))
    return params["values"][place] * graphs.exp(-best)


def nearest_graph(params: Mapping[str, Array], x: Array, reach: Array) -> Array:
    """All distances, and the place of the smallest."""
    distances = graphs.sum((params["keys"] - x) ** 2, axis=1)
    place = graphs.argmin(distances)
    return graphs.cond(
        distances[place] > reach,
        lambda: graphs.tanh(x * graphs.sum(params["keys"])),
        lambda: params["values"][place] * graphs.exp(-distances[place]),
    )


def ring(x: Array, width: int) -> Array:
    """A ring of the last values, each divided by what it overwrites: f[N] -> f[]."""
    kept: list[Array | None] = [None] * width
    total = x[0] * 0
    for i, value in enumerate(x):
        before = kept[i % width]
        if before is not None:
            total = total + value / before
        kept[i % width] = value
    return total


_VALUES = normal(41, 4, 2)
_STORED = {"keys": normal(42, 3, 2), "values": normal(43, 3, 2)}

PROGRAMS = (
    Program(
        neural_stack,
        neural_stack_graph,
        [
            (_VALUES, floats(*pushes), floats(*pops))
            for pushes, pops in (
                ((0.8, 0.5, 0.9, 0.3), (0, 0.1, 0.7, 0.2)),
                ((0.2, 0.3, 0.1, 0.15), (0, 0, 0.9, 0.05)),
                ((0.6, 0.7, 0.8, 1.4), (0, 0.95, 0, 1.3)),
            )
        ],
    ),
    Program(
        least_used,
        least_used_graph,
        [(_VALUES, floats(*use)) for use in ((0, 0.5, 0.7), (3, 2, 0.1), (1.5, 1.1, 0.3))],
    ),
    Program(
        nearest,
        nearest_graph,
        [
            (_STORED, x, scalar(reach))
            for x, reach in ((_STORED["keys"][2] + 0.1, 1), (floats(9, 9), 1), (floats(0, 0), 9))
        ],
    ),
    Program(ring, ring, [(floats(1, 2, 5, 4), width) for width in (1, 2, 5)]),
)
