"""What each strategy makes of a stream, from its lengths alone: groups, elements computed, graphs compiled."""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import static
from static.call.policies import Boundaries, power_of_two

Group = tuple[int, ...]
Lengths = Sequence[int]
MOST_SIZES = 3000
"""Different lengths whose optimal buckets are looked for: that takes memory in the square of their number."""
KEPT = inspect.signature(static.jit).parameters["limit"].default or 0
"""The graphs that `static.jit` keeps where nothing is said; 0 for all."""


class Layout(NamedTuple):
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
        return _misses(self.shapes, kept) if kept else self.compiles

    @property
    def hits(self) -> float:
        """The share of the calls that find their graph, where all are kept."""
        return 1 - self.compiles / len(self.groups)


def eager(lengths: Lengths, _: int) -> Layout:
    """One by one, without graphs."""
    return Layout(_alone(lengths), tuple(lengths), ())


def exact(lengths: Lengths, _: int) -> Layout:
    """One by one, a graph for each length."""
    return Layout(_alone(lengths), tuple(lengths), tuple(lengths))


def symbolic(lengths: Lengths, _: int) -> Layout:
    """One by one, a graph for all lengths."""
    return Layout(_alone(lengths), tuple(lengths), (0,) * len(lengths))


def powers(lengths: Lengths, _: int) -> Layout:
    """One by one, padded to powers of two."""
    return _padded(lengths, power_of_two)


def optimal(lengths: Lengths, _: int) -> Layout:
    """One by one, padded to the buckets that waste least."""
    return _padded(lengths, Boundaries(buckets(lengths)))


def maximum(lengths: Lengths, _: int) -> Layout:
    """One by one, padded to the longest of all."""
    return _padded(lengths, Boundaries([max(lengths)]))


def batches(lengths: Lengths, batch: int) -> Layout:
    """In batches padded to their longest, without graphs."""
    groups = in_batches(len(lengths), batch)
    return Layout(groups, tuple(len(group) * max(lengths[i] for i in group) for group in groups), ())


def compiled_batches(lengths: Lengths, batch: int) -> Layout:
    """In batches padded to their longest, a graph for all sizes."""
    found = batches(lengths, batch)
    return found._replace(shapes=(0,) * len(found.groups))


def gathered(lengths: Lengths, batch: int) -> Layout:
    """In batches that are gathered on the fly and padded nowhere."""
    groups = in_batches(len(lengths), batch)
    return Layout(groups, tuple(sum(lengths[i] for i in group) for group in groups), ())


def combined(parts: Sequence[Layout], columns: Sequence[Lengths], pads: bool) -> Layout:
    """The layout of a stream of which several axes vary, from that of each axis."""
    groups = parts[0].groups
    if pads:
        counts = [len(group) for group in groups]
        each = zip(counts, *(part.sizes for part in parts), strict=True)
        sizes = tuple(math.prod(sizes) // count ** (len(parts) - 1) for count, *sizes in each)
    else:
        elements = [math.prod(sizes) for sizes in zip(*columns, strict=True)]
        sizes = tuple(sum(elements[i] for i in group) for group in groups)
    return Layout(groups, sizes, tuple(zip(*(part.shapes for part in parts), strict=True)))


def buckets(lengths: Lengths) -> tuple[int, ...]:
    """As many optimal buckets as powers of two take, so that their places alone differ."""
    return static.buckets.optimal(lengths, len({power_of_two("T", length) for length in lengths}))


def in_batches(count: int, batch: int) -> tuple[Group, ...]:
    """The examples of each batch, in the order of the stream."""
    return tuple(tuple(range(start, min(start + batch, count))) for start in range(0, count, batch))


def _alone(lengths: Lengths) -> tuple[Group, ...]:
    return in_batches(len(lengths), 1)


def _padded(lengths: Lengths, boundary: Callable[[str, int], int]) -> Layout:
    known = {length: boundary("T", length) for length in set(lengths)}
    sizes = tuple(known[length] for length in lengths)
    return Layout(_alone(lengths), sizes, sizes)


def _misses(shapes: Iterable[Hashable], kept: int) -> int:
    held: OrderedDict[Hashable, None] = OrderedDict()
    misses = 0
    for shape in shapes:
        if shape not in held:
            misses += 1
            if len(held) >= kept:
                held.popitem(last=False)
        held[shape] = None
        held.move_to_end(shape)
    return misses
