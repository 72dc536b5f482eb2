"""Ops over windows as loops over cells: each result is computed from the elements at its taps, and written once.

A cell of an axis is a window, or as many elements as windows are apart. Cells whose taps all meet an element are
computed by one piece of code, a vector of cells at a time. Cells at the edges, where some taps meet nothing, have code
of their own. Taps come in the order in which NumPy's kernels add them up, which gives the same bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphs.ir import Node
from graphs.op import Op, RuleTable
from graphs.ops.windows import Window
from static.native import functions
from static.native.flow import Work
from static.native.ir import (
    LANES,
    Access,
    Index,
    LoopBuilder,
    LoopKernel,
    Parameter,
    Type,
    Value,
    cast,
    maximum,
    offset_index,
    test,
)
from static.native.placement import ArrayLayout, Extent, LaidArray
from static.native.target import Target

MOST = 100  # taps that are written out, at all edges together
NO_TAP = 255


class _Tap(NamedTuple):
    """A tap of a window: its number, and the values at it of each operand that is read tap by tap."""

    number: int
    values: Sequence[Value]


Fold = Callable[[LoopBuilder, Type, Sequence[_Tap], Sequence[Value]], Value]


def _sum(b: LoopBuilder, type: Type, taps: Sequence[_Tap], beside: Sequence[Value]) -> Value:
    del beside
    total: Value = b.constant(0.0, type)
    for tap in taps:
        total = b.op("add", total, tap.values[0])
    return total


def _max(b: LoopBuilder, type: Type, taps: Sequence[_Tap], beside: Sequence[Value]) -> Value:
    del beside
    largest: Value = b.constant(-math.inf, type)
    for tap in taps:
        largest = maximum(b, largest, tap.values[0])
    return largest


def _argmax(b: LoopBuilder, type: Type, taps: Sequence[_Tap], beside: Sequence[Value]) -> Value:
    """Return the number of the first tap with the maximum, the last tap if none has it, or the last NaN's tap."""
    wide = Type("i4", type.lanes)
    chosen: Value = b.constant(taps[-1].number if taps else NO_TAP, wide)
    for tap in reversed(taps[:-1]):
        is_peak = test(b, "eq", tap.values[0], beside[0])
        chosen = b.op("select", is_peak, b.constant(tap.number, wide), chosen, type=wide)
    for tap in taps:
        is_nan = test(b, "ne", tap.values[0], tap.values[0])
        chosen = b.op("select", is_nan, b.constant(tap.number, wide), chosen, type=wide)
    return cast(b, chosen, type.dtype)


def _place(b: LoopBuilder, type: Type, taps: Sequence[_Tap], beside: Sequence[Value]) -> Value:
    del beside
    return _sum_chosen_taps(b, type, [(tap.number, tap.values[0], tap.values[1]) for tap in taps])


def _pick(b: LoopBuilder, type: Type, taps: Sequence[_Tap], beside: Sequence[Value]) -> Value:
    return _sum_chosen_taps(b, type, [(tap.number, tap.values[0], beside[0]) for tap in taps])


def _sum_chosen_taps(b: LoopBuilder, type: Type, taps: Sequence[tuple[int, Value, Value]]) -> Value:
    """Return the sum of the values whose tap was chosen."""
    zero = b.constant(0.0, type)
    total: Value = zero
    for number, value, chosen in taps:
        is_chosen = test(b, "eq", chosen, b.constant(number, chosen.type))
        total = b.op("add", total, b.op("select", is_chosen, value, zero, type=type))
    return total


class _Form(NamedTuple):
    """How an op over windows is computed, how many operands it reads tap by tap, and if its results are elements."""

    fold: Fold
    tapped: int
    to_elements: bool


FORMS: RuleTable[_Form] = RuleTable("native windows", otherwise=_Form(_sum, 0, to_elements=False))
FORMS.enter({
    "window_sum": _Form(_sum, 1, to_elements=False),
    "window_spread": _Form(_sum, 1, to_elements=True),
    "window_max": _Form(_max, 1, to_elements=False),
    "window_argmax": _Form(_argmax, 1, to_elements=False),
    "window_place": _Form(_place, 2, to_elements=True),
    "window_pick": _Form(_pick, 1, to_elements=False),
})  # fmt: skip


def is_pooled(node: Node) -> bool:
    """Whether a node goes over windows of floats whose taps are few enough to be written out."""
    form = FORMS[node.op]
    if not form.tapped:
        return False
    window: Window = node.attrs["window"]
    (value, *_), made = [source.spec.dtype for source in node.inputs], node.spec.dtype
    floats = value.kind == "f" and value.itemsize >= 4
    return floats and made.itemsize in functions.WIDTHS and _unrolled_taps(window, form.to_elements) <= MOST


def _unrolled_taps(window: Window, to_elements: bool) -> int:
    """Return about how many taps are written out: of whole windows, and of windows cut off at an edge."""
    edges = [length if to_elements or before or after else 1 for length, _, before, after, _ in window]
    return math.prod(part[0] * -(-edge // part[1]) for part, edge in zip(window, edges, strict=True))


class _Reach(NamedTuple):
    """A tap of an axis, and the index of the element or window that it meets from the first cell."""

    tap: int
    place: int


class _Cells(NamedTuple):
    """Cells of an axis with the same taps: the taps of each result in a cell, None where a cell has no such result."""

    start: int
    stop: int
    results: tuple[tuple[_Reach, ...] | None, ...]


class Pooling(NamedTuple):
    """A recipe: the op, the sizes of the axes before the windows', elements, windows, and the layouts of arrays."""

    op: Op
    outer: tuple[int, ...]
    elements: tuple[int, ...]
    counts: tuple[int, ...]
    window: Window
    operands: tuple[ArrayLayout, ...]
    out: ArrayLayout

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return math.prod(self.outer) * math.prod(self.counts) * math.prod(part[0] for part in self.window)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of operands, tap by tap or beside, and written of the result."""
        form = FORMS[self.op]
        apart, beside = (self.counts, self.elements) if form.to_elements else (self.elements, self.counts)
        sizes = [apart if number < form.tapped else beside for number in range(len(self.operands))]
        read = [
            Extent.of(array.dtype, (*self.outer, *along), array.strides)
            for array, along in zip(self.operands, sizes, strict=True)
        ]
        return [*read, Extent.of(self.out.dtype, (*self.outer, *beside), self.out.strides, is_written=True)]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return no scratch buffers."""
        del target
        return []

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the operands and the result."""
        del target  # the same on every machine
        return _PoolingLoops(self).run()

    def cells(self, axis: int) -> list[_Cells]:
        """Return the cells of an axis, in runs with the same taps."""
        length, stride, before, _, dilation = self.window[axis]
        size, count = self.elements[axis], self.counts[axis]
        if not FORMS[self.op].to_elements:
            return _runs(size, stride, [(count, [_Reach(tap, tap * dilation - before) for tap in range(length)])])
        results = []
        for first in range(stride):
            met = [tap for tap in range(length) if (first + before - tap * dilation) % stride == 0]
            reaches = [_Reach(tap, (first + before - tap * dilation) // stride) for tap in met]
            results.append((len(range(first, size, stride)), reaches))
        return _runs(count, 1, results)


def _runs(size: int, step: int, results: Sequence[tuple[int, Sequence[_Reach]]]) -> list[_Cells]:
    """Return runs of cells with the same taps, for `size` elements or windows; cells are `step` apart."""

    def met_range(reach: _Reach, count: int) -> range:
        first = min(count, max(0, -(reach.place // step)))
        return range(first, max(first, min(count, -((reach.place - size) // step))))

    ranges = [[met_range(reach, count) for reach in reaches] for count, reaches in results]
    cuts = sorted({0, *(n for n, _ in results), *(end for row in ranges for r in row for end in (r.start, r.stop))})
    runs = []
    for start, stop in itertools.pairwise(cuts):
        reached = (
            tuple(reach for reach, there in zip(reaches, row, strict=True) if start in there) if start < n else None
            for (n, reaches), row in zip(results, ranges, strict=True)
        )
        runs.append(_Cells(start, stop, tuple(reached)))
    return runs


class _PoolingLoops:
    def __init__(self, recipe: Pooling) -> None:
        self.recipe, self.form = recipe, FORMS[recipe.op]
        self.b = LoopBuilder([array.dtype for array in (*recipe.operands, recipe.out)])
        *self.operands, self.out = zip(self.b.parameters, (*recipe.operands, recipe.out), strict=True)
        strides = [part[1] for part in recipe.window]
        self.read, self.written = (
            ([1] * len(strides), strides) if self.form.to_elements else (strides, [1] * len(strides))
        )

    def run(self) -> LoopKernel:
        axes = [self.recipe.cells(axis) for axis in range(len(self.recipe.window))]
        self.b.nest(self.recipe.outer, lambda outer: self._image(outer, axes))
        return self.b.kernel()

    def _image(self, outer: Sequence[Index], axes: Sequence[Sequence[_Cells]]) -> None:
        for runs in itertools.product(*axes):
            sizes = [run.stop - run.start for run in runs]

            def row(counters: Sequence[Index], runs: Sequence[_Cells] = runs, size: int = sizes[-1]) -> None:
                inner = [offset_index(i, run.start) for i, run in zip(counters, runs, strict=False)]

                def vector(i: Index, active: int) -> None:
                    self._cells(outer, [*inner, offset_index(i, runs[-1].start)], runs, active)

                self.b.vectors(size, vector)

            self.b.nest(sizes[:-1], row)

    def _cells(self, outer: Sequence[Index], cells: Sequence[Index], runs: Sequence[_Cells], active: int) -> None:
        """Write the results of some cells that lie side by side."""
        loaded: dict[tuple[int, tuple[int, ...]], Value] = {}

        def load(operand: int, places: tuple[int, ...]) -> Value:
            key = operand, places
            if key not in loaded:
                steps = self.read if operand < self.form.tapped else [1] * len(cells)
                access = self._access(self.operands[operand], outer, cells, steps, places, active)
                loaded[key] = self.b.load(access)
            return loaded[key]

        *before, last = [list(enumerate(run.results)) for run in runs]
        for chosen in itertools.product(*before):
            if any(reaches is None for _, reaches in chosen):
                continue
            row = [self._result([*(r for _, r in chosen), reaches], load) for _, reaches in last]
            self._write(row, outer, cells, [number for number, _ in chosen], active)

    def _result(self, axes: Sequence[tuple[_Reach, ...] | None], load: Callable[..., Value]) -> Value | None:
        reached = [reaches for reaches in axes if reaches is not None]
        if len(reached) < len(axes):
            return None
        origin = (0,) * len(axes)
        beside = [load(n, origin) for n in range(self.form.tapped, len(self.operands))]
        taps = [
            _Tap(self._number(reaches), [load(n, tuple(r.place for r in reaches)) for n in range(self.form.tapped)])
            for reaches in itertools.product(*reached)
        ]
        return self.form.fold(self.b, Type(self.out[1].dtype, LANES), taps, beside)

    def _number(self, reaches: Sequence[_Reach]) -> int:
        number = 0
        for reach, part in zip(reaches, self.recipe.window, strict=True):
            number = number * part[0] + reach.tap
        return number

    def _write(
        self, row: Sequence[Value | None], outer: Sequence[Index], cells: Sequence[Index], first: list[int], active: int
    ) -> None:
        """Write the results of a row of cells; two results of a cell are neighbours, and are interleaved."""
        step = self.out[1].strides[-1]
        if len(row) == 2 and None not in row and step == 1:
            for half, name in enumerate(("low", "high")):
                if 2 * active > half * LANES:
                    place = (*first, half * LANES)
                    access = self._access(
                        self.out, outer, cells, self.written, place, min(LANES, 2 * active - half * LANES)
                    )
                    self.b.store(access._replace(step=1), self.b.op(name, *(value for value in row if value)))
            return
        for number, value in enumerate(row):
            if value is not None:
                self.b.store(self._access(self.out, outer, cells, self.written, (*first, number), active), value)

    def _access(
        self, laid: tuple[Parameter, ArrayLayout], outer: Sequence[Index], cells: Sequence[Index], steps: Sequence[int],
        places: Sequence[int], active: int,
    ) -> Access:  # fmt: skip
        """Return the access of an array's elements at these places, counted from cells that are `steps` apart."""
        parameter, array = laid
        beside, strides = array.strides[: len(outer)], array.strides[len(outer) :]
        along = [step * stride for step, stride in zip(steps, strides, strict=True)]
        offset = sum(place * stride for place, stride in zip(places, strides, strict=True))
        terms = [*zip(outer, beside, strict=True), *zip(cells, along, strict=True)]
        return self.b.access(parameter, terms, along[-1] if active > 1 else 1, active, offset)


def pooling_recipe(node: Node, operands: Sequence[LaidArray], out: LaidArray) -> Work:
    """Return the work of an op over windows; an array without outer axes gets one of size 1."""
    window: Window = node.attrs["window"]
    rank, arrays = len(window), (*operands, out)
    few, many = out.shape[-rank:], operands[0].shape[-rank:]
    counts, elements = (many, few) if FORMS[node.op].to_elements else (few, many)
    outer = out.shape[:-rank] or (1,)
    strides = [laid.steps if len(laid.steps) > rank else (0, *laid.steps) for laid in arrays]
    layouts = [ArrayLayout(functions.dtype_of(laid.dtype), along) for laid, along in zip(arrays, strides, strict=True)]
    recipe = Pooling(node.op, outer, elements, counts, window, tuple(layouts[:-1]), layouts[-1])
    return [(recipe, [laid.place for laid in arrays])] if math.prod(out.shape) else []
