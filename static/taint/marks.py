"""What is said of the elements of a value, and how marks are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphs.ir import Node

Bools = npt.NDArray[np.bool_]


class Mark(NamedTuple):
    """For each element: whether padding may reach it, whether it is known, its value then, and whether it is extra.

    `upper` is what no element is above, where that is known.
    """

    taint: Bools
    known: Bools
    value: npt.NDArray[Any]
    extra: Bools
    upper: float | None = None

    def at(self, key: Any) -> Mark:
        """Some of its elements."""
        taint, certain, value, extra = (np.asarray(part[key]) for part in self[:4])
        return Mark(taint, certain, value, extra, self.upper)

    def ignored(self, identity: float) -> Bools:
        """Where an element adds nothing to an op with this identity, or is what the unpadded function has there too."""
        same = self.value == identity if np.isfinite(identity) else self.extreme & (self.value * identity > 0)
        return ~self.taint & ~(self.extra & ~(self.known & same))

    @property
    def extreme(self) -> Bools:
        """Where it is known to be infinite, or as large as numbers get: what masks put before a maximum."""
        if self.value.dtype.kind != "f":
            return np.zeros(self.value.shape, bool)
        return np.asarray(self.known & (abs(self.value) >= np.finfo(self.value.dtype).max))

    @property
    def nonzero(self) -> Bools:
        """Where it is not known to be 0."""
        return ~self.known | (self.value != 0)


Marks = Any  # a Mark, or a tuple of Marks for a node that computes several tensors
Rule = Callable[[Node, Sequence[Any]], Marks]


def unmarked(shape: Sequence[int], dtype: Any, *, taint: bool = False) -> Mark:
    """Elements of which nothing is known."""
    tainted, nowhere = (np.broadcast_to(np.asarray(flag), shape) for flag in (taint, False))
    return Mark(tainted, nowhere, np.broadcast_to(np.zeros((), dtype), shape), nowhere)


def known(value: npt.NDArray[Any]) -> Mark:
    """Elements that are these numbers in every call."""
    return Mark(np.zeros(value.shape, bool), np.ones(value.shape, bool), value, np.zeros(value.shape, bool))


def padded(shape: Sequence[Any], dtype: Any, true: Sequence[Any]) -> Mark:
    """An argument of which the elements beyond the true sizes are padding."""
    outside = np.ones(tuple(shape), bool)
    outside[tuple(slice(size) for size in true)] = False
    zeros = np.zeros(tuple(shape), dtype)
    nothing = np.zeros(tuple(shape), bool)
    if np.dtype(dtype) == np.bool_:
        return Mark(nothing, outside, zeros, outside)
    return Mark(outside, nothing, zeros, outside)


def anything(node: Node, sources: Sequence[Any]) -> Marks:
    """An op of which nothing is assumed: every result depends on all of every operand."""
    taint = any((mark.taint | mark.extra).any() for source in sources for mark in flat(source))
    specs = getattr(node.spec, "items", None)
    if specs is None:
        return unmarked(shape_of(node), node.spec.dtype, taint=taint)
    return tuple(unmarked(tuple(map(int, s.shape)), s.dtype, taint=taint) for s in specs)


def flat(marks: Marks) -> list[Mark]:
    """The marks of all the tensors of a node."""
    return [marks] if isinstance(marks, Mark) else [one for part in marks for one in flat(part)]


def shape_of(node: Node) -> tuple[int, ...]:
    """The sizes of a value, which are numbers."""
    return tuple(map(int, node.spec.shape))


def sound(mark: Mark) -> Mark:
    """What is extra has nothing it could be equal to, and so is tainted unless it is known."""
    return mark._replace(taint=(mark.taint & ~mark.known) | (mark.extra & ~mark.known))


def decided(mark: Mark, where: Bools, value: Any) -> Mark:
    """The same, but known to be `value` where something has decided so."""
    if not where.any():
        return mark
    values = np.where(where, value, mark.value).astype(mark.value.dtype)
    return mark._replace(taint=mark.taint & ~where, known=mark.known | where, value=values)
