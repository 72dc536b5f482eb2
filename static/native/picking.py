"""Elements picked by arrays of positions, and the gradients of picking, as loops over positions.

Inside these loops are rows of elements. A position is checked before it is used. One outside the axis counts as 0, so
that nothing outside an array is read or written; the kernel writes to the context of the step, and the step raises the
error (`Refusals`). Additions are made in the order of the positions, as NumPy's kernels make them, which gives the same
bits.

`Picking` and `Flattening` are the recipes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from graphs.ir import Node
from static.native import functions
from static.native.flow import Work
from static.native.ir import (
    COUNTER,
    LANES,
    Access,
    Index,
    LoopBuilder,
    LoopKernel,
    Parameter,
    Type,
    Value,
    cast,
    test,
)
from static.native.placement import ArrayLayout, Extent, LaidArray, broadcast, runs
from static.native.target import Target

Way = Literal["take", "add", "put"]
WIDE = LANES // 2  # positions that are flattened side by side: int64 takes twice the registers of float32


def is_flattened(node: Node) -> bool:
    """Whether an op combines positions along several axes that int64 can hold."""
    return all(_is_position(source.spec.dtype) for source in node.inputs)


def is_picked(node: Node, *, adds: bool = False) -> bool:
    """Whether int64 can hold the positions, and the elements can be copied, or added where the op `adds`."""
    first, positions, *others = (source.spec.dtype for source in node.inputs)
    dtype = node.spec.dtype
    kinds = functions.REALS if adds else functions.ANY
    is_known = dtype.kind in kinds and dtype.itemsize in functions.WIDTHS
    return is_known and {first, *others} == {dtype} and _is_position(positions)


def _is_position(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize in functions.WIDTHS and dtype != functions.LONGEST


class Picking(NamedTuple):
    """A recipe: for each element of a space, the element at its position along an axis of `size`, `step` apart.

    `way` is "take" (from the picked array to the values), or "add" or "put" (from the values to the picked array). The
    layouts are over the space.
    """

    way: Way
    sizes: tuple[int, ...]
    size: int
    step: int
    picked: ArrayLayout
    positions: ArrayLayout
    values: ArrayLayout

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return 2 * math.prod(self.sizes)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read and written: picked array, positions, values, and the words of the context."""
        picked = (*self.sizes, self.size), (*self.picked.strides, self.step)
        return [
            Extent.of(self.picked.dtype, *picked, is_written=self.way != "take"),
            Extent.of(self.positions.dtype, self.sizes, self.positions.strides),
            Extent.of(self.values.dtype, self.sizes, self.values.strides, is_written=self.way == "take"),
            *_refusing(self.refused),
        ]

    @property
    def refused(self) -> tuple[int, ...]:
        """The sizes of the axes that positions may be outside of."""
        return (self.size,)

    @property
    def depth(self) -> int:
        """The number of axes along which positions vary; along the others a position is the same."""
        return max((axis + 1 for axis, stride in enumerate(self.positions.strides) if stride), default=0)

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return no scratch buffers."""
        del target
        return []

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the picked array, positions, values, and the words of the context."""
        del target  # the same on every machine
        b = LoopBuilder([self.picked.dtype, self.positions.dtype, self.values.dtype, *[COUNTER.dtype] * 2])
        picked, positions, values, *refusal = b.parameters

        def turn(counters: Sequence[Index], refused: Sequence[Value]) -> list[Value]:
            place, is_outside = _check_position(
                b, b.load(_access(b, positions, self.positions, counters, 1), 1), self.size
            )
            if self.size:
                self._row(b, picked, values, place, counters)
            return [b.op("or", refused[0], is_outside)]

        refused = _carry_loops(b, self.sizes[: self.depth], turn, [b.constant(False, Type("b1", 1))])
        _refuse(b, refused, *refusal)
        return b.kernel()

    def _row(
        self, b: LoopBuilder, picked: Parameter, values: Parameter, place: Value, counters: Sequence[Index]
    ) -> None:
        """Write the loops over the elements that share one position."""
        rest, there = self.sizes[self.depth :], [(place, self.step)]

        def move(at: Sequence[Index], active: int, lanes: int) -> None:
            self._move(
                b,
                _access(b, picked, self.picked, at, active, there),
                _access(b, values, self.values, at, active),
                lanes,
            )

        def inner(at: Sequence[Index]) -> None:
            b.vectors(rest[-1], lambda i, active: move((*counters, *at, i), active, LANES))

        if math.prod(rest) == 1:
            move(counters, 1, 1)
        else:
            b.nest(rest[:-1], inner)

    def _move(self, b: LoopBuilder, picked: Access, value: Access, lanes: int) -> None:
        if self.way == "take":
            b.store(value, b.load(picked, lanes))
        elif self.way == "put":
            b.store(picked, b.load(value, lanes))
        else:
            b.store(picked, b.op("add", b.load(picked, lanes), b.load(value, lanes)))


class Flattening(NamedTuple):
    """A recipe: for each element of a space the row-major index of its positions along several axes."""

    sizes: tuple[int, ...]
    refused: tuple[int, ...]
    positions: tuple[ArrayLayout, ...]
    out: ArrayLayout

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return 2 * math.prod(self.sizes) * len(self.positions)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of positions, and written of the result and the context."""
        read = [Extent.of(array.dtype, self.sizes, array.strides) for array in self.positions]
        written = Extent.of(self.out.dtype, self.sizes, self.out.strides, is_written=True)
        return [*read, written, *_refusing(self.refused)]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return no scratch buffers."""
        del target
        return []

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are positions, the result, and the words of the context."""
        del target  # the same on every machine
        b = LoopBuilder(
            [*(array.dtype for array in (*self.positions, self.out)), *[COUNTER.dtype] * (1 + len(self.refused))]
        )
        count = len(self.positions)
        positions, (out, *refusal) = b.parameters[:count], b.parameters[count:]
        whole, truth = Type(COUNTER.dtype, WIDE), Type("b1", WIDE)

        def vector(at: Sequence[Index], active: int, refused: Sequence[Value]) -> list[Value]:
            flat: Value = b.constant(0, whole)
            following = []
            for base, array, size, before in zip(positions, self.positions, self.refused, refused, strict=True):
                place, is_outside = _check_position(b, b.load(_access(b, base, array, at, active), WIDE), size)
                following.append(b.op("or", before, is_outside))
                flat = b.op("add", b.op("mul", flat, b.constant(size, whole)), place)
            b.store(_access(b, out, self.out, at, active), flat)
            return following

        def row(counters: Sequence[Index], refused: Sequence[Value]) -> Sequence[Value]:
            size = self.sizes[-1]
            full = size // WIDE * WIDE
            refused = b.loop(full, WIDE, refused, lambda i, carried: vector((*counters, i), WIDE, carried))
            return vector((*counters, full), size - full, refused) if size > full else refused

        refused = _carry_loops(b, self.sizes[:-1], row, [b.constant(False, truth)] * count)
        _refuse(b, [b.fold("or", outside) for outside in refused], *refusal)
        return b.kernel()


def _access(
    b: LoopBuilder, base: Parameter, array: ArrayLayout, counters: Sequence[Index], active: int,
    more: Sequence[tuple[Index, int]] = (),
) -> Access:  # fmt: skip
    """Return the access of elements along the last axis, at these counters of the first axes."""
    terms = [*zip(counters, array.strides, strict=False), *more]
    return b.access(base, terms, array.strides[-1] if active > 1 else 1, active)


Turn = Callable[[Sequence[Index], Sequence[Value]], Sequence[Value]]


def _carry_loops(
    b: LoopBuilder, sizes: Sequence[int], turn: Turn, inits: Sequence[Value], counters: Sequence[Index] = ()
) -> Sequence[Value]:
    """Write nested loops that carry values; return the values after them."""
    if not sizes:
        return turn(counters, inits)
    return b.loop(sizes[0], 1, inits, lambda i, carried: _carry_loops(b, sizes[1:], turn, carried, (*counters, i)))


def _check_position(b: LoopBuilder, position: Value, size: int) -> tuple[Value, Value]:
    """Return a position counted from the front (0 for one outside the axis), and whether it is outside."""
    whole = Type(COUNTER.dtype, position.type.lanes)
    place, zero, count = cast(b, position, whole.dtype), b.constant(0, whole), b.constant(size, whole)
    place = b.op("select", test(b, "lt", place, zero), b.op("add", place, count), place, type=whole)
    is_outside = b.op("or", test(b, "lt", place, zero), test(b, "ge", place, count))
    return b.op("select", is_outside, zero, place, type=whole), is_outside


def _refusing(sizes: Sequence[int]) -> list[Extent]:
    """Return the extents of the two context words that a kernel writes to, and of the error number of each axis."""
    return [Extent.of(COUNTER.dtype, (2,), (1,), is_written=True)] + [Extent.of(COUNTER.dtype, (), ())] * len(sizes)


def _refuse(b: LoopBuilder, refused: Sequence[Value], words: Parameter, *numbers: Parameter) -> None:
    """Store the error number of the first axis that has a position outside, unless an earlier kernel stored one.

    Where all is well the number goes to the first word, which nobody reads.
    """
    for is_refused, number in zip(refused, numbers, strict=True):
        earlier = b.load(b.access(words, [], 1, 1, 1), 1)
        is_first = test(b, "eq", earlier, b.constant(0, COUNTER))
        said = b.op("select", is_first, b.load(b.access(number, [], 1, 1), 1), earlier, type=COUNTER)
        b.store(b.access(words, [(cast(b, is_refused, COUNTER.dtype), 1)], 1, 1), said)


def pick_recipe(way: Way, operands: Sequence[LaidArray], out: LaidArray, axis: int, *, is_along: bool = False) -> Work:
    """Return the work of an op that picks along an axis; an array that is added or written to is filled before."""
    whole, positions = operands[0] if way == "take" else out, operands[1]
    values = out if way == "take" else operands[0 if way == "add" else 2]
    before, after = whole.steps[:axis], whole.steps[axis + 1 :]
    indexed = len(values.shape) - len(before) - len(after)
    strides = [
        (*before, *[0] * indexed, *after),
        positions.steps if is_along else (*[0] * len(before), *positions.steps, *[0] * len(after)),
        values.steps,
    ]
    axes, _ = runs(values.shape, None, strides)
    recipe = Picking(
        way,
        tuple(math.prod(values.shape[a] for a in run) for run in axes),
        whole.shape[axis],
        whole.steps[axis],
        *_layouts((whole, positions, values), strides, axes),
    )
    return [(recipe, [whole.place, positions.place, values.place])] if math.prod(positions.shape) else []


def flatten_recipe(operands: Sequence[LaidArray], out: LaidArray, sizes: tuple[int, ...]) -> Work:
    """Return the work that computes row-major indices."""
    arrays = (*operands, out)
    strides = [broadcast(laid, out.shape) for laid in arrays]
    axes, _ = runs(out.shape, None, strides)
    *positions, result = _layouts(arrays, strides, axes)
    recipe = Flattening(tuple(math.prod(out.shape[a] for a in run) for run in axes), sizes, tuple(positions), result)
    return [(recipe, [laid.place for laid in arrays])]


def _layouts(
    arrays: Sequence[LaidArray], strides: Sequence[Sequence[int]], axes: Sequence[Sequence[int]]
) -> list[ArrayLayout]:
    """Return the layout of each array over runs of axes."""
    return [
        ArrayLayout(functions.dtype_of(laid.dtype), tuple(along[run[-1]] if run else 0 for run in axes))
        for laid, along in zip(arrays, strides, strict=True)
    ]
