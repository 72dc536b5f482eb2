"""Ops that move, add up, sort and pick elements: which of the results each element reaches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.ir import Node
from graphs.op import Op
from graphs.ops import indexing, linalg, movement, pooling, reductions, running, scans, slicing, sorting
from graphs.ops.convolution import convolution, convolution_input, convolution_weight
from static.taint.elementwise import by_element
from static.taint.marks import Bools, Mark, Rule, anything, decided, shape_of, sound, unmarked


def moved(node: Node, sources: Sequence[Mark]) -> Mark:
    """An op that puts elements where its attributes say, and known ones between them."""
    flags = {**node.attrs, "value": 0} if "value" in node.attrs else node.attrs
    kernel = node.op.kernel
    taint, extra = (kernel(*[np.array(s[i]) for s in sources], **flags) for i in (0, 3))
    other = kernel(*[~s.known for s in sources], **flags)
    values = kernel(*[s.value for s in sources], **node.attrs)
    inside = len(sources) == 1 and node.op not in (slicing.place, movement.pad)
    upper = sources[0].upper if inside else None
    return Mark(np.asarray(taint), ~np.asarray(other), np.asarray(values), np.asarray(extra), upper)


def _sum(node: Node, sources: Sequence[Mark]) -> Mark:
    """A linear op, or a bilinear one: what is known to be 0 adds nothing, and takes away what it is multiplied with."""
    parts, wrong, own = (
        [flags.astype(np.float32) for flags in column] for column in zip(*map(_in_sum, sources), strict=True)
    )

    def reach(values: Sequence[Any]) -> Bools:
        return np.asarray(np.asarray(node.op.kernel(*values, **node.attrs)) > 0)

    ways = [reach([*parts[:i], wrong[i], *parts[i + 1 :]]) for i in range(len(parts))]
    zero, extra = ~reach(parts), ~reach(own)
    if any(s.extra.all() for s in sources):  # the sum of nothing, in the unpadded function too
        extra &= ~zero
    value = np.broadcast_to(np.zeros((), node.spec.dtype), shape_of(node))
    return sound(Mark(functools.reduce(np.logical_or, ways), zero, value, extra))


def _in_sum(mark: Mark) -> tuple[Bools, Bools, Bools]:
    """What is not 0, what of it does not belong there, and what is not extra."""
    return mark.nonzero, mark.nonzero & ~mark.ignored(0), ~mark.extra


def reduced(node: Node, sources: Sequence[Mark]) -> Mark:
    """A reduction over axes: what is extra must be what it ignores, unless all is extra that goes into a result."""
    (x,) = sources
    axis = node.attrs["axis"] if isinstance(node.attrs["axis"], tuple) else (node.attrs["axis"],)
    axis, keep = tuple(range(x.taint.ndim)) if axis == (None,) else axis, bool(node.attrs.get("keepdims"))
    whole = x.extra.all(axis=axis, keepdims=keep)
    identity = _identity(node, x.value.dtype)
    wrong = x.taint | x.extra if identity is None else ~x.ignored(identity)
    result = unmarked(shape_of(node), node.spec.dtype)
    taint = wrong.any(axis=axis, keepdims=keep)
    if x.extra.all() and not taint.any() and identity is not None:  # nothing at all, in the unpadded function too
        return decided(result, np.ones(shape_of(node), bool), identity)
    return result._replace(taint=np.asarray(taint | whole), extra=np.asarray(whole))


def _identity(node: Node, dtype: np.dtype[Any]) -> float | None:
    """What changes nothing in a reduction; None for those that count, such as a mean."""
    if node.op in (reductions.max, reductions.argmax, reductions.min, reductions.argmin):
        largest = float("inf") if dtype.kind == "f" else 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
        least = -largest if dtype.kind == "f" else 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)
        return least if node.op in (reductions.max, reductions.argmax) else largest
    return {reductions.any: 0, reductions.all: 1, reductions.prod: 1}.get(node.op)


def _along(node: Node, sources: Sequence[Mark]) -> Mark:
    """An op along one axis, whose results depend on all of it."""
    wrong = functools.reduce(np.logical_or, [s.taint | s.extra for s in sources])
    taint = np.broadcast_to(wrong.any(axis=node.attrs["axis"], keepdims=True), shape_of(node))
    return unmarked(shape_of(node), node.spec.dtype)._replace(taint=taint)


def _sorted(node: Node, sources: Sequence[Mark]) -> Mark:
    """What is extra goes to the end where it is known to be the last of all: the elements before are as unpadded."""
    (x,) = sources
    if x.value.dtype.kind != "f" or not x.ignored(float("-inf" if node.attrs["descending"] else "inf")).all():
        return _along(node, sources)
    axis = node.attrs["axis"]
    extra = np.sort(x.extra, axis=axis)
    return sound(unmarked(shape_of(node), node.spec.dtype)._replace(extra=extra))


def _running(node: Node, sources: Sequence[Mark]) -> Mark:
    (x,) = sources
    wrong = ~x.ignored(0 if node.op is scans.cumulative_sum else 1)
    result = unmarked(shape_of(node), node.spec.dtype)
    nonzero = x.nonzero if node.op is scans.cumulative_sum else np.ones_like(x.known)
    zero = ~np.logical_or.accumulate(nonzero, axis=node.attrs["axis"])
    taint = np.logical_or.accumulate(wrong, axis=node.attrs["axis"])
    return sound(decided(result._replace(taint=taint, extra=x.extra), zero, 0))


# Indexing by arrays -----------------------------------------------------------------------------------------------


def _picked(node: Node, sources: Sequence[Mark]) -> Mark:
    """take and take_along_axis: tainted where the index is, or where what is picked may be."""
    x, index = sources
    axis = node.attrs["axis"]
    wrong = x.taint | x.extra
    anywhere = np.broadcast_to(wrong.any(axis=axis, keepdims=True), wrong.shape)
    taint = node.op.kernel(np.array(wrong if index.known.all() else anywhere), index.value, axis=axis)
    by_index = index.taint | index.extra
    if node.op is indexing.take:
        by_index = by_index.reshape(*(1,) * axis, *by_index.shape, *(1,) * (x.taint.ndim - axis - 1))
    by_index = np.broadcast_to(by_index, shape_of(node))
    return unmarked(shape_of(node), node.spec.dtype)._replace(taint=taint | by_index, extra=by_index)


def _flat(node: Node, sources: Sequence[Mark]) -> Mark:
    """flat_index: element by element, where all is known; what is not known has no place to look for."""
    if not all(mark.known.all() for mark in sources):
        sources = [mark._replace(known=np.zeros_like(mark.known)) for mark in sources]
    return by_element(node, sources)


def _added(node: Node, sources: Sequence[Mark]) -> Mark:
    """scatter_add: what is known to be 0 adds nothing, wherever it goes."""
    g, index = sources
    axis = node.attrs["axis"]
    after = g.taint.ndim - axis - index.taint.ndim
    by_index = (index.taint | index.extra).reshape(*(1,) * axis, *index.taint.shape, *(1,) * after)
    tainted = bool((g.nonzero & (~g.ignored(0) | by_index)).any())
    return unmarked(shape_of(node), node.spec.dtype, taint=tainted)


def _added_along(node: Node, sources: Sequence[Mark]) -> Mark:
    """add_along_axis: the same in each row along the axis."""
    g, index = sources
    by_index, axis = index.taint | index.extra, node.attrs["axis"]
    flags = (
        (g.nonzero & (~g.ignored(0) | by_index)).any(axis=axis, keepdims=True),
        ~g.nonzero.any(axis=axis, keepdims=True),
    )
    extra = (g.extra | index.extra).all(axis=axis, keepdims=True)
    taint, zero, extra = (np.broadcast_to(flag, shape_of(node)) for flag in (*flags, extra))
    return sound(Mark(taint, zero, np.broadcast_to(np.zeros((), node.spec.dtype), shape_of(node)), extra))


_SUMS = (
    *(reductions.sum, linalg.matmul, convolution, convolution_input, convolution_weight),
    *(pooling.window_sum, pooling.window_spread),
)  # fmt: skip
RULES: dict[Op, Rule] = {
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys((scans.cumulative_sum, scans.cumulative_prod), _running),
    **dict.fromkeys((sorting.sort, sorting.argsort), _sorted),
    **dict.fromkeys((indexing.take, indexing.take_along_axis), _picked),
    indexing.flat_index: _flat,
    indexing.scatter_add: _added,
    indexing.add_along_axis: _added_along,
    **dict.fromkeys((scans.linear_recurrence, running.cumulative_argmax, running.cumulative_argmin), _along),
    running.logcumsumexp: _along,
    indexing.scatter: anything,
}
