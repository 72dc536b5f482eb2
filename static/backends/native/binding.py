"""A native program bound to sizes: every address is known or comes with a call; nodes are recipes or NumPy kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from graphs.ir import Graph, Node
from static import memory
from static.backends.native import control, flow, link, pool, step
from static.backends.native.cores import Cores
from static.backends.native.flow import Location, Work
from static.backends.native.frames import Frame
from static.backends.native.program import Segment, inner_of, is_one_segment
from static.backends.native.refusals import Refusals
from static.backends.native.step import checking
from static.backends.native.target import Target, host
from static.backends.native.work import WorkCollector
from static.codegen import binding
from static.codegen.binding import ArenaLayout, Binder, Binding
from static.codegen.kernels import Runs, resolve
from static.codegen.lowering import LoweredGraph, Slot
from static.codegen.results import KEPT


def bind(
    program: LoweredGraph,
    sizes: Mapping[str, int],
    others: Sequence[Binding] = (),
    kept: int = KEPT,
    threads: int = 1,
) -> Binding:
    """Lay out the arena, make the kernels for these sizes, and the function to call, for so many threads."""
    return binding.bind(program, sizes, others, kept, functools.partial(_Binder, threads))


class _Binder(Binder):
    """Makes the function of each segment."""

    _latest: Frame | None = None

    def __init__(self, threads: int, *binder: Any) -> None:
        super().__init__(*binder)
        target = host()
        self.cores = Cores(pool.of(threads, target), target)

    def bound(self, program: LoweredGraph, layout: ArenaLayout, arena: np.ndarray[Any, Any]) -> FunctionType:
        """The function to call; of the outermost program, which is bound last, what looks at its arguments itself."""
        run = super().bound(program, layout, arena)
        self.direct = None
        if is_one_segment(program):
            (function,) = run.__defaults__ or ()
            self.direct = checking(function, [_array(node, self.sizes) for node in program.graph.inputs])
        return run

    def default(self, slot: Slot, program: LoweredGraph, values: Mapping[Node, Any], runs: Mapping[Node, Runs]) -> Any:
        """What a parameter of the function holds: of a segment what runs it."""
        if slot[2] == "e":
            return step.array_maker(slot[1], _array(slot[1], self.sizes))
        if slot[2] != "s":
            return super().default(slot, program, values, runs)
        if self._latest is None or self._latest.values is not values:
            self._latest = Frame(program, values, self.sizes)  # one for all segments of a program
        function, recipes = _made(slot[3], self._latest, runs, self.cores)
        self.kernels += recipes
        return function

    def inner(self, program: LoweredGraph, graph: Graph, layout: ArenaLayout, room: np.ndarray[Any, Any]) -> Any:
        """What runs a graph that a node holds; of a native loop or branch the frame of that graph."""
        if graph not in inner_of(program):
            return super().inner(program, graph, layout, room)
        body: Any = program.inner[graph]
        planned: Any = layout.inner[graph]
        values = self.values(body, planned, room)
        inner = {
            node: {g: self.inner(body, g, planned, room[planned.start[node] :]) for g in node.subgraphs}
            for node in body.schedule.order
            if any(g in body.inner for g in node.subgraphs)
        }
        return Frame(body, values, self.sizes), inner


def _made(
    segment: Segment, frame: Frame, runs: Mapping[Node, Runs], cores: Cores
) -> tuple[Callable[..., Any], list[Any]]:
    """The function that runs a segment, and the recipes of the kernels it calls."""
    number = {node: i for i, node in enumerate((*segment.arguments, *segment.made))}
    collector = WorkCollector(frame, runs, control.ADDING, cores, Refusals())

    def start(root: Node) -> Location:
        return number[root], 0

    for node in segment.nodes:
        collector.add(node, start)
    arranged, target = cores.arranged(collector.work), cores.target
    used = list(flow.kernels(arranged))
    scratch, block = _scratch(used, target, flow.sharers(arranged))
    work = flow.with_scratch(arranged, scratch)
    made = [_array(node, frame.sizes) for node in segment.made]
    keeps = block, collector.kept, frame.values
    function = compiled(work, len(segment.arguments), made, used, collector.refusals, keeps, target)
    if segment.looks:
        function = checking(function, [_array(node, frame.sizes) for node in segment.arguments])
    return function, used


def _array(node: Node, sizes: Mapping[str, int]) -> step.StepArray:
    return step.StepArray(resolve(node.spec.shape, sizes), node.spec.dtype)


def compiled(
    work: Work,
    arguments: int,
    made: Sequence[step.StepArray],
    used: Sequence[Any],
    refusals: Refusals,
    keeps: Any,
    target: Target,
) -> Any:
    """The function of so many arrays that does the work with machine code of the kernels it uses."""
    kernels = link.kernels(used, target)
    drivers = {name: code.address for name, code in link.drivers(target).items()} if flow.has_flow(work) else {}

    def address(recipe: Any) -> int:
        return kernels[recipe].address

    return step.make(work, arguments, made, address, link.entry(target).address, drivers, refusals, (keeps, kernels))


def _scratch(
    used: Sequence[Any], target: Target, sharers: int
) -> tuple[Callable[[Any, int], list[Location]], np.ndarray[Any, Any]]:
    """Where a recipe's scratch buffers lie: kernels that run one after the other share them; others have a number."""
    wanted = {recipe: recipe.scratch(target) for recipe in dict.fromkeys(used)}
    sizes = {r: [-(-n * np.dtype(d).itemsize // 64) * 64 for d, n in buffers] for r, buffers in wanted.items()}
    most = -(-max(map(sum, sizes.values()), default=0) // memory.ALIGNMENT) * memory.ALIGNMENT
    block = np.empty(sharers * most + memory.ALIGNMENT, np.uint8)
    start = block.ctypes.data + -block.ctypes.data % memory.ALIGNMENT

    def places(recipe: Any, number: int) -> list[Location]:
        each = sizes[recipe]
        return [(-1, start + number * most + sum(each[:i])) for i in range(len(each))]

    return places, block
