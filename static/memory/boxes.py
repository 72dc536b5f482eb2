"""Buffers that fit together without a gap become one box, so that what is left to lay out is smaller.

Buffers with the same lifetime can be stacked. One that starts in the step in which another of the same size ends can
take its place. Where an arena is full, a layout is mostly made of these two: this undoes the cuts of a rectangle that
is cut in two again and again. A layout of the boxes is one of the buffers; the best of them may be a little worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from static.memory.buffers import Buffer, max_live


@dataclass(frozen=True, eq=False, slots=True)
class Box:
    """A rectangle of steps and bytes: a buffer with its index, or boxes that fill it, each with its offset in it."""

    lower: int
    upper: int
    size: int
    index: int = -1
    parts: tuple[tuple[int, Box], ...] = ()

    @property
    def buffer(self) -> Buffer:
        """Its lifetime and size."""
        return self.lower, self.upper, self.size


def fillers(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Buffers that make as much live at every step, from the first to the last, as there is where most is live.

    Where bytes begin to be missing, and later as many cease to be, one buffer has probably been left out.
    """
    missing: dict[int, int] = {}  # at each step, the bytes that begin to be missing; fewer than 0 for those that cease
    for lower, upper, size in buffers:
        missing[lower] = missing.get(lower, 0) - size
        missing[upper] = missing.get(upper, 0) + size
    first, *_, last = steps = sorted(missing)
    missing[first] += max_live(buffers)
    missing[last] -= max_live(buffers)
    fills: list[Buffer] = []
    opened: list[tuple[int, int]] = []  # since when, and how many bytes
    for step in steps:
        if missing[step] > 0:
            opened.append((step, missing[step]))
        elif missing[step] < 0:
            fills += _closed(opened, step, -missing[step])
    return fills


def _closed(opened: list[tuple[int, int]], step: int, size: int) -> list[Buffer]:
    """The buffers that end at a step: the last that has this size, or the last ones whatever their size."""
    alike = [i for i, (_, bytes_) in enumerate(opened) if bytes_ == size]
    if alike:
        return [(opened.pop(alike[-1])[0], step, size)]
    ended: list[Buffer] = []
    while size:
        since, bytes_ = opened.pop()
        ended.append((since, step, min(bytes_, size)))
        if bytes_ > size:
            opened.append((since, bytes_ - size))
        size -= ended[-1][2]
    return ended


def join(buffers: Sequence[Buffer], rng: np.random.Generator | None = None) -> list[Box]:
    """Boxes with all the buffers, joined for as long as two fit. Where several do, `rng` decides, or the order."""
    order = range(len(buffers)) if rng is None else rng.permutation(len(buffers)).tolist()
    joiner = _Joiner()
    for i in sorted(order, key=lambda i: buffers[i][:2]):
        lower, upper, size = buffers[i]
        joiner.add(Box(lower, upper, size, i))
    return list(joiner.lives.values())


def spread(boxes: Sequence[Box], offsets: Sequence[int]) -> list[int]:
    """The offset of each buffer from those of the boxes."""
    offset_of: dict[int, int] = {}
    left = list(zip(offsets, boxes, strict=True))
    while left:
        start, box = left.pop()
        if box.index >= 0:
            offset_of[box.index] = start
        left += [(start + offset, part) for offset, part in box.parts]
    return [offset_of[i] for i in range(len(offset_of))]


class _Joiner:
    """Boxes of which no two fit together, by their lifetime, and by one end of it and their size."""

    def __init__(self) -> None:
        self.lives: dict[tuple[int, int], Box] = {}
        self.ends: dict[tuple[int, int], dict[Box, None]] = {}
        self.starts: dict[tuple[int, int], dict[Box, None]] = {}

    def add(self, box: Box) -> None:
        """Join the box with one that fits, the result with another, and so on."""
        while True:
            lower, upper, size = box.buffer
            if (lower, upper) in self.lives:
                below = self._take(self.lives[lower, upper])
                box = Box(lower, upper, below.size + size, parts=((0, below), (below.size, box)))
            elif self.ends.get((lower, size)):
                before = self._take(next(iter(self.ends[lower, size])))
                box = Box(before.lower, upper, size, parts=((0, before), (0, box)))
            elif self.starts.get((upper, size)):
                after = self._take(next(iter(self.starts[upper, size])))
                box = Box(lower, after.upper, size, parts=((0, box), (0, after)))
            else:
                break
        self.lives[lower, upper] = box
        self.ends.setdefault((upper, size), {})[box] = None
        self.starts.setdefault((lower, size), {})[box] = None

    def _take(self, box: Box) -> Box:
        del self.lives[box.lower, box.upper]
        del self.ends[box.upper, box.size][box]
        del self.starts[box.lower, box.size][box]
        return box
