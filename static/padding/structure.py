"""Ops that move, add up, sort and pick elements: which of the results each element reaches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphs.ir import Node
from graphs.op import Op
from graphs.ops import linalg, movement, pooling, reductions, running, scans, slicing, sorting
from graphs.ops.convolution import convolution, convolution_input, convolution_weight
from static.padding.elementwise import lined_up
from static.padding.marks import (
    Bools,
    Mark,
    MarkRule,
    Real,
    best_fit,
    cut,
    decided,
    is_first,
    shape_of,
    sound,
    spread,
    unlike,
    unmarked,
)

Kernel = Callable[..., Any]


# Moved ------------------------------------------------------------------------------------------------------------


def moved(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """An op that puts elements where its attributes say, and known ones between them."""
    filled = [{**version.attrs, "value": 0} if "value" in version.attrs else version.attrs for version in (node, other)]
    kernels = [functools.partial(node.op.kernel, **attrs) for attrs in filled]
    fill = float(node.attrs.get("value", 0))
    taint = fill != float(other.attrs.get("value", 0))
    mark = relocated(node, kernels, sources, fill)
    inside = len(sources) == 1 and node.op not in (slicing.place, movement.pad)
    mark = mark._replace(upper=sources[0].upper if inside else None)
    return unlike(node, other) if taint else mark


def relocated(node: Node, kernels: Sequence[Kernel], sources: Sequence[Mark], fill: float = 0) -> Mark:
    """Each element is numbered, and both kernels tell where it goes; the number 0 is that of what is filled in."""
    ends = np.cumsum([1, *(s.taint.size for s in sources)])
    numbers = [np.arange(at, at + s.taint.size).reshape(s.taint.shape) for at, s in zip(ends, sources, strict=False)]
    placed = np.asarray(kernels[0](*numbers))
    expected = np.asarray(kernels[1](*[cut(n, s.real) for n, s in zip(numbers, sources, strict=True)]))
    taint, certain, extra = (
        np.concatenate([[start], *(getattr(s, name).ravel() for s in sources)])
        for start, name in ((False, "taint"), (True, "certain"), (False, "extra"))
    )
    values = np.concatenate([np.array([fill], node.spec.dtype), *(s.value.ravel() for s in sources)], dtype=None)
    copies = np.concatenate([[-1], *(s.copies.ravel() for s in sources)])

    def misfits(real: Real) -> Bools:
        arrived = cut(placed, real)
        sure = certain & ~taint
        return np.asarray(
            (arrived != expected) & ~(sure[arrived] & sure[expected] & (values[arrived] == values[expected]))
        )

    real, misplaced = best_fit(extra[placed], expected.shape, misfits)
    wrong = spread(misplaced | taint[expected], real, placed.shape)
    value = values[placed].astype(node.spec.dtype)
    return sound(Mark(taint[placed] | wrong, certain[placed], value, real, None, copies[placed]))


# Added up ---------------------------------------------------------------------------------------------------------


def _sum(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """A linear op, or a bilinear one."""
    kernels = [functools.partial(version.op.kernel, **_linear(version.attrs)) for version in (node, other)]
    mark = summed(node, kernels, sources)
    return mark._replace(same=_single(node, sources[0])) if node.op is reductions.sum else mark


def _single(node: Node, x: Mark) -> Any:
    """What a sum is a copy of, in which all but one are known to be 0."""
    if x.same is None:
        return None
    options = {key: node.attrs[key] for key in ("axis", "keepdims")}
    counts = ~(x.certain & (x.value == 0))
    return np.where(counts.sum(**options) == 1, (counts * (x.same + 1)).sum(**options) - 1, -1)


def _linear(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if key != "dtype"}


def summed(node: Node, kernels: Sequence[Kernel], sources: Sequence[Mark]) -> Mark:
    """What is known to be 0 adds nothing, and takes away what it is multiplied with.

    That nothing else differs is seen at one random point, with 0 for what is extra: two functions that are linear in
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
    """What is not 0, what of it does not belong there, and what is not extra."""
    return mark.nonzero, mark.nonzero & ~mark.ignored(0), ~mark.extra


def reduced(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    """A reduction over axes: what is extra must be what it ignores."""
    (x,) = sources
    axes = node.attrs["axis"] if isinstance(node.attrs["axis"], tuple) else (node.attrs["axis"],)
    axis, keep = tuple(range(x.taint.ndim)) if axes == (None,) else axes, bool(node.attrs.get("keepdims"))
    identity = _identity(node, x.value.dtype)
    wrong = x.taint | x.extra if identity is None or not _counts_alike(node, x, axis) else ~x.ignored(identity)
    certain = x.certain.all(axis=axis, keepdims=keep)
    value = node.op.kernel(x.value, **node.attrs) if certain.any() else np.zeros((), node.spec.dtype)
    kept = [[np.ones(1, bool)] * keep if i in axis else [real] for i, real in enumerate(x.real)]
    real = tuple([places for ones in kept for places in ones])
    taint = np.asarray(wrong.any(axis=axis, keepdims=keep))
    return sound(Mark(taint, np.asarray(certain), np.broadcast_to(value, shape_of(node)), real))


def _counts_alike(node: Node, x: Mark, axis: Sequence[int]) -> bool:
    """Whether the op does not number what it reduces, or gives real elements the numbers they have unpadded."""
    if node.op not in (reductions.argmax, reductions.argmin):
        return True
    reals = [real for i, real in enumerate(x.real) if i in axis]
    return not reals or is_first(functools.reduce(np.logical_and.outer, reals).ravel())


def _identity(node: Node, dtype: np.dtype[Any]) -> float | None:
    """What changes nothing in a reduction; None for those that count, such as a mean."""
    if node.op in (reductions.max, reductions.argmax, reductions.min, reductions.argmin):
        largest = float("inf") if dtype.kind == "f" else 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
        least = -largest if dtype.kind == "f" else 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)
        return least if node.op in (reductions.max, reductions.argmax) else largest
    return {reductions.any: 0, reductions.all: 1, reductions.prod: 1}.get(node.op)


def _along(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """An op along one axis, whose results depend on all of it."""
    real, marks = lined_up(shape_of(node), sources)
    wrong = functools.reduce(np.logical_or, [s.taint | s.extra for s in marks])
    taint = np.broadcast_to(wrong.any(axis=node.attrs["axis"], keepdims=True), shape_of(node))
    return sound(unlike(node, other)._replace(taint=taint, real=real))


def _sorted(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """What is extra goes to the end where it is known to be the last of all: the elements before are as unpadded."""
    (x,) = sources
    axis = node.attrs["axis"]
    last = x.ignored(float("-inf" if node.attrs["descending"] else "inf")).all()
    numbered = node.op is sorting.argsort and not is_first(x.real[axis])
    if x.value.dtype.kind != "f" or not last or numbered:
        return _along(node, other, sources)
    real = (*x.real[:axis], np.sort(x.real[axis])[::-1], *x.real[axis + 1 :])
    mark = unmarked(shape_of(node), shape_of(other), node.spec.dtype)._replace(real=real)
    ends = np.unique(x.value[x.extra])
    is_single = node.op is sorting.sort and len(ends) == 1
    return decided(sound(mark), mark.extra, ends[0]) if is_single else sound(mark)


def _running(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    (x,) = sources
    axis = node.attrs["axis"]
    taint = np.logical_or.accumulate(~x.ignored(0 if node.op is scans.cumulative_sum else 1), axis=axis)
    certain = np.logical_and.accumulate(x.certain, axis=axis)
    return sound(Mark(taint, certain, node.op.kernel(x.value, **node.attrs), x.real))


_SUMS = (
    *(reductions.sum, linalg.matmul, convolution, convolution_input, convolution_weight),
    *(pooling.window_sum, pooling.window_spread),
)  # fmt: skip
BY_VALUE: dict[Op, MarkRule] = dict.fromkeys(_SUMS, _sum)
RULES: dict[Op, MarkRule] = {
    **dict.fromkeys((scans.cumulative_sum, scans.cumulative_prod), _running),
    **dict.fromkeys((sorting.sort, sorting.argsort), _sorted),
    **dict.fromkeys((scans.linear_recurrence, running.cumulative_argmax, running.cumulative_argmin), _along),
    running.logcumsumexp: _along,
}
