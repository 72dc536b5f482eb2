"""The innermost loops of a group: vectors along the last axis, and what a row adds up on the way.

Vectors are wide where a row is long: of several times 16 lanes, whose instructions have nothing to do with each other,
so that the processor works on all of them while each waits for its own. What is reduced is then halved to 16 lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from static.backends.native import functions, operations
from static.backends.native.ir import LANES, Access, Constant, Index, LoopBuilder, Parameter, Type, Value, shifted
from static.backends.native.steps import Argument, ArrayLayout, GroupStep, identity
from static.backends.native.target import Target

BLOCK = 1 << 13  # elements that are summed by themselves in a long row, so that rounding errors do not add up
WIDE = 4 * LANES  # the lanes of vectors in long rows

BoundArray = tuple[Parameter, ArrayLayout]


@dataclass
class KernelContext:
    """What the loops of a kernel share: arrays by the numbers of operands and steps, and the numbers of this row."""

    b: LoopBuilder
    target: Target
    sizes: Sequence[int]
    steps: Sequence[GroupStep]
    operands: Sequence[BoundArray]
    results: dict[int, list[BoundArray]]
    rows: dict[int, Value] = field(default_factory=dict)

    def start(self, n: int, lanes: int) -> Constant:
        """What a reduction starts with."""
        step = self.steps[n]
        return self.b.constant(identity(step.join, step.dtype), Type(step.dtype, lanes))

    def joined(self, n: int, left: Value, right: Value) -> Value:
        """Two parts of a reduction as one."""
        return operations.JOINS[self.steps[n].join](self.b, left, right)

    def number(self, arg: Argument, counters: Sequence[Index]) -> Value:
        """An argument that is one number at these counters, of the first axes or of all but the last."""
        kind, *what = arg
        if kind == "number":
            dtype, raw = what
            return self.b.constant(np.frombuffer(raw, np.dtype(dtype))[0].item(), Type(dtype, 1))
        return self.rows[what[0]] if kind == "step" else self.b.load(self.at(self.operands[what[0]], counters), 1)

    def at(self, laid: BoundArray, counters: Sequence[Index]) -> Access:
        """The place of one element."""
        return self.b.access(laid[0], list(zip(counters, laid[1].strides, strict=False)), 0, 1)


class _Chunk(NamedTuple):
    """A vector along the last axis: at a start and a counter; its lanes, and how many of these count."""

    start: Index
    counter: Index
    lanes: int
    active: int


class RowLoops:
    """The steps of one stage along the last axis, at the counters of the others."""

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
        """Gives what is reduced over rows, joined with these totals."""
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
        """Blocks of a long row, each reduced by itself."""
        whole = size // BLOCK

        def turn(counter: Index, totals: Sequence[Value]) -> Sequence[Value]:
            return self._joined(totals, self._vectors(counter, BLOCK, self._starts(LANES)))

        totals = list(self.b.loop(whole * BLOCK, BLOCK, carried, turn))
        if size % BLOCK:
            rest = self._vectors(whole * BLOCK, size % BLOCK, self._starts(LANES), wide=False)  # less code
            totals = self._joined(totals, rest)
        return totals

    def _starts(self, lanes: int) -> list[Value]:
        return [self.context.start(n, lanes) for n in self.carried]

    def _joined(self, totals: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
        return [self.context.joined(n, t, p) for n, t, p in zip(self.carried, totals, parts, strict=True)]

    def _vectors(self, start: Index, size: int, carried: list[Value], wide: bool = True) -> list[Value]:
        """All vectors of so many elements from a start on: wide ones, or those of 16 lanes, and what is left."""
        width = WIDE if wide else LANES
        done = size // width * width
        if done:
            carried = self._joined(carried, self._wide(start, done)) if wide else self._narrow(start, done, carried)
        return self._rest(start, done, size, carried) if size > done else carried

    def _wide(self, start: Index, stop: int) -> list[Value]:
        """What wide vectors reduce, in 16 lanes. Each is computed in parts that take four registers."""
        lanes = min(WIDE, 4 * self.context.target.lanes)
        count, size, fixed = WIDE // lanes, len(self.carried), self._spread(lanes)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            chunks = [_Chunk(start, shifted(counter, i * lanes), lanes, lanes) for i in range(count)]
            return self._together(chunks, carried, fixed)

        totals = self.b.loop(stop, WIDE, self._starts(lanes) * count, turn)
        return [self._halved(n, totals[i::size]) for i, n in enumerate(self.carried)]

    def _narrow(self, start: Index, stop: int, totals: Sequence[Value]) -> list[Value]:
        """Vectors of 16 lanes one after the other."""
        fixed = self._spread(LANES)

        def turn(counter: Index, carried: Sequence[Value]) -> Sequence[Value]:
            return self._together([_Chunk(start, counter, LANES, LANES)], carried, fixed)

        return list(self.b.loop(stop, LANES, totals, turn))

    def _rest(self, start: Index, first: int, size: int, totals: Sequence[Value]) -> list[Value]:
        """The vectors of 16 lanes that are left, side by side; what they reduce is joined in their order."""
        chunks = [_Chunk(start, at, LANES, min(LANES, size - at)) for at in range(first, size, LANES)]
        reduced = dict(zip(self.carried, totals, strict=True))
        self._run(chunks, [reduced] * len(chunks), self._spread(LANES))
        return list(reduced.values())

    def _spread(self, lanes: int) -> dict[Argument, Value]:
        """What is the same along the axis, in every lane."""
        return {arg: self.b.splat(number, lanes) for arg, number in self.once.items()}

    def _halved(self, n: int, parts: Sequence[Value]) -> Value:
        """The parts of a reduction in 16 lanes: the upper half of a wide vector joined with the lower."""
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
        """The steps on vectors with totals of their own. Gives those of the first, of the second, and so on."""
        count = len(self.carried)
        rows = [dict(zip(self.carried, totals[i * count : (i + 1) * count], strict=True)) for i in range(len(chunks))]
        self._run(chunks, rows, fixed)
        return [total for reduced in rows for total in reduced.values()]

    def _run(self, chunks: Sequence[_Chunk], totals: Sequence[dict[int, Value]], fixed: dict[Argument, Value]) -> None:
        """Each step on all of these vectors."""
        values = [dict(fixed) for _ in chunks]
        for n in self.numbers:
            for chunk, reduced, computed in zip(chunks, totals, values, strict=True):
                self._step(n, chunk, reduced, computed)

    def _step(self, n: int, chunk: _Chunk, reduced: dict[int, Value], values: dict[Argument, Value]) -> None:
        """One step on one vector."""
        step = self.context.steps[n]
        args = [self._argument(arg, chunk, values) for arg in step.args]
        if not step.over:
            values["step", n] = functions.compute(self.b, step.name, step.dtype, args)
            self._write(n, values["step", n], chunk)
            return
        value = operations.cast(self.b, args[0], step.dtype)
        if n in reduced:
            reduced[n] = self.context.joined(n, reduced[n], self._active(n, value, chunk))
        else:
            self._add(n, value, chunk)

    def _argument(self, arg: Argument, chunk: _Chunk, values: dict[Argument, Value]) -> Value:
        """The value of an argument; what an earlier stage has computed lies where that has put it."""
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
            self.b.store(self._access(laid, chunk), operations.cast(self.b, value, laid[1].dtype))

    def _add(self, n: int, value: Value, chunk: _Chunk) -> None:
        """Join a value with what lies in memory."""
        for laid in self.context.results[n]:
            access = self._access(laid, chunk)
            self.b.store(access, self.context.joined(n, self.b.load(access, chunk.lanes), value))

    def _active(self, n: int, value: Value, chunk: _Chunk) -> Value:
        """The value with the identity in the lanes that do not count."""
        if chunk.active == chunk.lanes:
            return value
        mask = self.b.constant(tuple(i < chunk.active for i in range(chunk.lanes)), Type("b1", chunk.lanes))
        return self.b.op("select", mask, value, self.context.start(n, chunk.lanes), type=value.type)
