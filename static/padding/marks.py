"""Marks: facts about the elements of a padded value, compared with the value that the unpadded function has there.

Read `Mark` first. The functions after it make marks and change them; rules of ops are in `static/padding/rules.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphs.dims import Size
from graphs.ir import Node

Bools = npt.NDArray[np.bool_]
Real = tuple[Bools, ...]


class Mark(NamedTuple):
    """Facts about each element of a padded value.

    `real` tells for each axis which places the unpadded value has too: it is the padded value at these, in this order.
    `taint` is set for a real element that may differ from the unpadded one, and for an element that is not real unless
    it is certain. `certain` elements are `value` in every padded call. `upper` is a bound that no element is above,
    where one is known. `same` numbers the element of a loop's state that an element is a copy of, or is -1.
    """

    taint: Bools
    certain: Bools
    value: npt.NDArray[Any]
    real: Real
    upper: float | None = None
    same: npt.NDArray[np.int64] | None = None

    @property
    def extra(self) -> Bools:
        """The elements that the unpadded value does not have, as bools."""
        if _is_all(self.real):
            return np.broadcast_to(np.False_, self.taint.shape)
        return np.asarray(~functools.reduce(np.logical_and.outer, self.real))

    @property
    def wrong(self) -> Bools:
        """The real elements that may differ from those of the unpadded value, as bools."""
        return self.taint & ~self.extra

    @property
    def copies(self) -> npt.NDArray[np.int64]:
        """`same` as an array with a number for each element."""
        return np.broadcast_to(np.int64(-1), self.taint.shape) if self.same is None else self.same

    @property
    def extreme(self) -> Bools:
        """The elements that are surely infinite or the largest float, as masks put them before a maximum."""
        if self.value.dtype.kind != "f":
            return np.zeros(self.value.shape, bool)
        return np.asarray(self.certain & ~self.taint & (abs(self.value) >= np.finfo(self.value.dtype).max))

    @property
    def nonzero(self) -> Bools:
        """The elements that are not surely 0, padded and unpadded."""
        return ~self.certain | self.taint | (self.value != 0)

    def at(self, place: int) -> Mark:
        """Return the mark of one row."""
        parts = [None if part is None else np.asarray(part[place]) for part in (*self[:3], self.same)]
        taint, certain, value, same = parts
        return Mark(taint, certain, value, self.real[1:], self.upper, same)  # type: ignore[arg-type]

    def ignored(self, identity: float) -> Bools:
        """Return where an element adds nothing to an op with this identity, or is equal in the unpadded function."""
        same = self.value == identity if np.isfinite(identity) else self.extreme & (self.value * identity > 0)
        return np.where(self.extra, self.certain & same, ~self.taint)


Marks = Any  # a Mark, or a tuple of Marks for a node that computes several tensors
MarkRule = Callable[
    [Node, Node, Sequence[Any]], Marks
]  # for a node, that of the unpadded graph, and marks of its inputs


def unknown_mark(shape: Sequence[Size], true: Sequence[Size], dtype: Any, *, taint: bool = False) -> Mark:
    """Return the mark of elements of which nothing is known; the first ones, in the true sizes, are real."""
    sizes = tuple(map(int, shape))
    flags, nowhere = (np.broadcast_to(np.asarray(flag), sizes) for flag in (taint, False))
    return sound(Mark(flags, nowhere, np.broadcast_to(np.zeros((), dtype), sizes), first(shape, true)))


def unlike(node: Node, other: Node) -> Mark:
    """Return the mark of a tensor that has nothing to do with its partner in the unpadded graph: all tainted."""
    return unknown_mark(shape_of(node), shape_of(other), node.spec.dtype, taint=True)


def padded_argument(shape: Sequence[Size], dtype: Any, true: Sequence[Size]) -> Mark:
    """Return the mark of an argument padded beyond the true sizes: False in a mask, and anything in numbers."""
    mark = unknown_mark(shape, true, dtype)
    return sound(mark._replace(certain=mark.extra)) if np.dtype(dtype) == np.bool_ else mark


def anything(node: Node, other: Node, sources: Sequence[Marks]) -> Marks:
    """Return the marks of an op of which nothing is assumed: each result depends on every operand and size."""
    taint = any((mark.taint | mark.extra).any() for source in sources for mark in flat(source))
    pairs = list(zip(specs_of(node), specs_of(other), strict=True))
    taint = taint or any(spec != true for spec, true in pairs)
    marks = [unknown_mark(spec.shape, true.shape, spec.dtype, taint=taint) for spec, true in pairs]
    return tuple(marks) if hasattr(node.spec, "items") else marks[0]


def specs_of(node: Node) -> list[Any]:
    """Return the specs of the tensors that a node computes."""
    return list(getattr(node.spec, "items", [node.spec]))


def flat(marks: Marks) -> list[Mark]:
    """Return the marks of all the tensors of a node as a list."""
    return [marks] if isinstance(marks, Mark) else [mark for part in marks for mark in flat(part)]


def each(change: Callable[[Mark], Mark], marks: Marks) -> Marks:
    """Return the marks with `change` applied to each of them."""
    return change(marks) if isinstance(marks, Mark) else tuple([each(change, part) for part in marks])


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the shape of a value, whose sizes are numbers."""
    return tuple(map(int, node.spec.shape))


def first(shape: Sequence[Size], true: Sequence[Size]) -> Real:
    """Return the real places of an array that is padded at the ends of its axes."""
    return tuple([np.arange(int(size)) < int(count) for size, count in zip(shape, true, strict=True)])


def is_known(mark: Mark) -> bool:
    """Whether a value is the same numbers in every call, padded and unpadded."""
    return bool(mark.certain.all() and not mark.wrong.any())


def is_first(real: Bools) -> bool:
    """Whether all real places come before all others."""
    return bool(real[: np.count_nonzero(real)].all())


def number_elements(start: int, like: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return an array of this shape with a number for each element, from `start` on."""
    return np.asarray(np.arange(start, start + like.size).reshape(like.shape))


def cut(array: npt.NDArray[Any], real: Real) -> npt.NDArray[Any]:
    """Return the part of an array that the unpadded function has."""
    return array if _is_all(real) else array[np.ix_(*real)]


def _is_all(real: Real) -> bool:
    return all(bool(axis.all()) for axis in real)


def best_fit(extra: Bools, true: Sequence[int], misfits: Callable[[Real], Bools]) -> tuple[Real, Bools]:
    """Return the real places of a value, and at which of them it may differ from the unpadded one.

    Any choice of as many places as the unpadded value has is allowed, since `misfits` compares for it. Two choices are
    tried: the first places, and the places that are not extra.
    """
    start = first(extra.shape, true)
    wrong = misfits(start)
    if not wrong.any():
        return start, wrong
    axes = range(extra.ndim)
    places = tuple([np.asarray((~extra).any(axis=tuple([a for a in axes if a != axis]))) for axis in axes])
    if tuple(map(np.count_nonzero, places)) != tuple(true):
        return start, wrong
    return min((start, wrong), (places, misfits(places)), key=lambda choice: np.count_nonzero(choice[1]))


def spread(flags: Bools, real: Real, shape: Sequence[int]) -> Bools:
    """Return flags of the unpadded value at its places in the padded one, False elsewhere."""
    result = np.zeros(tuple(shape), bool)
    result[np.ix_(*real) if real else ()] = flags
    return result


def whole(mark: Mark) -> Mark:
    """Return the mark of the value beside itself: all of it is real, and certain elements are not tainted."""
    return mark._replace(taint=mark.taint & ~mark.certain, real=first(mark.taint.shape, mark.taint.shape), same=None)


def sound(mark: Mark) -> Mark:
    """Return the mark with extra elements tainted unless they are certain: they have no partner to be equal to."""
    extra = mark.extra
    return mark._replace(taint=np.where(extra, ~mark.certain, mark.taint)) if extra.any() else mark


def decide_mark(mark: Mark, where: Bools, value: Any) -> Mark:
    """Return the mark with elements certain to be `value` where `where` is set."""
    if not where.any():
        return mark
    values = np.where(where, value, mark.value).astype(mark.value.dtype)
    return mark._replace(taint=mark.taint & ~where, certain=mark.certain | where, value=values)


def line_up(shape: Sequence[int], sources: Sequence[Mark]) -> tuple[Real, list[Mark]]:
    """Return the real places of a result of operands that broadcast, and the operands' marks.

    An operand with other real places meets other elements than in the unpadded function. It counts as one of which
    nothing is known.
    """
    axes = [
        next(mark.real[axis] for mark in sources if -axis <= len(mark.real) and len(mark.real[axis]) == size)
        for axis, size in zip(range(-len(shape), 0), shape, strict=True)
    ]
    return tuple(axes), [mark if _fits(mark, axes) else _lost_mark(mark, axes) for mark in sources]


def _expected_real(mark: Mark, axes: Sequence[Bools]) -> Real:
    of_mark = axes[len(axes) - len(mark.real) :]
    pairs = zip(mark.real, of_mark, strict=True)
    return tuple([axis if len(own) == len(axis) else np.ones(1, bool) for own, axis in pairs])


def _fits(mark: Mark, axes: Sequence[Bools]) -> bool:
    return all(map(np.array_equal, mark.real, _expected_real(mark, axes)))


def _lost_mark(mark: Mark, axes: Sequence[Bools]) -> Mark:
    everywhere = np.ones(mark.taint.shape, bool)
    return Mark(everywhere, ~everywhere, mark.value, _expected_real(mark, axes))


Kernel = Callable[..., Any]
