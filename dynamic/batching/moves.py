"""Ops of batches alone, which the tape records as it does any other: rows that are gathered, repeated and added up.

Each is the adjoint of another, so that they have derivatives of every order. None is in the op library: their
attributes are indices that only a batch works out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from dynamic import tapes
from dynamic.node import Node
from graphs import dispatch
from graphs.op import Infer, Kernel, Op
from graphs.spec import TensorSpec

Array = np.ndarray[Any, Any]
Indices = slice | Array
Shape = tuple[int, ...]


class Move(NamedTuple):
    """Which rows of a source go where in the result.

    distinct   whether they are as many different ones
    """

    rows: Indices
    distinct: bool
    places: Indices


class Segments(NamedTuple):
    """Rows one after the other in segments, none of them empty: which each belongs to, and where each begins."""

    owner: Array
    starts: Array


def _gather(*sources: Array, moves: Sequence[Move], unit: int, shape: Shape, out: Array | None = None) -> Array:
    """Rows of `unit` elements of several arrays, each at its place in zeros of a shape."""
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
    """The rows of one source back from where they went, in zeros of its shape; those that meet are added up."""
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
    """The elements from the first on, in a shape."""
    section = x.reshape(-1)[first : first + math.prod(shape)].reshape(shape)
    if out is None:
        return section
    np.copyto(out, section)
    return out


def _repeat(x: Array, *, segments: Segments, out: Array | None = None) -> Array:
    """A row for each that its segment has."""
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
        from dynamic.fast.records import recorder

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


# Back through those that read a part: into the cotangent of the whole where there is one, for a block is read by many,
# and zeros as large for each of them would cost more than all else.


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
    """Add what `scatter` makes of a cotangent to that of its source."""
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
    """How many references to what has been popped are counted where nobody else has one.

    0, which is never found, where others than the variable and the call of `getrefcount` are counted: a debugger's.
    """
    held = {0: np.empty(1)}.pop(0, None)
    counted = getrefcount(held)
    return counted if counted <= 2 else 0


_ALONE = _alone()


if tapes.is_compiled():
    from dynamic.fast.pullbacks import by_hand

    by_hand.enter({gather: _pull_gather, section: _pull_section})
