"""Moving rows in a batch: ops that only batches use, and the one tensor made from runs of elements.

The ops gather, repeat and add up rows, and the tape records them like any other. Each is the adjoint of another, so
that they have derivatives of every order. None is in the op library: their attributes are indices that only a batch
computes. Runs of elements become one tensor without a copy where they follow each other, else with one gather.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from operator import add
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from dynamic import tapes
from dynamic.batching.nodes import Elements, GroupValues
from dynamic.node import Node
from dynamic.tensor import Tensor, wrap
from graphs import dispatch
from graphs.op import Infer, Kernel, Op
from graphs.ops.movement import reshape
from graphs.spec import TensorSpec

Array = np.ndarray[Any, Any]
Indices = slice | Array
Shape = tuple[int, ...]


class Move(NamedTuple):
    """Which rows of a source go to which places of the result.

    distinct   whether no row is taken twice
    """

    rows: Indices
    distinct: bool
    places: Indices


class Segments(NamedTuple):
    """Rows in consecutive nonempty segments: the segment of each row, and the first row of each segment."""

    owner: Array
    starts: Array


def _gather(*sources: Array, moves: Sequence[Move], unit: int, shape: Shape, out: Array | None = None) -> Array:
    """Rows of `unit` elements of several arrays, each moved to its places in zeros of `shape`."""
    if out is None:
        if moves[0].places is EVERY and not isinstance(moves[0].rows, slice):
            return sources[0].reshape(-1, unit)[moves[0].rows].reshape(shape)
        out = np.zeros(shape, sources[0].dtype)
    else:
        out[...] = 0
    target = out.reshape(-1, unit)
    for source, move in zip(sources, moves, strict=True):
        target[move.places] = source.reshape(-1, unit)[move.rows]
    return out


def _scatter(g: Array, *, move: Move, unit: int, shape: Shape, out: Array | None = None) -> Array:
    """The adjoint of `_gather` for one source: rows are added at their origin, in zeros of the source's shape."""
    if out is None:
        out = np.zeros(shape, g.dtype)
    else:
        out[...] = 0
    target, rows = out.reshape(-1, unit), g.reshape(-1, unit)[move.places]
    if move.distinct:
        target[move.rows] = rows
    else:
        _add_rows(target, rows, move)
    return out


def _add_rows(target: Array, rows: Array, move: Move) -> None:
    if move.distinct:
        target[move.rows] += rows
    else:  # on a flat array this takes a fraction of the time
        unit = target.shape[1]
        elements = np.asarray(move.rows).reshape(-1, 1) * unit + np.arange(unit)
        np.add.at(target.reshape(-1), elements.reshape(-1), rows.reshape(-1))


def _section(x: Array, *, first: int, shape: Shape, out: Array | None = None) -> Array:
    """The elements from number `first` on, in `shape`."""
    section = x.reshape(-1)[first : first + math.prod(shape)].reshape(shape)
    if out is None:
        return section
    np.copyto(out, section)
    return out


def _repeat(x: Array, *, segments: Segments, out: Array | None = None) -> Array:
    """Repeat row i of x for each row of segment i."""
    return np.take(x, segments.owner, axis=0, out=out)


def _segment_sum(x: Array, *, segments: Segments, out: Array | None = None) -> Array:
    """The sum of the rows of each segment."""
    return np.add.reduceat(x, segments.starts, axis=0, out=out)


def _private(name: str, kernel: Kernel, infer: Infer, rule: Callable[..., Any], arity: int | None = 1) -> Op:
    op = Op(
        name,
        kernel,
        infer,
        rules=[rule],
        cost=lambda *_specs, out, **_attrs: out.size,
        family="custom",
        arity=arity,
        listed=False,
    )
    if tapes.is_compiled():  # which takes no other custom ops: what fails is run again, and these do no harm
        from dynamic.fast import recorder

        op.recorder = recorder(op)
    return op


EVERY = slice(None)

gather: Op = _private(
    "gather_rows",
    _gather,
    lambda x, *_others, shape, **_attrs: TensorSpec(shape, x.dtype),
    lambda g, index, shapes, moves, unit: scatter.apply(
        (g,), {"move": moves[index], "unit": unit, "shape": shapes[index]}
    ),
    arity=None,
)
scatter: Op = _private(
    "scatter_rows",
    _scatter,
    lambda g, *, shape, **_attrs: TensorSpec(shape, g.dtype),
    lambda g, x_shape, move, unit: gather.apply((g,), {"moves": (move,), "unit": unit, "shape": x_shape}),
)
section: Op = _private(
    "section",
    _section,
    lambda x, *, shape, **_attrs: TensorSpec(shape, x.dtype),
    lambda g, x_shape, first: scatter.apply((g,), {"move": _run(first, g.size), "unit": 1, "shape": x_shape}),
)
repeat: Op = _private(
    "repeat_rows",
    _repeat,
    lambda x, *, segments: TensorSpec((len(segments.owner), *x.shape[1:]), x.dtype),
    lambda g, segments: segment_sum.apply((g,), {"segments": segments}),
)
segment_sum: Op = _private(
    "segment_sum",
    _segment_sum,
    lambda x, *, segments: TensorSpec((len(segments.starts), *x.shape[1:]), x.dtype),
    lambda g, segments: repeat.apply((g,), {"segments": segments}),
)


# Backward of ops that read a part: add to an existing cotangent of the whole, as many ops read one block, and full-
# sized zeros for each would cost more than all else.


def _run(first: int, size: int) -> Move:
    return Move(slice(first, first + size), True, EVERY)


def _pull_gather(entry: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
    edges, attrs = entry.taken(keep)[0], entry.attrs
    g = cotangents.pop(entry)
    for edge, move in zip(edges, attrs["moves"], strict=True):
        if edge is not None:
            _arrive(cotangents, edge, g, move, attrs["unit"])


def _pull_section(entry: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
    edge, first = entry.taken(keep)[0][0], entry.attrs["first"]
    g = cotangents.pop(entry)
    _arrive(cotangents, edge, g, _run(first, g.size), 1)


def _arrive(cotangents: dict[Any, Any], edge: Any, g: Array, move: Move, unit: int) -> None:
    """Add the result of `scatter` on a cotangent to the cotangent of its source, in place where possible."""
    held = cotangents.pop(edge, None)
    if type(held) is np.ndarray and getrefcount(held) == _ALONE and _may_change(held, g):
        _add_rows(held.reshape(-1, unit), g.reshape(-1, unit)[move.places], move)
        cotangents[edge] = held
        return
    made = dispatch.execute(scatter, (g,), {"move": move, "unit": unit, "shape": edge.shape})
    cotangents[edge] = made if held is None else np.asarray(np.add(held, made))


def _may_change(held: Array, g: Array) -> bool:
    return held.base is None and held.flags.carray and held.dtype == g.dtype


def _alone() -> int:
    """The reference count of a popped value that no other code holds.

    It is 0, which no value has, where a debugger or the like adds references.
    """
    held = {0: np.empty(1)}.pop(0, None)
    counted = getrefcount(held)
    return counted if counted <= 2 else 0


_ALONE = _alone()


if tapes.is_compiled():
    from dynamic.fast.pullbacks import by_hand

    by_hand.enter({gather: _pull_gather, section: _pull_section})


# One tensor from runs of elements
# -------------------------------------------------------------------------------------


IntArray = np.ndarray[Any, np.dtype[np.intp]]


class Places(NamedTuple):
    """Stretches of elements in blocks: for each the number of its block, its first element, and its size."""

    blocks: list[GroupValues]
    owners: IntArray
    starts: IntArray
    sizes: IntArray

    def key(self) -> Hashable:
        """A key that is equal for the same places."""
        return tuple(self.blocks), self.owners.tobytes(), self.starts.tobytes(), self.sizes.tobytes()


def locate_runs(runs: Sequence[Elements], sizes: int | Sequence[int], offsets: Sequence[int] = ()) -> Places:
    """The stretches of runs of `sizes` elements, each from its offset on; adjacent runs are merged."""
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
    return _join_places(Places(list(numbers), owners, np.array(starts), np.broadcast_to(sizes, count)))


def _join_places(places: Places) -> Places:
    """Merge stretches that follow each other in a block."""
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


def gather_runs(places: Places, shape: Shape) -> Tensor:
    """Gather the elements at some places, one after the other, into one tensor of `shape`."""
    blocks, owners, starts, sizes = places
    if not math.prod(shape):
        return wrap(np.zeros(shape, blocks[0].tensor.dtype))
    if len(starts) == 1:
        return part(blocks[0], int(starts[0]), shape)
    if len(starts) <= 2 * len(blocks) + _FEW:
        ends = np.cumsum(sizes)
        each = zip(*[a.tolist() for a in (owners, starts, starts + sizes, ends - sizes, ends)], strict=True)
        moves = [(blocks[i].tensor, Move(slice(u, v), True, slice(x, y))) for i, u, v, x, y in each]
        tensors = [tensor for tensor, _ in moves]
        return gather.apply(tensors, {"moves": tuple([move for _, move in moves]), "unit": 1, "shape": shape})
    # Rows are as long as all stretches allow, since fewer rows are faster to move.
    unit = math.gcd(int(np.gcd.reduce(sizes)), int(np.gcd.reduce(starts)), *[block.size for block in blocks])
    counts = sizes // unit
    rows, owners = _every_row(starts // unit, counts), np.repeat(owners, counts)
    every = _moves([block.size // unit for block in blocks], owners, rows)
    return gather.apply([block.tensor for block in blocks], {"moves": every, "unit": unit, "shape": shape})


def reshape_if_needed(x: Tensor, shape: Shape) -> Tensor:
    """The tensor in `shape`, without an op when it has this shape already."""
    return x if x.shape == shape else reshape(x, shape)


def part(block: GroupValues, start: int, shape: Shape) -> Tensor:
    """The elements of a block from `start` on, in `shape`, as a view."""
    if math.prod(shape) == block.size:
        return reshape_if_needed(block.tensor, shape)
    result: Tensor = section.apply((block.tensor,), {"first": start, "shape": shape})
    return result


def _moves(counts: Sequence[int], owners: IntArray, rows: IntArray) -> tuple[Move, ...]:
    """The moves of rows from blocks: `counts` are the numbers of rows of the blocks, `owners` the block of each row."""
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


def _of_block(rows: IntArray, count: int) -> tuple[slice | IntArray, bool]:
    """Rows of a block of `count` rows, as a slice where possible, and whether they are distinct."""
    section = _as_slice(rows)
    if isinstance(section, slice):
        return section, True
    moved = np.zeros(count, bool)
    moved[rows] = True
    return rows, np.count_nonzero(moved) == len(rows)


def _as_slice(indices: IntArray) -> slice | IntArray:
    """The indices as a slice, where they are successive; else unchanged."""
    count = len(indices)
    if not count:
        return slice(0, 0)
    first = int(indices[0])
    if int(indices[-1]) - first == count - 1 and (count < 3 or bool((indices[1:] - indices[:-1] == 1).all())):
        return slice(first, first + count)
    return indices


_FEW = 8  # stretches that are moved in less time than it takes to look at each row
_ZERO = np.zeros(1, np.intp)


def _every_row(starts: IntArray, counts: IntArray) -> IntArray:
    """The numbers of all rows in runs that begin at `starts` and have `counts` rows."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
