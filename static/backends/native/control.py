"""Loops and branches as work on places: a scan is written out step by step, the others decide while they run.

A step of a scan runs the kernels of the step before on other places. So it needs no code of its own: the places of
its first steps are found, and those of all others lie as far apart as these do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.op import Op
from graphs.ops.control import scan_op, switch_op, while_op
from static.backends.native import recipes
from static.backends.native.flow import Flow, Location, Work, further
from static.backends.native.functions import dtype_of
from static.backends.native.laid import LaidArray
from static.backends.native.program import natives
from static.backends.native.target import NativeError
from static.backends.native.work import Adding, Start, WorkCollector
from static.codegen.kernels import resolve

TURNS = 2  # states lie in two places in turn, so that every second step lies alike


class _HeldGraph:
    """A graph that a node holds, as work. Inputs that `last` are the same each time that it runs."""

    def __init__(
        self, collector: WorkCollector, node: Node, graph: Graph, last: Collection[Node], *, again: bool = True
    ) -> None:
        self.collector, self.node, self.graph, self.last = collector, node, graph, last
        self.inner = collector.inside(node, graph, again=again)
        self.frame = self.inner.frame

    def run(self, inputs: Sequence[LaidArray], targets: Sequence[LaidArray | None]) -> tuple[Work, list[LaidArray]]:
        """The work on these inputs, which puts each output where it is wanted; and where outputs are computed."""
        self.inner.work = []
        bound = {node: self._check_spec(node, laid).place for node, laid in zip(self.graph.inputs, inputs, strict=True)}
        for output, target in zip(self.graph.outputs, targets, strict=True):
            if target and self._is_made(output):
                bound.setdefault(output, self._check_spec(output, target).place)

        def start(root: Node) -> Location:
            return bound.get(root) or self._private(root)

        for node in natives(self.frame.program):
            self.inner.add(node, start, lambda root: root in self.last or root.op is CONSTANT)
        outputs = [self.frame.laid(output, start) for output in self.graph.outputs]
        for source, target in zip(outputs, targets, strict=True):
            if target is not None:
                self.inner.work += recipes.copied(source, target)
        return self.inner.work, outputs

    def _check_spec(self, node: Node, laid: LaidArray) -> LaidArray:
        """The array for a node of this graph, which is one of its shape and dtype. Raises NativeError for another."""
        if (laid.shape, laid.dtype) != (self.frame.shape(node), node.spec.dtype):
            raise NativeError(f"native code would take {laid.shape} as {node.spec}; use backend='numpy'")
        return laid

    def _is_made(self, output: Node) -> bool:
        """Whether a result is written by the kernels of this graph, beside its arena."""
        return self.frame.root(output) is output and output.op is not INPUT and output not in self.frame.values

    def _private(self, root: Node) -> Location:
        """A place for what is made and handed to nobody."""
        return -1, self.collector.room((self.node, root), math.prod(self.frame.shape(root)), root.spec.dtype)


class _Scan:
    """A scan: its state lies in two places in turn, and what it stacks is written where it belongs."""

    def __init__(self, collector: WorkCollector, node: Node, start: Start) -> None:
        self.collector, self.node = collector, node
        attrs = {key: resolve(value, collector.frame.sizes) for key, value in node.attrs.items() if key != "body"}
        self.carry, self.xs, self.length = attrs["carry"], attrs["xs"], attrs["length"]
        self.reverse, self.save = attrs["reverse"], attrs["save"]
        self.graph: Graph = node.attrs["body"]
        self.body = _HeldGraph(collector, node, self.graph, set(self.graph.inputs[self.carry + self.xs :]))
        self.operands = _operands(collector, node, start)
        self.parts = _parts(collector, node, start)
        stacked = [(number, laid) for number, laid in self.parts if number >= self.carry]
        self.stacks = dict(reversed(stacked))
        self.states = _in_turn(collector, node, self.operands[: self.carry])

    def add(self) -> None:
        """Add the first state, the steps, and the last state."""
        work = self.collector.work
        for i in range(self.carry):
            work += recipes.copied(self.operands[i], self._state(i, 0))
        seen: list[Work] = []
        for number in range(self.length):
            if number < 2 * TURNS or number == self.length - 1:
                seen.append(self._step(number))
            work += seen[-1] if len(seen) > number or number == self.length - 1 else _later(seen, number)
        whole = {i: self._state(i, self.length) for i in range(self.carry)} | self.stacks
        for number, laid in self.parts:
            work += recipes.copied(whole[number], laid)

    def _step(self, number: int) -> Work:
        """The work of a step."""
        row = self.length - 1 - number if self.reverse else number
        states, after = ([self._state(i, n) for i in range(self.carry)] for n in (number, number + 1))
        inputs = [*states, *(_row_of(laid, row) for laid in self.operands[self.carry : self.carry + self.xs])]
        inputs += self.operands[self.carry + self.xs :]
        targets = [*after, *(self._stacked(i, row) for i in range(self.carry, len(self.graph.outputs)))]
        return self.body.run(inputs, targets)[0]

    def _state(self, i: int, number: int) -> LaidArray:
        """Where a state lies before a step: where it is saved, or in one of two places in turn."""
        if self.save and number < self.length:
            row = self.length - 1 - number if self.reverse else number
            saved = self._stacked(len(self.graph.outputs) + i, row)
            if saved is not None:
                return saved
        return self.states[number % TURNS][i]

    def _stacked(self, number: int, row: int) -> LaidArray | None:
        """The row of what a scan stacks; None where nobody reads it."""
        return _row_of(self.stacks[number], row) if number in self.stacks else None


class _While:
    """A loop that goes on for as long as its condition holds; its state lies in two places in turn."""

    def __init__(self, collector: WorkCollector, node: Node, start: Start) -> None:
        self.collector, self.carry = collector, node.attrs["carry"]
        self.operands = _operands(collector, node, start)
        self.parts = _parts(collector, node, start)
        self.states = _in_turn(collector, node, self.operands[: self.carry])
        graphs: Sequence[Graph] = (node.attrs["condition"], node.attrs["body"])
        self.condition, self.body = (
            _HeldGraph(collector, node, held, set(held.inputs[self.carry :])) for held in graphs
        )

    def add(self) -> None:
        """Add the first state, and the loop."""
        outer, lists, truths = self.operands[self.carry :], [], []
        for operand, state in zip(self.operands, self.states[0], strict=False):
            self.collector.work += recipes.copied(operand, state)
        for now, after in (self.states, self.states[::-1]):
            condition, (truth,) = self.condition.run([*now, *outer], [None])
            body, _ = self.body.run([*now, *outer], after)
            last = [piece for number, laid in self.parts for piece in recipes.copied(now[number], laid)]
            lists += [condition, body, last]
            truths.append(truth.place)
        self.collector.work.append((Flow("while", tuple(lists)), truths))


class _Switch:
    """Branches, of which one runs."""

    def __init__(self, collector: WorkCollector, node: Node, start: Start) -> None:
        self.collector, self.node = collector, node
        self.index, *self.operands = _operands(collector, node, start)
        self.parts = _parts(collector, node, start)

    def add(self) -> None:
        """Add the branches."""
        lists = tuple(map(self._branch, self.node.attrs["branches"]))
        self.collector.work.append((Flow("switch", lists, dtype_of(self.index.dtype)), [self.index.place]))

    def _branch(self, graph: Graph) -> Work:
        held = _HeldGraph(self.collector, self.node, graph, set(graph.inputs), again=False)
        first = dict(reversed(self.parts))
        work, _ = held.run(self.operands, [first.get(number) for number in range(len(graph.outputs))])
        for number, laid in self.parts:
            work += recipes.copied(first[number], laid)
        return work


def _operands(collector: WorkCollector, node: Node, start: Start) -> list[LaidArray]:
    """Where the operands lie, in row-major order."""
    laid = [collector.frame.laid(source, start) for source in node.inputs]
    return [collector.in_rows((node, "operand", i), operand) for i, operand in enumerate(laid)]


def _parts(collector: WorkCollector, node: Node, start: Start) -> list[tuple[int, LaidArray]]:
    """The results that somebody reads, by number, and where they belong."""
    return [(p.attrs["number"], collector.frame.laid(p, start)) for p in collector.frame.results.get(node, ())]


def _in_turn(collector: WorkCollector, node: Node, operands: Sequence[LaidArray]) -> list[list[LaidArray]]:
    """For each turn the places of a state."""
    return [
        [collector.like((node, "state", i, turn), operand) for i, operand in enumerate(operands)]
        for turn in range(TURNS)
    ]


def _row_of(laid: LaidArray, row: int) -> LaidArray:
    return laid._replace(offset=laid.offset + row * laid.strides[0], shape=laid.shape[1:], strides=laid.strides[1:])


def _later(seen: Sequence[Work], number: int) -> Work:
    """The work of a step, from those of two steps that lie like it."""
    return further(seen[number % TURNS], seen[number % TURNS + TURNS], number // TURNS)


ADDING: Mapping[Op, Adding] = {
    scan_op: lambda collector, node, start: _Scan(collector, node, start).add(),
    while_op: lambda collector, node, start: _While(collector, node, start).add(),
    switch_op: lambda collector, node, start: _Switch(collector, node, start).add(),
}
"""What adds a node that holds graphs."""
