"""From runs of elements in blocks to one tensor: without a copy where they follow each other, else with one gather."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from dynamic.batching.moves import EVERY, Move, gather, section
from dynamic.batching.nodes import Block, Run
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs.ops.movement import reshape

Indices = np.ndarray[Any, np.dtype[np.intp]]


Span = tuple[int, int, int]
"""A stretch of elements: the number of a block, from which element on, and how many."""


class Spans(NamedTuple):
    """Where runs are that mostly follow each other: the blocks, and the stretches of these that they are together."""

    blocks: list[Block]
    stretches: list[Span]

    def key(self) -> Hashable:
        """Equal for the same places."""
        return tuple(self.blocks), tuple(self.stretches)

    def gathered(self, shape: Shape) -> Tensor:
        """All of them one after the other, as one tensor of a shape."""
        if len(self.stretches) == 1:
            return part(self.blocks[0], self.stretches[0][1], shape)
        moves, place = [], 0
        for _, start, length in self.stretches:
            moves.append(Move(slice(start, start + length), True, slice(place, place + length)))
            place += length
        tensors = [self.blocks[number].tensor for number, _, _ in self.stretches]
        return gather.apply(tensors, {"moves": tuple(moves), "unit": 1, "shape": shape})


class Places(NamedTuple):
    """Where runs are: the blocks, and for each run the number of its block and from which element on it is.

    sizes   of all, or of each
    """

    blocks: list[Block]
    owners: Indices
    starts: Indices
    sizes: int | Indices

    def key(self) -> Hashable:
        """Equal for the same places of runs that have the same sizes."""
        return tuple(self.blocks), self.owners.tobytes(), self.starts.tobytes()

    def gathered(self, shape: Shape) -> Tensor:
        """All of them one after the other, as one tensor of a shape."""
        blocks, owners, starts, sizes = self
        if len(blocks) == 1 and _follow_each_other(starts, sizes):
            return part(blocks[0], int(starts[0]), shape)
        # Rows as long as all runs allow: the fewer there are to move, the better.
        each = sizes if isinstance(sizes, int) else int(np.gcd.reduce(sizes))
        unit = math.gcd(each, int(np.gcd.reduce(starts)), *[block.size for block in blocks])
        rows = starts // unit
        if not isinstance(sizes, int) or sizes > unit:
            counts = np.broadcast_to(sizes, starts.shape) // unit
            rows, owners = _every_row(rows, counts), np.repeat(owners, counts)
        moves = _moves([block.size // unit for block in blocks], owners, rows)
        return gather.apply([block.tensor for block in blocks], {"moves": moves, "unit": unit, "shape": shape})


def spans(runs: list[Run], sizes: int | list[int]) -> Spans | None:
    """Where some runs are, as few stretches; None where they are many."""
    numbers: dict[Block, int] = {}
    found: list[Span] = []
    for run, size in zip(runs, repeat(sizes) if isinstance(sizes, int) else sizes, strict=False):
        number, start = numbers.setdefault(run.block, len(numbers)), run.start
        if found and found[-1][0] == number and found[-1][1] + found[-1][2] == start:
            found[-1] = (number, found[-1][1], found[-1][2] + size)
        else:
            found.append((number, start, size))
            if len(found) > 2 * len(numbers) + _FEW:
                return None
    return Spans(list(numbers), found)


def are_one(runs: list[Run]) -> bool:
    """Whether all runs are the same elements."""
    first = runs[0]
    return all(run.block is first.block and run.start == first.start for run in runs)


def located(runs: list[Run], sizes: int | list[int]) -> Spans | Places:
    """Where some runs of so many elements are."""
    return spans(runs, sizes) or places(runs, sizes)


def places(runs: list[Run], sizes: int | list[int]) -> Places:
    """Where each run is."""
    each = sizes if isinstance(sizes, int) else np.array(sizes)
    numbers: dict[Block, int] = {}
    found = [numbers.setdefault(run.block, len(numbers)) for run in runs]
    return Places(list(numbers), np.array(found, np.intp), np.array([run.start for run in runs], np.intp), each)


def gathered(found: Spans | Places, shape: Shape) -> Tensor:
    """Runs one after the other, as one tensor of a shape."""
    if not math.prod(shape):
        return Tensor(np.zeros(shape, found.blocks[0].tensor.dtype))
    return found.gathered(shape)


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """A tensor in a shape, without an op when it has that."""
    return x if x.shape == shape else reshape(x, shape)


def _follow_each_other(starts: Indices, sizes: int | Indices) -> bool:
    return bool((starts[1:] - starts[:-1] == (sizes if isinstance(sizes, int) else sizes[:-1])).all())


def part(block: Block, start: int, shape: Shape) -> Tensor:
    """Elements of a block from one on, in a shape: a view."""
    if math.prod(shape) == block.size:
        return reshaped(block.tensor, shape)
    result: Tensor = section.apply((block.tensor,), {"first": start, "shape": shape})
    return result


def _moves(counts: Sequence[int], owners: Indices, rows: Indices) -> tuple[Move, ...]:
    """Which rows of blocks, that have so many, go where."""
    if len(counts) == 1:
        return (Move(*_of_block(rows, counts[0]), EVERY),)
    order = np.argsort(owners, kind="stable")
    rows, bounds = rows[order], np.searchsorted(owners[order], range(len(counts) + 1)).tolist()
    return tuple(
        [
            Move(*_of_block(rows[first:end], count), _as_slice(order[first:end]))
            for count, first, end in zip(counts, bounds[:-1], bounds[1:], strict=True)
        ]
    )


def _of_block(rows: Indices, count: int) -> tuple[slice | Indices, bool]:
    """Rows of a block of so many, and whether they are different ones."""
    found = _as_slice(rows)
    if isinstance(found, slice):
        return found, True
    met = np.zeros(count, bool)
    met[rows] = True
    return rows, np.count_nonzero(met) == len(rows)


def _as_slice(indices: Indices) -> slice | Indices:
    """The indices as a slice, where they follow each other."""
    count = len(indices)
    if not count:
        return slice(0, 0)
    first = int(indices[0])
    if int(indices[-1]) - first == count - 1 and (count < 3 or bool((indices[1:] - indices[:-1] == 1).all())):
        return slice(first, first + count)
    return indices


_FEW = 8  # stretches that are moved in less time than it takes to look at each row


def _every_row(starts: Indices, counts: Indices) -> Indices:
    """The rows of runs of so many, from these rows on."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
