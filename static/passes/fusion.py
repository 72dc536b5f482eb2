"""Fusion: connected elementwise ops and reductions over one iteration space become one node, run in blocks.

    %3 = multiply(%1, %2)                 %3 = fused(%1, %2; body, space=(N, 64))
    %4 = tanh(%3)                         %4 = result(%3, number=0)
    %5 = max(%4, axis=(1), keepdims=True)
    %6 = subtract(%4, %5)

Intermediate values stay in the cache: only the group's operands and results go through memory. A group takes softmax
whole, since its reductions leave a number for each row of a block. A reduction over the rows themselves (the sum of a
loss, the gradient of a bias) is added up block by block, and nothing in the group may read it.

Read `InSpace` and `position` (where a value lies in a space), then `fuse` and `_Fusion`.

**This changes bits**: a sum along the blocks is a sum of their sums. Everything else is computed by the same kernels
on the same numbers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size, same
from graphs.errors import ShapeError
from graphs.ir import INPUT, Graph, Node, graph_cost
from graphs.op import Op, RuleTable
from graphs.ops.control import outputs_of
from graphs.spec import TensorSpec, TupleSpec
from static.rebuild import rebuild_node

CACHE_BYTES = 6 << 20  # of all that a group reads, holds and writes: less stays in the caches without blocks

Position = tuple[bool, ...]  # for each axis of the space, whether a value varies along it


def _infer(*specs: TensorSpec, body: Graph, **_: Shape) -> TensorSpec:
    wanted = tuple(node.spec for node in body.inputs)
    if specs != wanted:
        raise ShapeError(f"the body takes {wanted}, and is given {specs}")
    return TupleSpec(outputs_of(body))


def _cost(*_: TensorSpec, body: Graph, **__: Any) -> Size:
    return graph_cost(body).flops


fused = Op(
    "fused",
    lambda *arrays, body, **_: body(*arrays),
    _infer,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=_cost,
    family="control",
    arity=None,
    doc="Elementwise ops and reductions over one iteration space, computed block by block.",
)


def _result(group: Sequence[Any], *, number: int, out: Any = None) -> Any:
    """Return one of the tensors that a fused group computed."""
    if out is None:
        return group[number]
    np.copyto(out, group[number])
    return out


def _infer_result(group: TensorSpec, *, number: int) -> TensorSpec:
    if not isinstance(group, TupleSpec) or not 0 <= number < len(group.items):
        raise ShapeError(f"there is no result {number}")
    return group.items[number]


# Not `part`: a part is a view of a loop's result, while this result is memory of its own that the group writes.
result = Op(
    "result",
    _result,
    _infer_result,
    prepare=lambda x, /, number: ((x,), {"number": number}),
    cost=lambda *_, **__: 0,
    family="control",
)


def is_group(node: Node) -> bool:
    """Whether a node is a fused group."""
    return node.op is fused


def is_result(node: Node) -> bool:
    """Whether a node is one of the tensors that a fused group computes."""
    return node.op is result


class InSpace(NamedTuple):
    """How an op acts on an iteration space; an op with no flag set stays outside groups.

    view        its result is the same numbers at the same places of the space
    whole       of such a view, it cannot broadcast: its input must lie along the axes of the result
    pointwise   it works element by element
    reduces     blocks can do the reduction; where it `adds`, parts of the reduction can be added up
    """

    view: bool = False
    whole: bool = False
    pointwise: bool = False
    reduces: bool = False
    adds: bool = False


_IN_SPACE: RuleTable[InSpace] = RuleTable(
    "iteration space", otherwise=InSpace(), families={"elementwise": InSpace(pointwise=True)}
)
_IN_SPACE.for_op("reshape")(InSpace(view=True, whole=True))
_IN_SPACE.for_op("broadcast_to", "stop_gradient")(InSpace(view=True))
_IN_SPACE.for_op("astype")(InSpace(pointwise=True))
_IN_SPACE.for_op("sum", "mean")(InSpace(reduces=True, adds=True))
_IN_SPACE.for_op("max", "min", "any", "all")(InSpace(reduces=True))


def is_view(node: Node) -> bool:
    """Whether a node of a body is another name for its input: the same numbers at the same place in the space."""
    return _IN_SPACE[node.op].view


def keeps_place(node: Node) -> bool:
    """Whether a view must vary along the axes that its input varies along."""
    return _IN_SPACE[node.op].whole


def is_pointwise(node: Node) -> bool:
    """Whether the op works element by element."""
    return _IN_SPACE[node.op].pointwise


def is_fusible(node: Node) -> bool:
    """Whether the op works element by element, or is a reduction that blocks can do."""
    role = _IN_SPACE[node.op]
    return role.pointwise or role.reduces


@functools.lru_cache(maxsize=4096)  # a graph has few shapes, and asks for each node
def align_shape(shape: Shape, space: Shape) -> Position | None:
    """Return along which axes of the space an array of this shape varies; None if it does not broadcast."""
    missing = len(space) - len(shape)
    if missing < 0:
        return None
    varying = [False] * missing
    for size, whole in zip(shape, space[missing:], strict=True):
        varies = not dims.same(size, 1)
        if varies and not dims.same(size, whole):
            return None
        varying.append(varies)
    return tuple(varying)


def first_axis(space: Shape) -> int:
    """Return the axis that blocks go along: the first that is not of size 1.

    Raises StopIteration where there is none.
    """
    return next(a for a, size in enumerate(space) if not dims.same(size, 1))


def position(node: Node, group: Mapping[Node, Position], space: Shape) -> Position | None:
    """Return along which axes a node's value varies, or None when it cannot be computed block by block.

    `group` has the positions of the values of the group; any other input is an operand, which broadcasts to the space.
    """
    shapes = [align_shape(source.spec.shape, space) for source in node.inputs]
    places = [group.get(source, shape) for source, shape in zip(node.inputs, shapes, strict=True)]
    if _IN_SPACE[node.op].reduces:
        return _reduced_position(node, places[0], shapes[0], space)
    whole = align_shape(node.spec.shape, space)
    if whole is None or any(place is None for place in places):
        return None
    if keeps_place(node):
        return whole if places[0] == whole else None
    # A value may vary along fewer axes than its shape says: it is computed before it is broadcast.
    if any(shape is None or not fits_in(place, shape) for place, shape in zip(places, shapes, strict=True)):
        return None
    return tuple(any(varies) for varies in zip(*(place for place in places if place is not None), strict=True))


def _reduced_position(node: Node, place: Position | None, shape: Position | None, space: Shape) -> Position | None:
    if place is None or place != shape or (node.op.divides and not _is_plain(node)):
        return None
    missing = len(space) - len(node.inputs[0].spec.shape)
    over = {axis + missing for axis in node.attrs["axis"]}
    kept = tuple(varies and axis not in over for axis, varies in enumerate(place))
    return kept if kept[first_axis(space)] or (_IN_SPACE[node.op].adds and _is_plain(node)) else None


def _is_plain(node: Node) -> bool:
    """Whether a sum has the dtype of its input, of 4 bytes or more, so that partial sums can be added up."""
    return node.spec.dtype == node.inputs[0].spec.dtype and node.spec.dtype.itemsize >= 4


def fits_in(place: Position | None, shape: Position) -> bool:
    """Whether a value varies along no axis but those of an array of that shape."""
    return place is not None and all(s or not p for p, s in zip(place, shape, strict=True))


def positions(body: Graph, space: Shape) -> dict[Node, Position]:
    """Return the position of each value of a body. Raises ShapeError for a value that blocks cannot compute."""
    places: dict[Node, Position] = {}
    for node in body.nodes:
        place = position(node, places, space) if node.inputs else align_shape(node.spec.shape, space)
        if place is None:
            raise ShapeError(f"{node.op.name} {node.spec} does not lie in the space {space}")
        places[node] = place
    return places


def merge_axes(places: Sequence[Position], space: Shape) -> list[tuple[int, ...]]:
    """Return the axes of the space in runs, such that each value varies along all axes of a run or none.

    Axes of size 1 are left out.
    """
    runs: list[tuple[int, ...]] = []
    last: Any = None
    for axis, size in enumerate(space):
        if dims.same(size, 1):
            continue
        column = [place[axis] for place in places]
        if column == last:
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
        last = column
    return runs


# Grouping -------------------------------------------------------------------------------------------------------------


SMALLEST = 1 << 14  # elements: blocks of less are no faster
LARGEST_ROW = 1 << 16  # elements of one step along the axis of the blocks: more would not stay in the cache
MOST_NODES = 256  # of one group, which bounds the values that are alive in a block


def fuse(graph: Graph) -> Graph:
    """Return the graph with groups of nodes fused, where the iteration space is large or unknown; takes linear time."""
    return _Fusion(graph).run()


def check_group(node: Node) -> None:
    """Raise ShapeError for a group that `fuse` would not make, because blocks cannot compute it."""
    body, space = node.attrs["body"], node.attrs["space"]
    group = _Group(space)
    for number, member in enumerate(body.nodes):
        if member.is_input:
            place = align_shape(member.spec.shape, space)
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
    """Nodes over one iteration space, and the positions of the values that other nodes of the group may read."""

    def __init__(self, space: Shape) -> None:
        self.space = space
        self.nodes: dict[Node, int] = {}  # with their numbers in the graph
        self.places: dict[Node, Position] = {}
        self.first = first_axis(space)
        self.lead = len(space)  # blocks go along the axes before this one, which every value treats alike

    def admits(self, node: Node) -> Position | None:
        """Return the position of a node that can join, computed block by block; None for any other node."""
        place = position(node, self.places, self.space)
        if place is None or len(self.nodes) >= MOST_NODES or any(self._is_late(source) for source in node.inputs):
            return None
        row = dims.product(self.space[self._lead_with(node, place) :])
        if isinstance(row, int) and row > LARGEST_ROW:
            return None
        return place if place[self.first] or node.op.family == "reduction" else None

    def add(self, node: Node, place: Position, number: int) -> None:
        """Add a node that `admits` has placed at this position."""
        self.nodes[node] = number
        self.lead = self._lead_with(node, place)
        if place[self.first]:
            self.places[node] = place

    def _is_late(self, node: Node) -> bool:
        """Whether a value is known only when the last block is done."""
        return node in self.nodes and node not in self.places

    def _lead_with(self, node: Node, place: Position) -> int:
        end = self.lead
        for other in (
            place,
            *(self.places.get(s) or align_shape(s.spec.shape, self.space) or place for s in node.inputs),
        ):
            varies = (a for a in range(self.first, end) if other[a] != other[self.first] and not same(self.space[a], 1))
            end = next(varies, end)
        return end


class _Fusion:
    """One walk over the graph; a group is open as long as no node outside reads one of its values.

    A group then runs right before its first reader. All that it reads runs before the group: a value that an open group
    reads of another group has closed that other group, so no cycle can arise. All other nodes keep their place.
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
        """Return the open groups that a node reads values of."""
        if not self.group_of:
            return []
        return list(dict.fromkeys(self.group_of[s] for s in node.inputs if s in self.group_of))

    def _group_for(self, node: Node) -> tuple[_Group | None, Position | None]:
        """Return the group for a node (one that it reads, its space's, or a new one), and its position there."""
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
        self.made[node] = rebuild_node(node, self.made) if self.has_fused else node
        self.order[number].append(self.made[node])

    def _emit_group(self, group: _Group) -> None:
        needed = needed_outside(group.nodes, self.users, self.handed_out)
        outputs = [node for node in group.nodes if node in needed and not is_view(node)]
        body, operands = group_body(list(group.nodes), outputs)
        if not _pays(body):
            for node, number in group.nodes.items():
                self._emit(node, number)
            return
        self.has_fused = True
        nodes = group_node(body, group.space, [self.made[source] for source in operands], outputs)
        self.made |= zip(outputs, nodes[1:], strict=True)
        self.order[self.now] += nodes
        for node in group.nodes:
            if node in needed and is_view(node):
                self._emit(node, self.now)


def needed_outside(nodes: Iterable[Node], users: Mapping[Node, Sequence[Node]], outputs: Collection[Node]) -> set[Node]:
    """Return the nodes of a group that some node outside reads, and the inputs of views that are read outside."""
    inside = dict.fromkeys(nodes)
    needed: set[Node] = set()
    for node in reversed(inside):
        if node in outputs or node in needed or any(user not in inside for user in users[node]):
            needed.add(node)
            if is_view(node):
                needed.add(node.inputs[0])
    return needed


def group_body(
    nodes: Sequence[Node], outputs: Sequence[Node], is_inside: Callable[[Node], bool] = lambda _: False
) -> tuple[Graph, list[Node]]:
    """Return the graph of a group, and the nodes outside it that are its operands.

    It has the nodes that the outputs need: views that only nodes outside read are left out. A source for which
    `is_inside` holds becomes a node of the graph, and no operand.
    """
    alive = set(outputs)
    for node in reversed(nodes):
        if node in alive:
            alive.update(node.inputs)
    made: dict[Node, Node] = {}
    operands: list[Node] = []
    for node in nodes:
        if node in alive:
            for source in node.inputs:
                if source not in made and is_inside(source):
                    made[source] = source
                elif source not in made:
                    attrs = {"name": f"arg{len(operands)}", "spec": source.spec}
                    made[source] = Node(INPUT, (), attrs, source.spec, source.source)
                    operands.append(source)
            made[node] = Node(node.op, [made[source] for source in node.inputs], node.attrs, node.spec, node.source)
    return Graph("fused", [made[s] for s in operands], made.values(), [made[node] for node in outputs]), operands


def group_node(body: Graph, space: Shape, operands: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Return the node of a group over its operands, and after it those of its results."""
    whole = Node.of(fused, operands, {"body": body, "space": space}, outputs[-1].source)
    return [whole, *(Node.of(result, [whole], {"number": i}, node.source) for i, node in enumerate(outputs))]


def _is_large(space: Shape) -> bool:
    """Whether blocks may pay off in a space; always true when its sizes are not known."""
    size = dims.product(space)
    return not isinstance(size, int) or size >= SMALLEST


def _pays(body: Graph) -> bool:
    """Whether a group has several kernels, and moves or holds more bytes than the caches do; true for unknown sizes."""
    if sum(not is_view(node) for node in body.calls) < 2:
        return False
    moved: Size = 0
    for node in (*body.inputs, *body.outputs):
        moved = moved + node.spec.nbytes
    return not isinstance(moved, int) or moved + _most_live(body) > CACHE_BYTES


def _most_live(body: Graph) -> int:
    """Return the most bytes of intermediate values that are alive at once in a body, for sizes that are known."""
    last = {source: step for step, node in enumerate(body.nodes) for source in node.inputs}
    change = [0] * len(body.nodes)
    for step, node in enumerate(body.nodes):
        if node.inputs and node in last and not is_view(node):
            change[step] += int(node.spec.nbytes)
            change[last[node]] -= int(node.spec.nbytes)  # a result may lie where an operand lay that dies there
    return max(itertools.accumulate(change), default=0)
