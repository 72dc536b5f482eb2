"""Boundaries of buckets that waste the least padding for the expected lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def optimal(lengths: Sequence[int], count: int, work: Callable[[int], float] = float) -> tuple[int, ...]:
    """Return at most `count` sizes to pad to, rising, with the least total work over all lengths.

    Each length is padded to the next boundary. `work` gives the cost of an example of some size; by default it is the
    size. The result is the exact optimum, by dynamic programming over the different lengths, where a boundary is always
    one of them (a one-dimensional k-medians to the right; Bellman, 1961). Takes time and memory in the square of their
    number. `static.jit(f, shapes="bucket", buckets=optimal(lengths, count))` uses them.

    Raises ValueError for no lengths, a length below 0, or a count below 1.
    """
    if not len(lengths) or min(lengths) < 0:
        raise ValueError("buckets are for lengths: give at least one, none below 0")
    if count < 1:
        raise ValueError(f"count is 1 or more buckets, not {count}")
    sizes, counts = np.unique(np.asarray(lengths, np.int64), return_counts=True)
    return tuple(int(sizes[last]) for last in _ends(counts, np.array([work(int(size)) for size in sizes]), count))


def _ends(counts: np.ndarray, works: np.ndarray, most: int) -> list[int]:
    """Return the index of the largest size in each of at most `most` buckets."""
    total = np.concatenate(([0], np.cumsum(counts)))
    n = len(counts)
    # cost[first, last]: a bucket of the sizes from `first` to `last`, all padded to `last`
    cost = np.where(np.tri(n, dtype=bool).T, (total[1:][None, :] - total[:-1][:, None]) * works[None, :], np.inf)
    best, starts = cost[0], []
    for _ in range(min(most, n) - 1):
        # options[first, last]: the least cost of the earlier buckets, plus the last bucket from `first` on
        options = np.concatenate(([np.inf], best[:-1]))[:, None] + cost
        starts.append(np.argmin(options, axis=0))
        best = options[starts[-1], np.arange(n)]
    ends, last = [n - 1], n - 1
    for chosen in reversed(starts):
        last = int(chosen[last]) - 1
        ends.append(last)
    return ends[::-1]
