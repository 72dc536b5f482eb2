"""A group as loops: over rows, and in each row over vectors; values that only the group reads stay in registers.

A recipe (`Group`) has everything that the code depends on, and is the key of a kernel: equal groups share one. In a row
the steps run in stages. A reduction of a row is carried through the loops of the row in vectors and folded at its end.
Steps that read it run in the next stage, and values that they read of an earlier stage pass through memory.

Sums are made in one order on every machine: in the lanes of vectors, blocks of a long row by themselves, then halves of
a vector. A sum over rows is added up row by row.

`RowLoops`, in the second half, writes the innermost loops: vectors along the last axis, and the reductions on the way.
Vectors are wide in a long row: several times 16 lanes, whose instructions are independent, so that the processor works
on all of them while each waits for its operands. Reductions are then halved to 16 lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from static.native import functions, ir
from static.native.ir import (
    LANES,
    Access,
    Constant,
    Index,
    LoopBuilder,
    LoopKernel,
    Parameter,
    Type,
    Value,
    offset_index,
)
from static.native.placement import Argument, ArrayLayout, Extent, GroupStep, identity, row_major
from static.native.target import Target

ROWS = 2  # rows that run side by side
SHORT, FEW = 1024, 32  # elements of a row, and steps, up to which they do: it saves less of more, and takes more code


class Group(NamedTuple):
    """A recipe: the sizes of the axes (a row takes those from `split` on), operands, results and steps.

    Each result is an array and the number of the step whose value it holds.
    """

    sizes: tuple[int, ...]
    split: int
    operands: tuple[ArrayLayout, ...]
    results: tuple[tuple[ArrayLayout, int], ...]
    steps: tuple[GroupStep, ...]

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return math.prod(self.sizes) * len(self.steps)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of operands and written of results."""
        read = [Extent.of(array.dtype, self.sizes, array.strides) for array in self.operands]
        return read + [Extent.of(a.dtype, self.sizes, a.strides, is_written=True) for a, _ in self.results]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return the dtype and elements of each buffer that the kernel needs beside operands and results."""
        del target  # the same on every machine
        row = math.prod(self.sizes[self.split :])
        return [(self.steps[number].gives, row) for number in self.kept()] * self.together

    @property
    def together(self) -> int:
        """How many rows run side by side: several where rows are short and wait for their reductions."""
        waits = any(step.over == "row" for step in self.steps)
        is_short = math.prod(self.sizes[self.split :]) <= SHORT and len(self.steps) <= FEW
        return ROWS if waits and is_short and self.split and self.sizes[self.split - 1] >= ROWS else 1

    def kept(self) -> list[int]:
        """Return the steps whose values a later stage reads, and that are no results."""
        written = {number for _, number in self.results}
        kept: dict[int, None] = {}
        for step in self.steps:
            for kind, number, *_ in step.args:
                if kind == "step" and self._passes(number, step.stage) and number not in written:
                    kept[number] = None
        return list(kept)

    def _passes(self, number: int, stage: int) -> bool:
        source = self.steps[number]
        return not source.row and not source.over and source.stage < stage

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are operands, results and scratch buffers, in this order."""
        return _GroupLowering(self, target).run()


class _GroupLowering:
    def __init__(self, recipe: Group, target: Target) -> None:
        self.recipe, kept = recipe, recipe.kept()
        inner = (*[0] * recipe.split, *row_major(recipe.sizes[recipe.split :]))
        arrays = [*recipe.operands, *(array for array, _ in recipe.results)]
        arrays += [ArrayLayout(recipe.steps[n].gives, inner) for n in kept] * recipe.together
        self.b = LoopBuilder([array.dtype for array in arrays])
        laid = list(zip(self.b.parameters, arrays, strict=True))
        self.results: dict[int, list[BoundArray]] = {}
        for array, (_, n) in zip(laid[len(recipe.operands) :], recipe.results, strict=False):
            self.results.setdefault(n, []).append(array)
        scratch = laid[len(recipe.operands) + len(recipe.results) :]
        self.contexts = [
            KernelContext(b=self.b, target=target, sizes=recipe.sizes, steps=recipe.steps,
                    operands=laid[: len(recipe.operands)],
                    results=self.results | {n: [array] for n, array in zip(kept, part, strict=True)})
            for part in (scratch[len(kept) * i : len(kept) * (i + 1)] for i in range(recipe.together))
        ]  # fmt: skip

    def run(self) -> LoopKernel:
        """Return the kernel: starting values of sums in memory, the rows, and the divisions that make sums means."""
        late = [n for n, step in enumerate(self.recipe.steps) if step.over == "memory"]
        for n in late:
            self._each(n, lambda n, access: self.b.store(access, self.contexts[0].start(n, 1)))
        self._outer()
        for n in late:
            if self.recipe.steps[n].taken is not None:
                self._each(n, lambda n, access: self.b.store(access, self._divide(n, self.b.load(access, 1))))
        return self.b.kernel(takes_turns=True)

    def _outer(self) -> None:
        """Write the loops over rows, some of which run side by side, and then the remaining rows."""
        together, outer = self.recipe.together, self.recipe.sizes[: self.recipe.split]
        if together == 1:
            self.b.nest(outer, lambda counters: self._rows([counters]))
            return
        whole = outer[-1] // together * together

        def inner(counters: Sequence[Index]) -> None:
            def several(counter: Index, _: Sequence[Value]) -> None:
                self._rows([(*counters, offset_index(counter, i)) for i in range(together)])

            self.b.loop(whole, together, (), several)
            self.b.loop(outer[-1], 1, (), lambda row, _: self._rows([(*counters, row)]), whole)

        self.b.nest(outer[:-1], inner)

    def _each(self, n: int, visit: Callable[[int, Access], None]) -> None:
        """Visit every element of a result, one number at a time."""
        for parameter, array in self.results[n]:
            axes = [(size, stride) for size, stride in zip(self.recipe.sizes, array.strides, strict=True) if stride]

            def inner(counters: Sequence[Index], p: Parameter = parameter, axes: Any = axes) -> None:
                visit(n, self.b.access(p, list(zip(counters, [s for _, s in axes], strict=True)), 1, 1))

            self.b.nest([size for size, _ in axes], inner)

    def _divide(self, n: int, total: Value) -> Value:
        """Return a mean from a sum; any other reduction as it is."""
        step = self.recipe.steps[n]
        if step.taken is None:
            return total
        return self.b.op("div", total, self.b.constant(float(step.taken), total.type))

    def _rows(self, rows: Sequence[Sequence[Index]]) -> None:
        """Write rows side by side, stage by stage, so that no row waits alone for its reduction."""
        steps, pairs = self.recipe.steps, list(zip(self.contexts, rows, strict=False))
        for stage in range(1 + max(step.stage for step in steps)):
            numbers = [n for n, step in enumerate(steps) if step.stage == stage]
            for context, counters in pairs:
                for n in numbers:
                    if steps[n].row and not steps[n].over:
                        self._number(n, context, counters)
                self._stage([n for n in numbers if not steps[n].row or steps[n].over], context, counters)

    def _number(self, n: int, context: KernelContext, counters: Sequence[Index]) -> None:
        """Write a step that gives a number per row."""
        step = self.recipe.steps[n]
        args = [context.number(arg, counters) for arg in step.args]
        self._note(n, functions.compute(self.b, step.op, step.dtype, args), context, counters)

    def _note(self, n: int, value: Value, context: KernelContext, counters: Sequence[Index]) -> None:
        """Record a number of this row, and store it where it is a result."""
        context.rows[n] = value
        for laid in self.results.get(n, ()):
            self.b.store(context.at(laid, counters), ir.cast(self.b, value, laid[1].dtype))

    def _stage(self, numbers: Sequence[int], context: KernelContext, counters: Sequence[Index]) -> None:
        """Write the steps of a stage over one row, and record the row's reductions."""
        if not numbers:
            return
        folds = [n for n in numbers if self.recipe.steps[n].over == "row"]
        starts = [context.start(n, LANES) for n in folds]
        totals = self._axes(self.recipe.split, numbers, context, counters, starts)
        for n, total in zip(folds, totals, strict=True):
            self._note(n, self._divide(n, self.b.fold(self.recipe.steps[n].join, total)), context, counters)

    def _axes(
        self,
        axis: int,
        numbers: Sequence[int],
        context: KernelContext,
        counters: Sequence[Index],
        totals: Sequence[Value],
    ) -> Sequence[Value]:
        """Write the loops over the axes of a row; return the totals of its reductions."""
        if axis == len(self.recipe.sizes) - 1:
            return RowLoops(context, numbers, counters).run(totals)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            return self._axes(axis + 1, numbers, context, (*counters, counter), carried)

        return self.b.loop(self.recipe.sizes[axis], 1, totals, turn)


BLOCK = 1 << 13  # elements that are summed by themselves in a long row, so that rounding errors do not add up
WIDE = 4 * LANES  # the lanes of vectors in long rows

BoundArray = tuple[Parameter, ArrayLayout]


@dataclass
class KernelContext:
    """The state that a kernel's loops share: arrays by operand and step, and the numbers of this row."""

    b: LoopBuilder
    target: Target
    sizes: Sequence[int]
    steps: Sequence[GroupStep]
    operands: Sequence[BoundArray]
    results: dict[int, list[BoundArray]]
    rows: dict[int, Value] = field(default_factory=dict)

    def start(self, n: int, lanes: int) -> Constant:
        """Return the starting value of a reduction."""
        step = self.steps[n]
        return self.b.constant(identity(step.join, step.dtype), Type(step.dtype, lanes))

    def joined(self, n: int, left: Value, right: Value) -> Value:
        """Return two parts of a reduction joined."""
        return ir.JOINS[self.steps[n].join](self.b, left, right)

    def number(self, arg: Argument, counters: Sequence[Index]) -> Value:
        """Return an argument that is one number at these counters, of the first axes or of all but the last."""
        kind, *what = arg
        if kind == "number":
            dtype, raw = what
            return self.b.constant(np.frombuffer(raw, np.dtype(dtype))[0].item(), Type(dtype, 1))
        return self.rows[what[0]] if kind == "step" else self.b.load(self.at(self.operands[what[0]], counters), 1)

    def at(self, laid: BoundArray, counters: Sequence[Index]) -> Access:
        """Return the access of one element."""
        return self.b.access(laid[0], list(zip(counters, laid[1].strides, strict=False)), 0, 1)


class _Chunk(NamedTuple):
    """A vector along the last axis: its start and counter, its lanes, and how many of them count."""

    start: Index
    counter: Index
    lanes: int
    active: int


class RowLoops:
    """The steps of one stage along the last axis, at these counters of the other axes."""

    def __init__(self, context: KernelContext, numbers: Sequence[int], counters: Sequence[Index]) -> None:
        self.context, self.b = context, context.b
        self.numbers, self.counters = numbers, counters
        steps = context.steps
        self.folds = [n for n in numbers if steps[n].over == "row"]
        sums = [n for n in numbers if steps[n].over == "memory"]
        self.sums = [n for n in sums if not context.results[n][0][1].strides[-1]]  # into one number a row
        self.carried = [*self.folds, *self.sums]
        self.once = {a: context.number(a, counters) for n in numbers for a in steps[n].args if self._is_number(a)}

    def _is_number(self, arg: Argument) -> bool:
        """Whether an argument is the same along the axis."""
        kind, what, *_ = arg
        if kind == "step":
            return self.context.steps[what].row
        return kind == "number" or not self.context.operands[what][1].strides[-1]

    def run(self, totals: Sequence[Value]) -> Sequence[Value]:
        """Write the loop; return the row reductions, joined with these totals."""
        size = self.context.sizes[-1]
        carried = [*totals, *(self.context.start(n, LANES) for n in self.sums)]
        if carried and size > 2 * BLOCK:
            carried = self._blocks(size, carried)
        else:
            carried = self._vectors(0, size, carried)
        for n, total in zip(self.sums, carried[len(totals) :], strict=True):
            part = self.b.fold(self.context.steps[n].join, total)
            for laid in self.context.results[n]:
                access = self.context.at(laid, self.counters)
                self.b.store(access, self.context.joined(n, self.b.load(access, 1), part))
        return carried[: len(totals)]

    def _blocks(self, size: int, carried: list[Value]) -> list[Value]:
        """Write blocks of a long row, each reduced by itself; return the totals."""
        whole = size // BLOCK

        def turn(counter: Index, totals: Sequence[Value]) -> Sequence[Value]:
            return self._join(totals, self._vectors(counter, BLOCK, self._starts(LANES)))

        totals = list(self.b.loop(whole * BLOCK, BLOCK, carried, turn))
        if size % BLOCK:
            rest = self._vectors(whole * BLOCK, size % BLOCK, self._starts(LANES), wide=False)  # less code
            totals = self._join(totals, rest)
        return totals

    def _starts(self, lanes: int) -> list[Value]:
        return [self.context.start(n, lanes) for n in self.carried]

    def _join(self, totals: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
        return [self.context.joined(n, t, p) for n, t, p in zip(self.carried, totals, parts, strict=True)]

    def _vectors(self, start: Index, size: int, carried: list[Value], wide: bool = True) -> list[Value]:
        """Write all vectors of `size` elements from a start on, wide or of 16 lanes, and the remainder."""
        width = WIDE if wide else LANES
        done = size // width * width
        if done:
            carried = self._join(carried, self._wide(start, done)) if wide else self._narrow(start, done, carried)
        return self._rest(start, done, size, carried) if size > done else carried

    def _wide(self, start: Index, stop: int) -> list[Value]:
        """Write loops over wide vectors, in parts of four registers; return their reductions in 16 lanes."""
        lanes = min(WIDE, 4 * self.context.target.lanes)
        count, size, fixed = WIDE // lanes, len(self.carried), self._spread(lanes)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            chunks = [_Chunk(start, offset_index(counter, i * lanes), lanes, lanes) for i in range(count)]
            return self._together(chunks, carried, fixed)

        totals = self.b.loop(stop, WIDE, self._starts(lanes) * count, turn)
        return [self._halve(n, totals[i::size]) for i, n in enumerate(self.carried)]

    def _narrow(self, start: Index, stop: int, totals: Sequence[Value]) -> list[Value]:
        """Write a loop over vectors of 16 lanes, one after the other; return the totals."""
        fixed = self._spread(LANES)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            return self._together([_Chunk(start, counter, LANES, LANES)], carried, fixed)

        return list(self.b.loop(stop, LANES, totals, turn))

    def _rest(self, start: Index, first: int, size: int, totals: Sequence[Value]) -> list[Value]:
        """Write the remaining vectors of 16 lanes side by side; return the totals, joined in order."""
        chunks = [_Chunk(start, at, LANES, min(LANES, size - at)) for at in range(first, size, LANES)]
        reduced = dict(zip(self.carried, totals, strict=True))
        self._run(chunks, [reduced] * len(chunks), self._spread(LANES))
        return list(reduced.values())

    def _spread(self, lanes: int) -> dict[Argument, Value]:
        """Return the arguments that are the same along the axis, spread to every lane."""
        return {arg: self.b.splat(number, lanes) for arg, number in self.once.items()}

    def _halve(self, n: int, parts: Sequence[Value]) -> Value:
        """Return the parts of a reduction joined to 16 lanes: upper halves of vectors with the lower ones."""
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self.context.joined(n, a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        (wide,) = parts
        while wide.type.lanes > LANES:
            type = Type(wide.type.dtype, wide.type.lanes // 2)
            front, back = (self.b.op(name, wide, type=type) for name in ("front", "back"))
            wide = self.context.joined(n, front, back)
        return wide

    def _together(self, chunks: Sequence[_Chunk], totals: Sequence[Value], fixed: dict[Argument, Value]) -> list[Value]:
        """Write the steps on vectors that each have totals of their own; return the totals, vector by vector."""
        count = len(self.carried)
        rows = [dict(zip(self.carried, totals[i * count : (i + 1) * count], strict=True)) for i in range(len(chunks))]
        self._run(chunks, rows, fixed)
        return [total for reduced in rows for total in reduced.values()]

    def _run(self, chunks: Sequence[_Chunk], totals: Sequence[dict[int, Value]], fixed: dict[Argument, Value]) -> None:
        """Write each step on all of these vectors."""
        values = [dict(fixed) for _ in chunks]
        for n in self.numbers:
            for chunk, reduced, computed in zip(chunks, totals, values, strict=True):
                self._step(n, chunk, reduced, computed)

    def _step(self, n: int, chunk: _Chunk, reduced: dict[int, Value], values: dict[Argument, Value]) -> None:
        """Write one step on one vector."""
        step = self.context.steps[n]
        args = [self._argument(arg, chunk, values) for arg in step.args]
        if not step.over:
            values["step", n] = functions.compute(self.b, step.op, step.dtype, args)
            self._write(n, values["step", n], chunk)
            return
        value = ir.cast(self.b, args[0], step.dtype)
        if n in reduced:
            reduced[n] = self.context.joined(n, reduced[n], self._active(n, value, chunk))
        else:
            self._add(n, value, chunk)

    def _argument(self, arg: Argument, chunk: _Chunk, values: dict[Argument, Value]) -> Value:
        """Return the value of an argument, loaded from an operand or from an earlier stage's result."""
        if arg not in values:
            laid = self.context.operands[arg[1]] if arg[0] == "operand" else self.context.results[arg[1]][0]
            values[arg] = self.b.load(self._access(laid, chunk), chunk.lanes)
        return values[arg]

    def _access(self, laid: BoundArray, chunk: _Chunk) -> Access:
        parameter, array = laid
        step = array.strides[-1]
        terms = [*zip(self.counters, array.strides, strict=False), (chunk.start, step), (chunk.counter, step)]
        return self.b.access(parameter, terms, step, chunk.active)

    def _write(self, n: int, value: Value, chunk: _Chunk) -> None:
        for laid in self.context.results.get(n, ()):
            self.b.store(self._access(laid, chunk), ir.cast(self.b, value, laid[1].dtype))

    def _add(self, n: int, value: Value, chunk: _Chunk) -> None:
        """Join a value with the elements in memory."""
        for laid in self.context.results[n]:
            access = self._access(laid, chunk)
            self.b.store(access, self.context.joined(n, self.b.load(access, chunk.lanes), value))

    def _active(self, n: int, value: Value, chunk: _Chunk) -> Value:
        """Return the value with the identity in the lanes that do not count."""
        if chunk.active == chunk.lanes:
            return value
        mask = self.b.constant(tuple(i < chunk.active for i in range(chunk.lanes)), Type("b1", chunk.lanes))
        return self.b.op("select", mask, value, self.context.start(n, chunk.lanes), type=value.type)
