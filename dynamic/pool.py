"""pool: a caching allocator that gives large arrays the memory of arrays that have died.

Fresh memory is slow: the operating system hands it out page by page, cleared. A pool keeps the memory of arrays that
have died and gives it to the next array of about that size, the most recent first, since that is the likeliest to be
in a cache. NumPy asks the pool for memory in place of its own allocator, and returns memory that no array uses any
more: `pool.c`. In backward a dying operand is overwritten, where that is possible (`program.c`).
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from types import ModuleType
from typing import NamedTuple, Self

from graphs.blocks import Block, Table, enter, undo_after
from graphs.errors import GraphError, locate

THRESHOLD = 1 << 10  # bytes; below it NumPy reuses memory as well as a pool does


class PoolStats(NamedTuple):
    """The memory of a pool, in bytes.

    in_use        memory of arrays that are alive
    kept          memory of arrays that have died, kept for reuse
    peak          the most memory of both kinds at one time, including the rounding to size classes
    peak_in_use   the most bytes of arrays in use at one time
    fresh         how often there was no memory to reuse
    """

    in_use: int
    kept: int
    peak: int
    peak_in_use: int
    fresh: int

    @property
    def slack(self) -> float:
        """The share of the peak memory that exceeds the peak in use."""
        return 1 - self.peak_in_use / self.peak if self.peak else 0.0


class pool(Block):  # noqa: N801  (`with dynamic.pool():` reads like `with dynamic.no_grad():`)
    """Reuse the memory of the arrays that NumPy makes inside the `with` block, in this thread.

    limit       the most bytes that the pool keeps for reuse
    threshold   smaller arrays, in bytes, do not use the pool

    Values are the same to the bit: memory is reused only after its array, and every view of it, has died. At most a
    fifth of the peak is memory that was not in use then. On exit the kept memory is freed; results stay unchanged.
    Raises GraphError for a pool that is on already, ValueError for a negative size. Without the compiled part of the
    engine (`graphduel doctor`) it warns, and reuses no memory.
    """

    def __init__(self, limit: int | None = None, threshold: int = THRESHOLD) -> None:
        if _allocator is None:
            warnings.warn("a pool reuses nothing without the compiled part: install a C compiler first", stacklevel=2)
        self._memory = _allocator.pool(threshold, sys.maxsize if limit is None else limit) if _allocator else None
        self._on: Table[None] = {}  # the block that it is on in

    def __enter__(self) -> Self:
        if self._on:
            raise GraphError(locate("this pool is on already; make one for each block and thread"))
        hold = self.hold()
        enter(self._on, hold, None)
        if _allocator is not None:
            undo_after(hold, partial(_allocator.leave_pool, self._memory))
            _allocator.enter_pool(self._memory)
        return self

    def stats(self) -> PoolStats:
        """The memory of the pool now, and its peaks since it was made; outside the block it keeps none."""
        return PoolStats(*_allocator.pool_stats(self._memory)) if _allocator else PoolStats(0, 0, 0, 0, 0)


def _native_module() -> ModuleType | None:
    """The compiled part of the engine; None where it was not built."""
    try:
        from dynamic import _native
    except ImportError:
        return None
    return _native


_allocator = _native_module()
