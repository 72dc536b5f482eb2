"""Binds a lowered program to sizes: lays out the arena, and makes the function to call from code and defaults.

Read `bind` first, then `lay_out` (the arena) and `Binder` (the defaults).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from graphs import dims
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static import clock, memory
from static.codegen import groups, kernels
from static.codegen.groups import BlockCut, Blocks
from static.codegen.kernels import KEPT, ResultMaker, Runs, resolve
from static.codegen.lowering import LoweredGraph, Slot
from static.memory.schedule import kernel_workspace

_IN_ROWS = functools.partial(np.require, requirements="CA")  # in row-major order, and aligned
_GLOBALS = {**groups.GLOBALS, "copy": np.array, "asarray": np.asarray, "rows": _IN_ROWS, **kernels.NAMES}

Results = dict[tuple[Node, tuple[int, ...]], ResultMaker]  # by node and shape


class Binding(NamedTuple):
    """A program bound to sizes: the function to call with input arrays, its memory plan, the buffers and the arena.

    The plan counts the memory of subgraphs while the node that holds them runs, and the blocks of fused groups.
    `results` makes the arrays outside the arena; bindings of other sizes share them where shapes agree. `kernels` are
    the kernels compiled for this binding. `direct` does the work of `run` for arrays of exactly the inputs' dtypes and
    shapes, in row-major order; for other arguments it does nothing and returns False. It is None where there is no such
    function.
    """

    run: Callable[..., tuple[Any, ...]]
    plan: memory.Plan
    lives: Sequence[memory.Buffer]
    arena: np.ndarray[Any, Any]
    sizes: Mapping[str, int]
    results: Results
    kernels: Sequence[Any] = ()
    direct: Callable[..., Any] | None = None


class ArenaLayout(NamedTuple):
    """The place of every buffer in the arena, and of nodes' workspaces; `inner` has the layouts of subgraphs."""

    plan: memory.Plan
    lives: Sequence[memory.Buffer]
    start: Mapping[Node, int]
    spaces: Mapping[Node, int]
    inner: Mapping[Graph, ArenaLayout | BlockCut]


def bind(
    program: LoweredGraph,
    sizes: Mapping[str, int],
    others: Sequence[Binding] = (),
    kept: int = KEPT,
    make: Callable[..., Binder] | None = None,
) -> Binding:
    """Return a program bound to these sizes: lay out the arena, and make the function to call.

    An arena is used within one call only, so the bindings of other sizes (`others`) lend theirs where one is large
    enough. They share the memory of results too; `kept` arrays are kept for each result to be written again.
    """
    layout = lay_out(program, sizes)
    with clock.phase("bind"):
        binder = (make or Binder)(
            sizes, {key: result for other in others for key, result in other.results.items()}, kept
        )
        largest = max((other.arena for other in others), key=len, default=_NO_ROOM)
        arena = largest if len(largest) >= layout.plan.peak else memory.allocate(layout.plan.peak)
        run = binder.bound(program, layout, arena)
    return Binding(run, layout.plan, layout.lives, arena, sizes, binder.results, binder.kernels, binder.direct)


def lay_out(program: LoweredGraph, sizes: Mapping[str, int]) -> ArenaLayout:
    """Plan the memory of a program, including its subgraphs and groups."""
    with clock.phase("plan"):
        inner = {
            graph: groups.cut(lowered, sizes) if isinstance(lowered, Blocks) else lay_out(lowered, sizes)
            for graph, lowered in program.inner.items()
        }
        buffers = program.schedule.lives if program.planned else {}
        spaces = program.schedule.workspaces
        lives = [(*steps, dims.evaluate(node.spec.nbytes, sizes)) for node, steps in buffers.items()]
        for nodes, lower, upper in spaces:
            needed = [inner[graph].plan.peak for node in nodes for graph in node.subgraphs]
            own = [
                dims.evaluate(made.nbytes, sizes) for node in nodes if (made := _kernel_workspace(node, program, sizes))
            ]
            lives.append((lower, upper, max([*needed, *own], default=0)))
        plan = memory.plan(lives, memory.ALIGNMENT)
        start = dict(zip(buffers, plan.offsets, strict=False))
        placed = zip(spaces, plan.offsets[len(buffers) :], strict=True)
        return ArenaLayout(plan, lives, start, {n: offset for space, offset in placed for n in space.nodes}, inner)


def _kernel_workspace(node: Node, program: LoweredGraph, sizes: Mapping[str, int]) -> TensorSpec | None:
    return kernel_workspace(node, program.schedule.views, functools.partial(resolve, sizes=sizes))


_NO_ROOM = np.empty(0, np.uint8)


class Binder:
    """Make functions of a program and of its subgraphs for given sizes, and collect the results that they write."""

    def __init__(self, sizes: Mapping[str, int], reusable: Results, kept: int) -> None:
        self.sizes, self.reusable, self.kept = sizes, reusable, kept
        self.results: Results = {}
        self.kernels: list[Any] = []
        self.direct: Callable[..., Any] | None = None

    def bound(self, program: LoweredGraph, layout: ArenaLayout, arena: np.ndarray[Any, Any]) -> FunctionType:
        """Return the function to call, with every planned value in this arena."""
        values = self.values(program, layout, arena)
        runs: dict[Node, Runs] = {}
        for node in program.schedule.order:
            inner = [graph for graph in node.subgraphs if graph in program.inner]
            if inner:
                room = arena[layout.spaces[node] :]
                runs[node] = {graph: self.inner(program, graph, layout, room) for graph in inner}
        defaults = [
            self._workspace(slot[1], program, layout, arena)
            if slot[2] == "w"
            else self.default(slot, program, values, runs)
            for slot in program.slots
        ]
        return FunctionType(program.code, _GLOBALS, "run", tuple(defaults))

    def _workspace(self, node: Node, program: LoweredGraph, layout: ArenaLayout, arena: np.ndarray[Any, Any]) -> Any:
        """Return the array that a node's kernel needs beside its result, None where it needs none at these sizes."""
        spec = _kernel_workspace(node, program, self.sizes)
        return spec and np.ndarray(spec.shape, spec.dtype, arena, layout.spaces[node])

    def values(self, program: LoweredGraph, layout: ArenaLayout, arena: np.ndarray[Any, Any]) -> dict[Node, Any]:
        """Return the arrays that are the same in every call: constants, places in the arena, and views of them."""
        values: dict[Node, Any] = {}
        arrays: dict[Any, np.ndarray[Any, Any]] = {}
        placed: dict[Any, np.ndarray[Any, Any]] = {}
        for node in program.planned:
            buffer, offset = program.schedule.place[node]
            start, spec = layout.start[buffer] + dims.evaluate(offset, self.sizes), node.spec
            if (start, spec) not in placed:
                made = np.ndarray(resolve(spec.shape, self.sizes), spec.dtype, arena, start)
                placed[start, spec] = _one_of(made, arrays)
            values[node] = placed[start, spec]
        _fill_fixed(program, self.sizes, values, arrays)
        return values

    def inner(self, program: LoweredGraph, graph: Graph, layout: ArenaLayout, room: np.ndarray[Any, Any]) -> Any:
        """Return the function that runs a graph which a node holds, with its planned values in this memory."""
        lowered, planned = program.inner[graph], layout.inner[graph]
        if isinstance(lowered, Blocks) and isinstance(planned, BlockCut):
            return groups.bind(lowered, planned, self.sizes, room)
        return self.bound(cast(LoweredGraph, lowered), cast(ArenaLayout, planned), room)

    def default(self, slot: Slot, program: LoweredGraph, values: Mapping[Node, Any], runs: Mapping[Node, Runs]) -> Any:
        """Return the value of a parameter of the function."""
        _, node, kind, key = slot
        if kind == "k":
            return kernels.kernel(node, node in values or node in program.fresh)
        if kind == "n":
            return self._result(node)
        return values[node] if kind == "b" else resolve(kernels.attribute(node, key), self.sizes, runs.get(node, {}))

    def _result(self, node: Node) -> ResultMaker:
        key = node, resolve(node.spec.shape, self.sizes)
        self.results[key] = self.reusable.get(key) or ResultMaker(key[1], node.spec.dtype, self.kept)
        return self.results[key]


def _one_of(array: np.ndarray[Any, Any], arrays: dict[Any, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the array, or an equal one known from before: the same memory, shape, strides and dtype.

    When an operand and `out` are one object, NumPy need not find out whether they overlap in a way that matters.
    """
    key = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
    return arrays.setdefault(key, array)


def _fill_fixed(
    program: LoweredGraph, sizes: Mapping[str, int], values: dict[Node, Any], arrays: dict[Any, Any]
) -> None:
    """Enter constants, and views of constants and of the arena, which are made once."""
    for node in program.schedule.order:
        if node not in program.fixed or node in values:
            continue
        attrs = {key: resolve(value, sizes) for key, value in node.attrs.items()}
        made = node.op.kernel(*(values[source] for source in node.inputs), **attrs)
        values[node] = _one_of(made, arrays) if isinstance(made, np.ndarray) else made
