"""The work of a segment: which kernels run, on which places, in order. A loop is the work of its body, step by step.

A step of a scan runs the kernels of the step before on other places. So a loop needs no code of its own: the places of
its first steps are found, and those of all others lie as far apart as these do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import scan_op
from static import memory
from static.backends.native import recipes
from static.backends.native.frames import Frame, row_major
from static.backends.native.products import Product
from static.backends.native.program import natives
from static.backends.native.recipes import Laid, Place, Work
from static.codegen.sizes import resolve
from static.passes.iteration_space import fused

Start = Callable[[Node], Place]
TURNS = 2  # states lie in two places in turn, so that every second step lies alike


class Worker:
    """Collects the work of nodes of a frame; `runs` holds the frames of loops' bodies, and `kept` memory beside."""

    def __init__(self, frame: Frame, runs: Mapping[Node, Any], outer: Worker | None = None) -> None:
        self.frame, self.runs = frame, runs
        self.work: Work = []
        self.before: Work = self.work if outer is None else outer.work  # of a loop: what is done once, not in each step
        self.kept: dict[Any, np.ndarray[Any, Any]] = {} if outer is None else outer.kept
        self.copies: dict[Any, int] = {}  # of turned matrices

    def add(self, node: Node, start: Start, lasting: Callable[[Node], bool] | None = None) -> None:
        """Add the work of a node. `lasting` tells which roots stay as they are while the segment runs."""
        if node.op is scan_op:
            _Scan(self, node, start).add()
            return
        outs = [node]
        if node.op is fused:
            outs = sorted(self.frame.results[node], key=lambda one: one.attrs["number"])
        operands = [self.frame.laid(source, start) for source in node.inputs]
        for recipe, places in recipes.of(node, operands, [self.frame.laid(o, start) for o in outs], self.frame.sizes):
            if isinstance(recipe, Product) and recipe.turns and not recipe.batch:
                self._turned(node, recipe, places, lasting or _is_fixed)
            else:
                self.work.append((recipe, places))

    def room(self, key: Any, elements: int, dtype: Any) -> int:
        """The address of memory for so many elements, the same whenever this key comes again."""
        if key not in self.kept:
            self.kept[key] = np.empty(elements * np.dtype(dtype).itemsize + memory.ALIGNMENT, np.uint8)
        start = int(self.kept[key].ctypes.data)
        return start + -start % memory.ALIGNMENT

    def _turned(self, node: Node, recipe: Product, places: list[Place], lasting: Callable[[Node], bool]) -> None:
        """A product whose right matrix is turned before: once for all products where it stays as it is."""
        stays = lasting(self.frame.root(node.inputs[1]))
        key = (places[1], recipe.right, recipe.inner, recipe.columns) if stays else node
        known = key in self.copies
        if not known:
            self.copies[key] = self.room(("turned", node), recipe.inner * recipe.columns, recipe.dtype)
        turn, product = recipes.turned(recipe, places, self.copies[key])
        if not stays:
            self.work.append(turn)
        elif not known:
            self.before.append(turn)
        self.work.append(product)


def _is_fixed(root: Node) -> bool:
    return root.op in (INPUT, CONSTANT)


class _Scan:
    """A scan: its state lies in two places in turn, and what it stacks is written where it belongs."""

    def __init__(self, worker: Worker, node: Node, start: Start) -> None:
        self.worker, self.node = worker, node
        attrs = {key: resolve(value, worker.frame.sizes) for key, value in node.attrs.items() if key != "body"}
        self.carry, self.xs, self.length = attrs["carry"], attrs["xs"], attrs["length"]
        self.reverse, self.save = attrs["reverse"], attrs["save"]
        self.frame, runs = worker.runs[node][node.attrs["body"]]
        self.inner = Worker(self.frame, runs, worker)
        self.graph = self.frame.program.graph
        operands = [worker.frame.laid(source, start) for source in node.inputs]
        self.given = [self._in_rows(i, laid) for i, laid in enumerate(operands)]
        self.parts = [(p, worker.frame.laid(p, start)) for p in worker.frame.results.get(node, ())]
        stacked = [(p.attrs["number"], laid) for p, laid in self.parts if p.attrs["number"] >= self.carry]
        self.stacks = dict(reversed(stacked))
        carried = list(enumerate(self.given[: self.carry]))
        self.states = [[self._room(("state", i, turn), laid) for i, laid in carried] for turn in range(TURNS)]

    def _room(self, what: Any, laid: Laid) -> Laid:
        at = self.worker.room((self.node, *what), math.prod(laid.shape), laid.dtype)
        return laid._replace(which=-1, offset=at, strides=row_major(laid.shape, laid.dtype.itemsize))

    def _in_rows(self, i: int, laid: Laid) -> Laid:
        """The array in row-major order, copied if it is not."""
        if laid.steps == laid.shaped(laid.shape).steps:
            return laid.shaped(laid.shape)
        copy = self._room(("operand", i), laid)
        self.worker.work += recipes.copied(laid, copy)
        return copy

    def add(self) -> None:
        """Add the first state, the steps, and the last state."""
        work = self.worker.work
        for i in range(self.carry):
            work += recipes.copied(self.given[i], self._state(i, 0))
        seen: list[Work] = []
        for number in range(self.length):
            if number < 2 * TURNS or number == self.length - 1:
                seen.append(self._step(number))
            work += seen[-1] if len(seen) > number or number == self.length - 1 else _further(seen, number)
        whole = {i: self._state(i, self.length) for i in range(self.carry)} | self.stacks
        for part, laid in self.parts:
            work += recipes.copied(whole[part.attrs["number"]], laid)

    def _step(self, number: int) -> Work:
        """The work of a step."""
        self.inner.work = []
        row = self._row(number)
        states, after = ([self._state(i, n) for i in range(self.carry)] for n in (number, number + 1))
        inputs = [*states, *(_row_of(laid, row) for laid in self.given[self.carry : self.carry + self.xs])]
        inputs += self.given[self.carry + self.xs :]
        known = {node: laid.place for node, laid in zip(self.graph.inputs, inputs, strict=True)}
        outputs = [*after, *(self._stacked(i, row) for i in range(self.carry, len(self.graph.outputs)))]
        for output, target in zip(self.graph.outputs, outputs, strict=True):
            if target and self._is_made(output):
                known.setdefault(output, target.place)

        def start(root: Node) -> Place:
            return known.get(root) or self._private(root)

        outer = set(self.graph.inputs[self.carry + self.xs :])
        for node in natives(self.frame.program):
            self.inner.add(node, start, lambda root: root in outer or root.op is CONSTANT)
        for output, target in zip(self.graph.outputs, outputs, strict=True):
            self._copy(self.frame.laid(output, start), target)
        return self.inner.work

    def _row(self, number: int) -> int:
        """The row of the sequences that a step works on."""
        return self.length - 1 - number if self.reverse else number

    def _state(self, i: int, number: int) -> Laid:
        """Where a state lies before a step: where it is saved, or in one of two places in turn."""
        if self.save and number < self.length:
            saved = self._stacked(len(self.graph.outputs) + i, self._row(number))
            if saved is not None:
                return saved
        return self.states[number % TURNS][i]

    def _is_made(self, output: Node) -> bool:
        """Whether a result of the body is written by its kernels, beside its arena."""
        return self.frame.root(output) is output and output.op is not INPUT and output not in self.frame.values

    def _private(self, root: Node) -> Place:
        """A place for what the body makes and no result is written to."""
        return -1, self.worker.room((self.node, root), math.prod(self.frame.shape(root)), root.spec.dtype)

    def _stacked(self, number: int, row: int) -> Laid | None:
        """The row of what a scan stacks; None where nobody reads it."""
        return _row_of(self.stacks[number], row) if number in self.stacks else None

    def _copy(self, source: Laid, target: Laid | None) -> None:
        if target is not None:
            self.inner.work += recipes.copied(source, target)


def _row_of(laid: Laid, row: int) -> Laid:
    return laid._replace(offset=laid.offset + row * laid.strides[0], shape=laid.shape[1:], strides=laid.strides[1:])


def _further(seen: list[Work], number: int) -> Work:
    """The work of a step, from that of four steps before."""
    first, later, turns = seen[number % TURNS], seen[number % TURNS + TURNS], number // TURNS
    found: Work = []
    for (recipe, places), (_, others) in zip(first, later, strict=True):
        pairs = zip(places, others, strict=True)
        found.append((recipe, [(which, at + turns * (other - at)) for (which, at), (_, other) in pairs]))
    return found
