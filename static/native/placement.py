"""The places of arrays in memory, and the parts of recipes: array layouts and steps.

Read `LaidArray` and `Extent` first. `ArrayLayout` and `GroupStep` are the parts of a group's recipe; `JOINED_BY` and
`identity` say how parts of a reduction are joined.
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
    """An array at a place: `offset` bytes into argument number `which`, or an address where that is -1."""

    which: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def place(self) -> Location:
        """The place that a call of a kernel needs: (`which`, `offset`)."""
        return self.which, self.offset

    @property
    def steps(self) -> tuple[int, ...]:
        """The distance of neighbours along each axis in elements; 0 where an axis has size 1."""
        pairs = zip(self.strides, self.shape, strict=True)
        return tuple(0 if size == 1 else stride // self.dtype.itemsize for stride, size in pairs)

    @property
    def reach(self) -> tuple[int, int]:
        """The first byte of the array and the one after its last, counted like its offset."""
        low, high, _ = Extent.of(f"{self.dtype.kind}{self.dtype.itemsize}", self.shape, self.steps)
        return self.offset + low, self.offset + high

    def with_shape(self, shape: Sequence[int]) -> LaidArray:
        """Return the same memory, which is in row-major order, in another shape.

        Raises NativeError for another size.
        """
        if math.prod(shape) != math.prod(self.shape):
            raise NativeError(f"native code would read {self.shape} as {tuple(shape)}; use backend='numpy'")
        strides = row_major(shape, self.dtype.itemsize)
        return self._replace(shape=tuple(shape), strides=strides)


class Extent(NamedTuple):
    """The bytes that a kernel reads or writes of an array, counted from the array's place."""

    low: int
    high: int
    is_written: bool

    @classmethod
    def of(cls, dtype: str, sizes: Sequence[int], strides: Sequence[int], *, is_written: bool = False) -> Extent:
        """Return the extent of an array of these sizes, with strides in elements.

        An axis of stride 0 counts one element at least, since a sum over nothing is written too.
        """
        if any(n == 0 and stride for n, stride in zip(sizes, strides, strict=True)):
            return cls(0, 0, is_written)
        width, reaches = int(dtype[1:]), [max(n - 1, 0) * stride for n, stride in zip(sizes, strides, strict=True)]
        low, high = (sum(reach for reach in reaches if (reach < 0) == is_low) for is_low in (True, False))
        return cls(low * width, (high + 1) * width, is_written)


def check_bounds(work: Work, arrays: Sequence[LaidArray]) -> Work:
    """Return the work; raise NativeError where one of its kernels would leave these arrays.

    A kernel's code is made for sizes that its arrays are believed to have.
    """
    reaches = [(laid.which, *laid.reach) for laid in arrays]
    for recipe, places in work:
        for (which, offset), extent in zip(places, recipe.extents, strict=False):  # what refuses has places of its own
            low, high = offset + extent.low, offset + extent.high
            if low < high and not any(which == w and first <= low and high <= last for w, first, last in reaches):
                raise NativeError("native code would leave its arrays; use backend='numpy'")
    return work


def row_major(shape: Sequence[int], each: int = 1) -> tuple[int, ...]:
    """Return the distance of neighbours along each axis in row-major order, where an element takes `each`."""
    return tuple(math.prod(shape[axis + 1 :]) * each for axis in range(len(shape)))


def broadcast(laid: LaidArray, space: Sequence[int]) -> tuple[int, ...]:
    """Return the distance of neighbours along each axis of a space that an array is broadcast to, in elements."""
    return (*[0] * (len(space) - len(laid.shape)), *laid.steps)


def runs(space: Sequence[int], split: int | None, arrays: Sequence[Sequence[int]]) -> tuple[list[list[int]], int]:
    """Return the axes of a space in runs that all arrays treat as one axis, and the number of a row's first run.

    `arrays` has the strides of each array. Axes from `split` on make a row; without a split the last run is the row.
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
"""How two parts of a reduction are joined, by the names of `ir.JOINS`; "" for an op that is no native reduction."""
JOINED_BY.enter({"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul", "any": "or", "all": "and"})

Argument = tuple[Any, ...]


class ArrayLayout(NamedTuple):
    """The layout of an operand or result: its dtype, and the distance of neighbours along each axis in elements."""

    dtype: str
    strides: tuple[int, ...]


class GroupStep(NamedTuple):
    """One op of a group: the dtype it is computed in, the places of its arguments, and its stage.

    `gives` is the dtype of its result, which differs for comparisons. `args` are ("step", number), ("operand", number)
    or ("number", dtype, bytes). `row` tells whether the result is one number per row. For a reduction, `over` is "row"
    or "memory", and for a mean `taken` is the count of its numbers.
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
    """Return the start of a reduction: joined with a number it leaves the number as it is, except -0.0 in a sum."""
    if join in ("max", "min"):
        low, high = (-math.inf, math.inf) if dtype[0] == "f" else _range(dtype)
        return low if join == "max" else high
    return {"add": 0, "mul": 1, "or": False, "and": True}[join]


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "b1":
        return 0, 1
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)
