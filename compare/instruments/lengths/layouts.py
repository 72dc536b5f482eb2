"""What a stream becomes: groups, elements computed, graphs compiled; and the buckets that lengths are padded to."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import static
from static.call.policies import power_of_two

Group = tuple[int, ...]
Lengths = Sequence[int]
MOST_SIZES = 3000
"""Different lengths whose optimal buckets are looked for: that takes memory in the square of their number."""
KEPT = inspect.signature(static.jit).parameters["limit"].default or 0
"""The graphs that `static.jit` keeps where nothing is said; 0 for all."""


class CallLayout(NamedTuple):
    """The examples of each call, the elements that it computes, and the size that its graph is compiled for.

    A graph of symbolic sizes is compiled for 0; without graphs there are no `shapes`. Where several axes vary, `sizes`
    count the elements of an array that has them all, and shapes are tuples.
    """

    groups: tuple[Group, ...]
    sizes: tuple[int, ...]
    shapes: tuple[Hashable, ...]

    @property
    def compiles(self) -> int:
        """The graphs that are compiled where all are kept."""
        return len(set(self.shapes))

    def compiles_of(self, kept: int) -> int:
        """The graphs that are compiled where so many are kept, those used last; 0 keeps all."""
        graph = functools.lru_cache(kept or None)(lambda shape: shape)
        for shape in self.shapes:
            graph(shape)
        return graph.cache_info().misses

    @property
    def hits(self) -> float:
        """The share of the calls that find their graph, where all are kept."""
        return 1 - self.compiles / len(self.groups)


def combined(parts: Sequence[CallLayout], columns: Sequence[Lengths], pads: bool) -> CallLayout:
    """The layout of a stream of which several axes vary, from that of each axis."""
    groups = parts[0].groups
    if pads:
        counts = [len(group) for group in groups]
        each = zip(counts, *(part.sizes for part in parts), strict=True)
        sizes = tuple(math.prod(sizes) // count ** (len(parts) - 1) for count, *sizes in each)
    else:
        elements = [math.prod(sizes) for sizes in zip(*columns, strict=True)]
        sizes = tuple(sum(elements[i] for i in group) for group in groups)
    return CallLayout(groups, sizes, tuple(zip(*(part.shapes for part in parts), strict=True)))


def buckets(lengths: Lengths) -> tuple[int, ...]:
    """As many optimal buckets as powers of two take, so that their places alone differ."""
    return static.buckets.optimal(lengths, len({power_of_two("T", length) for length in lengths}))


def in_batches(count: int, batch: int) -> tuple[Group, ...]:
    """The examples of each batch, in the order of the stream."""
    return tuple(tuple(range(start, min(start + batch, count))) for start in range(0, count, batch))
