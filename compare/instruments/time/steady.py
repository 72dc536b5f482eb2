"""Steady state, detected: from which block on a series stays at one level, if it ever does.

The series is cut into segments of constant level by the exact optimum of a penalised least-squares cost (optimal
partitioning: Jackson et al., IEEE Signal Processing Letters 12, 2005), as Barrett et al. (Virtual machine warmup blows
hot and cold, OOPSLA 2017) cut theirs, with their penalty of 15 log n. As there, the steady state is the last segment
with those before it that do not differ from it by anything of interest, and there is none when a level still changes
in the last quarter: a steady state is found, never assumed (Traini et al., Empirical Software Engineering 28, 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log, log1p, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

TOLERANCE = 0.05
"""Levels nearer than this are one level: the smallest effect of interest of the claims."""
PENALTY = 15.0
"""Times log n: what another change must explain, in squared standard deviations of a block."""
LATEST = 0.75
"""The share of the series after which a change means that no steady state was reached."""
QUIETEST = 1e-3
"""The least noise to assume; a series that repeats itself exactly has no standard deviation to divide by."""

Floats = npt.NDArray[np.floating[Any]]


def steady_from(seconds: Sequence[float]) -> int | None:
    """The index of the first steady block; None where no steady state was reached. Raises ValueError for no blocks."""
    if not len(seconds):
        raise ValueError("a series of no blocks has no state")
    raw = np.log(np.asarray(seconds, np.float64))
    logs = _without_spikes(raw)
    edges = [*segments(logs, _variance(raw)), len(logs)]
    levels = [float(np.mean(logs[a:b])) for a, b in pairwise(edges)]
    start = edges[-2]
    for edge, level in zip(reversed(edges[:-1]), reversed(levels), strict=True):
        if abs(level - levels[-1]) > log1p(TOLERANCE):
            break
        start = edge
    return start if start <= LATEST * len(logs) else None


def segments(values: Floats, variance: float) -> list[int]:
    """Where the segments of constant level that cost least begin: 0, and every change. `variance` is a block's."""
    count = len(values)
    penalty = PENALTY * log(count) * variance
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best, last = np.zeros(count + 1), np.zeros(count + 1, np.intp)
    for end in range(1, count + 1):
        begin = np.arange(end)
        inside = squares[end] - squares[begin] - (sums[end] - sums[begin]) ** 2 / (end - begin)
        costs = best[:end] + inside + penalty * (begin > 0)
        last[end] = np.argmin(costs)
        best[end] = costs[last[end]]
    starts = [int(last[count])]
    while starts[-1] > 0:
        starts.append(int(last[starts[-1]]))
    return starts[::-1]


def _variance(values: Floats) -> float:
    """The noise of a block, from what neighbours differ by: a change of level hardly moves its median."""
    if len(values) < 2:
        return QUIETEST**2
    deviation = float(np.median(np.abs(np.diff(values)))) * 1.4826 / sqrt(2)
    return max(deviation, QUIETEST) ** 2


def _without_spikes(logs: Floats) -> Floats:
    """Each block as the median of it and its neighbours. A slow first one stays: it is warm-up, a slow last is not."""
    if len(logs) < 3:
        return logs
    windows = np.lib.stride_tricks.sliding_window_view(logs, 3)
    middles = np.median(windows, axis=1)
    return np.concatenate([logs[:1], middles, middles[-1:]])
