"""Memory planning: offsets in one arena for buffers whose lifetimes are known.

A buffer is `(lower, upper, size)`: it lives in the half-open interval of steps [lower, upper) and takes `size` bytes.
Fast heuristics come first (`greedy`). What they leave is made smaller by joining buffers that fit together (`boxes`)
and searched: small instances to the end (`exact`), others by beams over skylines (`beam`) for as long as the caller
allows (`search`).
"""

from static.memory.heuristics import MANY, Buffer, Plan, best_fit, greedy_by_size, max_live
from static.memory.planner import ALIGNMENT, allocate, begin_at, plan

__all__ = [
    "ALIGNMENT",
    "MANY",
    "Buffer",
    "Plan",
    "allocate",
    "begin_at",
    "best_fit",
    "greedy_by_size",
    "max_live",
    "plan",
]
