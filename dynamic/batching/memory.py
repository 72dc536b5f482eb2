"""From runs of elements in blocks to one tensor: without a copy where they follow each other, else with one gather."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from operator import add
from typing import Any, NamedTuple

import numpy as np

from dynamic.batching.moves import EVERY, Move, gather, section
from dynamic.batching.nodes import Elements, GroupValues
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs.ops.movement import reshape

Indices = np.ndarray[Any, np.dtype[np.intp]]


class Places(NamedTuple):
    """Where elements are: stretches of some blocks, by the number of a block, the first element in it, and how many."""

    blocks: list[GroupValues]
    owners: Indices
    starts: Indices
    sizes: Indices

    def key(self) -> Hashable:
        """Equal for the same places."""
        return tuple(self.blocks), self.owners.tobytes(), self.starts.tobytes(), self.sizes.tobytes()


def located(runs: Sequence[Elements], sizes: int | Sequence[int], offsets: Sequence[int] = ()) -> Places:
    """Where runs of so many elements are, from some offset on, in as few stretches as there can be."""
    blocks, starts = [run.block for run in runs], [run.start for run in runs]
    if offsets:
        starts = [*map(add, starts, offsets)]
    first, count = starts[0], len(starts)
    if blocks.count(blocks[0]) == count:
        if isinstance(sizes, int) and starts == [*range(first, first + count * sizes, sizes or 1)]:
            return Places(blocks[:1], _ZERO, np.array([first]), np.array([count * sizes]))
        numbers, owners = {blocks[0]: 0}, np.zeros(count, np.intp)
    else:
        numbers = {}
        owners = np.array([numbers.setdefault(block, len(numbers)) for block in blocks])
    return _joined(Places(list(numbers), owners, np.array(starts), np.broadcast_to(sizes, count)))


def _joined(places: Places) -> Places:
    """The same as fewer stretches, where some follow each other."""
    blocks, owners, starts, sizes = places
    follows = (owners[1:] == owners[:-1]) & (starts[1:] == starts[:-1] + sizes[:-1])
    heads = np.concatenate((_ZERO, np.flatnonzero(~follows) + 1))
    return Places(blocks, owners[heads], starts[heads], np.add.reduceat(sizes, heads))


def are_one(runs: Sequence[Elements]) -> bool:
    """Whether all runs are the same elements."""
    first = runs[0]
    if runs.count(first) == len(runs):
        return True
    return all(run.block is first.block and run.start == first.start for run in runs)


def gathered(places: Places, shape: Shape) -> Tensor:
    """What is at some places, one after the other, as one tensor of a shape."""
    blocks, owners, starts, sizes = places
    if not math.prod(shape):
        return Tensor(np.zeros(shape, blocks[0].tensor.dtype))
    if len(starts) == 1:
        return part(blocks[0], int(starts[0]), shape)
    if len(starts) <= 2 * len(blocks) + _FEW:
        ends = np.cumsum(sizes)
        each = zip(*[a.tolist() for a in (owners, starts, starts + sizes, ends - sizes, ends)], strict=True)
        moves = [(blocks[i].tensor, Move(slice(u, v), True, slice(x, y))) for i, u, v, x, y in each]
        tensors = [tensor for tensor, _ in moves]
        return gather.apply(tensors, {"moves": tuple([move for _, move in moves]), "unit": 1, "shape": shape})
    # Rows as long as all stretches allow: the fewer there are to move, the better.
    unit = math.gcd(int(np.gcd.reduce(sizes)), int(np.gcd.reduce(starts)), *[block.size for block in blocks])
    counts = sizes // unit
    rows, owners = _every_row(starts // unit, counts), np.repeat(owners, counts)
    every = _moves([block.size // unit for block in blocks], owners, rows)
    return gather.apply([block.tensor for block in blocks], {"moves": every, "unit": unit, "shape": shape})


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """A tensor in a shape, without an op when it has that."""
    return x if x.shape == shape else reshape(x, shape)


def part(block: GroupValues, start: int, shape: Shape) -> Tensor:
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
    section = _as_slice(rows)
    if isinstance(section, slice):
        return section, True
    moved = np.zeros(count, bool)
    moved[rows] = True
    return rows, np.count_nonzero(moved) == len(rows)


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
_ZERO = np.zeros(1, np.intp)


def _every_row(starts: Indices, counts: Indices) -> Indices:
    """The rows of runs of so many, from these rows on."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
