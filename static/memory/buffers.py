"""What a planner is given, and what it gives back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

Buffer = tuple[int, int, int]


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


def peak(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The bytes of an arena that holds every buffer at its offset."""
    return max((offset + size for offset, (_, _, size) in zip(offsets, buffers, strict=True)), default=0)


def max_live(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive at one step: no plan can do better."""
    living = [b for b in buffers if b[0] < b[1]]
    # Sorted by time, and at one time what ends before what starts.
    changes = sorted([(lower, size) for lower, _, size in living] + [(upper, -size) for _, upper, size in living])
    return max(itertools.accumulate(change for _, change in changes), default=0)


def components(buffers: Sequence[Buffer]) -> list[list[int]]:
    """The indices of the buffers that take part, split where nothing is alive: each part can be laid out alone.

    What is empty, or never alive, is in no part: it may lie anywhere.
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
