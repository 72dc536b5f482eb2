"""The planner: heuristics first, then a search for as long as it may take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from static.memory import greedy, search
from static.memory.buffers import Buffer, Plan, max_live, peak

ALIGNMENT = 64  # a cache line, so that no two buffers share one


def plan(buffers: Sequence[Buffer], alignment: int = 1, time_limit: float = 0.0) -> Plan:
    """An offset for each buffer, a multiple of `alignment`, such that no two share a byte while both are alive.

    Without a `time_limit` (seconds) it takes the best of a few heuristics, and searches what is very small to the
    end. With one, a search goes on until the peak equals the lower bound, is proven the least, or time is up; so the
    plan is never worse than without, and depends on how fast the machine is.

    Raises ValueError for a lifetime that ends before it starts, a negative size, or a negative time limit.
    """
    deadline = time.perf_counter() + _checked(buffers, time_limit)
    rounded = [(lower, upper, -(-size // alignment) * alignment) for lower, upper, size in buffers]
    bound = max_live(rounded)
    offsets = search.improve(rounded, greedy.best(rounded, bound), deadline if time_limit else None)
    return Plan(tuple(offsets), peak(rounded, offsets), bound)


def _checked(buffers: Sequence[Buffer], time_limit: float) -> float:
    for lower, upper, size in buffers:
        if lower > upper or size < 0:
            raise ValueError(
                f"a buffer lives in [lower, upper) and has a size of 0 or more, got {(lower, upper, size)}"
            )
    if not time_limit >= 0:
        raise ValueError(f"a time limit is a number of seconds, 0 or more, got {time_limit}")
    return time_limit
