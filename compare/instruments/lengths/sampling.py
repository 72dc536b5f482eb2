"""A sample of a trace that keeps its spread and how often lengths come again, small enough to be timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import fmean

LEAST_SIZES = 6
"""Different lengths of a sample, where the trace has as many."""


@dataclass(frozen=True)
class TraceSample:
    """Lengths in the order they are timed, of a trace of `total`; the longest that were left out are above `cap`."""

    lengths: tuple[int, ...]
    total: int
    cap: int | None
    left_out: int

    @property
    def sizes(self) -> int:
        """The different lengths."""
        return len(set(self.lengths))

    @property
    def hits(self) -> float:
        """The share of calls whose length was there before."""
        return 1 - self.sizes / len(self.lengths)


def sample(lengths: Sequence[int], count: int, sizes: int, seed: int, cap: int | None = None) -> TraceSample:
    """At most `count` lengths of a trace, of at most `sizes` different values.

    Lengths come again as often as in the trace, as far as LEAST_SIZES values allow. The trace is cut into equal parts
    by its quantiles, and each gives the length next to its mean, as often as the others: the sample has about the mean
    of the trace. With `cap` no length is above it. Equal arguments give equal samples.
    """
    kept = sorted(length for length in lengths if cap is None or length <= cap)
    new = len(set(kept)) / len(kept)
    values = max(LEAST_SIZES, min(sizes, round(count * new)))
    turns = max(1, min(count, round(values / new)) // values)
    drawn = quantiles(kept, turns * values, values)
    Random(seed).shuffle(drawn)
    return TraceSample(tuple(drawn), len(lengths), cap, len(lengths) - len(kept))


def quantiles(ranked: Sequence[int], count: int, values: int) -> list[int]:
    """`count` of ranked lengths: of parts of equal number in turn the length next to the mean of the part."""
    ends = [round(part * len(ranked) / values) for part in range(values + 1)]
    parts = [ranked[start:end] for start, end in pairwise(ends) if start < end]
    middles = [_nearest(part, fmean(part)) for part in parts]
    return [middles[i % len(middles)] for i in range(count)]


def _nearest(lengths: Sequence[int], wanted: float) -> int:
    return min(lengths, key=lambda length: abs(length - wanted))
