"""The memory of an arena, and where in a page it begins."""

from __future__ import annotations

import numpy as np

from static.memory.planner import ALIGNMENT

_offsets = [0]


def begin_at(offset: int) -> None:
    """Let arenas that are made from now on begin so many bytes later; whole cache lines, so that they stay aligned.

    Results do not change. Where an arena lies makes the same code some percent slower or faster, so that who measures
    draws an offset anew for each process, and no one place counts alone. Raises ValueError for no multiple of
    `ALIGNMENT`.
    """
    if offset < 0 or offset % ALIGNMENT:
        raise ValueError(f"an arena begins on a cache line: {offset} is no multiple of {ALIGNMENT}")
    _offsets[:] = [offset]


def allocate(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """An arena of so many bytes, from the start of a cache line."""
    (offset,) = _offsets
    block = np.empty(size + ALIGNMENT + offset, np.uint8)
    start = -block.ctypes.data % ALIGNMENT + offset
    return block[start : start + size]
