"""A group as loops: over rows, and in each row over vectors; what nobody outside reads stays in registers.

A recipe says all that the code depends on, and is the key of a kernel: groups that do the same share one. In a row the
steps run in stages. A reduction of rows is carried through the loops of a row in vectors and folded at its end; the
steps that read it run in the next stage, and what they read of an earlier one passes through memory.

Sums are made in one order, whatever the machine: vectors of 16 lanes, side by side where steps are cheap, blocks of a
long row by themselves, then halves of a vector. A sum over rows is added up row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from static.backends.native import functions
from static.backends.native.ir import LANES, Builder, Constant, Index, Kernel, Parameter, Place, Type, Value

BLOCK = 1 << 13  # elements that are summed by themselves in a long row, so that rounding errors do not add up
SIDE_BY_SIDE = 4  # accumulators of a reduction whose steps are cheap: an addition takes that long
CHEAP = 8  # steps
JOINED_BY = {"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul", "any": "or", "all": "and"}

Terms = list[tuple[Index, int]]


class Array(NamedTuple):
    """An operand or result: its dtype, and how many elements lie between neighbours along each axis."""

    dtype: str
    strides: tuple[int, ...]


class Step(NamedTuple):
    """One op: what it is computed in, where its arguments are, and when it runs.

    It `gives` another dtype where it compares. `args` are ("step", number), ("operand", number) or ("number", dtype,
    bytes). `row` tells whether it gives a number
    a row. Of a reduction, `over` is "row" or "memory", and `taken` of a mean how many numbers it is taken of.
    """

    name: str
    dtype: str
    gives: str
    args: tuple[tuple[Any, ...], ...]
    stage: int
    row: bool
    over: str = ""
    taken: int = 0


class Group(NamedTuple):
    """A recipe: the sizes of the axes, of which those from `split` on make a row, and what is read, done and written.

    Each result is an array and the number of the step that it is of.
    """

    sizes: tuple[int, ...]
    split: int
    operands: tuple[Array, ...]
    results: tuple[tuple[Array, int], ...]
    steps: tuple[Step, ...]

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return math.prod(self.sizes) * len(self.steps)

    def scratch(self) -> list[tuple[str, int]]:
        """The dtype and elements of each buffer that the kernel needs beside operands and results."""
        row = math.prod(self.sizes[self.split :])
        return [(self.steps[number].gives, row) for number in self.kept()]

    def kept(self) -> list[int]:
        """The steps whose values a later stage reads again, and that are no results."""
        written = {number for _, number in self.results}
        found: dict[int, None] = {}
        for step in self.steps:
            for kind, number, *_ in step.args:
                if kind == "step" and self._passes(number, step.stage) and number not in written:
                    found[number] = None
        return list(found)

    def _passes(self, number: int, stage: int) -> bool:
        source = self.steps[number]
        return not source.row and not source.over and source.stage < stage

    def lower(self) -> Kernel:
        """The kernel: its parameters are operands, results and scratch buffers, in this order."""
        return _Lowering(self).run()


def identity(join: str, dtype: str) -> Any:
    """What joined with a number leaves it as it is."""
    if join in ("max", "min"):
        low, high = (-math.inf, math.inf) if dtype[0] == "f" else _range(dtype)
        return low if join == "max" else high
    return {"add": -0.0 if dtype[0] == "f" else 0, "mul": 1, "or": False, "and": True}[join]


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "b1":
        return 0, 1
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)


class _Chunk(NamedTuple):
    """Where a vector lies along the last axis: a start, a counter, an offset, and the lanes that count."""

    start: Index
    counter: Index
    offset: int = 0
    active: int = LANES


class _Lowering:
    def __init__(self, recipe: Group) -> None:
        self.recipe = recipe
        self.kept = recipe.kept()
        arrays = [*recipe.operands, *(array for array, _ in recipe.results)]
        dtypes = [a.dtype for a in arrays] + [recipe.steps[n].gives for n in self.kept]
        self.b = Builder(dtypes)
        read = len(recipe.operands)
        self.operands = list(zip(self.b.parameters, recipe.operands, strict=False))
        self.results: dict[int, list[tuple[Parameter, Array]]] = {}
        for parameter, (array, number) in zip(self.b.parameters[read:], recipe.results, strict=False):
            self.results.setdefault(number, []).append((parameter, array))
        row = recipe.sizes[recipe.split :]
        inner = (*[0] * recipe.split, *_row_major(row))
        for parameter, number in zip(self.b.parameters[len(arrays) :], self.kept, strict=True):
            self.results.setdefault(number, []).append((parameter, Array(parameter.type.dtype, inner)))
        self.rows: dict[int, Value] = {}

    def run(self) -> Kernel:
        """Write the kernel: what sums in memory start with, the rows, and what makes sums means."""
        late = [n for n, step in enumerate(self.recipe.steps) if step.over == "memory"]
        for number in late:
            self._each(number, self._start)
        self.b.nest(self.recipe.sizes[: self.recipe.split], self._row)
        for number in late:
            if self.recipe.steps[number].taken:
                self._each(number, self._divide)
        return self.b.kernel()

    # Sums over rows, which lie in memory ---------------------------------------------------------------------------

    def _each(self, number: int, visit: Callable[[int, Place], None]) -> None:
        """Visit every element of a result once, a number at a time; of several, the first is as good as the others."""
        for parameter, array in self.results[number]:
            axes = [(size, stride) for size, stride in zip(self.recipe.sizes, array.strides, strict=True) if stride]

            def inner(counters: Sequence[Index], p: Parameter = parameter, axes: Any = axes) -> None:
                visit(number, self.b.place(p, list(zip(counters, [s for _, s in axes], strict=True)), 1, 1))

            self.b.nest([size for size, _ in axes], inner)

    def _start(self, number: int, place: Place) -> None:
        step = self.recipe.steps[number]
        self.b.store(place, self.b.constant(self._start_of(step), Type(step.dtype, 1)))

    def _divide(self, number: int, place: Place) -> None:
        step = self.recipe.steps[number]
        self.b.store(place, self._divided(self.b.load(place, 1), step.taken))

    def _divided(self, total: Value, count: int) -> Value:
        return self.b.op("div", total, self.b.constant(float(count), total.type))

    # Rows -------------------------------------------------------------------------------------------------------------

    def _row(self, counters: Sequence[Index]) -> None:
        for stage in range(1 + max(step.stage for step in self.recipe.steps)):
            numbers = [n for n, step in enumerate(self.recipe.steps) if step.stage == stage]
            for n in numbers:
                if self.recipe.steps[n].row and not self.recipe.steps[n].over:
                    self._number(n, counters)
            self._stage([n for n in numbers if not self.recipe.steps[n].row or self.recipe.steps[n].over], counters)

    def _number(self, n: int, counters: Sequence[Index]) -> None:
        """A step that gives a number a row."""
        step = self.recipe.steps[n]
        args = []
        for kind, *what in step.args:
            if kind == "number":
                args.append(self._constant(what, 1))
            elif kind == "step":
                args.append(self.rows[what[0]])
            else:
                parameter, array = self.operands[what[0]]
                args.append(self.b.load(self._at(parameter, array, counters, 0, 1), 1))
        self.rows[n] = functions.compute(self.b, step.name, step.dtype, args)
        self._write_row(n, counters)

    def _write_row(self, n: int, counters: Sequence[Index]) -> None:
        for parameter, array in self.results.get(n, ()):
            value = functions.cast(self.b, self.rows[n], parameter.type.dtype)
            self.b.store(self._at(parameter, array, counters, 0, 1), value)

    def _at(self, parameter: Parameter, array: Array, counters: Sequence[Index], offset: int, active: int) -> Place:
        step = array.strides[-1] if len(counters) == len(array.strides) else 0
        terms = list(zip(counters, array.strides, strict=False))
        return self.b.place(parameter, terms, step, active, offset * step)

    def _constant(self, what: Sequence[Any], lanes: int) -> Value:
        dtype, raw = what
        return self.b.constant(np.frombuffer(raw, np.dtype(dtype))[0].item(), Type(dtype, lanes))

    def _stage(self, numbers: Sequence[int], counters: Sequence[Index]) -> None:
        """The steps of a stage over one row; then what it reduces is known."""
        if not numbers:
            return
        folds = [n for n in numbers if self.recipe.steps[n].over == "row"]
        inits = [self._identity(n) for n in folds]
        totals = self._axes(self.recipe.split, numbers, counters, inits)
        for n, total in zip(folds, totals, strict=True):
            step = self.recipe.steps[n]
            self.rows[n] = self.b.fold(JOINED_BY[step.name], total)
            if step.taken:
                self.rows[n] = self._divided(self.rows[n], step.taken)
            self._write_row(n, counters)

    def _identity(self, n: int) -> Constant:
        step = self.recipe.steps[n]
        return self.b.constant(self._start_of(step), Type(step.dtype, LANES))

    def _start_of(self, step: Step) -> Any:
        """What a reduction starts with: of no floats at all the sum is 0.0."""
        number = identity(JOINED_BY[step.name], step.dtype)
        return abs(number) if 0 in self.recipe.sizes and number == 0 else number

    def _axes(
        self, axis: int, numbers: Sequence[int], counters: Sequence[Index], totals: Sequence[Value]
    ) -> Sequence[Value]:
        """The loops over the axes of a row, which carry what is reduced."""
        if axis == len(self.recipe.sizes) - 1:
            return _Inner(self, numbers, counters).run(totals)
        return self.b.loop(
            self.recipe.sizes[axis],
            1,
            totals,
            lambda counter, carried: self._axes(axis + 1, numbers, (*counters, counter), carried),
        )


class _Inner:
    """The innermost loop of a stage: vectors along the last axis."""

    def __init__(self, lowering: _Lowering, numbers: Sequence[int], counters: Sequence[Index]) -> None:
        self.outer, self.b, self.recipe = lowering, lowering.b, lowering.recipe
        self.numbers, self.counters = numbers, counters
        steps = self.recipe.steps
        self.folds = [n for n in numbers if steps[n].over == "row"]
        self.sums = [n for n in numbers if steps[n].over == "memory"]
        self.carried_sums = [n for n in self.sums if not lowering.results[n][0][1].strides[-1]]
        self.fixed: dict[tuple[Any, ...], Value] = {}
        for n in numbers:
            for arg in steps[n].args:
                self._prepare(arg)

    def _prepare(self, arg: tuple[Any, ...]) -> None:
        """What is the same along the axis, before the loop."""
        kind, *what = arg
        if arg in self.fixed:
            return
        if kind == "number":
            self.fixed[arg] = self.outer._constant(what, LANES)
        elif kind == "step" and self._is_row(what[0]):
            self.fixed[arg] = self.b.splat(self.outer.rows[what[0]], LANES)
        elif kind == "operand" and not self.recipe.operands[what[0]].strides[-1]:
            parameter, array = self.outer.operands[what[0]]
            one = self.b.load(self.outer._at(parameter, array, self.counters, 0, 1), 1)
            self.fixed[arg] = self.b.splat(one, LANES)

    def _is_row(self, n: int) -> bool:
        return self.recipe.steps[n].row

    def run(self, totals: Sequence[Value]) -> Sequence[Value]:
        """Gives what is reduced over rows, joined with these totals."""
        carried = [*totals, *(self.outer._identity(n) for n in self.carried_sums)]
        size = self.recipe.sizes[-1]
        if carried and size > 2 * BLOCK:
            carried = list(self._blocks(size, carried))
        else:
            carried = list(self._vectors(0, size, 0, carried))
        for n, total in zip(self.carried_sums, carried[len(totals) :], strict=True):
            self._add_to_memory(n, total)
        return carried[: len(totals)]

    def _add_to_memory(self, n: int, total: Value) -> None:
        name = JOINED_BY[self.recipe.steps[n].name]
        part = self.b.fold(name, total)
        for parameter, array in self.outer.results[n]:
            place = self.outer._at(parameter, array, self.counters, 0, 1)
            self.b.store(place, functions.JOINS[name](self.b, self.b.load(place, 1), part))

    def _blocks(self, size: int, carried: Sequence[Value]) -> Sequence[Value]:
        """Blocks of a long row, each reduced by itself."""
        whole = size // BLOCK

        def turn(counter: Index, totals: Sequence[Value]) -> Sequence[Value]:
            return self._joined(totals, self._vectors(counter, BLOCK, 0, self._fresh()))

        totals = self.b.loop(whole * BLOCK, BLOCK, carried, turn)
        if size % BLOCK:
            totals = self._joined(totals, self._vectors(whole * BLOCK, size % BLOCK, 0, self._fresh()))
        return totals

    def _fresh(self) -> list[Value]:
        return [self.outer._identity(n) for n in (*self.folds, *self.carried_sums)]

    def _joined(self, totals: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
        names = [JOINED_BY[self.recipe.steps[n].name] for n in (*self.folds, *self.carried_sums)]
        return [functions.JOINS[j](self.b, t, p) for j, t, p in zip(names, totals, parts, strict=True)]

    def _vectors(self, start: Index, size: int, done: int, carried: Sequence[Value]) -> Sequence[Value]:
        """All vectors of so many elements from a start on."""
        beside = SIDE_BY_SIDE if carried and len(self.numbers) <= CHEAP else 1
        wide = beside * LANES
        if beside > 1 and size >= 2 * wide:
            carried = self._unrolled(start, size // wide * wide, beside, carried)
            done = size // wide * wide

        def turn(counter: Index, totals: Sequence[Value]) -> Sequence[Value]:
            return self._vector(_Chunk(start, counter), totals)

        whole = size // LANES * LANES
        carried = self.b.loop(whole, LANES, carried, turn, done)
        if size % LANES:
            carried = self._vector(_Chunk(start, whole, 0, size % LANES), carried)
        return carried

    def _unrolled(self, start: Index, stop: int, beside: int, carried: Sequence[Value]) -> Sequence[Value]:
        """Vectors side by side, each with its own totals."""
        count = len(carried)
        inits = [*carried, *(self._fresh() * (beside - 1))]

        def turn(counter: Index, totals: Sequence[Value]) -> Sequence[Value]:
            given: list[Value] = []
            for i in range(beside):
                chunk = _Chunk(start, counter, i * LANES)
                given += self._vector(chunk, totals[i * count : (i + 1) * count])
            return given

        found = list(self.b.loop(stop, beside * LANES, inits, turn))
        parts = [found[i * count : (i + 1) * count] for i in range(beside)]
        while len(parts) > 1:
            parts = [self._joined(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        return parts[0]

    def _place(self, parameter: Parameter, array: Array, chunk: _Chunk) -> Place:
        start, counter, offset, active = chunk
        step = array.strides[-1]
        terms: Terms = [*zip(self.counters, array.strides, strict=False), (start, step), (counter, step)]
        return self.b.place(parameter, terms, step, active, offset * step)

    def _vector(self, chunk: _Chunk, totals: Sequence[Value]) -> list[Value]:
        """The steps on one vector of elements. Gives the totals with it."""
        given = dict(zip((*self.folds, *self.carried_sums), totals, strict=True))
        values: dict[tuple[Any, ...], Value] = {}
        for n in self.numbers:
            step = self.recipe.steps[n]
            args = [self._argument(arg, chunk, values) for arg in step.args]
            if not step.over:
                self._value(n, functions.compute(self.b, step.name, step.dtype, args), chunk, values)
                continue
            value, name = functions.cast(self.b, args[0], step.dtype), JOINED_BY[step.name]
            if n in given:
                given[n] = functions.JOINS[name](self.b, given[n], self._active(n, value, chunk.active))
            else:
                for parameter, array in self.outer.results[n]:
                    place = self._place(parameter, array, chunk)
                    self.b.store(place, functions.JOINS[name](self.b, self.b.load(place), value))
        return list(given.values())

    def _value(self, n: int, value: Value, chunk: _Chunk, values: dict[tuple[Any, ...], Value]) -> None:
        values["step", n] = value
        for parameter, array in self.outer.results.get(n, ()):
            stored = functions.cast(self.b, value, parameter.type.dtype)
            self.b.store(self._place(parameter, array, chunk), stored)

    def _argument(self, arg: tuple[Any, ...], chunk: _Chunk, values: dict[tuple[Any, ...], Value]) -> Value:
        if arg in self.fixed:
            return self.fixed[arg]
        if arg not in values:
            parameter, array = self.outer.operands[arg[1]] if arg[0] == "operand" else self.outer.results[arg[1]][0]
            values[arg] = self.b.load(self._place(parameter, array, chunk))
        return values[arg]

    def _active(self, n: int, value: Value, active: int) -> Value:
        """The value with the identity in the lanes that do not count."""
        if active == LANES:
            return value
        mask = self.b.constant(tuple(i < active for i in range(LANES)), Type("b1", LANES))
        return self.b.op("select", mask, value, self.outer._identity(n), type=value.type)


def _row_major(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
