"""Groups for native code: elementwise ops and reductions over one space become one node, in one walk over the graph.

    %3 = multiply(%1, %2)                 %3 = fused(%1, %2; body, space=(8, 64))
    %4 = max(%3, axis=(1), keepdims=True) %4 = result(%3, number=0)
    %5 = subtract(%3, %4)

The node is the op `fused` of `static/passes/fusion.py`, so that the planner orders and places it like any other.
Unlike groups for NumPy these pay at any size, since intermediate values stay in registers.

A group that reduces whole rows (all axes from its `split` on) may read the result, a number per row. Any other
reduction is added up in memory, row by row: it is `late`, and nothing in the group may read it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from graphs import dims
from graphs.dims import Shape
from graphs.ir import Graph, Node
from static.native import functions
from static.native.placement import JOINED_BY
from static.passes.fusion import (
    Position,
    align_shape,
    fits_in,
    group_body,
    group_node,
    is_group,
    is_pointwise,
    is_result,
    is_view,
    keeps_place,
    needed_outside,
)
from static.passes.simplification import remove_dead_code
from static.rebuild import rebuild_node

MOST_NODES = 128  # of one group: registers are few, and LLVM's time grows faster than the nodes
OF_MANY = 32  # of each group where one cannot hold all over a space: shorter ones read and write fewer arrays at a time
LARGEST_ROW = 1 << 16  # elements of a row whose reductions are read in the group: rows pass through the cache again
RECENT = 4  # groups of one space that a node is offered to, the latest ones


def group(graph: Graph) -> Graph:
    """Return the graph with its elementwise ops and reductions in groups; takes time proportional to the nodes."""
    return Grouping(remove_dead_code(ungroup(graph))).run()


def ungroup(graph: Graph) -> Graph:
    """Return the graph without the groups made for NumPy's kernels: their nodes stand in it again."""
    if not any(is_group(node) for node in graph.nodes):
        return graph
    made: dict[Node, Node] = {}
    within: dict[Node, tuple[Node, ...]] = {}  # the results of each group
    for node in graph.nodes:
        if is_group(node):
            body: Graph = node.attrs["body"]
            inner = {parameter: made[source] for parameter, source in zip(body.inputs, node.inputs, strict=True)}
            for member in body.nodes:
                inner.setdefault(member, rebuild_node(member, inner))
            made |= inner
            within[node] = tuple(inner[output] for output in body.outputs)
        elif is_result(node):
            made[node] = within[node.inputs[0]][node.attrs["number"]]
        else:
            made[node] = rebuild_node(node, made)
    inputs, outputs = ([made[node] for node in chosen] for chosen in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, dict.fromkeys(made.values()), outputs)


def is_computed(node: Node) -> bool:
    """Whether a node is elementwise and native for its dtypes."""
    return is_pointwise(node) and functions.compute_dtype(node) is not None


def is_reduced(node: Node) -> bool:
    """Whether a node is a reduction that is native in the dtype of its result."""
    if node.op not in JOINED_BY:
        return False
    source, target = node.inputs[0].spec.dtype, node.spec.dtype
    are_native = all(d.kind in functions.ANY and d.itemsize in functions.WIDTHS for d in (source, target))
    if node.op.divides and (source != target or target.kind != "f"):
        return False
    return are_native and not (source.kind == "f" and target.kind in "iu")


def is_number(node: Node) -> bool:
    """Whether a node is an int or bool constant of one element, which code may contain.

    Floats are not in the code, so that graphs that differ in floats alone share it.
    """
    value = node.attrs["value"] if node.is_constant else None
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in functions.BITS


def reduced_axes(node: Node, space: Shape) -> set[int]:
    """Return the axes of the space that a reduction goes over."""
    missing = len(space) - len(node.inputs[0].spec.shape)
    return {axis + missing for axis in node.attrs["axis"]}


class GroupDraft:
    """Nodes over one space, the positions of their values, and the axis from which row reductions take all axes."""

    def __init__(self, space: Shape, most: int = MOST_NODES) -> None:
        self.space, self.most = space, most
        self.nodes: list[Node] = []
        self.positions: dict[Node, Position] = {}
        self.late: set[Node] = set()
        self.split: int | None = None
        self.full = tuple(not dims.same(size, 1) for size in space)

    def admits(self, node: Node) -> bool:
        """Add the node if its value can be computed in this group; return whether it was added."""
        if len(self.nodes) >= self.most or any(source in self.late for source in node.inputs):
            return False
        shapes = [align_shape(source.spec.shape, self.space) for source in node.inputs]
        places = [self.positions.get(source, shape) for source, shape in zip(node.inputs, shapes, strict=True)]
        if any(place is None for place in places):
            return False
        if node.op in JOINED_BY:
            return self._admits_reduction(node, places[0])
        return self._admits_value(node, places, shapes)

    def _admits_value(self, node: Node, places: list[Position | None], shapes: list[Position | None]) -> bool:
        whole = align_shape(node.spec.shape, self.space)
        if whole is None or (keeps_place(node) and places[0] != whole):
            return False
        if any(shape is None or not fits_in(place, shape) for place, shape in zip(places, shapes, strict=True)):
            return False
        place = places[0] if is_view(node) and places[0] is not None else whole  # a view is as little as what it is of
        if place != self.full and (self.split is None or any(place[self.split :])):
            return False
        self._take(node, place)
        return True

    def _admits_reduction(self, node: Node, place: Position | None) -> bool:
        if place != self.full:
            return False
        over = reduced_axes(node, self.space)
        kept = [axis for axis, varies in enumerate(self.full) if varies and axis not in over]
        first = kept[-1] + 1 if kept else 0
        taken = {axis for axis, varies in enumerate(self.full) if varies and axis >= first}
        rows = bool(taken) and {axis for axis in over if self.full[axis]} == taken
        if rows and self.split is None:
            self.split = first
        if rows and first == self.split:
            row = dims.product(self.space[first:])
            self._take(node, tuple(varies and axis < first for axis, varies in enumerate(self.full)))
            if not isinstance(row, int) or row > LARGEST_ROW:
                self.late.add(node)
        else:
            self._take(node, self.full)
            self.late.add(node)
        return True

    def _take(self, node: Node, place: Position) -> None:
        self.nodes.append(node)
        self.positions[node] = place


class Grouping:
    """Steps in order, each a node or a group; a node joins the earliest group after all that it reads."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.users = graph.users()
        self.handed_out = set(graph.outputs)
        self.steps: list[Node | GroupDraft] = []
        self.at: dict[Node, int] = {}
        self.of_space: dict[Shape, list[int]] = {}
        self.over = Counter(node.spec.shape for node in graph.nodes if node.op.family == "elementwise")
        self.made: dict[Node, Node] = {}
        self.order: list[Node] = []

    def run(self) -> Graph:
        """Return the graph with groups."""
        for node in self.graph.nodes:
            if node.is_source:  # inputs and constants come before all steps
                self.at[node] = -1
                self._emit(node)
            else:
                self._put(node)
        for step in self.steps:
            if isinstance(step, GroupDraft):
                self._emit_group(step)
            else:
                self._emit(step)
        inputs, outputs = ([self.made[n] for n in chosen] for chosen in (self.graph.inputs, self.graph.outputs))
        return Graph(self.graph.name, inputs, self.order, outputs)

    def _put(self, node: Node) -> None:
        """Give the node a place in the order: a group that takes it, a new group, or a step of its own."""
        computed, reduced = is_computed(node), is_reduced(node)
        read = {self.at[s] for s in node.inputs if self.at[s] >= 0 and isinstance(self.steps[self.at[s]], GroupDraft)}
        if computed or reduced or (is_view(node) and read):
            space = node.inputs[0].spec.shape if reduced else node.spec.shape
            alike = self.of_space.get(space, [])[-RECENT:]
            for number in sorted(read.union(alike if computed or reduced else ())):
                if self._joins(node, number):
                    self.at[node] = number
                    return
            if (computed or reduced) and self._starts(node, space):
                return
        self.at[node] = len(self.steps)
        self.steps.append(node)

    def _starts(self, node: Node, space: Shape) -> bool:
        new = GroupDraft(space, MOST_NODES if self.over[space] <= MOST_NODES else OF_MANY)
        if not new.admits(node):
            return False
        self.at[node] = len(self.steps)
        self.of_space.setdefault(space, []).append(len(self.steps))
        self.steps.append(new)
        return True

    def _joins(self, node: Node, number: int) -> bool:
        """Add the node to the group of this number if all that it reads is computed there or before; return whether."""
        draft = self.steps[number]
        if not isinstance(draft, GroupDraft) or any(self.at[s] > number for s in node.inputs):
            return False
        if any(self.at[s] == number and s not in draft.positions for s in node.inputs):
            return False
        return draft.admits(node)

    def _emit(self, node: Node) -> None:
        self.made[node] = rebuild_node(node, self.made)
        self.order.append(self.made[node])

    def _emit_group(self, draft: GroupDraft) -> None:
        needed = needed_outside(draft.nodes, self.users, self.handed_out)
        outputs = [node for node in draft.nodes if node in needed and not is_view(node)]
        if outputs:
            body, operands = group_body(draft.nodes, outputs, is_inside=is_number)
            stage = stages(body)  # the order in which its kernel runs
            nodes = sorted(body.nodes, key=lambda node: (bool(node.inputs), stage[node]))
            body = Graph("fused", body.inputs, nodes, body.outputs)
            nodes = group_node(body, draft.space, [self.made[source] for source in operands], outputs)
            self.made |= zip(outputs, nodes[1:], strict=True)
            self.order += nodes
        for node in draft.nodes:
            if node in needed and is_view(node):
                self._emit(node)


def analyse_body(body: Graph, space: Shape) -> GroupDraft:
    """Return the group draft that a body was made from: the positions of its values, and which are late."""
    draft = GroupDraft(space)
    for node in body.nodes:
        if node.inputs and not draft.admits(node):
            raise AssertionError(f"{node.op.name} {node.spec} was admitted to the space {space} before")
    return draft


def stages(body: Graph) -> dict[Node, int]:
    """Return for each node how many row reductions it waits for, one after the other."""
    stage: dict[Node, int] = {}
    for node in body.nodes:
        waits = [stage[s] + (s.op in JOINED_BY) for s in node.inputs]
        stage[node] = max(waits, default=0)
    return stage
