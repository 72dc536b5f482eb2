"""The padding rules of sums, other reductions, running ones and sorting.

An element that is not real must be known to be one that the op ignores: 0 in a sum, -inf in a maximum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphs.ir import Node
from static.padding.marks import (
    Bools,
    Kernel,
    Mark,
    best_fit,
    cut,
    decide_mark,
    is_first,
    line_up,
    shape_of,
    sound,
    spread,
    unknown_mark,
    unlike,
)

Identity = Callable[["np.dtype[Any]"], float]


def linear_rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark a linear or bilinear op."""
    kernels = [functools.partial(version.op.kernel, **_linear(version.attrs)) for version in (node, other)]
    return sum_rule(node, kernels, sources)


def total_rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark a sum over axes."""
    return linear_rule(node, other, sources)._replace(same=_single(node, sources[0]))


def _single(node: Node, x: Mark) -> Any:
    """Return what a sum is a copy of, where all but one of its terms are known to be 0."""
    if x.same is None:
        return None
    options = {key: node.attrs[key] for key in ("axis", "keepdims")}
    counts = ~(x.certain & (x.value == 0))
    return np.where(counts.sum(**options) == 1, (counts * (x.same + 1)).sum(**options) - 1, -1)


def _linear(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if key != "dtype"}


def sum_rule(node: Node, kernels: Sequence[Kernel], sources: Sequence[Mark]) -> Mark:
    """Mark a linear op: an element that is known to be 0 adds nothing, and makes its products 0.

    That nothing else differs is tested at one random point, with 0 for extra elements: two functions that are linear in
    each operand differ almost everywhere, or nowhere.
    """
    parts, wrong, own = (
        [flags.astype(np.float32) for flags in column] for column in zip(*map(_in_sum, sources), strict=True)
    )

    def reach(values: Sequence[Any]) -> Bools:
        return np.asarray(np.asarray(kernels[0](*values)) > 0)

    ways = [reach([*parts[:i], wrong[i], *parts[i + 1 :]]) for i in range(len(parts))]
    if len(sources) > 1:  # 0 times infinity, which a mask may have put there, is not 0
        every, endless = [np.ones_like(part) for part in parts], [_endless(s).astype(np.float32) for s in sources]
        ways += [reach([*every[:i], endless[i], *every[i + 1 :]]) for i in range(len(parts)) if endless[i].any()]
    zero = ~reach(parts)
    rng = np.random.default_rng(0)
    point = [rng.uniform(0.5, 1.5, s.taint.shape) * ~s.extra for s in sources]
    computed = np.asarray(kernels[0](*point))
    expected = np.asarray(kernels[1](*[cut(p, s.real) for p, s in zip(point, sources, strict=True)]))
    real, misfits = best_fit(~reach(own), expected.shape, lambda real: ~np.isclose(cut(computed, real), expected, 1e-9))
    taint = functools.reduce(np.logical_or, ways) | spread(misfits, real, computed.shape)
    value = np.broadcast_to(np.zeros((), node.spec.dtype), shape_of(node))
    return sound(Mark(taint, zero, value, real))


def _endless(mark: Mark) -> Bools:
    return mark.extra & mark.certain & ~np.isfinite(mark.value)


def _in_sum(mark: Mark) -> tuple[Bools, Bools, Bools]:
    """Return the flags of elements that are not 0, of those of them that are not ignored, and of real elements."""
    return mark.nonzero, mark.nonzero & ~mark.ignored(0), ~mark.extra


def reduction_rule(
    node: Node,
    other: Node,  # noqa: ARG001  (a Rule)
    sources: Sequence[Mark],
    *,
    identity: Identity | None = None,
    numbers: bool = False,
) -> Mark:
    """Mark a reduction over axes, which must ignore extra elements.

    `identity` gives the element that changes nothing, None for reductions that count elements, such as a mean.
    `numbers` marks reductions that return positions.
    """
    (x,) = sources
    axes = node.attrs["axis"] if isinstance(node.attrs["axis"], tuple) else (node.attrs["axis"],)
    axis, keep = tuple(range(x.taint.ndim)) if axes == (None,) else axes, bool(node.attrs.get("keepdims"))
    counts = identity is None or (numbers and not _counts_alike(x, axis))
    wrong = x.taint | x.extra if identity is None or counts else ~x.ignored(identity(x.value.dtype))
    certain = x.certain.all(axis=axis, keepdims=keep)
    value = node.op.kernel(x.value, **node.attrs) if certain.any() else np.zeros((), node.spec.dtype)
    kept = [[np.ones(1, bool)] * keep if i in axis else [real] for i, real in enumerate(x.real)]
    real = tuple([places for ones in kept for places in ones])
    taint = np.asarray(wrong.any(axis=axis, keepdims=keep))
    return sound(Mark(taint, np.asarray(certain), np.broadcast_to(value, shape_of(node)), real))


def _counts_alike(x: Mark, axis: Sequence[int]) -> bool:
    """Whether real elements have the same positions as in the unpadded value."""
    reals = [real for i, real in enumerate(x.real) if i in axis]
    return not reals or is_first(functools.reduce(np.logical_and.outer, reals).ravel())


def largest(dtype: np.dtype[Any]) -> float:
    """Return the largest number of a dtype: what a minimum ignores."""
    return float("inf") if dtype.kind == "f" else 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)


def least(dtype: np.dtype[Any]) -> float:
    """Return the least number of a dtype: what a maximum ignores."""
    return float("-inf") if dtype.kind == "f" else 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)


def along_rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark an op along one axis in which each result depends on the whole axis."""
    real, marks = line_up(shape_of(node), sources)
    wrong = functools.reduce(np.logical_or, [s.taint | s.extra for s in marks])
    taint = np.broadcast_to(wrong.any(axis=node.attrs["axis"], keepdims=True), shape_of(node))
    return sound(unlike(node, other)._replace(taint=taint, real=real))


def sort_rule(numbers: bool, node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark a sort: extra elements go to the end where they are known to be last, so that the others are as unpadded."""
    (x,) = sources
    axis = node.attrs["axis"]
    last = x.ignored(float("-inf" if node.attrs["descending"] else "inf")).all()
    numbered = numbers and not is_first(x.real[axis])
    if x.value.dtype.kind != "f" or not last or numbered:
        return along_rule(node, other, sources)
    real = (*x.real[:axis], np.sort(x.real[axis])[::-1], *x.real[axis + 1 :])
    mark = unknown_mark(shape_of(node), shape_of(other), node.spec.dtype)._replace(real=real)
    ends = np.unique(x.value[x.extra])
    is_single = not numbers and len(ends) == 1
    return decide_mark(sound(mark), mark.extra, ends[0]) if is_single else sound(mark)


def running_rule(identity: float, node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    """Mark a running reduction, which ignores elements that are the identity."""
    (x,) = sources
    axis = node.attrs["axis"]
    taint = np.logical_or.accumulate(~x.ignored(identity), axis=axis)
    certain = np.logical_and.accumulate(x.certain, axis=axis)
    return sound(Mark(taint, certain, node.op.kernel(x.value, **node.attrs), x.real))
