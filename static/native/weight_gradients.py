"""The gradient of a convolution in its weight: windows times cotangents, example by example.

convolution_weight   windows [channels and taps, places] times cotangents [places, features]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from graphs.ops.windows import Window
from static.native import functions
from static.native.convolutions import Sliding, Strides, Terms, WindowSpread, sliding
from static.native.flow import Work
from static.native.ir import LANES, Access, Index, LoopBuilder, LoopKernel, Type, Value
from static.native.placement import Extent, LaidArray, row_major
from static.native.products import LONGEST, ROWS, tile, turn
from static.native.target import Target

MOST_ROWS = 36  # of windows that are written out: several tiles for each channel, so that none is cut short


class WeightGradient(NamedTuple):
    """A recipe: the sum over examples and windows of the element at each tap of each channel times each cotangent.

    The strides of `source` are for example, group, channel and axes, those of `cotangent` for example, group, feature
    and axes. The result lies in row-major order, the taps of one channel after those of another.
    """

    dtype: str
    examples: int
    groups: int
    features: int
    channels: int
    windows: tuple[Sliding, ...]
    source: Strides
    cotangent: Strides
    out: Strides

    @property
    def operations(self) -> int:
        """About how many vector operations a call takes."""
        return self.examples * self.groups * self._rows * math.prod(self._counts) * (self._width // LANES)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of elements and cotangents, and written of the result."""
        batch, sizes = (self.examples, self.groups), [axis.size for axis in self.windows]
        return [
            Extent.of(self.dtype, (*batch, self.channels, *sizes), self.source),
            Extent.of(self.dtype, (*batch, self.features, *self._counts), self.cotangent),
            Extent.of(self.dtype, (self.groups, self.features, self._rows), (*self.out, 1), is_written=True),
        ]

    @property
    def spread(self) -> WindowSpread:
        """How the elements of an example lie when they are multiplied."""
        return WindowSpread(self.windows, self.channels, self.source[2:], split=False)

    @property
    def _counts(self) -> Strides:
        return tuple(axis.places for axis in self.windows)

    @property
    def _taps(self) -> int:
        return len(self.windows[0].reaches)

    @property
    def _rows(self) -> int:
        return self.channels * self._taps

    @property
    def _width(self) -> int:
        """The number of features, rounded up to whole vectors."""
        return -(-self.features // LANES) * LANES

    @property
    def _chunk(self) -> int:
        """The windows along the first axis that are summed in one go, so that their cotangents stay in the cache."""
        return max(1, min(self._counts[0], LONGEST // math.prod(self._counts[1:])))

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return the dtype and elements of each buffer: transposed cotangents, transposed result, spread example."""
        del target  # the same on every machine
        turned = self._chunk * math.prod(self._counts[1:]) * self._width
        wanted = [turned, self._rows * self._width, self.spread.elements]
        return [(self.dtype, elements) for elements in wanted if elements]

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the source, the cotangents, the result, and scratch."""
        b = LoopBuilder([self.dtype] * (3 + len(self.scratch(target))))
        _WeightLoops(self, target, b).run()
        return b.kernel()


class _WeightLoops:
    def __init__(self, recipe: WeightGradient, target: Target, b: LoopBuilder) -> None:
        self.recipe, self.target, self.b = recipe, target, b
        self.source, self.cotangent, self.out, self.turned, self.totals, *copy = b.parameters
        self.spread, self.counts = recipe.spread, recipe._counts
        self.copy = copy[0] if copy else self.source
        self.type, self.width = Type(recipe.dtype, LANES), recipe._width
        self.places, self.channel = self.spread.taps(), self.spread.channel

    def run(self) -> None:
        if self.spread.is_copied:
            self.spread.clear(self.b, self.copy)
        self.b.loop(self.recipe.groups, 1, (), lambda group, _: self._group(group))

    def _group(self, group: Index) -> None:
        recipe, b = self.recipe, self.b
        zero = b.constant(0.0, self.type)
        b.vectors(recipe._rows * self.width, lambda i, _: b.store(b.access(self.totals, [(i, 1)]), zero))
        b.loop(recipe.examples, 1, (), lambda example, _: self._example(example, group))

        def read(feature: Index, row: Index, features: int, rows: int, active: int) -> Access:
            terms = [(feature, 1), (row, self.width)]
            return b.access(self.totals, terms, 1, active, features + rows * self.width)

        def write(feature: Index, row: Index, features: int, rows: int, active: int) -> Access:
            terms = [*zip((group, feature), recipe.out, strict=True), (row, 1)]
            return b.access(self.out, terms, 1, active, features * recipe.out[1] + rows)

        turn(b, recipe.features, recipe._rows, read, write, self.target, down=self.width > recipe._rows)

    def _example(self, example: Index, group: Index) -> None:
        at = list(zip((example, group), self.recipe.source, strict=False))
        if self.spread.is_copied:
            self.spread.fill(self.b, self.source, at, self.copy)
        self.at = [] if self.spread.is_copied else at
        size, chunk = self.counts[0], self.recipe._chunk
        whole = size // chunk * chunk
        self.b.loop(whole, chunk, (), lambda first, _: self._windows(example, group, first, chunk))
        if size > whole:
            self._windows(example, group, whole, size - whole)

    def _windows(self, example: Index, group: Index, first: Index, count: int) -> None:
        """Add the products of `count` windows along the first axis, from the first one on."""
        self.first, self.sizes = first, (count, *self.counts[1:])
        self._turn([*zip((example, group), self.recipe.cotangent, strict=False), (first, self.recipe.cotangent[3])])
        vectors, rows = tile(self._unit * len(self.places), self.width, self.recipe.dtype, self.target)
        panel = vectors * LANES
        whole = self.width // panel * panel
        self.b.loop(whole, panel, (), lambda feature, _: self._panel(feature, vectors, rows))
        if self.width > whole:
            self._panel(whole, (self.width - whole) // LANES, rows)

    def _turn(self, at: Terms) -> None:
        """Copy cotangents transposed, so that the features of a window lie side by side."""
        recipe, b = self.recipe, self.b
        steps, feature = recipe.cotangent[3:], recipe.cotangent[2]
        is_dense = steps == row_major(self.counts)
        outer, size = ((), math.prod(self.sizes)) if is_dense else (self.sizes[:-1], self.sizes[-1])
        step = 1 if is_dense else steps[-1]
        strides = row_major((*self.sizes, self.width))[: len(outer)]

        def matrix(counters: Sequence[Index]) -> None:
            source = [*at, *zip(counters, steps, strict=False)]
            target = list(zip(counters, strides, strict=True))

            def read(window: Index, column: Index, windows: int, columns: int, active: int) -> Access:
                terms = [*source, (window, step), (column, feature)]
                return b.access(self.cotangent, terms, step, active, windows * step + columns * feature)

            def write(window: Index, column: Index, windows: int, columns: int, active: int) -> Access:
                terms = [*target, (window, self.width), (column, 1)]
                return b.access(self.turned, terms, 1, active, windows * self.width + columns)

            turn(b, size, recipe.features, read, write, self.target, down=feature > self.width)

        b.nest(outer, matrix)

    @functools.cached_property
    def _unit(self) -> int:
        """The number of channels whose windows are written out together, chosen so that tiles are full."""
        taps = len(self.places)
        most = tile(ROWS * taps, self.width, self.recipe.dtype, self.target)[1]
        units = range(1, min(self.recipe.channels, max(1, MOST_ROWS // taps)) + 1)
        return min(units, key=lambda unit: -(-unit * taps // most) / unit)

    def _panel(self, feature: Index, vectors: int, rows: int) -> None:
        channels = self.recipe.channels
        whole = channels // self._unit * self._unit
        self.b.loop(whole, self._unit, (), lambda c, _: self._tiles(c, self._unit, feature, vectors, rows))
        if channels > whole:
            self._tiles(whole, channels - whole, feature, vectors, rows)

    def _tiles(self, channel: Index, channels: int, feature: Index, vectors: int, rows: int) -> None:
        """Write the taps of some channels, a few in each tile."""
        offsets = [c * self.channel + place for c in range(channels) for place in self.places]
        each = -(-len(offsets) // -(-len(offsets) // rows))
        for start in range(0, len(offsets), each):
            self._tile(channel, start, offsets[start : start + each], feature, vectors)

    def _tile(self, channel: Index, start: int, offsets: Sequence[int], feature: Index, vectors: int) -> None:
        spots = [(r, v) for r in range(len(offsets)) for v in range(vectors)]

        def total(r: int, v: int) -> Access:
            terms = [(channel, len(self.places) * self.width), (feature, 1)]
            return self.b.access(self.totals, terms, 1, LANES, (start + r) * self.width + v * LANES)

        parts = self._sums(channel, offsets, feature, vectors)
        for (r, v), part in zip(spots, parts, strict=True):
            self.b.store(total(r, v), self.b.op("add", self.b.load(total(r, v)), part))

    def _sums(self, channel: Index, offsets: Sequence[int], feature: Index, vectors: int) -> Sequence[Value]:
        """Return the sums over windows of a tile's products."""
        b, along = self.b, self.spread.along
        strides = row_major((*self.sizes, self.width))[:-1]

        def multiply(counters: Sequence[Index], totals: Sequence[Value]) -> Sequence[Value]:
            terms = [*zip(counters, strides, strict=True), (feature, 1)]
            across = [b.load(b.access(self.turned, terms, 1, LANES, v * LANES)) for v in range(vectors)]
            place = [*self.at, (self.first, along[0]), (channel, self.channel), *zip(counters, along, strict=True)]
            sums = []
            for r, offset in enumerate(offsets):
                down = b.splat(b.load(b.access(self.copy, place, 0, 1, offset), 1), LANES)
                sums += [b.op("fma", down, x, totals[r * vectors + v]) for v, x in enumerate(across)]
            return sums

        def nest(counters: tuple[Index, ...], totals: Sequence[Value]) -> Sequence[Value]:
            if len(counters) == len(self.sizes):
                return multiply(counters, totals)
            return b.loop(self.sizes[len(counters)], 1, totals, lambda i, carried: nest((*counters, i), carried))

        return nest((), [b.constant(0.0, self.type)] * (len(offsets) * vectors))


def weight_gradient(x: LaidArray, g: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    """Return the work of x [N, C, *sizes] and g [N, F, *counts] -> [F, C / groups, *window]."""
    features, channels, dense = g.shape[1] // groups, out.shape[1], row_major(out.shape)
    recipe = WeightGradient(
        functions.dtype_of(out.dtype),
        x.shape[0],
        groups,
        features,
        channels,
        sliding(x.shape[2:], g.shape[2:], window),
        (x.steps[0], channels * x.steps[1], *x.steps[1:]),
        (g.steps[0], features * g.steps[1], *g.steps[1:]),
        (features * dense[0], dense[0]),
    )
    return [(recipe, [x.place, g.place, out.place])] if math.prod(out.shape) else []
