"""What windows meet, as they are multiplied: elements where they lie, or spread in a copy.

An element that a tap meets lies as far from the first of its window wherever that is. So windows that lie side by side
are a row of a matrix for each tap of each channel, read where they are. Where windows reach beyond the elements, or
begin some elements apart, one example is first *spread*: copied between zeros, with the elements of each residue of the
strides side by side. That copies an element once, and not once a tap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from graphs.ops.windows import Window
from static.backends.native.ir import LANES, Access, Index, LoopBuilder, Parameter, Type
from static.backends.native.laid import row_major

Strides = tuple[int, ...]
Terms = Sequence[tuple[Index, int]]


class Sliding(NamedTuple):
    """Windows along an axis: elements, windows, and how many elements apart these begin.

    `reaches` has an element for each tap: which one it meets in the first window. What lies outside is 0.
    """

    size: int
    places: int
    stride: int
    reaches: tuple[int, ...]


class SpreadAxis(NamedTuple):
    """An axis of the copy: its residues of `split`, the number of the first element of each, and how many there are."""

    size: int
    split: int
    residues: tuple[int, ...]
    low: int
    extent: int

    @classmethod
    def of(cls, axis: Sliding, split: int) -> SpreadAxis:
        """What the windows along an axis meet, with so many residues apart."""
        starts = [reach // split for reach in axis.reaches]
        extent = (axis.places - 1) * (axis.stride // split) + max(starts) - min(starts) + 1
        return cls(axis.size, split, tuple(sorted({reach % split for reach in axis.reaches})), min(starts), extent)

    @property
    def is_inside(self) -> bool:
        """Whether this is a part of the elements as they lie."""
        return self.split == 1 and self.low >= 0 and self.low + self.extent <= self.size

    def inside(self, residue: int) -> range:
        """Which elements of the copy are elements of the source."""
        first = max(0, -((self.low * self.split + residue) // self.split))
        stop = min(self.extent, -(-(self.size - residue) // self.split) - self.low)
        return range(first, max(first, stop))


class Spread(NamedTuple):
    """The channels of an example as their windows meet them: where they lie (`steps` for channel and axes), or copied.

    `split` tells whether elements that are a stride apart lie side by side in a copy.
    """

    windows: tuple[Sliding, ...]
    channels: int
    steps: Strides
    split: bool

    @property
    def axes(self) -> list[SpreadAxis]:
        """The axes of the copy."""
        return [SpreadAxis.of(axis, axis.stride if self.split else 1) for axis in self.windows]

    @property
    def is_copied(self) -> bool:
        """Whether there is a copy: elements are no neighbours, or windows reach beyond them."""
        sizes = [axis.size for axis in self.windows]
        pairs = zip(sizes, self.steps[1:], row_major(sizes), strict=True)
        is_dense = all(size == 1 or step == dense for size, step, dense in pairs)
        return bool(self.channels) and not (is_dense and all(axis.is_inside for axis in self.axes))

    @property
    def extents(self) -> list[int]:
        """The sizes of the axes along which windows move, as they lie."""
        return [axis.extent for axis in self.axes] if self.is_copied else [axis.size for axis in self.windows]

    @property
    def channel(self) -> int:
        """Elements between channels."""
        residues = math.prod(len(axis.residues) for axis in self.axes)
        return residues * math.prod(self.extents) if self.is_copied else self.steps[0]

    @property
    def elements(self) -> int:
        """Elements of the copy."""
        return self.channels * self.channel if self.is_copied else 0

    @property
    def along(self) -> Strides:
        """Elements between windows that are neighbours along each axis."""
        strides = [1 if self.split else axis.stride for axis in self.windows]
        return tuple(s * step for s, step in zip(strides, row_major(self.extents), strict=True))

    def taps(self) -> list[int]:
        """Where each tap of the first window lies in a channel."""
        strides = row_major(self.extents)
        if not self.is_copied:
            by_axis = [[r * s for r in axis.reaches] for axis, s in zip(self.windows, strides, strict=True)]
            return [sum(along) for along in zip(*by_axis, strict=True)]
        axes, whole = self.axes, math.prod(self.extents)
        places = []
        for reaches in zip(*(axis.reaches for axis in self.windows), strict=True):
            number = place = 0
            for axis, reach, stride in zip(axes, reaches, strides, strict=True):
                number = number * len(axis.residues) + axis.residues.index(reach % axis.split)
                place += (reach // axis.split - axis.low) * stride
            places.append(number * whole + place)
        return places

    def clear(self, b: LoopBuilder, copy: Parameter) -> None:
        """Write zeros, which stay where windows reach beyond the elements."""
        if all(len(axis.inside(residue)) == axis.extent for axis in self.axes for residue in axis.residues):
            return
        zero = b.constant(0.0, Type(copy.type.dtype, LANES))
        b.vectors(self.elements, lambda i, active: b.store(b.access(copy, [(i, 1)], 1, active), zero))

    def fill(self, b: LoopBuilder, source: Parameter, at: Terms, copy: Parameter) -> None:
        """Copy the elements of an example, which begins at these terms."""
        axes, strides = self.axes, row_major(self.extents)
        for number, residues in enumerate(itertools.product(*(axis.residues for axis in axes))):
            ranges = [axis.inside(residue) for axis, residue in zip(axes, residues, strict=True)]
            first = [
                (inside.start + axis.low) * axis.split + residue
                for axis, inside, residue in zip(axes, ranges, residues, strict=True)
            ]
            read = sum(i * step for i, step in zip(first, self.steps[1:], strict=True))
            write = sum(inside.start * stride for inside, stride in zip(ranges, strides, strict=True))
            copied(
                b,
                (self.channels, *map(len, ranges)),
                Strided(source, (self.steps[0], *times(self.steps[1:], [axis.split for axis in axes])), read, at),
                Strided(copy, (self.channel, *strides), number * math.prod(self.extents) + write),
            )


class Strided(NamedTuple):
    """An array of a kernel: elements between neighbours along each axis, and where the first lies."""

    base: Parameter
    strides: Strides
    offset: int = 0
    at: Terms = ()

    def access(self, b: LoopBuilder, counters: Sequence[Index], active: int) -> Access:
        """Elements along the last axis."""
        terms = [*self.at, *zip(counters, self.strides, strict=True)]
        return b.access(self.base, terms, self.strides[-1] if active > 1 else 1, active, self.offset)


def copied(b: LoopBuilder, sizes: Sequence[int], source: Strided, target: Strided) -> None:
    """The loops that copy an array of these sizes to another."""

    def row(counters: Sequence[Index]) -> None:
        def vector(i: Index, active: int) -> None:
            b.store(target.access(b, (*counters, i), active), b.load(source.access(b, (*counters, i), active)))

        b.vectors(sizes[-1], vector)

    b.nest(sizes[:-1], row)


def times(left: Sequence[int], right: Sequence[int]) -> Strides:
    """The products of numbers that stand at the same place."""
    return tuple(a * b for a, b in zip(left, right, strict=True))


def sliding(sizes: Sequence[int], counts: Sequence[int], window: Window) -> tuple[Sliding, ...]:
    """The windows of each axis; their taps are those of all axes, in row-major order."""
    reaches = [[tap * dilation - before for tap in range(length)] for length, _, before, _, dilation in window]
    by_axis = zip(*itertools.product(*reaches), strict=True)
    strides = [part[1] for part in window]
    return tuple(Sliding(*numbers) for numbers in zip(sizes, counts, strides, by_axis, strict=True))
