"""Memory of large results, written again once nobody sees it: fresh pages cost more than many kernels do.

A result is an array over memory that its `ResultMaker` keeps. Every view, memoryview or other export of a NumPy array
holds the array itself, or the memory below it, and so do theirs in turn. The memory's reference count therefore tells
whether anybody can still see it. While somebody can, the next call takes other memory.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from typing import Any

import numpy as np

from static import memory

Array = np.ndarray[Any, Any]

LARGE = 1 << 18  # bytes of a result from which on keeping pays: the allocator keeps the pages of smaller arrays itself
KEPT = 2  # a loop that holds one step's results until it has the next ones alternates between two

# CPython with its lock: references are counted at once, and by one thread at a time.
COUNTED = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


class ResultMaker:
    """Make the array for one result of a program, anew at each call: over kept memory that nobody sees, or fresh."""

    __slots__ = ("_dtype", "_kept", "_nbytes", "_shape", "_spare")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], kept: int = KEPT) -> None:
        self._shape, self._dtype = shape, dtype
        self._kept = kept if COUNTED else 0
        self._nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._spare: list[Array] = []

    def __call__(self) -> Array:
        """Return an array of any content that nobody else sees."""
        spare = self._spare
        for number in range(len(spare)):
            if getrefcount(spare[number]) <= _UNSEEN:
                return self._array_over(spare[number])
        if not self._kept or self._nbytes < LARGE:
            return np.empty(self._shape, self._dtype)
        del spare[: len(spare) + 1 - self._kept]
        spare.append(np.empty(self._nbytes + memory.ALIGNMENT, np.uint8))
        return self._array_over(spare[-1])

    def _array_over(self, block: Array) -> Array:
        start = -block.ctypes.data % memory.ALIGNMENT
        return np.ndarray(self._shape, self._dtype, block, start)

    @property
    def nbytes(self) -> int:
        """The bytes of the memory that is kept."""
        return sum(block.nbytes for block in self._spare)


_spare = [np.empty(1)]
_UNSEEN = getrefcount(_spare[0])  # the reference count of an object that nobody else holds
