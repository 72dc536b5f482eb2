"""From runs of elements in blocks to one tensor: without a copy where they follow each other, else with one gather."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic import native
from dynamic.batching.moves import EVERY, Move, gather, section
from dynamic.batching.nodes import Block, Run
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs.ops.movement import reshape

Indices = np.ndarray[Any, np.dtype[np.intp]]


class Places(NamedTuple):
    """Where runs are: the blocks, and for each run the number of its block and from which element on it is."""

    blocks: list[Block]
    owners: Indices
    starts: Indices

    def key(self) -> Hashable:
        """Equal for the same places."""
        return tuple(self.blocks), self.owners.tobytes(), self.starts.tobytes()


def located(runs: list[Run]) -> Places:
    """Where some runs are."""
    if native.loops is not None:
        blocks, owners, starts = native.loops.located(runs)
        return Places(blocks, np.frombuffer(owners, np.intp), np.frombuffer(starts, np.intp))
    numbers: dict[Block, int] = {}
    found = [numbers.setdefault(run.block, len(numbers)) for run in runs]
    return Places(list(numbers), np.array(found, np.intp), np.array([run.start for run in runs], np.intp))


def gathered(places: Places, sizes: int | Indices, shape: Shape) -> Tensor:
    """Runs of so many elements one after the other, as one tensor of a shape."""
    blocks, owners, starts = places
    if not math.prod(shape):
        return Tensor(np.zeros(shape, blocks[0].tensor.dtype))
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


def _every_row(starts: Indices, counts: Indices) -> Indices:
    """The rows of runs of so many, from these rows on."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
