"""The work of a segment: which kernels run, on which places, in order.

Read `WorkCollector` first. Loops and branches are work too: a scan is written out step by step, while loops and
branches decide as they run. A step of a scan runs the kernels of the step before on other places. So it needs no code
of its own: the places of the first steps are computed, and those of all others follow at equal distances.

`Frame` finds the places of a program's values for given sizes: at known addresses, or relative to another value. For a
view it lets NumPy make the view of an array that takes no memory, and reads the address and strides from it.

`Refusals` has the errors that kernels may report while they run: positions that an axis does not have.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from graphs import dispatch
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops.selection import outside
from static import memory
from static.codegen.kernels import resolve
from static.codegen.lowering import LoweredGraph
from static.native import layouts, recipes
from static.native.cores import Cores
from static.native.flow import Flow, Location, Work, further
from static.native.functions import dtype_of
from static.native.picking import Flattening, Picking
from static.native.placement import LaidArray, check_bounds, row_major
from static.native.products import Product
from static.native.program import natives
from static.native.target import NativeError
from static.passes.fusion import is_group, is_result
from static.passes.rewrite import is_product

Start = Callable[[Node], Location]
Adding = Callable[["WorkCollector", Node, Start], None]


class WorkCollector:
    """Collects the work of the nodes of a frame.

    `runs` holds the frames of graphs inside nodes, and `kept` extra memory by key.
    """

    def __init__(
        self,
        frame: Frame,
        runs: Mapping[Node, Any],
        cores: Cores,
        refusals: Refusals,
        outer: WorkCollector | None = None,
    ) -> None:
        self.cores, self.refusals = cores, refusals
        self.frame, self.runs = frame, runs
        self.work: Work = []
        self.before: Work | None = None  # for a loop: the work that is done once, before it
        self.kept: dict[Any, np.ndarray[Any, Any]] = {} if outer is None else outer.kept
        self.copies: dict[Any, int] = {}  # addresses of transposed matrices

    def add(self, node: Node, start: Start, lasting: Callable[[Node], bool] | None = None) -> None:
        """Add the work of a node. `lasting` tells which root nodes stay as they are while the segment runs."""
        adding = ADDING[node.op]
        if adding is not None:
            adding(self, node, start)
            return
        outs = [node]
        if is_group(node):
            outs = sorted(self.frame.results[node], key=lambda result: result.attrs["number"])
        operands = [self.frame.laid(source, start) for source in node.inputs]
        results = [self.frame.laid(out, start) for out in outs]
        for recipe, places in check_bounds(
            recipes.KERNELS[node.op].of(node, operands, results, self.frame.sizes), [*operands, *results]
        ):
            if isinstance(recipe, Product) and recipe.turns and not recipe.batch:
                self._with_transpose(node, recipe, places, lasting or _is_fixed)
            elif isinstance(recipe, (Picking, Flattening)):
                self.work += self._cut(node, recipe, [*places, *self.refusals.places(node, recipe.refused, self.room)])
            else:
                self.work += self._cut(node, recipe, places)

    def _cut(self, node: Node, recipe: Any, places: list[Location]) -> Work:
        """Return the work of a kernel, in parts where cores share it or its sums are made in parts."""
        return self.cores.cut(recipe, places, lambda key, *room: self.room((node, "part", key), *room))

    def inside(self, node: Node, graph: Graph, *, again: bool) -> WorkCollector:
        """Return a collector for a graph inside a node; where it runs repeatedly, shared work is done once, before."""
        frame, runs = self.runs[node][graph]
        inner = WorkCollector(frame, runs, self.cores, self.refusals, self)
        inner.before = self.work if again else None
        return inner

    def in_rows(self, key: Any, laid: LaidArray) -> LaidArray:
        """Return the array in row-major order; add a copy to the work if it is not."""
        if laid.steps == laid.with_shape(laid.shape).steps:
            return laid.with_shape(laid.shape)
        copy = self.like(key, laid)
        self.work += recipes.copy_recipe(laid, copy)
        return copy

    def like(self, key: Any, laid: LaidArray) -> LaidArray:
        """Return memory for an array of that shape and dtype in row-major order, one per key."""
        at = self.room(key, math.prod(laid.shape), laid.dtype)
        return laid._replace(which=-1, offset=at, strides=row_major(laid.shape, laid.dtype.itemsize))

    def room(self, key: Any, elements: int, dtype: Any) -> int:
        """Return the address of memory for this many elements; the same key gets the same memory again."""
        if key not in self.kept:
            self.kept[key] = np.empty(elements * np.dtype(dtype).itemsize + memory.ALIGNMENT, np.uint8)
        start = int(self.kept[key].ctypes.data)
        return start + -start % memory.ALIGNMENT

    def _with_transpose(
        self, node: Node, recipe: Product, places: list[Location], lasting: Callable[[Node], bool]
    ) -> None:
        """Add a product whose right matrix is transposed, once for all products that share a lasting matrix."""
        stays = lasting(self.frame.root(node.inputs[1]))
        is_shared = stays and (self.before is not None or self.frame.right[node.inputs[1]] > 1)
        if not is_shared and recipe.packs(recipe.panel(self.cores.target)):
            self.work += self._cut(node, recipe, places)
            return
        key = (places[1], recipe.right, recipe.inner, recipe.columns) if stays else node
        is_turned = key in self.copies
        if not is_turned:
            self.copies[key] = self.room(("turned", node), recipe.inner * recipe.columns, recipe.dtype)
        turn, product = recipes.with_transpose(recipe, places, self.copies[key])
        if not stays:
            self.work += self._cut(node, *turn)
        elif not is_turned:
            work = self.work if self.before is None else self.before
            work += self._cut(node, *turn)
        self.work += self._cut(node, *product)


def _is_fixed(root: Node) -> bool:
    return root.is_source


TURNS = 2  # states lie in two places in turn, so that every second step lies alike


class _HeldGraph:
    """A graph inside a node, as work. Inputs in `last` are the same each time that it runs."""

    def __init__(
        self, collector: WorkCollector, node: Node, graph: Graph, last: Collection[Node], *, again: bool = True
    ) -> None:
        self.collector, self.node, self.graph, self.last = collector, node, graph, last
        self.inner = collector.inside(node, graph, again=again)
        self.frame = self.inner.frame

    def run(self, inputs: Sequence[LaidArray], targets: Sequence[LaidArray | None]) -> tuple[Work, list[LaidArray]]:
        """Return the work on these inputs, which writes outputs to their targets, and the arrays of the outputs."""
        self.inner.work = []
        bound = {node: self._check_spec(node, laid).place for node, laid in zip(self.graph.inputs, inputs, strict=True)}
        for output, target in zip(self.graph.outputs, targets, strict=True):
            if target and self._is_made(output):
                bound.setdefault(output, self._check_spec(output, target).place)

        def start(root: Node) -> Location:
            return bound.get(root) or self._private(root)

        for node in natives(self.frame.program):
            self.inner.add(node, start, lambda root: root in self.last or root.is_constant)
        outputs = [self.frame.laid(output, start) for output in self.graph.outputs]
        for source, target in zip(outputs, targets, strict=True):
            if target is not None:
                self.inner.work += recipes.copy_recipe(source, target)
        return self.inner.work, outputs

    def _check_spec(self, node: Node, laid: LaidArray) -> LaidArray:
        """Return the array for a node of this graph. Raises NativeError where its shape or dtype differs."""
        if (laid.shape, laid.dtype) != (self.frame.shape(node), node.spec.dtype):
            raise NativeError(f"native code would take {laid.shape} as {node.spec}; use backend='numpy'")
        return laid

    def _is_made(self, output: Node) -> bool:
        """Whether a kernel of this graph writes an output directly, outside its arena."""
        return self.frame.root(output) is output and not output.is_input and output not in self.frame.values

    def _private(self, root: Node) -> Location:
        """Return a place for a value that no other graph reads."""
        return -1, self.collector.room((self.node, root), math.prod(self.frame.shape(root)), root.spec.dtype)


class _Scan:
    """A scan: its state alternates between two places, and stacked outputs are written in place."""

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
        """Add the copy of the first state, the steps, and the copy of the last state."""
        work = self.collector.work
        for i in range(self.carry):
            work += recipes.copy_recipe(self.operands[i], self._state(i, 0))
        seen: list[Work] = []
        for number in range(self.length):
            if number < 2 * TURNS or number == self.length - 1:
                seen.append(self._step(number))
            work += seen[-1] if len(seen) > number or number == self.length - 1 else _later(seen, number)
        whole = {i: self._state(i, self.length) for i in range(self.carry)} | self.stacks
        for number, laid in self.parts:
            work += recipes.copy_recipe(whole[number], laid)

    def _step(self, number: int) -> Work:
        """Return the work of a step."""
        row = self.length - 1 - number if self.reverse else number
        states, after = ([self._state(i, n) for i in range(self.carry)] for n in (number, number + 1))
        inputs = [*states, *(_row_of(laid, row) for laid in self.operands[self.carry : self.carry + self.xs])]
        inputs += self.operands[self.carry + self.xs :]
        targets = [*after, *(self._stack_row(i, row) for i in range(self.carry, len(self.graph.outputs)))]
        return self.body.run(inputs, targets)[0]

    def _state(self, i: int, number: int) -> LaidArray:
        """Return the place of a state before a step: its saved row, or one of two alternating places."""
        if self.save and number < self.length:
            row = self.length - 1 - number if self.reverse else number
            saved = self._stack_row(len(self.graph.outputs) + i, row)
            if saved is not None:
                return saved
        return self.states[number % TURNS][i]

    def _stack_row(self, number: int, row: int) -> LaidArray | None:
        """Return the row of a stacked output, None where nobody reads it."""
        return _row_of(self.stacks[number], row) if number in self.stacks else None


class _While:
    """A loop that goes on as long as its condition holds; its state alternates between two places."""

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
        """Add the copy of the first state, and the loop."""
        outer, lists, truths = self.operands[self.carry :], [], []
        for operand, state in zip(self.operands, self.states[0], strict=False):
            self.collector.work += recipes.copy_recipe(operand, state)
        for now, after in (self.states, self.states[::-1]):
            condition, (truth,) = self.condition.run([*now, *outer], [None])
            body, _ = self.body.run([*now, *outer], after)
            last = [piece for number, laid in self.parts for piece in recipes.copy_recipe(now[number], laid)]
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
            work += recipes.copy_recipe(first[number], laid)
        return work


def _operands(collector: WorkCollector, node: Node, start: Start) -> list[LaidArray]:
    """Return the operands of a node in row-major order."""
    laid = [collector.frame.laid(source, start) for source in node.inputs]
    return [collector.in_rows((node, "operand", i), operand) for i, operand in enumerate(laid)]


def _parts(collector: WorkCollector, node: Node, start: Start) -> list[tuple[int, LaidArray]]:
    """Return the results that some node reads, as pairs of number and place."""
    return [(p.attrs["number"], collector.frame.laid(p, start)) for p in collector.frame.results.get(node, ())]


def _in_turn(collector: WorkCollector, node: Node, operands: Sequence[LaidArray]) -> list[list[LaidArray]]:
    """Return the places of a state for each of the two turns."""
    return [
        [collector.like((node, "state", i, turn), operand) for i, operand in enumerate(operands)]
        for turn in range(TURNS)
    ]


def _row_of(laid: LaidArray, row: int) -> LaidArray:
    return laid._replace(offset=laid.offset + row * laid.strides[0], shape=laid.shape[1:], strides=laid.strides[1:])


def _later(seen: Sequence[Work], number: int) -> Work:
    """Return the work of a step, extrapolated from two earlier steps with the same alternating places."""
    return further(seen[number % TURNS], seen[number % TURNS + TURNS], number // TURNS)


ADDING: RuleTable[Adding | None] = RuleTable("native control flow", otherwise=None)
"""A function that adds the work of a node that holds graphs."""
ADDING.enter({
    "scan": lambda collector, node, start: _Scan(collector, node, start).add(),
    "while_loop": lambda collector, node, start: _While(collector, node, start).add(),
    "switch": lambda collector, node, start: _Switch(collector, node, start).add(),
})  # fmt: skip


class Frame:
    """A program with its fixed arrays and its sizes, and how many products read each value as their right matrix."""

    def __init__(self, program: LoweredGraph, values: Mapping[Node, Any], sizes: Mapping[str, int]) -> None:
        self.program, self.values, self.sizes = program, values, sizes
        self.owner = program.schedule.owner
        self.right = Counter(node.inputs[1] for node in program.schedule.order if is_product(node))
        self.results: dict[Node, list[Node]] = {}
        for node in program.schedule.order:
            if node.inputs and (node.is_part or is_result(node)):
                self.results.setdefault(node.inputs[0], []).append(node)
        self._shown: dict[Node, np.ndarray[Any, Any]] = {}
        self._roots: dict[Node, Node] = {}

    def laid(self, node: Node, start: Callable[[Node], Location]) -> LaidArray:
        """Return the place of a value; `start` gives places of roots that are not fixed."""
        array = self.values.get(node)
        if array is not None:
            return LaidArray(-1, array.ctypes.data, array.shape, array.strides, array.dtype)
        array, base = self._show(node), self._show(self.root(node))
        which, offset = start(self.root(node))
        return LaidArray(which, offset + array.ctypes.data - base.ctypes.data, array.shape, array.strides, array.dtype)

    def root(self, node: Node) -> Node:
        """Return the node that a node is a view of, through all views."""
        if node not in self._roots:
            root = node
            while not root.is_part and self.owner[root] is not root:
                root = root.inputs[0]
            self._roots[node] = root
        return self._roots[node]

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the shape of a value in numbers."""
        shape: tuple[int, ...] = resolve(node.spec.shape, self.sizes)
        return shape

    def _show(self, node: Node) -> np.ndarray[Any, Any]:
        """Return an array laid out like the value, without memory of its own: one element stands for all."""
        waiting = [node]
        while waiting[-1] is not self.root(waiting[-1]) and waiting[-1] not in self._shown:
            waiting.append(waiting[-1].inputs[0])
        for view in reversed(waiting):
            if view not in self._shown:
                self._shown[view] = self._view(view) if view is not waiting[-1] else self._owner(view)
        return self._shown[node]

    def _view(self, node: Node) -> np.ndarray[Any, Any]:
        attrs = {key: resolve(value, self.sizes) for key, value in node.attrs.items()}
        whole = self._shown[node.inputs[0]]
        view: np.ndarray[Any, Any] = node.op.kernel(whole, **attrs)
        if _memory_of(view) is not _memory_of(whole):
            raise NativeError(f"what {node.op.name} gives is no view of its operand; use backend='numpy'")
        return view

    def _owner(self, node: Node) -> np.ndarray[Any, Any]:
        shape, element = self.shape(node), np.empty(1, node.spec.dtype)
        return np.lib.stride_tricks.as_strided(element, shape, row_major(shape, element.itemsize))


def _memory_of(array: Any) -> Any:
    """Return the array that owns an array's memory, through all views."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


Room = Callable[[Any, int, Any], int]
FIRST = layouts.INTERRUPTED + 1


class Refusals:
    """The context of a step, and the meaning of the error numbers that its kernels may store there."""

    def __init__(self) -> None:
        self.context = layouts.context()
        self.axes: list[tuple[Node, int]] = []

    def places(self, node: Node, sizes: tuple[int, ...], room: Room) -> list[Location]:
        """Return the places a kernel needs to report a position outside an axis: the context, and a number per axis."""
        numbers = []
        for axis, size in enumerate(sizes):
            at = room((node, "refusal", axis), 1, "i8")
            ctypes.c_int64.from_address(at).value = FIRST + len(self.axes)
            self.axes.append((node, size))
            numbers.append((-1, at))
        return [(-1, ctypes.addressof(self.context) + layouts.StepContext.ignored.offset), *numbers]

    def refuse(self) -> NoReturn:
        """Raise OutOfRangeError for the first position that was outside, with the op, its specs and the user's line."""
        node, size = self.axes[self.context.stopped - FIRST]
        self.context.stopped = 0
        raise dispatch.explain_error(node.op, [source.spec for source in node.inputs], outside(size), node.source)
