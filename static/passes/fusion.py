"""Fusion: connected elementwise ops and reductions over one iteration space become one node, run in blocks.

    %3 = multiply(%1, %2)                 %3 = fused(%1, %2; body, space=(N, 64))
    %4 = tanh(%3)                         %4 = result(%3, number=0)
    %5 = max(%4, axis=(1), keepdims=True)
    %6 = subtract(%4, %5)

What lies between stays in the cache: the traffic to memory is that of the group's operands and results. A group takes
softmax whole, since its reductions leave a number for each row of a block; one over the rows themselves (the sum of a
loss, the gradient of a bias) is added up block by block, and nothing in the group may read it.

**This changes bits**: a sum along the blocks is a sum of their sums. Everything else is computed by the same kernels
on the same numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from graphs import dims
from graphs.dims import Shape, Size, same
from graphs.errors import ShapeError
from graphs.ir import INPUT, Graph, Node
from static.passes.iteration_space import (
    CACHE_BYTES,
    Position,
    aligned,
    first_axis,
    fused,
    is_fusible,
    is_view,
    position,
    result,
)
from static.rebuild import rebuilt

SMALLEST = 1 << 14  # elements: blocks of less are no faster
LARGEST_ROW = 1 << 16  # elements of one step along the axis of the blocks: more would not stay in the cache
MOST_NODES = 256  # of a group, which bounds what is alive in a block


def fuse(graph: Graph) -> Graph:
    """The graph with groups of nodes fused, where the iteration space is large or not known. Takes linear time."""
    return _Fusion(graph).run()


def check_group(node: Node) -> None:
    """Raise ShapeError for a group that `fuse` would not make, of what is not computed block by block."""
    body, space = node.attrs["body"], node.attrs["space"]
    group = _Group(space)
    for number, member in enumerate(body.nodes):
        if member.is_input:
            place = aligned(member.spec.shape, space)
        else:
            place = group.admits(member) if is_view(member) or is_fusible(member) else None
        if place is None:
            raise ShapeError(f"{member.op.name} {member.spec} is not computed in blocks of {space}")
        if not member.is_input:
            group.add(member, place, number)
    is_written_once = len(set(body.outputs)) == len(body.outputs)
    if not is_written_once or any(is_view(out) or out.is_input for out in body.outputs) or len(node.attrs) > 2:
        raise ShapeError("a group writes what it computes, once, and has no options but its body and its space")


class _Group:
    """Nodes over one space, and where the values that others of them may read lie in it."""

    def __init__(self, space: Shape) -> None:
        self.space = space
        self.nodes: dict[Node, int] = {}  # with their numbers in the graph
        self.places: dict[Node, Position] = {}
        self.first = first_axis(space)
        self.lead = len(space)  # blocks go along the axes before this one, which every value treats alike

    def admits(self, node: Node) -> Position | None:
        """Where the value of a node lies that can be computed block by block, from values known in a block."""
        place = position(node, self.places, self.space)
        if place is None or len(self.nodes) >= MOST_NODES or any(self._is_late(source) for source in node.inputs):
            return None
        row = dims.product(self.space[self._lead_with(node, place) :])
        if isinstance(row, int) and row > LARGEST_ROW:
            return None
        return place if place[self.first] or node.op.family == "reduction" else None

    def add(self, node: Node, place: Position, number: int) -> None:
        """Take a node that is admitted at this place."""
        self.nodes[node] = number
        self.lead = self._lead_with(node, place)
        if place[self.first]:
            self.places[node] = place

    def _is_late(self, node: Node) -> bool:
        """Whether a value is known only when the last block is done."""
        return node in self.nodes and node not in self.places

    def _lead_with(self, node: Node, place: Position) -> int:
        end = self.lead
        for other in (place, *(self.places.get(s) or aligned(s.spec.shape, self.space) or place for s in node.inputs)):
            varies = (a for a in range(self.first, end) if other[a] != other[self.first] and not same(self.space[a], 1))
            end = next(varies, end)
        return end


class _Fusion:
    """One walk over the graph, in which groups are open for as long as nothing outside reads a value of theirs.

    A group then runs right before its first reader. All that it reads runs before that, since what an open group
    reads of another has closed the other, so that no cycle can arise. Everything else keeps its place.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.users = graph.users()
        self.handed_out = set(graph.outputs)
        self.group_of: dict[Node, _Group] = {}
        self.open: dict[Shape, _Group] = {}
        self.made: dict[Node, Node] = {}
        self.has_fused = False
        self.order: list[list[Node]] = [[] for _ in range(len(graph) + 1)]  # what runs in the place of each node

    def run(self) -> Graph:
        for number, node in enumerate(self.graph.nodes):
            self.now = number
            group, place = self._group_for(node)
            self._close([g for g in self._groups_read(node) if g is not group])
            if group is None or place is None:
                self._emit(node, number)
            else:
                group.add(node, place, number)
                self.group_of[node] = group
        self.now = len(self.graph)
        self._close(list(self.open.values()))
        if not self.has_fused:
            return self.graph
        inputs, outputs = ([self.made[n] for n in chosen] for chosen in (self.graph.inputs, self.graph.outputs))
        return Graph(self.graph.name, inputs, itertools.chain(*self.order), outputs)

    def _groups_read(self, node: Node) -> list[_Group]:
        """The open groups that a node reads values of."""
        return list(dict.fromkeys(self.group_of[s] for s in node.inputs if s in self.group_of))

    def _group_for(self, node: Node) -> tuple[_Group | None, Position | None]:
        """The group to put a node in (one that it reads, the one of its space, or a new one), and its place there."""
        read = self._groups_read(node)
        if is_view(node):
            return self._first_to_admit(node, read)
        if not is_fusible(node):
            return None, None
        space = node.inputs[0].spec.shape if node.op.family == "reduction" else node.spec.shape
        alike = [self.open[space]] if space in self.open else []
        admitted = self._first_to_admit(node, dict.fromkeys(read + alike))
        if admitted[0] is not None or not _is_large(space):
            return admitted
        self._close(read + alike)
        self.open[space] = _Group(space)
        return self._first_to_admit(node, [self.open[space]])

    @staticmethod
    def _first_to_admit(node: Node, groups: Iterable[_Group]) -> tuple[_Group | None, Position | None]:
        places = ((group, group.admits(node)) for group in groups)
        return next(((group, place) for group, place in places if place is not None), (None, None))

    def _close(self, groups: list[_Group]) -> None:
        for group in groups:
            if self.open.get(group.space) is group:
                del self.open[group.space]
                for node in group.nodes:
                    del self.group_of[node]
                self._emit_group(group)

    def _emit(self, node: Node, number: int) -> None:
        self.made[node] = rebuilt(node, self.made)
        self.order[number].append(self.made[node])

    def _emit_group(self, group: _Group) -> None:
        needed = self._needed(group)
        outputs = [node for node in group.nodes if node in needed and not is_view(node)]
        body, operands = _body(group, outputs)
        if not _pays(body):
            for node, number in group.nodes.items():
                self._emit(node, number)
            return
        self.has_fused = True
        attrs = {"body": body, "space": group.space}
        whole = Node.of(fused, [self.made[source] for source in operands], attrs, outputs[-1].source)
        self.made |= {
            node: Node.of(result, [whole], {"number": number}, node.source) for number, node in enumerate(outputs)
        }
        self.order[self.now] += [whole, *(self.made[node] for node in outputs)]
        for node in group.nodes:
            if node in needed and is_view(node):
                self._emit(node, self.now)

    def _needed(self, group: _Group) -> set[Node]:
        """The nodes that something outside reads, and what views that are read outside look at."""
        inside = set(group.nodes)
        needed: set[Node] = set()
        for node in reversed(list(group.nodes)):
            if node in self.handed_out or node in needed or any(user not in inside for user in self.users[node]):
                needed.add(node)
                if is_view(node):
                    needed.add(node.inputs[0])
        return needed


def _body(group: _Group, outputs: list[Node]) -> tuple[Graph, list[Node]]:
    """The graph of a group, and the nodes outside that it takes as operands."""
    made: dict[Node, Node] = {}
    nodes: list[Node] = []
    operands: list[Node] = []
    for node in _alive(group, outputs):
        for source in node.inputs:
            if source not in made:
                spec = source.spec
                made[source] = Node(INPUT, (), {"name": f"arg{len(operands)}", "spec": spec}, spec, source.source)
                operands.append(source)
                nodes.append(made[source])
        made[node] = Node(node.op, [made[source] for source in node.inputs], node.attrs, node.spec, node.source)
        nodes.append(made[node])
    inputs = [made[source] for source in operands]
    return Graph("fused", inputs, nodes, [made[node] for node in outputs]), operands


def _alive(group: _Group, outputs: list[Node]) -> Iterator[Node]:
    """The nodes that the outputs need: not the views that only something outside reads."""
    alive = set(outputs)
    for node in reversed(list(group.nodes)):
        if node in alive:
            alive.update(node.inputs)
    return (node for node in group.nodes if node in alive)


def _is_large(space: Shape) -> bool:
    """Whether blocks may pay: always when the sizes are not known yet."""
    size = dims.product(space)
    return not isinstance(size, int) or size >= SMALLEST


def _pays(body: Graph) -> bool:
    """Whether a group has several kernels, and moves or holds more than the caches do; sizes may not be known yet."""
    if sum(not is_view(node) for node in body.calls) < 2:
        return False
    moved: Size = 0
    for node in (*body.inputs, *body.outputs):
        moved = moved + node.spec.nbytes
    return not isinstance(moved, int) or moved + _most_live(body) > CACHE_BYTES


def _most_live(body: Graph) -> int:
    """The most bytes that are alive at once between operands and results, for sizes that are known."""
    last = {source: step for step, node in enumerate(body.nodes) for source in node.inputs}
    change = [0] * len(body.nodes)
    for step, node in enumerate(body.nodes):
        if node.inputs and node in last and not is_view(node):
            change[step] += int(node.spec.nbytes)
            change[last[node]] -= int(node.spec.nbytes)  # a result may lie where an operand lay that dies there
    return max(itertools.accumulate(change), default=0)
