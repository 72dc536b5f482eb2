"""Convolution and its adjoint in the elements as products of which one operand is read through its windows.

It is never unfolded: the product has a term a tap, which begins where the tap meets its first element.

    convolution          weight [features, channels and taps] times windows [channels and taps, places]
    convolution_input    the same of the cotangents, for each residue of the strides of the elements
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphs.ops.windows import Window
from static.backends.native import functions
from static.backends.native.flow import Work
from static.backends.native.ir import LANES, Index, LoopBuilder, LoopKernel
from static.backends.native.laid import Extent, LaidArray, row_major
from static.backends.native.products import Matrix, Product, ProductLoops, Term
from static.backends.native.spread import Sliding, Spread, Strided, Strides, copied, sliding, times
from static.backends.native.target import Target


class Convolution(NamedTuple):
    """A recipe: each row of weights, of channels and taps, with every window of each example, group by group.

    `taps` says where the weight of each lies after that of its channel. `weight` has strides for group, row and
    channel, `source` for example, group, channel and axes, and `out` for example, group, row and axes.
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
        """About how many operations a call takes: a vector at a time."""
        return self._product.operations

    @property
    def extents(self) -> list[Extent]:
        """What is read of weights and elements, and written of the result."""
        sizes = [axis.size for axis in self.windows]
        taps = (max(0, *self.taps) + 1, 1 - min(0, *self.taps))  # where the farthest lie on either side
        return [
            Extent.of(self.dtype, (self.batch[1], self.rows, self.channels, *taps), (*self.weight, 1, -1)),
            Extent.of(self.dtype, (*self.batch, self.channels, *sizes), self.source),
            Extent.of(self.dtype, (*self.batch, self.rows, *self._counts), self.out, is_written=True),
        ]

    @property
    def spread(self) -> Spread:
        """How an example lies when it is multiplied."""
        return Spread(self.windows, self.channels, self.source[2:], split=True)

    @property
    def _counts(self) -> Strides:
        return tuple(axis.places for axis in self.windows)

    @property
    def _flat(self) -> int:
        """The columns where rows of windows follow each other as their elements do, with what lies between rows."""
        return sum((n - 1) * step for n, step in zip(self._counts, self.spread.along, strict=True)) + 1

    @property
    def _by_row(self) -> bool:
        """Whether each row of windows is a product: its vectors are as full as those that run over all of them."""
        lanes = math.prod(self._counts[:-1]) * -(-self._counts[-1] // LANES) * LANES
        return self.out[-1] == 1 and self._flat != math.prod(self._counts) and lanes <= self._flat

    @property
    def _is_direct(self) -> bool:
        """Whether the product writes the result where it belongs."""
        is_dense = self.out[3:] == row_major(self._counts)
        return self._by_row or (is_dense and self._flat == math.prod(self._counts))

    @property
    def _product(self) -> Product:
        """The product, whose batch has the rows of windows where each is a product."""
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
        """The dtype and elements of each buffer: a spread example, its result, and a panel of the product."""
        return [*self._own_scratch, *self._product.scratch(target)]

    @property
    def _own_scratch(self) -> list[tuple[str, int]]:
        wanted = [self.spread.elements, 0 if self._is_direct else self.rows * self._flat]
        return [(self.dtype, elements) for elements in wanted if elements]

    def lower(self, target: Target) -> LoopKernel:
        """The kernel: its parameters are the weight, the source, the result, and scratch."""
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
                laid = Strided(flat, (self._flat, *spread.along))
                copied(b, (self.rows, *self._counts), laid, Strided(out, self.out[2:], 0, at))

        b.nest(self.batch, example)
        return b.kernel()


def convolved(x: LaidArray, weight: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    """The recipe of x [N, C, *sizes] and weight [F, C / groups, *window] -> [N, F, *counts]."""
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
    """Where the weights of these taps of each axis lie, in row-major order."""
    return (sum(times(tap, steps)) for tap in itertools.product(*chosen))


class _Residue(NamedTuple):
    """Elements of an axis at one place between two strides: the first, their windows of cotangents, and their taps."""

    first: int
    windows: Sliding
    taps: tuple[int, ...]


def _residues(size: int, count: int, part: tuple[int, int, int, int, int]) -> list[_Residue]:
    """The residues of an axis: tap t of window p meets the padded element p * stride + t * dilation."""
    length, stride, before, _, dilation = part
    residues = []
    for first in range(min(stride, size)):
        taps = tuple(t for t in range(length) if (first + before - t * dilation) % stride == 0)
        reaches = tuple((first + before - t * dilation) // stride for t in taps)
        residues.append(_Residue(first, Sliding(count, len(range(first, size, stride)), 1, reaches), taps))
    return residues


def convolved_back(g: LaidArray, weight: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    """The recipes of g [N, F, *counts] and weight -> [N, C, *sizes], a convolution of g for each residue of strides.

    They write every element but those that no tap meets.
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
    """Whether a tap meets every element, wherever it lies between two strides."""
    return all({t * part[4] % part[1] for t in range(part[0])} == set(range(part[1])) for part in window)
