"""A group as loops: over rows, and in each row over vectors; what nobody outside reads stays in registers.

A recipe says all that the code depends on, and is the key of a kernel: groups that do the same share one. In a row the
steps run in stages. A reduction of rows is carried through the loops of a row in vectors and folded at its end; the
steps that read it run in the next stage, and what they read of an earlier one passes through memory.

Sums are made in one order, whatever the machine: in the lanes of vectors, blocks of a long row by themselves, then
halves of a vector. A sum over rows is added up row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from static.backends.native import functions, operations
from static.backends.native.ir import LANES, Access, Index, LoopBuilder, LoopKernel, Parameter, Value, shifted
from static.backends.native.laid import Extent, row_major
from static.backends.native.rows import BoundArray, KernelContext, RowLoops
from static.backends.native.steps import ArrayLayout, GroupStep
from static.backends.native.target import Target

ROWS = 2  # that run side by side
SHORT, FEW = 1024, 32  # elements of a row, and steps, up to which they do: it saves less of more, and takes more code


class Group(NamedTuple):
    """A recipe: the sizes of the axes, of which those from `split` on make a row, and what is read, done and written.

    Each result is an array and the number of the step that it is of.
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
        """What is read and written of operands and results."""
        read = [Extent.of(array.dtype, self.sizes, array.strides) for array in self.operands]
        return read + [Extent.of(a.dtype, self.sizes, a.strides, is_written=True) for a, _ in self.results]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """The dtype and elements of each buffer that the kernel needs beside operands and results."""
        del target  # the same on every machine
        row = math.prod(self.sizes[self.split :])
        return [(self.steps[number].gives, row) for number in self.kept()] * self.together

    @property
    def together(self) -> int:
        """How many rows run side by side: some where each is short and waits for what it reduces."""
        waits = any(step.over == "row" for step in self.steps)
        is_short = math.prod(self.sizes[self.split :]) <= SHORT and len(self.steps) <= FEW
        return ROWS if waits and is_short and self.split and self.sizes[self.split - 1] >= ROWS else 1

    def kept(self) -> list[int]:
        """The steps whose values a later stage reads again, and that are no results."""
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
        """The kernel: its parameters are operands, results and scratch buffers, in this order."""
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
        """Write the kernel: what sums in memory start with, the rows, and what makes sums means."""
        late = [n for n, step in enumerate(self.recipe.steps) if step.over == "memory"]
        for n in late:
            self._each(n, lambda n, access: self.b.store(access, self.contexts[0].start(n, 1)))
        self._outer()
        for n in late:
            if self.recipe.steps[n].name == "mean":
                self._each(n, lambda n, access: self.b.store(access, self._divided(n, self.b.load(access, 1))))
        return self.b.kernel(takes_turns=True)

    def _outer(self) -> None:
        """The loops over rows, of which some run side by side, and then those that are left."""
        together, outer = self.recipe.together, self.recipe.sizes[: self.recipe.split]
        if together == 1:
            self.b.nest(outer, lambda counters: self._rows([counters]))
            return
        whole = outer[-1] // together * together

        def inner(counters: Sequence[Index]) -> None:
            def several(counter: Index, _: Sequence[Value]) -> None:
                self._rows([(*counters, shifted(counter, i)) for i in range(together)])

            self.b.loop(whole, together, (), several)
            self.b.loop(outer[-1], 1, (), lambda row, _: self._rows([(*counters, row)]), whole)

        self.b.nest(outer[:-1], inner)

    def _each(self, n: int, visit: Callable[[int, Access], None]) -> None:
        """Visit every element of a result, a number at a time."""
        for parameter, array in self.results[n]:
            axes = [(size, stride) for size, stride in zip(self.recipe.sizes, array.strides, strict=True) if stride]

            def inner(counters: Sequence[Index], p: Parameter = parameter, axes: Any = axes) -> None:
                visit(n, self.b.access(p, list(zip(counters, [s for _, s in axes], strict=True)), 1, 1))

            self.b.nest([size for size, _ in axes], inner)

    def _divided(self, n: int, total: Value) -> Value:
        """A mean of a sum; any other reduction is what it is."""
        step = self.recipe.steps[n]
        if step.name != "mean":
            return total
        return self.b.op("div", total, self.b.constant(float(step.taken), total.type))

    def _rows(self, rows: Sequence[Sequence[Index]]) -> None:
        """Rows side by side: each stage of all of them, so that none waits for what it reduces by itself."""
        steps, pairs = self.recipe.steps, list(zip(self.contexts, rows, strict=False))
        for stage in range(1 + max(step.stage for step in steps)):
            numbers = [n for n, step in enumerate(steps) if step.stage == stage]
            for context, counters in pairs:
                for n in numbers:
                    if steps[n].row and not steps[n].over:
                        self._number(n, context, counters)
                self._stage([n for n in numbers if not steps[n].row or steps[n].over], context, counters)

    def _number(self, n: int, context: KernelContext, counters: Sequence[Index]) -> None:
        """A step that gives a number a row."""
        step = self.recipe.steps[n]
        args = [context.number(arg, counters) for arg in step.args]
        self._note(n, functions.compute(self.b, step.name, step.dtype, args), context, counters)

    def _note(self, n: int, value: Value, context: KernelContext, counters: Sequence[Index]) -> None:
        """Note a number of this row, and write it where it is a result."""
        context.rows[n] = value
        for laid in self.results.get(n, ()):
            self.b.store(context.at(laid, counters), operations.cast(self.b, value, laid[1].dtype))

    def _stage(self, numbers: Sequence[int], context: KernelContext, counters: Sequence[Index]) -> None:
        """The steps of a stage over one row; then what it reduces is known."""
        if not numbers:
            return
        folds = [n for n in numbers if self.recipe.steps[n].over == "row"]
        starts = [context.start(n, LANES) for n in folds]
        totals = self._axes(self.recipe.split, numbers, context, counters, starts)
        for n, total in zip(folds, totals, strict=True):
            self._note(n, self._divided(n, self.b.fold(self.recipe.steps[n].join, total)), context, counters)

    def _axes(
        self,
        axis: int,
        numbers: Sequence[int],
        context: KernelContext,
        counters: Sequence[Index],
        totals: Sequence[Value],
    ) -> Sequence[Value]:
        """The loops over the axes of a row, which carry what is reduced."""
        if axis == len(self.recipe.sizes) - 1:
            return RowLoops(context, numbers, counters).run(totals)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            return self._axes(axis + 1, numbers, context, (*counters, counter), carried)

        return self.b.loop(self.recipe.sizes[axis], 1, totals, turn)
