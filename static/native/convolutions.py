"""Convolution and its gradient in the elements, as products of which one operand is read through its windows.

The windows are never unfolded: the product has a term for each tap, which begins where the tap meets its first element.

    convolution          weight [features, channels and taps] times windows [channels and taps, places]
    convolution_input    the same with cotangents, for each residue of the strides of the elements

`Convolution` is the recipe. `WindowSpread`, below it, says how the windows' elements lie. The distance from a window's
first element to the element of a tap is the same for all windows. So windows that lie side by side are, for each tap of
each channel, a row of a matrix, read in place. Where windows reach beyond the elements, or begin some elements apart,
one example is first *spread*: copied between zeros, with the elements of each residue of the strides side by side. That
copies an element once, and not once a tap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphs.ops.windows import Window
from static.native import functions
from static.native.flow import Work
from static.native.ir import LANES, Access, Index, LoopBuilder, LoopKernel, Parameter, Type
from static.native.placement import Extent, LaidArray, row_major
from static.native.products import Matrix, Product, ProductLoops, Term
from static.native.target import Target


class Convolution(NamedTuple):
    """A recipe: each row of weights (channels and taps) times every window of each example, group by group.

    `taps` has for each tap the distance of its weight from the weight of its channel. `weight` has strides for group,
    row and channel, `source` for example, group, channel and axes, and `out` for example, group, row and axes.
    """

    dtype: str
    batch: tuple[int, int]
    rows: int
    channels: int
    windows: tuple[Sliding, ...]
    taps: tuple[int, ...]
    weight: Strides
    source: Strides
    out: Strides

    @property
    def operations(self) -> int:
        """About how many vector operations a call takes."""
        return self._product.operations

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of weights and elements, and written of the result."""
        sizes = [axis.size for axis in self.windows]
        taps = (max(0, *self.taps) + 1, 1 - min(0, *self.taps))  # where the farthest lie on either side
        return [
            Extent.of(self.dtype, (self.batch[1], self.rows, self.channels, *taps), (*self.weight, 1, -1)),
            Extent.of(self.dtype, (*self.batch, self.channels, *sizes), self.source),
            Extent.of(self.dtype, (*self.batch, self.rows, *self._counts), self.out, is_written=True),
        ]

    @property
    def spread(self) -> WindowSpread:
        """How the elements of an example lie when they are multiplied."""
        return WindowSpread(self.windows, self.channels, self.source[2:], split=True)

    @property
    def _counts(self) -> Strides:
        return tuple(axis.places for axis in self.windows)

    @property
    def _flat(self) -> int:
        """The columns of the product if rows of windows follow each other as their elements do, gaps included."""
        return sum((n - 1) * step for n, step in zip(self._counts, self.spread.along, strict=True)) + 1

    @property
    def _by_row(self) -> bool:
        """Whether each row of windows is a product: its vectors are as full as those that run over all windows."""
        lanes = math.prod(self._counts[:-1]) * -(-self._counts[-1] // LANES) * LANES
        return self.out[-1] == 1 and self._flat != math.prod(self._counts) and lanes <= self._flat

    @property
    def _is_direct(self) -> bool:
        """Whether the product writes the result in its final place."""
        is_dense = self.out[3:] == row_major(self._counts)
        return self._by_row or (is_dense and self._flat == math.prod(self._counts))

    @property
    def _product(self) -> Product:
        """The product; its batch includes the rows of windows where each row is a product."""
        spread, by_row = self.spread, self._by_row
        inner = (self._counts[:-1], spread.along[:-1], self.out[3:-1]) if by_row else ((), (), ())
        beside = (0, 0) if spread.is_copied else self.source[:2]
        out = Matrix((*self.out[:2], *inner[2]), self.out[2], 1)
        if not self._is_direct:
            out = Matrix((0, 0), self._flat, 1)
        return Product(
            self.dtype,
            (*self.batch, *inner[0]),
            self.rows,
            self.channels,
            self._counts[-1] if by_row else self._flat,
            Matrix((0, self.weight[0], *[0] * len(inner[0])), *self.weight[1:]),
            Matrix((*beside, *inner[1]), spread.channel, 1),
            out,
            tuple(map(Term, self.taps, spread.taps())),
        )

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return the dtype and elements of each buffer: a spread example, its result, and a panel of the product."""
        return [*self._own_scratch, *self._product.scratch(target)]

    @property
    def _own_scratch(self) -> list[tuple[str, int]]:
        wanted = [self.spread.elements, 0 if self._is_direct else self.rows * self._flat]
        return [(self.dtype, elements) for elements in wanted if elements]

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the weight, the source, the result, and scratch."""
        b = LoopBuilder([self.dtype] * (3 + len(self.scratch(target))))
        weight, source, out, *room = b.parameters
        spread, own = self.spread, iter(room)
        copy = next(own) if spread.is_copied else source
        flat = out if self._is_direct else next(own)
        product = ProductLoops(self._product, target, b, [weight, copy, flat, *own])
        if spread.is_copied:
            spread.clear(b, copy)

        def example(counters: Sequence[Index]) -> None:
            if spread.is_copied:
                spread.fill(b, source, list(zip(counters, self.source, strict=False)), copy)
            product.run(counters)
            if not self._is_direct:
                at = list(zip(counters, self.out, strict=False))
                laid = StridedArray(flat, (self._flat, *spread.along))
                copy_loops(b, (self.rows, *self._counts), laid, StridedArray(out, self.out[2:], 0, at))

        b.nest(self.batch, example)
        return b.kernel()


def convolution(x: LaidArray, weight: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    """Return the work of x [N, C, *sizes] and weight [F, C / groups, *window] -> [N, F, *counts]."""
    sizes, counts, dense = x.shape[2:], out.shape[2:], row_major(out.shape)
    windows = sliding(sizes, counts, window)
    rows, channels = weight.shape[0] // groups, weight.shape[1]
    recipe = Convolution(
        functions.dtype_of(out.dtype),
        (x.shape[0], groups),
        rows,
        channels,
        windows,
        tuple(_taps([range(part[0]) for part in window], weight.steps[2:])),
        (rows * weight.steps[0], *weight.steps[:2]),
        (x.steps[0], channels * x.steps[1], *x.steps[1:]),
        (dense[0], rows * dense[1], *dense[1:]),
    )
    return [(recipe, [weight.place, x.place, out.place])] if math.prod(out.shape) else []


def _taps(chosen: Sequence[Sequence[int]], steps: Sequence[int]) -> Iterator[int]:
    """Yield the offsets of the weights of these taps of each axis, in row-major order."""
    return (sum(times(tap, steps)) for tap in itertools.product(*chosen))


class _Residue(NamedTuple):
    """The elements of an axis with one residue of the stride: the first, their windows of cotangents, their taps."""

    first: int
    windows: Sliding
    taps: tuple[int, ...]


def _residues(size: int, count: int, part: tuple[int, int, int, int, int]) -> list[_Residue]:
    """Return the residues of an axis: tap t of window p meets the padded element p * stride + t * dilation."""
    length, stride, before, _, dilation = part
    residues = []
    for first in range(min(stride, size)):
        taps = tuple(t for t in range(length) if (first + before - t * dilation) % stride == 0)
        reaches = tuple((first + before - t * dilation) // stride for t in taps)
        residues.append(_Residue(first, Sliding(count, len(range(first, size, stride)), 1, reaches), taps))
    return residues


def convolution_gradient(g: LaidArray, weight: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    """Return the work of g [N, F, *counts] and weight -> [N, C, *sizes].

    It is a convolution of g for each residue of the strides. It writes every element that some tap meets, and no other.
    """
    dense, strides = row_major(out.shape), [part[1] for part in window]
    channels, features = weight.shape[1], weight.shape[0] // groups
    axes = [_residues(*sizes) for sizes in zip(out.shape[2:], g.shape[2:], window, strict=True)]
    work: Work = []
    for residues in itertools.product(*axes):
        if not all(residue.taps for residue in residues):
            continue
        firsts, windows, taps = zip(*residues, strict=True)
        by_axis = zip(*itertools.product(*(axis.reaches for axis in windows)), strict=True)
        recipe = Convolution(
            functions.dtype_of(out.dtype),
            (g.shape[0], groups),
            channels,
            features,
            tuple(axis._replace(reaches=reaches) for axis, reaches in zip(windows, by_axis, strict=True)),
            tuple(_taps(taps, weight.steps[2:])),
            (features * weight.steps[0], weight.steps[1], weight.steps[0]),
            (g.steps[0], features * g.steps[1], *g.steps[1:]),
            (dense[0], channels * dense[1], dense[1], *times(dense[2:], strides)),
        )
        offset = sum(times(firsts, dense[2:])) * out.dtype.itemsize
        work.append((recipe, [weight.place, g.place, (out.which, out.offset + offset)]))
    return work if math.prod(out.shape) else []


def is_covered(window: Window) -> bool:
    """Whether some tap meets every element, wherever it lies between two strides."""
    return all({t * part[4] % part[1] for t in range(part[0])} == set(range(part[1])) for part in window)


Strides = tuple[int, ...]
Terms = Sequence[tuple[Index, int]]


class Sliding(NamedTuple):
    """Windows along an axis: the number of elements, the number of windows, and the stride between windows.

    `reaches` has for each tap the element that it meets in the first window. Elements outside the axis are 0.
    """

    size: int
    places: int
    stride: int
    reaches: tuple[int, ...]


class SpreadAxis(NamedTuple):
    """An axis of the spread copy: its residues of `split`, their first element, and how many elements each has."""

    size: int
    split: int
    residues: tuple[int, ...]
    low: int
    extent: int

    @classmethod
    def of(cls, axis: Sliding, split: int) -> SpreadAxis:
        """Return the axis that the windows meet, with `split` residues separated."""
        starts = [reach // split for reach in axis.reaches]
        extent = (axis.places - 1) * (axis.stride // split) + max(starts) - min(starts) + 1
        return cls(axis.size, split, tuple(sorted({reach % split for reach in axis.reaches})), min(starts), extent)

    @property
    def is_inside(self) -> bool:
        """Whether the axis is a part of the elements as they lie, so that no copy is needed."""
        return self.split == 1 and self.low >= 0 and self.low + self.extent <= self.size

    def inside(self, residue: int) -> range:
        """Return which elements of the copy, for a residue, are elements of the source."""
        first = max(0, -((self.low * self.split + residue) // self.split))
        stop = min(self.extent, -(-(self.size - residue) // self.split) - self.low)
        return range(first, max(first, stop))


class WindowSpread(NamedTuple):
    """The channels of an example as their windows read them: in place (`steps` for channel and axes), or copied.

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
        """Whether there is a copy: elements are not neighbours in memory, or windows reach beyond them."""
        sizes = [axis.size for axis in self.windows]
        pairs = zip(sizes, self.steps[1:], row_major(sizes), strict=True)
        is_dense = all(size == 1 or step == dense for size, step, dense in pairs)
        return bool(self.channels) and not (is_dense and all(axis.is_inside for axis in self.axes))

    @property
    def extents(self) -> list[int]:
        """The sizes of the axes along which windows move, in the copy or in place."""
        return [axis.extent for axis in self.axes] if self.is_copied else [axis.size for axis in self.windows]

    @property
    def channel(self) -> int:
        """The distance between channels, in elements."""
        residues = math.prod(len(axis.residues) for axis in self.axes)
        return residues * math.prod(self.extents) if self.is_copied else self.steps[0]

    @property
    def elements(self) -> int:
        """The number of elements of the copy, 0 where there is none."""
        return self.channels * self.channel if self.is_copied else 0

    @property
    def along(self) -> Strides:
        """The distance between neighbouring windows along each axis, in elements."""
        strides = [1 if self.split else axis.stride for axis in self.windows]
        return tuple(s * step for s, step in zip(strides, row_major(self.extents), strict=True))

    def taps(self) -> list[int]:
        """Return the offset of each tap of the first window in a channel, in elements."""
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
        """Write zeros into the copy; they stay where windows reach beyond the elements."""
        if all(len(axis.inside(residue)) == axis.extent for axis in self.axes for residue in axis.residues):
            return
        zero = b.constant(0.0, Type(copy.type.dtype, LANES))
        b.vectors(self.elements, lambda i, active: b.store(b.access(copy, [(i, 1)], 1, active), zero))

    def fill(self, b: LoopBuilder, source: Parameter, at: Terms, copy: Parameter) -> None:
        """Copy the elements of the example that begins at these terms."""
        axes, strides = self.axes, row_major(self.extents)
        for number, residues in enumerate(itertools.product(*(axis.residues for axis in axes))):
            ranges = [axis.inside(residue) for axis, residue in zip(axes, residues, strict=True)]
            first = [
                (inside.start + axis.low) * axis.split + residue
                for axis, inside, residue in zip(axes, ranges, residues, strict=True)
            ]
            read = sum(i * step for i, step in zip(first, self.steps[1:], strict=True))
            write = sum(inside.start * stride for inside, stride in zip(ranges, strides, strict=True))
            copy_loops(
                b,
                (self.channels, *map(len, ranges)),
                StridedArray(source, (self.steps[0], *times(self.steps[1:], [axis.split for axis in axes])), read, at),
                StridedArray(copy, (self.channel, *strides), number * math.prod(self.extents) + write),
            )


class StridedArray(NamedTuple):
    """An array of a kernel: the strides of its axes and the offset of its first element, in elements."""

    base: Parameter
    strides: Strides
    offset: int = 0
    at: Terms = ()

    def access(self, b: LoopBuilder, counters: Sequence[Index], active: int) -> Access:
        """Return the access of elements along the last axis."""
        terms = [*self.at, *zip(counters, self.strides, strict=True)]
        return b.access(self.base, terms, self.strides[-1] if active > 1 else 1, active, self.offset)


def copy_loops(b: LoopBuilder, sizes: Sequence[int], source: StridedArray, target: StridedArray) -> None:
    """Write the loops that copy an array of these sizes to another."""

    def row(counters: Sequence[Index]) -> None:
        def vector(i: Index, active: int) -> None:
            b.store(target.access(b, (*counters, i), active), b.load(source.access(b, (*counters, i), active)))

        b.vectors(sizes[-1], vector)

    b.nest(sizes[:-1], row)


def times(left: Sequence[int], right: Sequence[int]) -> Strides:
    """Return the products of numbers at equal positions."""
    return tuple(a * b for a, b in zip(left, right, strict=True))


def sliding(sizes: Sequence[int], counts: Sequence[int], window: Window) -> tuple[Sliding, ...]:
    """Return the windows of each axis; each has the taps of all axes, in row-major order."""
    reaches = [[tap * dilation - before for tap in range(length)] for length, _, before, _, dilation in window]
    by_axis = zip(*itertools.product(*reaches), strict=True)
    strides = [part[1] for part in window]
    return tuple(Sliding(*numbers) for numbers in zip(sizes, counts, strides, by_axis, strict=True))
