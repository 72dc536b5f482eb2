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
from static.backends.native.flow import Flow, Place, Work, further
from static.backends.native.functions import dtype_of
from static.backends.native.program import natives
from static.backends.native.recipes import Laid
from static.backends.native.work import Adding, Start, Worker
from static.codegen.sizes import resolve

TURNS = 2  # states lie in two places in turn, so that every second step lies alike


class _HeldGraph:
    """A graph that a node holds, as work. Inputs that `last` are the same each time that it runs."""

    def __init__(self, worker: Worker, node: Node, graph: Graph, last: Collection[Node], *, again: bool = True) -> None:
        self.worker, self.node, self.graph, self.last = worker, node, graph, last
        self.inner = worker.inside(node, graph, again=again)
        self.frame = self.inner.frame

    def run(self, inputs: Sequence[Laid], targets: Sequence[Laid | None]) -> tuple[Work, list[Laid]]:
        """The work on these inputs, which puts each output where it is wanted; and where outputs are computed."""
        self.inner.work = []
        known = {node: laid.place for node, laid in zip(self.graph.inputs, inputs, strict=True)}
        for output, target in zip(self.graph.outputs, targets, strict=True):
            if target and self._is_made(output):
                known.setdefault(output, target.place)

        def start(root: Node) -> Place:
            return known.get(root) or self._private(root)

        for node in natives(self.frame.program):
            self.inner.add(node, start, lambda root: root in self.last or root.op is CONSTANT)
        found = [self.frame.laid(output, start) for output in self.graph.outputs]
        for source, target in zip(found, targets, strict=True):
            if target is not None:
                self.inner.work += recipes.copied(source, target)
        return self.inner.work, found

    def _is_made(self, output: Node) -> bool:
        """Whether a result is written by the kernels of this graph, beside its arena."""
        return self.frame.root(output) is output and output.op is not INPUT and output not in self.frame.values

    def _private(self, root: Node) -> Place:
        """A place for what is made and handed to nobody."""
        return -1, self.worker.room((self.node, root), math.prod(self.frame.shape(root)), root.spec.dtype)


class _Scan:
    """A scan: its state lies in two places in turn, and what it stacks is written where it belongs."""

    def __init__(self, worker: Worker, node: Node, start: Start) -> None:
        self.worker, self.node = worker, node
        attrs = {key: resolve(value, worker.frame.sizes) for key, value in node.attrs.items() if key != "body"}
        self.carry, self.xs, self.length = attrs["carry"], attrs["xs"], attrs["length"]
        self.reverse, self.save = attrs["reverse"], attrs["save"]
        self.graph: Graph = node.attrs["body"]
        self.body = _HeldGraph(worker, node, self.graph, set(self.graph.inputs[self.carry + self.xs :]))
        self.given = _operands(worker, node, start)
        self.parts = _parts(worker, node, start)
        stacked = [(number, laid) for number, laid in self.parts if number >= self.carry]
        self.stacks = dict(reversed(stacked))
        self.states = _in_turn(worker, node, self.given[: self.carry])

    def add(self) -> None:
        """Add the first state, the steps, and the last state."""
        work = self.worker.work
        for i in range(self.carry):
            work += recipes.copied(self.given[i], self._state(i, 0))
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
        inputs = [*states, *(_row_of(laid, row) for laid in self.given[self.carry : self.carry + self.xs])]
        inputs += self.given[self.carry + self.xs :]
        targets = [*after, *(self._stacked(i, row) for i in range(self.carry, len(self.graph.outputs)))]
        return self.body.run(inputs, targets)[0]

    def _state(self, i: int, number: int) -> Laid:
        """Where a state lies before a step: where it is saved, or in one of two places in turn."""
        if self.save and number < self.length:
            row = self.length - 1 - number if self.reverse else number
            saved = self._stacked(len(self.graph.outputs) + i, row)
            if saved is not None:
                return saved
        return self.states[number % TURNS][i]

    def _stacked(self, number: int, row: int) -> Laid | None:
        """The row of what a scan stacks; None where nobody reads it."""
        return _row_of(self.stacks[number], row) if number in self.stacks else None


class _While:
    """A loop that goes on for as long as its condition holds; its state lies in two places in turn."""

    def __init__(self, worker: Worker, node: Node, start: Start) -> None:
        self.worker, self.carry = worker, node.attrs["carry"]
        self.given = _operands(worker, node, start)
        self.parts = _parts(worker, node, start)
        self.states = _in_turn(worker, node, self.given[: self.carry])
        graphs: Sequence[Graph] = (node.attrs["condition"], node.attrs["body"])
        self.condition, self.body = (_HeldGraph(worker, node, one, set(one.inputs[self.carry :])) for one in graphs)

    def add(self) -> None:
        """Add the first state, and the loop."""
        outer, lists, truths = self.given[self.carry :], [], []
        for given, state in zip(self.given, self.states[0], strict=False):
            self.worker.work += recipes.copied(given, state)
        for now, after in (self.states, self.states[::-1]):
            condition, (truth,) = self.condition.run([*now, *outer], [None])
            body, _ = self.body.run([*now, *outer], after)
            last = [piece for number, laid in self.parts for piece in recipes.copied(now[number], laid)]
            lists += [condition, body, last]
            truths.append(truth.place)
        self.worker.work.append((Flow("while", tuple(lists)), truths))


class _Switch:
    """Branches, of which one runs."""

    def __init__(self, worker: Worker, node: Node, start: Start) -> None:
        self.worker, self.node = worker, node
        self.index, *self.given = _operands(worker, node, start)
        self.parts = _parts(worker, node, start)

    def add(self) -> None:
        """Add the branches."""
        lists = tuple(map(self._branch, self.node.attrs["branches"]))
        self.worker.work.append((Flow("switch", lists, dtype_of(self.index.dtype)), [self.index.place]))

    def _branch(self, graph: Graph) -> Work:
        held = _HeldGraph(self.worker, self.node, graph, set(graph.inputs), again=False)
        first = dict(reversed(self.parts))
        work, _ = held.run(self.given, [first.get(number) for number in range(len(graph.outputs))])
        for number, laid in self.parts:
            work += recipes.copied(first[number], laid)
        return work


def _operands(worker: Worker, node: Node, start: Start) -> list[Laid]:
    """Where the operands lie, in row-major order."""
    laid = [worker.frame.laid(source, start) for source in node.inputs]
    return [worker.in_rows((node, "operand", i), one) for i, one in enumerate(laid)]


def _parts(worker: Worker, node: Node, start: Start) -> list[tuple[int, Laid]]:
    """The results that somebody reads, by number, and where they belong."""
    return [(p.attrs["number"], worker.frame.laid(p, start)) for p in worker.frame.results.get(node, ())]


def _in_turn(worker: Worker, node: Node, given: Sequence[Laid]) -> list[list[Laid]]:
    """For each turn the places of a state."""
    return [[worker.like((node, "state", i, turn), one) for i, one in enumerate(given)] for turn in range(TURNS)]


def _row_of(laid: Laid, row: int) -> Laid:
    return laid._replace(offset=laid.offset + row * laid.strides[0], shape=laid.shape[1:], strides=laid.strides[1:])


def _later(seen: Sequence[Work], number: int) -> Work:
    """The work of a step, from those of two steps that lie like it."""
    return further(seen[number % TURNS], seen[number % TURNS + TURNS], number // TURNS)


ADDING: Mapping[Op, Adding] = {
    scan_op: lambda *given: _Scan(*given).add(),
    while_op: lambda *given: _While(*given).add(),
    switch_op: lambda *given: _Switch(*given).add(),
}
"""What adds a node that holds graphs."""
