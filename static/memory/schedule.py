"""The order in which nodes run, which of them share memory, and how long each block of memory lives.

Read `Schedule` and `schedule` first. `leanest` and the functions after it make orders in which a graph can run: the
user's own, and others that may hold less memory at once. An op's result that the caller gets takes no memory of the
arena, and views take none, so the orders weigh the remaining values.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from graphs import dims
from graphs.ir import Graph, Node
from static import clock, memory
from static.memory import sharing
from static.memory.sharing import BufferPlace
from static.passes.fusion import is_group
from static.passes.products import nbytes
from static.rebuild import is_in_order

PAYS = 0.99  # an order must bring the peak below this share of what the user's own order takes


Lives = Mapping[Node, tuple[int, int]]  # for each buffer, the half-open interval of steps in which it is in use


class Workspace(NamedTuple):
    """Memory that only these nodes use, while they run: in the half-open interval of steps [lower, upper)."""

    nodes: tuple[Node, ...]
    lower: int
    upper: int


class Schedule(NamedTuple):
    """The nodes in the order they run, for each node the owner of the memory it looks at, and the places of owners.

    A node without a place is allocated by its kernel: an output for the caller, or a result of control flow. `lives`
    has the buffers that make up the arena, each with the half-open interval of steps in which it is in use.
    `workspaces` is the extra memory of nodes that hold graphs. `inner` are the schedules of branches and bodies.
    """

    order: tuple[Node, ...]
    views: sharing.Views
    place: Mapping[Node, BufferPlace]
    lives: Lives
    workspaces: Sequence[Workspace]
    inner: Mapping[Graph, Schedule]

    @classmethod
    def of(
        cls,
        order: Sequence[Node],
        seen: sharing.Views,
        place: Mapping[Node, BufferPlace],
        lives: Lives | None = None,
    ) -> Schedule:
        """Return the schedule of these places in this order.

        `lives` are their `lifetimes` where the caller has them.
        """
        lives = lifetimes(order, seen.owner, place) if lives is None else lives
        inner = {graph: schedule(graph) for node in order if not is_group(node) for graph in node.subgraphs}
        return cls(tuple(order), seen, place, lives, _workspaces(order), inner)

    @property
    def owner(self) -> Mapping[Node, Node]:
        """The owner of the memory that each node looks at."""
        return self.views.owner


def schedule(graph: Graph) -> Schedule:
    """Return the schedule of the user's own order, or of one made for little memory where that pays."""
    with clock.phase("schedule"):
        return _search_schedule(graph)


def _search_schedule(graph: Graph) -> Schedule:
    seen = sharing.views(graph.nodes)
    planned = sharing.in_arena(graph.nodes, graph.outputs, seen.owner)
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
        written[sharing.writer(node)] = written.get(sharing.writer(node), 0) + size
    return {node: sharing.writer(own) if own in sizes else own for node, own in owner.items()}, written


class _Placement(NamedTuple):
    """An order, the places and lifetimes of the buffers in it, and the most bytes that are live at one step."""

    order: Sequence[Node]
    place: Mapping[Node, BufferPlace]
    lives: Lives
    live: int


def _place(order: Sequence[Node], seen: sharing.Views, sizes: Mapping[Node, int], join: bool = True) -> _Placement:
    place = sharing.places(order, seen, sizes, join)
    lives = lifetimes(order, seen.owner, place)
    return _Placement(order, place, lives, memory.max_live([(*steps, sizes[node]) for node, steps in lives.items()]))


def lifetimes(
    order: Sequence[Node], owner: Mapping[Node, Node], places: Mapping[Node, BufferPlace]
) -> dict[Node, tuple[int, int]]:
    """Return for each buffer the half-open interval of steps in which it is in use."""
    step = {node: i for i, node in enumerate(order)}
    last = sharing.last_use(order, owner)
    lives: dict[Node, tuple[int, int]] = {}
    for node, (buffer, _) in places.items():
        lower, upper = step[sharing.writer(node)], last[node] + 1
        before = lives.get(buffer, (lower, upper))
        lives[buffer] = min(lower, before[0]), max(upper, before[1])
    return lives


def _workspaces(order: Sequence[Node]) -> list[Workspace]:
    """Return a workspace for each node that holds graphs; all fused groups share one, which stays in the cache."""
    groups = [(i, node) for i, node in enumerate(order) if is_group(node)]
    workspaces = [Workspace((node,), i, i + 1) for i, node in enumerate(order) if node.subgraphs and not is_group(node)]
    if groups:
        workspaces.append(Workspace(tuple([node for _, node in groups]), groups[0][0], groups[-1][0] + 1))
    return workspaces


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
