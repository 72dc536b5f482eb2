"""Ops of batches alone, which the tape records as it does any other: rows that are gathered, repeated and added up.

Each is the adjoint of another, so that they have derivatives of every order. None is in the op library: their
attributes are indices that only a batch works out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

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
    else:  # on a flat array this takes a fraction of the time
        elements = np.asarray(move.rows).reshape(-1, 1) * unit + np.arange(unit)
        np.add.at(target.reshape(-1), elements.reshape(-1), rows.reshape(-1))
    return out


def _repeat(x: Array, *, segments: Segments, out: Array | None = None) -> Array:
    """A row for each that its segment has."""
    return np.take(x, segments.owner, axis=0, out=out)


def _segment_sum(x: Array, *, segments: Segments, out: Array | None = None) -> Array:
    """The sum of the rows of each segment."""
    return np.add.reduceat(x, segments.starts, axis=0, out=out)


def _private(name: str, kernel: Kernel, infer: Infer, rule: Callable[..., Any], arity: int | None = 1) -> Op:
    return Op(
        name,
        kernel,
        infer,
        rules=[rule],
        cost=lambda *_specs, out, **_attrs: out.size,
        family="custom",
        arity=arity,
        listed=False,
    )


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
