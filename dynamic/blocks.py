"""Blocks of memory that outlive the arrays over them, and the free ones among them by size: what a pool is made of.

**When memory is free.** An array over a block is a view of memory of a type of its own. NumPy makes the base of a
view the array that it was taken from, unless it can go on to an array of the *same* type; so every view, memoryview
or other alias of such an array holds that very array. When it dies, and not before, nobody sees the memory, and a weak
reference says so. Whoever took the memory itself, as `array.base`, is found by its reference count.
"""

from __future__ import annotations

from sys import getrefcount
from threading import get_ident
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy import ndarray

from dynamic.inplace import Memory

Array = np.ndarray[Any, Any]

ALIGNMENT = 64  # bytes of a cache line: a kernel whose vectors straddle two lines takes up to twice as long
SLACK = 0.2  # the share of the peak that may be memory which was not in use


class Layout(NamedTuple):
    """What an array is to be, and the free blocks of its size class."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    size: int
    free: list[Block]


class Block:
    """A piece of memory, laid out as for the array that was last over it.

    `left` is the weak reference to that array, whose death brings the block back to the free ones.
    """

    __slots__ = ("bytes", "free", "layout", "left", "memory", "offset", "owner", "size")

    def __init__(self, owner: Blocks, layout: Layout) -> None:
        self.owner, self.size, self.free = owner, layout.size, layout.free
        self.bytes = Memory(layout.size, np.uint8)
        self.offset = -self.bytes.ctypes.data % ALIGNMENT
        self.left: ref[Array] | None = None
        self.lay_out(layout)

    def lay_out(self, layout: Layout) -> None:
        """Make the memory an array of this shape and dtype."""
        self.layout = layout
        self.memory = Memory(layout.shape, layout.dtype, self.bytes, self.offset)

    def come_back(self, _: Any) -> None:
        """Be free: called when the array over the block has died, in whichever thread."""
        owner = self.owner
        if get_ident() != owner.thread:
            owner.returned.append(self)
            return
        self.free.append(self)
        owner.in_use -= self.layout.nbytes
        if owner.limit is not None:
            owner.trim(owner.limit)


class Blocks:
    """All blocks of a pool. One thread takes; any thread may let go.

    limit      the most bytes that are kept free; None for as many as the slack allows
    in_use     bytes of the arrays that somebody sees
    held       bytes of all blocks, and so of the size classes of those arrays and of what is free
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.thread = 0  # the one that takes; 0 for none
        self.returned: list[Block] = []  # by other threads, which do nothing but append
        self.in_use = self.held = self.peak = self.peak_in_use = self.fresh = 0
        self._free: dict[int, list[Block]] = {}
        self._all: set[Block] = set()  # a block in use has no other owner
        self._layouts: dict[tuple[tuple[int, ...], np.dtype[Any]], Layout] = {}

    def layout(self, array: Array) -> Layout:
        """The layout of arrays like this one."""
        kind = array.shape, array.dtype
        if kind not in self._layouts:
            size = size_class(array.nbytes + ALIGNMENT)
            self._layouts[kind] = Layout(*kind, array.nbytes, size, self._free.setdefault(size, []))
        return self._layouts[kind]

    def take(self, layout: Layout) -> Array:
        """An array that nobody else sees, of any content."""
        free = layout.free
        block = free.pop() if free else self._other(layout)
        while getrefcount(block.memory) > _UNSEEN or getrefcount(block.bytes) > _UNSEEN_BYTES:
            self._drop(block)  # somebody holds the memory itself
            block = free.pop() if free else self._other(layout)
        if block.layout is not layout:
            block.lay_out(layout)
        self.in_use = in_use = self.in_use + layout.nbytes
        if in_use > self.peak_in_use:
            self.peak_in_use = in_use
        array = block.memory.view(ndarray)
        block.left = ref(array, block.come_back)
        return array

    def _other(self, layout: Layout) -> Block:
        """A block for which its size class has none: a larger free one, or fresh memory."""
        self.settle()
        waste = self.held - self.kept() - self.in_use
        largest = layout.nbytes + self.peak_in_use * SLACK / 2 - waste
        fitting = [size for size, free in self._free.items() if free and layout.size <= size <= largest]
        return self._free[min(fitting)].pop() if fitting else self._new(layout)

    def _new(self, layout: Layout) -> Block:
        """Fresh memory, for which free blocks make room where the peak would hold too much that is not in use."""
        in_use = max(self.peak_in_use, self.in_use + layout.nbytes)
        self.trim(int(in_use / (1 - SLACK)) - layout.size - (self.held - self.kept()))
        block = Block(self, layout)
        self._all.add(block)
        self.fresh += 1
        self.held += block.size
        self.peak = max(self.peak, self.held)
        return block

    def settle(self) -> None:
        """Take what other threads have let go."""
        while self.returned and get_ident() == self.thread:
            self.returned.pop().come_back(None)

    def kept(self) -> int:
        """Bytes of the free blocks."""
        return sum(size * len(free) for size, free in self._free.items())

    def trim(self, most: int) -> None:
        """Give free memory up, the longest unused of the size that takes most, until so many bytes are left."""
        while self.kept() > max(most, 0):
            self._drop(max(self._free.items(), key=lambda item: item[0] * len(item[1]))[1].pop(0))

    def _drop(self, block: Block) -> None:
        self.held -= block.size
        self._all.discard(block)

    def close(self) -> None:
        """Give everything up: what is in use belongs from now on to whoever sees it."""
        self.thread = 0
        for block in self._all:
            block.left = None
        for free in (*self._free.values(), self.returned):
            free.clear()
        for found in (self._free, self._layouts, self._all):
            found.clear()
        self.in_use = self.held = 0


def size_class(nbytes: int) -> int:
    """The bytes of the smallest class that holds so many: sixteen classes from each power of two to the next."""
    step = 1 << max(nbytes.bit_length() - 5, 0)
    return -(-nbytes // step) * step


def is_unseen(array: Array) -> bool:
    """Whether the memory of an array is seen by those alone who hold the array: not as a base of it, or as its own."""
    base = array.base
    if type(base) is not Memory:
        return base is None
    return getrefcount(base) <= _UNSEEN_BASE and getrefcount(base.base) <= _UNSEEN_BYTES


# How many references to the memory of a block are counted when nobody else has one.
_sample = Block(Blocks(None), Blocks(None).layout(np.empty(1)))
_UNSEEN, _UNSEEN_BYTES = getrefcount(_sample.memory), getrefcount(_sample.bytes)
_UNSEEN_BASE = _UNSEEN + 2  # and those of the array over it and of the variable
