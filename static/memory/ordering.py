"""Orders in which a graph can run: the user's own, and others that may hold less memory at once.

What an op returns to the caller takes no memory of the arena, and views take none; so the orders weigh what is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from graphs.ir import Graph, Node
from static.rebuild import is_in_order

Order = Sequence[Node]
Owner = Mapping[Node, Node]
Sizes = Mapping[Node, int]


def leanest(graph: Graph, owner: Owner, sizes: Sizes) -> Order:
    """Of a few orders the one that holds the least memory; effects stay in the order that they have in the graph.

    `owner` gives for each node the one whose memory it is in, `sizes` the bytes of what is planned, 0 if missing.
    """
    early, late = eager(graph.nodes, owner, sizes), demanded(graph, sizes)
    orders = [graph.nodes, early, late]
    live = [most_live(order, owner, sizes) for order in orders]
    if live[2] < live[1]:
        orders.append(eager(late, owner, sizes))
        live.append(most_live(orders[3], owner, sizes))
    effects = graph.effects
    allowed = [i for i, order in enumerate(orders) if is_in_order(effects, order)]
    return orders[min(allowed, key=live.__getitem__)]


def most_live(order: Order, owner: Owner, sizes: Sizes) -> int:
    """The most bytes that are live at a step when nothing is written over anything else."""
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
    """The same order, but what frees more memory than it takes runs as soon as it can."""
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
        self.freed = dict.fromkeys(order, 0)  # the bytes that nobody but this node is still to read
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
        """Run a node; what may have become worth running."""
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
    """Each node once, in this order; most ops have one operand, or two that differ."""
    if len(nodes) < 2 or (len(nodes) == 2 and nodes[0] is not nodes[1]):
        return nodes
    return list(dict.fromkeys(nodes))


def demanded(graph: Graph, sizes: Sizes) -> Order:
    """Depth first from the outputs in the order of the graph: each node as late as the first that needs it allows.

    Of the operands of a node, the one whose computation needs the most memory beyond its result comes first (Sethi
    and Ullman, JACM 17(4), 1970; exact for trees).
    """
    # What comes before the place of an iterator is done, so that a node of many inputs looks at each of them once.
    ranked = {node: iter(sources) for node, sources in _ranked(graph.nodes, sizes).items()}
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


def _ranked(nodes: Sequence[Node], sizes: Sizes) -> dict[Node, list[Node]]:
    """The inputs of each node in the order in which they are best computed, were the graph a tree."""
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
