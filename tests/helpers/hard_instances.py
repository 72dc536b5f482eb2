"""Instances for the memory planner that are known to fit: rectangles of time and bytes, cut into buffers."""

from __future__ import annotations

import numpy as np

Box = tuple[int, int, int, int]  # lower, upper, bottom, top
STEPS = 1 << 20
UNIT = 1 << 10


def packed(
    count: int, seed: int, long: float = 0.5, dropped: float = 0.0, wheels: float = 0.0
) -> list[tuple[int, int, int]]:
    """Buffers that fill an arena of `STEPS` bytes without a gap, shuffled; about a share `dropped` is left out.

    A rectangle, rather a large one, is cut in two, again and again, at a random place: across time, or, with the
    probability `long`, across memory, which leaves long lifetimes. With the probability `wheels` it is cut in five
    instead, around one in the middle, which no cuts in two give.
    """
    rng = np.random.default_rng(seed)
    boxes: list[Box] = [(0, STEPS, 0, STEPS)]
    while len(boxes) < count:
        weights = np.array([(box[1] - box[0]) * (box[3] - box[2]) for box in boxes], float) ** 0.8
        box = boxes.pop(int(rng.choice(len(boxes), p=weights / weights.sum())))
        boxes += _wheel(box, rng) if rng.random() < wheels else _cut(box, rng, rng.random() < long)
    # Left out is only what leaves the fullest step as full as it was.
    kept = [box for box in boxes if not _spare(box) or rng.random() >= dropped]
    return [(lower, upper, top - bottom) for lower, upper, bottom, top in (kept[i] for i in rng.permutation(len(kept)))]


def _spare(box: Box) -> bool:
    return not box[0] <= STEPS // 2 < box[1]


def _wheel(box: Box, rng: np.random.Generator) -> list[Box]:
    lower, upper, bottom, top = box
    if min(upper - lower, top - bottom) < 3 * UNIT:
        return [box]
    first, second = (lower + UNIT * int(n) for n in _two_of((upper - lower) // UNIT, rng))
    low, high = (bottom + UNIT * int(n) for n in _two_of((top - bottom) // UNIT, rng))
    return [
        (lower, second, bottom, low),
        (second, upper, bottom, high),
        (first, upper, high, top),
        (lower, first, low, top),
        (first, second, low, high),
    ]


def _two_of(count: int, rng: np.random.Generator) -> np.ndarray:
    """Two numbers from 1 to count - 1, the smaller first."""
    return np.sort(rng.choice(np.arange(1, count), 2, replace=False))


def _cut(box: Box, rng: np.random.Generator, across_memory: bool) -> list[Box]:
    lower, upper, bottom, top = box
    if across_memory and top - bottom > UNIT:
        at = bottom + UNIT * int(rng.integers(1, (top - bottom) // UNIT))
        return [(lower, upper, bottom, at), (lower, upper, at, top)]
    if upper - lower > UNIT:
        at = lower + UNIT * int(rng.integers(1, (upper - lower) // UNIT))
        return [(lower, at, bottom, top), (at, upper, bottom, top)]
    return [box]
