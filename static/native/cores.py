"""Work for several cores: a long kernel becomes several calls of shorter ones, on parts of its arrays.

Results do not depend on the number of cores. Groups are cut into chunks by their sizes alone. A reduction that crosses
chunks gives each a part, and one more kernel joins the parts in order, on one core as on several. An element of a
product is one chain of multiply-adds wherever the product is cut. Cores take chunks as they become free, where a kernel
is long enough for that to pay.

The work of a segment is arranged in waves: kernels of one wave do not wait for each other, and cores may run them side
by side. A kernel waits for earlier kernels that write bytes which it reads or writes, or that read bytes which it
writes. The bytes decide, and not the graph: so a kernel also waits where the plan gives it memory that another value
had before. It runs in the first wave after all kernels that it waits for.

Read `Cores` first, then `cut_product` and `arrange_waves`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.ops import reductions
from static.native import flow
from static.native.convolutions import Convolution
from static.native.flow import Flow, Location, Work
from static.native.groups import WIDE, Group
from static.native.ir import LANES
from static.native.layouts import MOST_LISTS
from static.native.picking import Flattening, Picking
from static.native.placement import ArrayLayout, Extent, GroupStep
from static.native.pool import Pool
from static.native.pooling import Pooling
from static.native.products import Product, Turn
from static.native.target import Target
from static.native.weight_gradients import WeightGradient

CHUNK, MOST = 1 << 13, 64  # elements of a chunk that has sums of its own, at least, and how many there are, at most
SUMMED = 4 * CHUNK  # elements of a group from which on there are such chunks
DEALT = 4  # lists a core is dealt: more, and a core that is late matters less
OPERATIONS = 4  # about as many a core does in a nanosecond: more of products, and fewer of functions
PAYS = 2  # sharing must save this many times the time that it takes

Room = Callable[[Any, int, Any], int]
Divisible = Product | Turn | Convolution | WeightGradient | Pooling | Picking | Flattening


class Part(NamedTuple):
    """A kernel, and the places of a part of its arrays."""

    recipe: Any
    places: list[Location]


class Cores:
    """Cuts the work of a step for a pool of threads; without a pool everything runs on the caller's core."""

    def __init__(self, pool: Pool | None, target: Target) -> None:
        self.pool, self.target = pool, target

    def cut(self, recipe: Any, places: list[Location], room: Room) -> Work:
        """Return the work of a kernel, cut in parts; `room(key, elements, dtype)` gives memory for partial results."""
        if isinstance(recipe, Group):
            return self._group(recipe, places, room)
        if self._pays(recipe.operations):
            return self._dealt(cut_product(recipe, places, self._lists, self.target))
        return [(recipe, places)]

    def arrange_cores(self, work: Work) -> Work:
        """Return the work with independent kernels side by side, where that pays."""
        return arrange_waves(work, self._side_by_side) if self.pool else work

    def _side_by_side(self, wave: Work) -> Work:
        """Return independent pieces as parallel lists that take about equal time, the longest pieces first."""
        lists = [inner for recipe, places in wave for inner in _lists_of(recipe, places)]
        lengths = [flow.operations(inner) for inner in lists]
        if len(wave) < 2 or not self._pays(sum(lengths), max(lengths)):
            return wave
        shared: list[Work] = [[] for _ in range(min(len(lists), self._lists))]
        loads = [0] * len(shared)
        for number in sorted(range(len(lists)), key=lambda n: -lengths[n]):
            least = loads.index(min(loads))
            shared[least] += lists[number]
            loads[least] += lengths[number]
        return [(Flow("parallel", tuple(shared), pool=self.pool), [])]

    @property
    def _lists(self) -> int:
        return min(DEALT * self.pool.threads, MOST_LISTS) if self.pool else 1

    def _pays(self, operations: int, longest: int = 0) -> bool:
        """Whether several cores save enough time on this many operations; the longest part is not cut."""
        if self.pool is None:
            return False
        saved = operations - max(longest, operations / self.pool.threads)
        return saved > 0 and saved >= OPERATIONS * PAYS * self.pool.nanoseconds

    def _group(self, recipe: Group, places: list[Location], room: Room) -> Work:
        partial = crossing(recipe)
        if partial is None or not (partial or self._pays(recipe.operations)):
            return [(recipe, places)]
        rows = rows_of_chunk(recipe) if partial else _even(recipe.sizes[0], self._lists, _step(recipe))
        starts = range(0, recipe.sizes[0], rows)
        targets = {i: room(i, len(starts) * _extent(recipe, i), _dtype(recipe, i)) for i in partial}
        parts = [_chunk(recipe, places, number, start, rows, targets) for number, start in enumerate(starts)]
        joins = [_join(recipe, i, len(starts), at, places) for i, at in targets.items()]
        return [*(self._dealt(parts) if self._pays(recipe.operations) else parts), *joins]

    def _dealt(self, parts: Sequence[Part]) -> Work:
        """Return parts in parallel lists, which any core may take."""
        size = -(-len(parts) // self._lists)
        lists = tuple(list(map(tuple, parts[i : i + size])) for i in range(0, len(parts), size))
        return [(Flow("parallel", lists, pool=self.pool), [])] if len(lists) > 1 else list(map(tuple, parts))


def _lists_of(recipe: Any, places: list[Location]) -> Sequence[Work]:
    """Return the lists that cores share; one list for a kernel that is not cut."""
    return recipe.lists if isinstance(recipe, Flow) else [[(recipe, places)]]


# Groups --------------------------------------------------------------------------------------------------------------


def rows_of_chunk(recipe: Group) -> int:
    """Return how many rows of the first axis make a chunk, where each chunk has sums of its own."""
    size, inner = recipe.sizes[0], math.prod(recipe.sizes[1:])
    rows, step = max(-(-CHUNK // inner), -(-size // MOST)), _step(recipe)
    return -(-rows // step) * step


def _step(recipe: Group) -> int:
    """Return what parts of the first axis are a multiple of: a vector's lanes, or the rows that run side by side."""
    return WIDE if len(recipe.sizes) == 1 else recipe.together


def crossing(recipe: Group) -> list[int] | None:
    """Return the results that are reduced over the first axis in parts; None where the group cannot be cut there."""
    steps = recipe.steps
    if not recipe.sizes or not math.prod(recipe.sizes):
        return None
    reads = {number for step in steps for kind, number, *_ in step.args if kind == "step"}
    numbers = (step.row and not step.over for step in steps)
    if not recipe.split and (any(numbers) or any(step.over and n in reads for n, step in enumerate(steps))):
        return None  # each chunk would need the reductions of all chunks
    partial = [i for i, (array, _) in enumerate(recipe.results) if not array.strides[0]]
    if partial and (math.prod(recipe.sizes) < SUMMED or recipe.sizes[0] < 2 * rows_of_chunk(recipe)):
        return None
    return partial if all(steps[recipe.results[i][1]].over and _is_dense(recipe, i) for i in partial) else None


def _is_dense(recipe: Group, i: int) -> bool:
    """Whether a result fills the memory between its first and last element."""
    array = recipe.results[i][0]
    return _extent(recipe, i) == math.prod(s for s, stride in zip(recipe.sizes, array.strides, strict=True) if stride)


def _extent(recipe: Group, i: int) -> int:
    array = recipe.results[i][0]
    return 1 + sum((size - 1) * abs(stride) for size, stride in zip(recipe.sizes, array.strides, strict=True))


def _dtype(recipe: Group, i: int) -> np.dtype[Any]:
    dtype = recipe.results[i][0].dtype
    return np.dtype(bool if dtype == "b1" else dtype)


def _chunk(recipe: Group, places: list[Location], number: int, start: int, rows: int, targets: dict[int, int]) -> Part:
    """Return the group on some rows; a result that is reduced over all rows becomes a part, written to its target."""
    arrays = [*recipe.operands, *(array for array, _ in recipe.results)]
    moved = [_offset_location(place, start * a.strides[0] * _width(a)) for place, a in zip(places, arrays, strict=True)]
    for i, at in targets.items():
        moved[len(recipe.operands) + i] = -1, at + number * _extent(recipe, i) * _dtype(recipe, i).itemsize
    reduced = {recipe.results[i][1] for i in targets}
    steps = (
        step._replace(op=reductions.sum, taken=None) if n in reduced and step.taken is not None else step
        for n, step in enumerate(recipe.steps)
    )
    sizes = (min(rows, recipe.sizes[0] - start), *recipe.sizes[1:])
    return Part(recipe._replace(sizes=sizes, steps=tuple(steps)), moved)


def _join(recipe: Group, i: int, count: int, at: int, places: list[Location]) -> Part:
    """Return the kernel that reduces the parts of a result, one after the other."""
    array, n = recipe.results[i]
    step, extent = recipe.steps[n], _extent(recipe, i)
    joined = GroupStep(step.op, step.dtype, step.gives, (("operand", 0),), 0, False, "memory", step.taken)
    arrays = ArrayLayout(array.dtype, (extent, 1)), ArrayLayout(array.dtype, (0, 1))
    target = Group((count, extent), 1, arrays[:1], ((arrays[1], 0),), (joined,))
    return Part(target, [(-1, at), places[len(recipe.operands) + i]])


# Products ------------------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """An axis along which a kernel is cut: its field in the recipe, its size, the step of parts, strides in bytes.

    `at` is the axis's index where the field has several sizes.
    """

    field: str
    size: int
    step: int
    strides: tuple[int, ...]
    at: int = 0

    def waiting(self, most: int) -> float:
        """Return how much longer than an even share a core's longest share takes, in at most `most` parts."""
        length = _even(self.size, most, self.step)
        parts, tiles = -(-self.size // length), -(-self.size // self.step)
        cores = max(1, most // DEALT)
        return cores * -(-parts // cores) * (length // self.step) / tiles


def cut_product(recipe: Divisible, places: Sequence[Location], most: int, target: Target) -> list[Part]:
    """Return a product, convolution, turned matrix, pooling or picking in at most `most` parts."""
    axis = _axis(recipe, most, target)
    length, whole = _even(axis.size, most, axis.step), getattr(recipe, axis.field)
    parts = []
    for start in range(0, axis.size, length):
        count = min(length, axis.size - start)
        cut: Any = (*whole[: axis.at], count, *whole[axis.at + 1 :]) if isinstance(whole, tuple) else count
        moved = [_offset_location(place, start * stride) for place, stride in zip(places, axis.strides, strict=True)]
        parts.append(Part(recipe._replace(**{axis.field: cut}), moved))
    return parts


def _axis(recipe: Divisible, most: int, target: Target) -> Axis:
    """Return the axis to cut a kernel along: examples, matrices of a stack, panels of columns, or tiles of rows."""
    if isinstance(recipe, Pooling):
        pooled = (*recipe.operands, recipe.out)
        return Axis("outer", recipe.outer[0], 1, tuple(array.strides[0] * _width(array) for array in pooled))
    if isinstance(recipe, (Picking, Flattening)):
        # The first axis along which parts write to different places; one that is not cut where there is none.
        apart = list(range(len(recipe.sizes)))
        arrays: tuple[ArrayLayout, ...]
        if isinstance(recipe, Flattening):
            arrays = *recipe.positions, recipe.out
        else:
            arrays = recipe.picked, recipe.positions, recipe.values
            apart = [axis for axis in apart if recipe.way == "take" or recipe.picked.strides[axis]]
        at, is_last = (apart[0], apart[0] == len(recipe.sizes) - 1) if apart else (0, False)
        step = LANES if is_last else 1 if apart else recipe.sizes[0]
        strides = [array.strides[at] * _width(array) for array in arrays]
        return Axis("sizes", recipe.sizes[at], step, (*strides, 0, *[0] * len(recipe.refused)), at)
    axis = _axis_of_product(recipe, most, target)
    return axis._replace(strides=tuple(stride * int(recipe.dtype[1:]) for stride in axis.strides))


def _axis_of_product(recipe: Product | Turn | Convolution | WeightGradient, most: int, target: Target) -> Axis:
    """Return the axis to cut a recipe of one dtype along, with strides in elements."""
    if isinstance(recipe, Turn):
        return Axis("rows", recipe.rows, LANES, (recipe.row, recipe.columns))
    if isinstance(recipe, WeightGradient):
        return Axis("features", recipe.features, LANES, (0, recipe.cotangent[2], recipe.out[1]))
    if isinstance(recipe, Convolution):
        if recipe.batch[0] > 1:
            return Axis("batch", recipe.batch[0], 1, (0, recipe.source[0], recipe.out[0]))
        return Axis("rows", recipe.rows, 2 * LANES, (recipe.weight[1], 0, recipe.out[2]))
    left, right, out, panel = recipe.left, recipe.right, recipe.out, recipe.panel(target)
    if recipe.batch:
        return Axis("batch", recipe.batch[0], 1, (left.batch[0], right.batch[0], out.batch[0]))
    columns = Axis("columns", recipe.columns, panel.vectors * LANES, (0, right.column, out.column))
    rows = Axis("rows", recipe.rows, panel.rows, (left.row, 0, out.row))
    if recipe.columns >= most * columns.step:
        return columns
    return min(rows, columns, key=lambda axis: axis.waiting(most))


def _even(size: int, most: int, step: int) -> int:
    """Return the size of parts, a multiple of `step`, such that there are at most `most` of them."""
    return -(-size // (most * step)) * step


def _offset_location(place: Location, by: int) -> Location:
    return place[0], place[1] + by


def _width(array: ArrayLayout) -> int:
    return int(array.dtype[1:])


Joined = Callable[[Work], Work]


def arrange_waves(work: Work, joined: Joined) -> Work:
    """Return the work in waves, each changed by `joined`. A loop or branch waits for all work before it."""
    arranged_work: Work = []
    between: Work = []
    for recipe, places in work:
        if isinstance(recipe, Flow) and recipe.kind != "parallel":
            lists = tuple(arrange_waves(inner, joined) for inner in recipe.lists)
            arranged_work += [*_in_waves(between, joined), (recipe._replace(lists=lists), places)]
            between = []
        else:
            between.append((recipe, places))
    return arranged_work + _in_waves(between, joined)


def _in_waves(work: Work, joined: Joined) -> Work:
    uses: defaultdict[int, _Uses] = defaultdict(_Uses)  # by the argument that the memory belongs to, -1 for addresses
    waves: list[Work] = []
    for piece in work:
        touched = list(_touched_extents(piece))
        wave = max((uses[which].first_after(extent) for which, extent in touched), default=0)
        for which, extent in touched:
            uses[which].note(wave, extent)
        waves += [[] for _ in range(wave + 1 - len(waves))]
        waves[wave].append(piece)
    return [piece for wave in waves for piece in joined(wave)]


def _touched_extents(piece: tuple[Any, list[Location]]) -> Iterator[tuple[int, Extent]]:
    """Yield the memory that a piece reads or writes: the argument, and the bytes from its start."""
    for recipe, places in flow.calls([piece]):
        for (which, offset), extent in zip(places, recipe.extents, strict=True):
            if extent.low < extent.high:
                yield which, Extent(offset + extent.low, offset + extent.high, extent.is_written)


class _Uses:
    """The latest wave that writes and the latest that reads each byte, in stretches with equal values."""

    def __init__(self) -> None:
        self.starts: list[float] = [-math.inf]
        self.latest = [(-1, -1)]

    def first_after(self, extent: Extent) -> int:
        """Return the first wave in which these bytes may be read, or written."""
        low, high, is_written = extent
        stretches = self.latest[bisect_right(self.starts, low) - 1 : bisect_left(self.starts, high)]
        return 1 + max(max(uses) if is_written else uses[0] for uses in stretches)

    def note(self, wave: int, extent: Extent) -> None:
        """Record that these bytes are read or written in a wave."""
        first, end = self._stretch_at(extent.low), self._stretch_at(extent.high)
        if extent.is_written:
            self.starts[first:end], self.latest[first:end] = [extent.low], [(wave, -1)]
        else:
            self.latest[first:end] = [(write, max(read, wave)) for write, read in self.latest[first:end]]

    def _stretch_at(self, byte: int) -> int:
        """Return the index of the stretch that begins at a byte; a stretch is split there if needed."""
        number = bisect_left(self.starts, byte)
        if number == len(self.starts) or self.starts[number] != byte:
            self.starts.insert(number, byte)
            self.latest.insert(number, self.latest[number - 1])
        return number
