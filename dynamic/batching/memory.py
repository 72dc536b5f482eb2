"""From runs of elements in blocks to one tensor: without a copy where they follow each other, else with one gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from dynamic import mode
from dynamic.batching.nodes import Block
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs.ops.indexing import scatter, take
from graphs.ops.movement import concat, reshape
from graphs.ops.slicing import getitem

Indices = np.ndarray[Any, np.dtype[np.intp]]


def value_of(block: Block, start: int, shape: Shape) -> Tensor:
    """The value that a run is."""
    return reshaped(part(block, start, math.prod(shape)), shape)


def gathered(blocks: Sequence[Block], starts: list[int], sizes: list[int], shape: Shape) -> Tensor:
    """Runs one after the other, as one tensor of a shape. A run is in a block, from an element on, so many elements."""
    if not math.prod(shape):
        return Tensor(np.zeros(shape, blocks[0].tensor.dtype))
    if _follow_each_other(blocks, starts, sizes):
        return reshaped(part(blocks[0], starts[0], sum(sizes), math.prod(shape[1:])), shape)
    # Rows as long as all runs allow: the fewer there are to move, the better.
    unit = math.gcd(*set(starts), *set(sizes), *{b.size for b in blocks}, math.prod(shape[1:]))
    return reshaped(_picked(*_source(blocks, np.array(starts) // unit, np.array(sizes) // unit, unit)), shape)


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """A tensor in a shape, without an op when it has that."""
    return x if x.shape == shape else reshape.apply((x,), {"shape": shape})


def _follow_each_other(blocks: Sequence[Block], starts: list[int], sizes: list[int]) -> bool:
    if blocks.count(blocks[0]) < len(blocks):
        return False
    if sizes.count(sizes[0]) == len(sizes) and sizes[0]:
        return starts == list(range(starts[0], starts[0] + len(starts) * sizes[0], sizes[0]))
    return starts == list(accumulate(sizes[:-1], initial=starts[0]))


def part(block: Block, start: int, size: int, unit: int = 1) -> Tensor:
    """Elements of a block in rows of `unit`, where they lie in whole rows; else one by one."""
    if size == block.size:
        return block.tensor
    if start % unit or block.size % unit or size % unit:
        unit = 1
    rows = reshaped(block.tensor, (block.size // unit, unit))
    return getitem.apply((rows,), {"key": (slice(start // unit, (start + size) // unit), slice(None))})


def _source(blocks: Sequence[Block], starts: Indices, sizes: Indices, unit: int) -> tuple[Tensor, Indices]:
    """A tensor with all the rows that the runs need, and which of its rows each run has, in order."""
    numbers: dict[Block, int] = {}
    owner = np.array([numbers.setdefault(block, len(numbers)) for block in blocks])
    parts, base = [], 0
    starts = starts.copy()
    for block, number in numbers.items():
        own = owner == number
        first, end = int(starts[own].min()), int((starts + sizes)[own].max())
        parts.append(reshaped(part(block, first * unit, (end - first) * unit, unit), (end - first, unit)))
        starts[own] += base - first
        base += end - first
    return parts[0] if len(parts) == 1 else concat.apply(parts, {"axis": 0}), _rows(starts, sizes)


def _rows(starts: Indices, sizes: Indices) -> Indices:
    """The rows of runs of so many, from these rows on."""
    if (sizes == 1).all():
        return starts
    before = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)


def _picked(source: Tensor, places: Indices) -> Tensor:
    """source[places]. Where no row is taken twice, its gradient is a `take`, and not the far slower `scatter_add`."""
    rows, count = len(source), len(places)
    if not (source.requires_grad and mode.is_grad_enabled()):
        return take.apply((source, places), {"axis": 0})
    targets = np.full(rows, -1)
    targets[places] = np.arange(count)
    unused = targets < 0
    spare = int(unused.sum())
    if spare != rows - count or spare > count:
        return take.apply((source, places), {"axis": 0})
    if not spare and np.array_equal(places, np.arange(rows)):
        return source
    targets[unused] = np.arange(count, rows)
    moved = scatter.apply((np.empty(source.shape, source.dtype), targets, source), {"axis": 0})
    return getitem.apply((moved,), {"key": (slice(0, count), slice(None))}) if spare else moved
