"""The work of a segment in waves: kernels that do not wait for each other, which cores may run side by side.

A kernel waits for those before it that write what it reads or writes, or read what it writes. The bytes say that, and
not the graph: so it also waits where the plan gives it memory that was another's before. It runs in the first wave
after all that it waits for.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from static.backends.native import flow
from static.backends.native.flow import Flow, Location, Work
from static.backends.native.laid import Extent

Joined = Callable[[Work], Work]


def arranged(work: Work, joined: Joined) -> Work:
    """The same work wave by wave, each as `joined` makes it. A loop or branch waits for all before it."""
    arranged_work: Work = []
    between: Work = []
    for recipe, places in work:
        if isinstance(recipe, Flow) and recipe.kind != "parallel":
            lists = tuple(arranged(inner, joined) for inner in recipe.lists)
            arranged_work += [*_in_waves(between, joined), (recipe._replace(lists=lists), places)]
            between = []
        else:
            between.append((recipe, places))
    return arranged_work + _in_waves(between, joined)


def _in_waves(work: Work, joined: Joined) -> Work:
    uses: defaultdict[int, _Uses] = defaultdict(_Uses)  # by the argument that memory is of, -1 for addresses
    waves: list[Work] = []
    for piece in work:
        touched = list(_touched(piece))
        wave = max((uses[which].first_after(extent) for which, extent in touched), default=0)
        for which, extent in touched:
            uses[which].note(wave, extent)
        waves += [[] for _ in range(wave + 1 - len(waves))]
        waves[wave].append(piece)
    return [piece for wave in waves for piece in joined(wave)]


def _touched(piece: tuple[Any, list[Location]]) -> Iterator[tuple[int, Extent]]:
    """What a piece reads or writes: of which argument, and the bytes, counted from its start."""
    for recipe, places in flow.calls([piece]):
        for (which, offset), extent in zip(places, recipe.extents, strict=True):
            if extent.low < extent.high:
                yield which, Extent(offset + extent.low, offset + extent.high, extent.is_written)


class _Uses:
    """For each byte the latest wave that writes and the latest that reads it, in stretches that are alike."""

    def __init__(self) -> None:
        self.starts: list[float] = [-math.inf]
        self.latest = [(-1, -1)]

    def first_after(self, extent: Extent) -> int:
        """The first wave in which these bytes may be read, or written."""
        low, high, is_written = extent
        stretches = self.latest[bisect_right(self.starts, low) - 1 : bisect_left(self.starts, high)]
        return 1 + max(max(uses) if is_written else uses[0] for uses in stretches)

    def note(self, wave: int, extent: Extent) -> None:
        """Remember that these bytes are read or written in a wave."""
        first, end = self._from(extent.low), self._from(extent.high)
        if extent.is_written:
            self.starts[first:end], self.latest[first:end] = [extent.low], [(wave, -1)]
        else:
            self.latest[first:end] = [(write, max(read, wave)) for write, read in self.latest[first:end]]

    def _from(self, byte: int) -> int:
        """The number of the stretch that begins with a byte."""
        number = bisect_left(self.starts, byte)
        if number == len(self.starts) or self.starts[number] != byte:
            self.starts.insert(number, byte)
            self.latest.insert(number, self.latest[number - 1])
        return number
