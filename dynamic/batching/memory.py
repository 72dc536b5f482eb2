"""From runs of elements in blocks to one tensor: without a copy where they follow each other, else with one gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from dynamic.batching.moves import EVERY, Move, Places, gather
from dynamic.batching.nodes import Block
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs.ops.movement import reshape
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
    unit = math.gcd(*set(starts), *set(sizes), *{b.size for b in blocks})
    sources, moves = _moves(blocks, np.array(starts) // unit, np.array(sizes) // unit, unit)
    return gather.apply([block.tensor for block in sources], {"moves": moves, "unit": unit, "shape": shape})


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """A tensor in a shape, without an op when it has that."""
    return x if x.shape == shape else reshape(x, shape)


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


def _moves(blocks: Sequence[Block], starts: Indices, sizes: Indices, unit: int) -> tuple[list[Block], tuple[Move, ...]]:
    """The blocks that runs of whole rows are in, and which of their rows go where."""
    numbers: dict[Block, int] = {}
    owner = np.array([numbers.setdefault(block, len(numbers)) for block in blocks])
    rows = _rows(starts, sizes)
    if len(numbers) == 1:
        return [blocks[0]], (Move(*_of_block(rows, blocks[0].size // unit), EVERY),)
    owner = np.repeat(owner, sizes)
    moves = []
    for block, number in numbers.items():
        places = np.flatnonzero(owner == number)
        moves.append(Move(*_of_block(rows[places], block.size // unit), _as_slice(places)))
    return list(numbers), tuple(moves)


def _of_block(rows: Indices, count: int) -> tuple[Places, bool]:
    """Rows of a block of so many, and whether they are different ones."""
    found = _as_slice(rows)
    if isinstance(found, slice):
        return found, True
    met = np.zeros(count, bool)
    met[rows] = True
    return rows, np.count_nonzero(met) == len(rows)


def _as_slice(indices: Indices) -> Places:
    """The indices as a slice, where they follow each other."""
    count = len(indices)
    if not count:
        return slice(0, 0)
    first = int(indices[0])
    if int(indices[-1]) - first == count - 1 and (count < 3 or (np.diff(indices) == 1).all()):
        return slice(first, first + count)
    return indices


def _rows(starts: Indices, sizes: Indices) -> Indices:
    """The rows of runs of so many, from these rows on."""
    if (sizes == 1).all():
        return starts
    before = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
