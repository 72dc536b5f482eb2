"""Where an array lies: what recipes are made of, together with what a node computes.

What a group consists of: arrays, and steps over them; and how parts of a reduction become one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.op import Op, RuleTable
from static.native.flow import Location, Work
from static.native.target import NativeError


class LaidArray(NamedTuple):
    """Where an array lies: so many bytes after the start of an argument, or at an address where `which` is -1."""

    which: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def place(self) -> Location:
        """What a call needs to know."""
        return self.which, self.offset

    @property
    def steps(self) -> tuple[int, ...]:
        """Elements between neighbours along each axis; 0 where there is one alone."""
        pairs = zip(self.strides, self.shape, strict=True)
        return tuple(0 if size == 1 else stride // self.dtype.itemsize for stride, size in pairs)

    @property
    def reach(self) -> tuple[int, int]:
        """From where to where its bytes lie, counted as its place is."""
        low, high, _ = Extent.of(f"{self.dtype.kind}{self.dtype.itemsize}", self.shape, self.steps)
        return self.offset + low, self.offset + high

    def with_shape(self, shape: Sequence[int]) -> LaidArray:
        """The same memory, which is in row-major order, in another shape."""
        if math.prod(shape) != math.prod(self.shape):
            raise NativeError(f"native code would read {self.shape} as {tuple(shape)}; use backend='numpy'")
        strides = row_major(shape, self.dtype.itemsize)
        return self._replace(shape=tuple(shape), strides=strides)


class Extent(NamedTuple):
    """The bytes from the place of an array to which a kernel keeps when it reads the array, or writes it."""

    low: int
    high: int
    is_written: bool

    @classmethod
    def of(cls, dtype: str, sizes: Sequence[int], strides: Sequence[int], *, is_written: bool = False) -> Extent:
        """That of an array of these sizes, with so many elements between neighbours along each axis.

        Along an axis where they are the same it has an element at least, since a sum over nothing is written too.
        """
        if any(n == 0 and stride for n, stride in zip(sizes, strides, strict=True)):
            return cls(0, 0, is_written)
        width, reaches = int(dtype[1:]), [max(n - 1, 0) * stride for n, stride in zip(sizes, strides, strict=True)]
        low, high = (sum(reach for reach in reaches if (reach < 0) == is_low) for is_low in (True, False))
        return cls(low * width, (high + 1) * width, is_written)


def check_bounds(work: Work, arrays: Sequence[LaidArray]) -> Work:
    """The work, whose kernels keep to these arrays.

    Their code is made for sizes that the arrays are believed to have. Raises NativeError where they have others, and
    a kernel would read or write beside them.
    """
    reaches = [(laid.which, *laid.reach) for laid in arrays]
    for recipe, places in work:
        for (which, offset), extent in zip(places, recipe.extents, strict=False):  # what refuses has places of its own
            low, high = offset + extent.low, offset + extent.high
            if low < high and not any(which == w and first <= low and high <= last for w, first, last in reaches):
                raise NativeError("native code would leave its arrays; use backend='numpy'")
    return work


def row_major(shape: Sequence[int], each: int = 1) -> tuple[int, ...]:
    """How far neighbours are apart along each axis in row-major order, where an element takes `each`."""
    return tuple(math.prod(shape[axis + 1 :]) * each for axis in range(len(shape)))


def broadcast(laid: LaidArray, space: Sequence[int]) -> tuple[int, ...]:
    """The elements between neighbours along each axis of a space that an array is broadcast to."""
    return (*[0] * (len(space) - len(laid.shape)), *laid.steps)


def runs(space: Sequence[int], split: int | None, arrays: Sequence[Sequence[int]]) -> tuple[list[list[int]], int]:
    """The axes of a space in runs that all arrays, given by their strides, treat as one; and the first run of a row.

    Those from `split` on make a row; without a split the last run is one.
    """
    joined: list[list[int]] = []
    outer = 0
    for axis, size in enumerate(space):
        if size == 1:
            continue
        crosses = bool(joined) and split is not None and joined[-1][-1] < split <= axis
        if joined and not crosses and all(strides[joined[-1][-1]] == strides[axis] * size for strides in arrays):
            joined[-1].append(axis)
        else:
            joined.append([axis])
            outer += split is not None and axis < split
    if len(joined) == outer:
        joined.append([])
    return joined, outer if split is not None else len(joined) - 1


JOINED_BY: RuleTable[str] = RuleTable("native reductions", otherwise="")
"""How two parts of a reduction become one, by the names of `ir.JOINS`; nothing of what is no native reduction."""
JOINED_BY.enter({"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul", "any": "or", "all": "and"})

Argument = tuple[Any, ...]


class ArrayLayout(NamedTuple):
    """An operand or result: its dtype, and how many elements lie between neighbours along each axis."""

    dtype: str
    strides: tuple[int, ...]


class GroupStep(NamedTuple):
    """One op: what it is computed in, where its arguments are, and when it runs.

    It `gives` another dtype where it compares. `args` are ("step", number), ("operand", number) or ("number", dtype,
    bytes). `row` tells whether it gives a number a row. Of a reduction, `over` is "row" or "memory", and `taken` of a
    mean how many numbers it is taken of.
    """

    op: Op
    dtype: str
    gives: str
    args: tuple[Argument, ...]
    stage: int
    row: bool
    over: str = ""
    taken: int | None = None

    @property
    def join(self) -> str:
        """How two parts of a reduction become one."""
        return JOINED_BY[self.op]


def identity(join: str, dtype: str) -> Any:
    """What a reduction starts with: joined with a number it leaves that as it is, but for -0.0 in a sum."""
    if join in ("max", "min"):
        low, high = (-math.inf, math.inf) if dtype[0] == "f" else _range(dtype)
        return low if join == "max" else high
    return {"add": 0, "mul": 1, "or": False, "and": True}[join]


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "b1":
        return 0, 1
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)
