"""Memory planning: offsets in one arena for buffers whose lifetimes are known.

A buffer is `(lower, upper, size)`: it lives in the half-open interval of steps [lower, upper) and takes `size` bytes.

Read `heuristics` first (fast layouts, and the beam search), then `planner`, which improves a layout: it joins buffers
that fit together to boxes, and searches small instances to the end, others by beams for as long as the caller allows.
`schedule` says which nodes share memory and in which order they run, and `recompute` keeps a graph within a
budget of bytes.
"""

from static.memory.heuristics import MANY, Buffer, Plan, best_fit, greedy_by_size, max_live
from static.memory.planner import ALIGNMENT, allocate, begin_at, plan

__all__ = [
    "ALIGNMENT", "MANY", "Buffer", "Plan", "allocate", "begin_at", "best_fit", "greedy_by_size", "max_live", "plan",
]  # fmt: skip
