"""A timeline: the bytes of NumPy data by class, after each kernel of a step, with the phase it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compare.records.breakdowns import Moment, Phase

PHASES = ("trace", "compile", "forward", "backward")
MOMENTS = 240
"""More moments than this are thinned out where they are recorded."""


class Timeline(NamedTuple):
    """The moments of one step in order, and the bytes of Python objects that are there beside them.

    `made` are the shape and dtype that each kernel of a tape has made, by which its moments find their lines.
    """

    moments: Sequence[Moment]
    objects: Mapping[str, int]
    nodes: int
    made: Sequence[tuple[Any, ...]] = ()

    @property
    def peak(self) -> Moment:
        """The moment of the most bytes."""
        return max(self.moments, key=lambda moment: moment.total)


class Reading(NamedTuple):
    """What tracemalloc counts after a kernel, and the most it counted since the reading before."""

    current: int
    peak: int

    def beyond(self, before: int) -> int:
        """The bytes that the kernel needed for itself: above what was there before it, and what is after it."""
        return max(0, self.peak - max(before, self.current))


def moment(phase: Phase, told: Mapping[str, int], reading: Reading, before: int, line: str = "") -> Moment:
    """A moment of known bytes by class, with what the kernel needed for itself, and what nobody knows about."""
    classes = dict(told)
    classes["workspace"] = classes.get("workspace", 0) + reading.beyond(before)
    untold = reading.current - sum(told.values())
    return Moment(phase, classes | ({"untold": untold} if untold > 0 else {}), str(line))


def thinned(moments: Sequence[Moment], most: int = MOMENTS) -> list[Moment]:
    """At most so many moments: of each stretch of one phase the one of the most bytes, so that no peak is lost."""
    stretch = -(-len(moments) // max(1, most - len(PHASES)))
    kept = []
    for phase in dict.fromkeys(m.phase for m in moments):
        of = [m for m in moments if m.phase == phase]
        kept += [max(of[i : i + stretch], key=lambda m: m.total) for i in range(0, len(of), stretch)]
    return kept
