"""Indexing by arrays: an element is reached by those it may be picked from, and by the index."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from graphs.ir import Node
from graphs.op import Op
from graphs.ops import picking, reductions, sorting
from static.padding.marks import Bools, Mark, MarkRule, Real, cut, first, is_first, shape_of, sound, unlike
from static.padding.structure import relocated, summed


def _kernels(node: Node, other: Node, index: Mark) -> list[functools.partial[object]]:
    """Both ops as functions of the other operand, for an index that is known."""
    values = index.value, cut(index.value, index.real)
    return [_at(version, value) for version, value in zip((node, other), values, strict=True)]


def _at(node: Node, index: np.ndarray) -> functools.partial[object]:
    def kernel(x: np.ndarray) -> object:
        return node.op.kernel(x, index, **node.attrs)

    return functools.partial(kernel)


def _is_known(index: Mark) -> bool:
    return bool(index.certain.all() and not index.wrong.any())


def _picks_alike(node: Node, size: int, real: Bools) -> bool:
    """Whether an index means the same place padded and unpadded: one from the end does so only for equal sizes."""
    counted = node.inputs[1].op in (sorting.argsort, reductions.argmax, reductions.argmin)
    return len(real) == size or (counted and is_first(real))


def _picked(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """take and take_along_axis: tainted where the index is, or where what is picked may be."""
    x, index = sources
    axis = node.attrs["axis"]
    if _is_known(index):
        try:
            return relocated(node, _kernels(node, other, index), [x])
        except IndexError:
            return unlike(node, other)
    if not _picks_alike(node, int(np.count_nonzero(x.real[axis])), x.real[axis]):
        return unlike(node, other)
    along = node.op is picking.take_along_axis
    if along and not all(map(np.array_equal, _but(x.real, axis), _but(index.real, axis))):
        return unlike(node, other)
    anywhere = x.wrong.any(axis=axis, keepdims=True)
    before, after = anywhere.shape[:axis], anywhere.shape[axis + 1 :]
    picked = anywhere if along else anywhere.reshape((*before, *(1,) * index.taint.ndim, *after))
    real = index.real if along else (*x.real[:axis], *index.real, *x.real[axis + 1 :])
    taint = np.broadcast_to(picked | _wide(index, axis, picked.ndim), shape_of(node))
    return sound(unlike(node, other)._replace(taint=taint, real=real))


def _wide(index: Mark, axis: int, ndim: int) -> Bools:
    """The taint of an index whose axes are some of the `ndim` axes of a value, from `axis` on."""
    if index.taint.ndim == ndim:
        return index.taint
    return index.taint.reshape((*(1,) * axis, *index.taint.shape, *(1,) * (ndim - axis - index.taint.ndim)))


def _but(real: Real, axis: int) -> Real:
    return (*real[:axis], *real[axis + 1 :])


def _added(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """scatter_add and add_along_axis: what is known to be 0 adds nothing, wherever it goes."""
    g, index = sources
    axis, along = node.attrs["axis"], node.op is picking.add_along_axis
    if _is_known(index):
        try:
            return summed(node, _kernels(node, other, index), [g])
        except (IndexError, ValueError):
            return unlike(node, other)
    places = first(shape_of(node)[axis : axis + 1], shape_of(other)[axis : axis + 1])
    ndim = index.taint.ndim
    of_index = g.real if along else g.real[axis : axis + ndim]
    if not all(map(np.array_equal, of_index, index.real)) or not _picks_alike(node, shape_of(other)[axis], places[0]):
        return unlike(node, other)
    wrong = g.nonzero & (~g.ignored(0) | _wide(index, axis, g.taint.ndim))
    reduced = (axis,) if along else tuple(range(axis, axis + ndim))
    taint, adds = (np.expand_dims(f.any(axis=reduced), axis) for f in (wrong, g.nonzero))
    beyond = ~places[0].reshape((-1, *(1,) * (taint.ndim - axis - 1)))  # no index of a real element goes there
    taint, zero = (np.broadcast_to(flags, shape_of(node)) for flags in (taint, ~adds | (beyond & ~taint)))
    real = (*g.real[:axis], *places, *g.real[axis + (1 if along else ndim) :])
    return sound(Mark(taint, zero, np.broadcast_to(np.zeros((), node.spec.dtype), shape_of(node)), real))


RULES: dict[Op, MarkRule] = {
    **dict.fromkeys((picking.take, picking.take_along_axis), _picked),
    **dict.fromkeys((picking.scatter_add, picking.add_along_axis), _added),
}
