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
from collections.abc import Callable, Collection, Mapping, Sequence
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
    for i in numbers:
        operand = inputs[i]
        place = placed.get(seen.owner[operand])
        if place is None or until[place.buffer] != now or not _has_its_elements(operand, node, seen):
            continue
        lying = [placed.get(seen.owner[source]) for source in inputs]
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
    flow = Flow(graph, owner, sizes)
    orders = [flow.own, flow.eager(flow.own), flow.demand_order()]
    live = [flow.most_live(order) for order in orders]
    if live[2] < live[1]:
        orders.append(flow.eager(orders[2]))
        live.append(flow.most_live(orders[3]))
    effects = [number for number in flow.own if flow.has_effect(number)]
    allowed = [i for i, order in enumerate(orders) if is_in_order(effects, order)]
    return [graph.nodes[number] for number in orders[min(allowed, key=live.__getitem__)]]


Numbers = Sequence[int]
"""Nodes by their numbers in the graph."""


class Flow:
    """A graph in numbers, from which orders are made: lists of numbers take less time than tables of nodes.

    sources    the nodes that each node reads, each once
    reads      the owners of the memory that it reads, each once
    users, readers   who reads each node, and each memory
    """

    def __init__(self, graph: Graph, owner: Owner, sizes: Sizes) -> None:
        self.graph, self.own = graph, range(len(graph))
        numbered = {node: number for number, node in enumerate(graph.nodes)}
        self.owner = [numbered[owner[node]] for node in graph.nodes]
        self.size = [sizes.get(node, 0) for node in graph.nodes]
        self.sources = [_distinct([numbered[source] for source in node.inputs]) for node in graph.nodes]
        self.users = _readers(self.sources)
        self.reads, self.readers = self.sources, self.users
        if any(map(operator.ne, self.owner, self.own)):
            self.reads = [_distinct([self.owner[source] for source in sources]) for sources in self.sources]
            self.readers = _readers(self.reads)

    def has_effect(self, number: int) -> bool:
        """Whether a node has an effect beside computing."""
        node = self.graph.nodes[number]
        return node.op.may_have_effect and node.has_effect

    def most_live(self, order: Numbers) -> int:
        """Return the most bytes that are live at a step, if no result is written over another value."""
        last = [0] * len(order)
        for step, number in enumerate(order):
            last[self.owner[number]] = step
            for read in self.reads[number]:
                last[read] = step
        ending = [0] * len(order)
        for size, step in zip(self.size, last, strict=True):
            ending[step] += size
        live = most = 0
        for number, bytes_ in zip(order, ending, strict=True):
            live += self.size[number]
            if live > most:
                most = live
            live -= bytes_
        return most

    def eager(self, order: Numbers) -> Numbers:
        """Return the same order, but a node that frees more memory than it takes runs as soon as it can."""
        size, readers = self.size, self.readers
        position = [0] * len(order)
        for i, number in enumerate(order):
            position[number] = i
        missing, left = list(map(len, self.sources)), list(map(len, readers))
        freed, done, ran = self._freed_alone(), bytearray(len(order)), []
        for node in order:
            ready = [] if done[node] else [position[node]]
            while ready:
                current = order[heapq.heappop(ready)]
                if current != node and (done[current] or missing[current] or not self._pays(current, freed)):
                    continue
                done[current] = True
                ran.append(current)
                for user in self.users[current]:
                    missing[user] -= 1
                    if not missing[user]:
                        heapq.heappush(ready, position[user])
                for read in self.reads[current]:
                    left[read] -= 1
                    if left[read] == 1:
                        last = next(reader for reader in readers[read] if not done[reader])
                        freed[last] += size[read]
                        heapq.heappush(ready, position[last])
        return ran

    def _freed_alone(self) -> list[int]:
        """Return for each node the bytes that only it reads."""
        freed = [0] * len(self.own)
        for size, readers in zip(self.size, self.readers, strict=True):
            if len(readers) == 1:
                freed[readers[0]] += size
        return freed

    def _pays(self, number: int, freed: Numbers) -> bool:
        """Whether a node frees more memory than it takes, or takes none, and may run early."""
        return (freed[number] > self.size[number] or self.owner[number] != number) and not self.has_effect(number)

    def demand_order(self) -> Numbers:
        """Return the order that goes depth first from the outputs: each node as late as its first reader allows.

        Of a node's operands, the one whose computation needs the most memory beyond its result comes first (Sethi and
        Ullman, JACM 17(4), 1970; exact for trees).
        """
        ranked = self._rank_sources()
        order = [number for number in self.own if not ranked[number]]
        done = bytearray(len(ranked))
        for number in order:
            done[number] = True
        wanted = set(self.graph.outputs)
        roots = [number for number, node in enumerate(self.graph.nodes) if node in wanted]
        for root in (*roots, *self.own):
            stack = [] if done[root] else [root]
            waiting = [iter(ranked[root])]  # those before its position are done: each is looked at once
            while stack:
                for source in waiting[-1]:
                    if not done[source]:
                        stack.append(source)
                        waiting.append(iter(ranked[source]))
                        break
                else:
                    waiting.pop()
                    order.append(stack.pop())
                    done[order[-1]] = True
        return order

    def _rank_sources(self) -> list[Numbers]:
        """Return the sources of each node in the order that needs the least memory if the graph is a tree."""
        size = self.size
        needed: list[int] = []
        ranked: list[Numbers] = []
        for number, sources in enumerate(self.sources):
            if len(sources) > 1:
                sources = sorted(sources, key=lambda source: size[source] - needed[source])
            held = most = 0
            for source in sources:
                most = max(most, held + needed[source])
                held += size[source]
            needed.append(max(most, held + size[number]))
            ranked.append(sources)
        return ranked


def _readers(sources: Sequence[Numbers]) -> list[list[int]]:
    """Return for each number those whose sources it is among."""
    readers: list[list[int]] = [[] for _ in sources]
    for number, those in enumerate(sources):
        for source in those:
            readers[source].append(number)
    return readers


def _distinct(numbers: Numbers) -> Numbers:
    """Return each number once, in this order; most ops have one operand, or two that differ."""
    if len(numbers) < 2 or (len(numbers) == 2 and numbers[0] != numbers[1]):
        return numbers
    return list(dict.fromkeys(numbers))
