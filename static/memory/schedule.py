"""The order in which nodes run, which of them share memory, and how long each block of memory lives.

Read `Schedule` and `schedule` first. `leanest` and the functions after it make orders in which a graph can run: the
user's own, and others that may hold less memory at once. An op's result that the caller gets takes no memory of the
arena, and views take none, so the orders weigh the remaining values.

`views` and `places` say which nodes share memory: views, results written over an operand, and parts written at their
place in a concat.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphs import dims
from graphs.dims import Size, same, same_shape
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops.movement import concat, reshape
from graphs.spec import TensorSpec, TupleSpec
from static import clock, memory
from static.passes.fusion import is_group, is_result, is_view
from static.passes.loops import is_scan
from static.passes.products import nbytes
from static.rebuild import is_in_order


class BufferPlace(NamedTuple):
    """The place of a result: the buffer of a node, its own or another's, and an offset in bytes."""

    buffer: Node
    offset: Size = 0


class Views(NamedTuple):
    """The owner of the memory that each node looks at, and the nodes that are all of it, in row-major order."""

    owner: dict[Node, Node]
    whole: set[Node]


def views(nodes: Sequence[Node]) -> Views:
    """Return the views of a graph's nodes, which are in topological order."""
    owner: dict[Node, Node] = {}
    contiguous: dict[Node, bool] = {}
    stacks: dict[tuple[Node, int], Node] = {}
    for node in nodes:
        # Whether a node is an output that a scan has stacked, in memory of its own that the scan writes into.
        loop = node.inputs[0] if node.is_part else node
        if is_scan(loop) and node is not loop and node.attrs["number"] >= loop.attrs["carry"]:
            owner[node] = stacks.setdefault((node.inputs[0], node.attrs["number"]), node)
            contiguous[node] = True
            continue
        shares = node.op.view and (node.op is not reshape or contiguous[node.inputs[0]])
        owner[node] = owner[node.inputs[0]] if shares else node
        contiguous[node] = not shares or (contiguous[node.inputs[0]] and _KEEPS_ORDER[node.op](node))
    return Views(owner, {node for node in nodes if contiguous[node]})


_KEEPS_ORDER: RuleTable[Callable[[Node], bool]] = RuleTable("contiguous views", otherwise=lambda _: False)
"""Whether a view of contiguous memory is certainly contiguous itself, and all of that memory."""
_KEEPS_ORDER.for_op("reshape", "stop_gradient")(lambda _: True)


@_KEEPS_ORDER.for_op("permute_dims")
def _moves_no_axis(node: Node) -> bool:
    moved = [a for a in node.attrs["axes"] if not same(node.inputs[0].spec.shape[a], 1)]
    return moved == sorted(moved)


def in_arena(nodes: Sequence[Node], outputs: Sequence[Node], owner: Mapping[Node, Node]) -> list[Node]:
    """Return the nodes that get a place in the arena: they own memory, compute, and are not returned to the caller."""
    kept = {owner[output] for output in outputs}
    owners = (node for node in nodes if owner[node] is node and node not in kept)
    return [node for node in owners if not node.is_source and not isinstance(node.spec, TupleSpec)]


def writer(node: Node) -> Node:
    """Return the node whose kernel writes this node's memory: itself, or the node of which it is a result."""
    inputs = node.inputs
    return inputs[0] if inputs and isinstance(inputs[0].spec, TupleSpec) else node


def places(order: Sequence[Node], seen: Views, planned: Collection[Node], join: bool = True) -> dict[Node, BufferPlace]:
    """Return the place of each planned node, if nodes run in this order.

    With `join`, a part of a `concat` is computed at its place in the result, so that nothing is copied. Where the
    kernel works element by element, a result takes the buffer of an operand that nobody reads any more. All other nodes
    have a buffer of their own.
    """
    placed = {node: BufferPlace(node) for node in planned}
    for node in reversed(order) if join else ():  # backwards: a joined value may itself be part of a later concat
        if node.op is concat and node in placed:
            placed |= _parts(node, placed, seen)
    step = {node: i for i, node in enumerate(order)}
    until = _last_reads(order, seen, placed)
    for node in order:
        if node in placed and placed[node].buffer is node:
            over = _overwritable_operand(node, step[writer(node)], seen, placed, until)
            if over is not None:
                placed[node] = placed[seen.owner[over]]
                until[placed[node].buffer] = until.pop(node)
    return placed


def last_use(order: Sequence[Node], owner: Mapping[Node, Node]) -> dict[Node, int]:
    """Return for each owner the step after which nobody reads its memory."""
    last: dict[Node, int] = {}
    for step, node in enumerate(order):
        last[owner[node]] = step
        for source in node.inputs:
            last[owner[source]] = step
    return last


def _last_reads(order: Sequence[Node], seen: Views, placed: Mapping[Node, BufferPlace]) -> dict[Node, int]:
    """Return for each buffer the step after which nobody reads it."""
    last = last_use(order, seen.owner)
    until: dict[Node, int] = {}
    for node, place in placed.items():
        until[place.buffer] = max(until.get(place.buffer, 0), last[node])
    return until


def _parts(node: Node, placed: Mapping[Node, BufferPlace], seen: Views) -> dict[Node, BufferPlace]:
    """Return places in a concat's result for the parts that fill a contiguous piece of it and have no other place."""
    if not all(same(size, 1) for size in node.spec.shape[: node.attrs["axis"]]):
        return {}
    moved: dict[Node, BufferPlace] = {}
    buffer, offset = placed[node]
    for piece in node.inputs:
        own = seen.owner[piece]
        if piece in seen.whole and placed.get(own) == (own, 0) and own not in moved and _same_type(piece, node):
            moved[own] = BufferPlace(buffer, offset)
        offset = offset + piece.spec.size * node.spec.dtype.itemsize
    return moved


def _same_type(node: Node, other: Node) -> bool:
    return node.spec.dtype == other.spec.dtype


def _overwritable_operand(
    node: Node, now: int, seen: Views, placed: Mapping[Node, BufferPlace], until: Mapping[Node, int]
) -> Node | None:
    """Return the operand that a result may be written over: one nobody reads later, of the same elements."""
    numbers = _operands_read_first(node)
    if not numbers:
        return None
    inputs = writer(node).inputs
    lying = [placed.get(seen.owner[source]) for source in inputs]
    for i in numbers:
        operand, place = inputs[i], lying[i]
        if place is None or until[place.buffer] != now or not _has_its_elements(operand, node, seen):
            continue
        others = [source for source, other in zip(inputs, lying, strict=True) if other and other.buffer is place.buffer]
        if all(source is operand for source in others) and same(place.buffer.spec.nbytes, node.spec.nbytes):
            return operand
    return None


def _has_its_elements(operand: Node, node: Node, seen: Views) -> bool:
    """Whether an operand has the shape and dtype of a result, and is all of its memory in row-major order."""
    return (operand.spec is node.spec or operand.spec == node.spec) and operand in seen.whole


def _operands_read_first(node: Node) -> Sequence[int]:
    """Return the operands of which the kernel reads each element before it writes the same element of the result."""
    if is_result(node):
        return _group_operands_read_first(node.inputs[0], node.attrs["number"])
    return node.op.overwrites


def _group_operands_read_first(group: Node, number: int) -> Sequence[int]:
    """Return the operands that no node of a fused group reads after it has computed this result of its whole space."""
    body, out = group.attrs["body"], group.attrs["body"].outputs[number]
    if out.op.family != "elementwise" or not same_shape(out.spec.shape, group.attrs["space"]):
        return ()
    root: dict[Node, Node] = {}
    for node in body.nodes:
        root[node] = root[node.inputs[0]] if node.inputs and is_view(node) else node
    at = body.nodes.index(out)
    late = {root[source] for node in body.nodes[at + 1 :] for source in node.inputs}
    late |= {root[source] for i, source in enumerate(out.inputs) if i not in _operands_read_first(out)}
    return [i for i, operand in enumerate(body.inputs) if operand not in late]


# Orders ---------------------------------------------------------------------------------------------------------------

PAYS = 0.99  # an order must bring the peak below this share of what the user's own order takes


Lives = Mapping[Node, tuple[int, int]]  # for each buffer, the half-open interval of steps in which it is in use


class Workspace(NamedTuple):
    """Memory that only these nodes use, while they run: in the half-open interval of steps [lower, upper).

    The graphs that a node holds lie in it, or what its kernel needs beside the result.
    """

    nodes: tuple[Node, ...]
    lower: int
    upper: int


class Schedule(NamedTuple):
    """The nodes in the order they run, for each node the owner of the memory it looks at, and the places of owners.

    A node without a place is allocated by its kernel: an output for the caller, or a result of control flow. `lives`
    has the buffers that make up the arena, each with the half-open interval of steps in which it is in use.
    `workspaces` is the extra memory of nodes. `inner` are the schedules of branches and bodies.
    """

    order: tuple[Node, ...]
    views: Views
    place: Mapping[Node, BufferPlace]
    lives: Lives
    workspaces: Sequence[Workspace]
    inner: Mapping[Graph, Schedule]

    @classmethod
    def of(
        cls,
        order: Sequence[Node],
        seen: Views,
        place: Mapping[Node, BufferPlace],
        lives: Lives | None = None,
    ) -> Schedule:
        """Return the schedule of these places in this order.

        `lives` are their `lifetimes` where the caller has them.
        """
        lives = lifetimes(order, seen.owner, place) if lives is None else lives
        inner = {graph: schedule(graph) for node in order if not is_group(node) for graph in node.subgraphs}
        return cls(tuple(order), seen, place, lives, _workspaces(order, seen), inner)

    def without_arena(self) -> Schedule:
        """Return the schedule for kernels that allocate what they need."""
        return self._replace(workspaces=[space for space in self.workspaces if space.nodes[0].subgraphs])

    @property
    def owner(self) -> Mapping[Node, Node]:
        """The owner of the memory that each node looks at."""
        return self.views.owner


def schedule(graph: Graph) -> Schedule:
    """Return the schedule of the user's own order, or of one made for little memory where that pays."""
    with clock.phase("schedule"):
        seen = views(graph.nodes)
        planned = in_arena(graph.nodes, graph.outputs, seen.owner)
        sizes = {node: nbytes(node) for node in planned}
        best = _place(graph.nodes, seen, sizes)
        order = leanest(graph, *_writer_view(seen.owner, sizes))
        if not all(map(operator.is_, order, graph.nodes)):
            other = _place(order, seen, sizes)
            best = other if other.live < PAYS * best.live else best
        if any(not dims.same(place.offset, 0) for place in best.place.values()):
            best = min(best, _place(best.order, seen, sizes, join=False), key=lambda candidate: candidate.live)
        return Schedule.of(best.order, seen, best.place, best.lives)


def _writer_view(owner: Mapping[Node, Node], sizes: Mapping[Node, int]) -> tuple[dict[Node, Node], dict[Node, int]]:
    """Return owners and sizes by writer: a node with several results writes them all at once."""
    written: dict[Node, int] = {}
    for node, size in sizes.items():
        written[writer(node)] = written.get(writer(node), 0) + size
    return {node: writer(own) if own in sizes else own for node, own in owner.items()}, written


class _Placement(NamedTuple):
    """An order, the places and lifetimes of the buffers in it, and the most bytes that are live at one step."""

    order: Sequence[Node]
    place: Mapping[Node, BufferPlace]
    lives: Lives
    live: int


def _place(order: Sequence[Node], seen: Views, sizes: Mapping[Node, int], join: bool = True) -> _Placement:
    place = places(order, seen, sizes, join)
    lives = lifetimes(order, seen.owner, place)
    return _Placement(order, place, lives, memory.max_live([(*steps, sizes[node]) for node, steps in lives.items()]))


def lifetimes(
    order: Sequence[Node], owner: Mapping[Node, Node], places: Mapping[Node, BufferPlace]
) -> dict[Node, tuple[int, int]]:
    """Return for each buffer the half-open interval of steps in which it is in use."""
    step = {node: i for i, node in enumerate(order)}
    last = last_use(order, owner)
    lives: dict[Node, tuple[int, int]] = {}
    for node, (buffer, _) in places.items():
        lower, upper = step[writer(node)], last[node] + 1
        before = lives.get(buffer, (lower, upper))
        lives[buffer] = min(lower, before[0]), max(upper, before[1])
    return lives


def _workspaces(order: Sequence[Node], seen: Views) -> list[Workspace]:
    """Return a workspace for each node that needs one; all fused groups share one, which stays in the cache."""
    groups = [(i, node) for i, node in enumerate(order) if is_group(node)]
    workspaces = [Workspace((node,), i, i + 1) for i, node in enumerate(order) if _has_workspace(node, seen)]
    if groups:
        workspaces.append(Workspace(tuple([node for _, node in groups]), groups[0][0], groups[-1][0] + 1))
    return workspaces


def _has_workspace(node: Node, seen: Views) -> bool:
    """Whether a node that is no group holds graphs, or its kernel may need memory beside its result."""
    holds = bool(node.subgraphs) and not is_group(node)
    return holds or kernel_workspace(node, seen, lambda value: value) is not None


def kernel_workspace(node: Node, seen: Views, sized: Callable[[Any], Any]) -> TensorSpec | None:
    """Return the spec of the array that a node's kernel needs beside its result, None for none.

    `sized` gives a spec or an attribute with numbers for symbolic sizes.
    """
    if node.op.workspace is None:
        return None
    in_rows = [source in seen.whole for source in node.inputs]
    attrs = {key: sized(value) for key, value in node.attrs.items()}
    *specs, out = (sized(n.spec) for n in (*node.inputs, node))
    return node.op.workspace(*specs, in_rows=in_rows, out=out, **attrs)


Order = Sequence[Node]
Owner = Mapping[Node, Node]
Sizes = Mapping[Node, int]


def leanest(graph: Graph, owner: Owner, sizes: Sizes) -> Order:
    """Return, of a few orders, the one that holds the least memory; effects keep their order in the graph.

    `owner` maps each node to the node whose memory it is in. `sizes` has the bytes of planned nodes; a missing node
    counts 0.
    """
    early, late = eager(graph.nodes, owner, sizes), demand_order(graph, sizes)
    orders = [graph.nodes, early, late]
    live = [most_live(order, owner, sizes) for order in orders]
    if live[2] < live[1]:
        orders.append(eager(late, owner, sizes))
        live.append(most_live(orders[3], owner, sizes))
    effects = graph.effects
    allowed = [i for i, order in enumerate(orders) if is_in_order(effects, order)]
    return orders[min(allowed, key=live.__getitem__)]


def most_live(order: Order, owner: Owner, sizes: Sizes) -> int:
    """Return the most bytes that are live at a step, if no result is written over another value."""
    last = {owner[value]: step for step, node in enumerate(order) for value in (node, *node.inputs)}
    ending = [0] * len(order)
    for node, step in last.items():
        ending[step] += sizes.get(node, 0)
    live = most = 0
    for node, bytes_ in zip(order, ending, strict=True):
        live += sizes.get(node, 0)
        most = max(most, live)
        live -= bytes_
    return most


def eager(order: Order, owner: Owner, sizes: Sizes) -> Order:
    """Return the same order, but a node that frees more memory than it takes runs as soon as it can."""
    return _Eager(order, owner, sizes).run()


class _Eager:
    def __init__(self, order: Order, owner: Owner, sizes: Sizes) -> None:
        self.order, self.owner, self.sizes = order, owner, sizes
        self.position = {node: i for i, node in enumerate(order)}
        self.missing: dict[Node, int] = {}
        self.users: dict[Node, list[Node]] = {node: [] for node in order}
        self.readers: dict[Node, list[Node]] = {node: [] for node in order}
        self.reads: dict[Node, Sequence[Node]] = {}  # the owners of the memory that each node reads
        for node in order:
            sources = _distinct(node.inputs)
            self.missing[node] = len(sources)
            for source in sources:
                self.users[source].append(node)
            self.reads[node] = _distinct([owner[source] for source in sources])
            for read in self.reads[node]:
                self.readers[read].append(node)
        self.left = {node: len(readers) for node, readers in self.readers.items()}
        self.freed = dict.fromkeys(order, 0)  # the bytes that only this node is still to read
        for read, readers in self.readers.items():
            if len(readers) == 1:
                self.freed[readers[0]] += sizes.get(read, 0)
        self.done: dict[Node, None] = {}

    def run(self) -> Order:
        for node in self.order:
            ready = [] if node in self.done else [self.position[node]]
            while ready:
                current = self.order[heapq.heappop(ready)]
                if current is node or (current not in self.done and self._pays(current)):
                    for following in self._finish(current):
                        heapq.heappush(ready, self.position[following])
        return list(self.done)

    def _pays(self, node: Node) -> bool:
        if self.missing[node] or node.has_effect:
            return False
        return self.freed[node] > self.sizes.get(node, 0) or self.owner[node] is not node

    def _finish(self, node: Node) -> Iterator[Node]:
        """Record that a node has run; yield the nodes that may have become worth running."""
        self.done[node] = None
        for user in self.users[node]:
            self.missing[user] -= 1
            if not self.missing[user]:
                yield user
        for read in self.reads[node]:
            self.left[read] -= 1
            if self.left[read] == 1:
                last = next(reader for reader in self.readers[read] if reader not in self.done)
                self.freed[last] += self.sizes.get(read, 0)
                yield last


def _distinct(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return each node once, in this order; most ops have one operand, or two that differ."""
    if len(nodes) < 2 or (len(nodes) == 2 and nodes[0] is not nodes[1]):
        return nodes
    return list(dict.fromkeys(nodes))


def demand_order(graph: Graph, sizes: Sizes) -> Order:
    """Return the order that goes depth first from the outputs: each node as late as its first reader allows.

    Of a node's operands, the one whose computation needs the most memory beyond its result comes first (Sethi and
    Ullman, JACM 17(4), 1970; exact for trees).
    """
    # Inputs before an iterator's position are done, so that a node of many inputs looks at each of them once.
    ranked = {node: iter(sources) for node, sources in _rank_inputs(graph.nodes, sizes).items()}
    done = dict.fromkeys(node for node in graph.nodes if not node.inputs)
    wanted = set(graph.outputs)
    for root in [node for node in graph.nodes if node in wanted] + list(graph.nodes):
        stack = [root]
        while stack:
            source = next((source for source in ranked[stack[-1]] if source not in done), None)
            if source is not None:
                stack.append(source)
            else:
                done[stack.pop()] = None
    return list(done)


def _rank_inputs(nodes: Sequence[Node], sizes: Sizes) -> dict[Node, list[Node]]:
    """Return the inputs of each node in the order that needs the least memory if the graph is a tree."""
    needed: dict[Node, int] = {}
    ranked: dict[Node, list[Node]] = {}
    for node in nodes:
        ranked[node] = list(_distinct(node.inputs))
        if len(ranked[node]) > 1:
            ranked[node].sort(key=lambda source: sizes.get(source, 0) - needed[source])
        held = most = 0
        for source in ranked[node]:
            most = max(most, held + needed[source])
            held += sizes.get(source, 0)
        needed[node] = max(most, held + sizes.get(node, 0))
    return ranked
