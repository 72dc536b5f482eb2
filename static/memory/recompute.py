"""Memory within a budget: values that wait long to be read again are dropped, and computed again when they are read.

One walk follows the order of the graph. Where more bytes would be live than allowed, it drops the value whose bytes are
free for longest for the least work: rematerialization as in Kirisame et al. (ICLR 2021, arXiv 2006.09616), with the
future known. The same kernels run again on the same numbers, so results keep their bits. Random numbers, loops and ops
of the user's own never run twice. A walk takes about linear time, and a few walks find how many bytes may be live for
the plan to fit. Read `fit` first, then `_Walk`.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from graphs.errors import GraphError
from graphs.ir import Cost, Graph, Node, node_cost
from static.memory.planner import ALIGNMENT
from static.memory.schedule import schedule
from static.passes.fusion import fused, is_group, is_result, result

LONGEST = 64  # nodes that may run again for one value
STEPS = 32  # into which the bytes that are live are divided: a walk for each is tried
MOST = 8  # times as many nodes: with less memory a walk would do little else than repeat
FAR = 3  # exponent of the steps for which bytes are free: a value read soon would only be in the way again
TRIES = 8  # values whose worth is looked at again before one is dropped

PeakOf = Callable[[Graph], int]


def fit(graph: Graph, budget: int, peak_of: PeakOf) -> Graph:
    """Return the graph with as little computed again as brings its planned memory within a budget of bytes.

    Sizes must be numbers. `peak_of` returns the planned bytes of a graph. Raises GraphError with the smallest budget
    that can be met.
    """
    whole = peak_of(graph)
    if whole <= budget:
        return graph
    values = _Values(graph)
    tried: dict[int, tuple[int, Graph]] = {}

    def fits(share: int) -> bool:
        if share not in tried:
            made = _Walk(values, whole * share // STEPS).graph() or graph
            tried[share] = peak_of(made), made
        return tried[share][0] <= budget

    least, most = 1, STEPS - 1
    while least < most:  # the largest share that fits, if less memory for the walk is never a larger plan
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    for share in (least, *reversed(range(1, STEPS))):
        if fits(share):
            return tried[share][1]
    raise GraphError(
        f"{graph.name}: does not fit into a memory_budget of {budget:,} bytes, whatever is computed again; "
        f"the smallest that it fits into is {min(whole, *(peak for peak, _ in tried.values())):,}"
    )


class _Values:
    """Facts about the values of a graph, known before any walk.

    All facts are about the node that owns the memory of a value; `views` are the nodes that look at that memory. `runs`
    has the node that computes a value again, and `last` the step that reads a value last.
    """

    def __init__(self, graph: Graph) -> None:
        made = schedule(graph)
        self.like, self.order, self.owner, self.place = graph, made.order, made.owner, made.place
        self.size = {node: -(-int(node.spec.nbytes) // ALIGNMENT) * ALIGNMENT for node in made.place}
        self.runs = {node: _alone(node) if is_result(node) else node for node in made.order}
        self.views: dict[Node, list[Node]] = {node: [] for node in made.order}
        self.reads: dict[Node, list[int]] = {node: [] for node in made.order}
        for step, node in enumerate(made.order):
            self.views[self.owner[node]].append(node)
            for read in {self.owner[source] for source in node.inputs} - {self.owner[node]}:
                self.reads[read].append(step)
        self.last = {node: reads[-1] if reads else -1 for node, reads in self.reads.items()}
        self.cost = {node: 1.0 + float(cost.flops) + float(cost.bytes) for node, cost in self._costs()}
        self.droppable = self._droppable()

    def _costs(self) -> Iterator[tuple[Node, Cost]]:
        return ((node, node_cost(runs)) for node, runs in self.runs.items() if _is_repeatable(runs))

    def _droppable(self) -> set[Node]:
        """Return the planned values that can be computed again at any time until their last read."""
        kept = {self.owner[output] for output in self.like.outputs}
        until: dict[Node, int] = {}
        for node, runs in self.runs.items():
            if node.is_source or self.owner[node] in kept:
                until[node] = len(self.order)
            elif node not in self.cost:
                until[node] = self.last[self.owner[node]]
            else:
                until[node] = min((until[source] for source in runs.inputs), default=len(self.order))
        return {node for node in self.size if node in self.cost and until[node] >= self.last[node]}


class _Walk:
    """A run of the graph in which at most `allowed` bytes are live, as far as that is possible."""

    def __init__(self, values: _Values, allowed: int) -> None:
        self.values, self.allowed, self.live, self.now = values, allowed, 0, 0
        self.there: dict[Node, Node] = {}  # for each node whose value is in memory, the node that computed it
        self.order: list[Node] = []
        self.offers = itertools.count()  # breaks ties between equal gains
        self.waiting: list[tuple[float, int, Node]] = []  # a heap of values that may be dropped, the highest gain first

    def graph(self) -> Graph | None:
        """Return the run as a verified graph, or None where it repeats too much."""
        like = self.values.like
        for step, node in enumerate(self.values.order):
            self.now = step
            nodes = [*self._missing(node), node]
            needed = Counter(own for computed in nodes for own in self._read(computed, computed is node))
            for computed in nodes:
                self._compute(computed, needed, computed is node)
            if len(self.order) > MOST * len(self.values.order):
                return None
        outputs = [self.there[output] for output in like.outputs]
        return Graph(like.name, like.inputs, _live_nodes(self.order, outputs), outputs)

    def _read(self, node: Node, first: bool) -> set[Node]:
        """Return the owners of the memory that a node reads when it runs for the first time, or again."""
        runs = node if first else self.values.runs[node]
        return {self.values.owner[source] for source in runs.inputs}

    def _missing(self, node: Node, most: int | None = None) -> list[Node]:
        """Return the nodes to run again before a node, in order; at most `most` of them."""
        missing: dict[Node, None] = {}
        waiting = [source for source in node.inputs if source not in self.there]
        while waiting and len(missing) != most:
            current = waiting[-1]
            more = [s for s in self.values.runs[current].inputs if s not in self.there and s not in missing]
            waiting += more
            if not more:
                missing[waiting.pop()] = None
        return list(missing)

    def _compute(self, node: Node, needed: Counter[Node], first: bool) -> None:
        """Run a node after dropping values to make room for its result; then forget values that are not read again."""
        size = self.values.size.get(node, 0)
        over = node in self.values.place and self.values.place[node].buffer is not node  # written where another lay
        while self.live + size * (not over) > self.allowed and self._drop(needed):
            pass
        runs = node if first else self.values.runs[node]
        inputs = [self.there[source] for source in runs.inputs]
        same = first and all(map(operator.is_, inputs, node.inputs))
        made = node if same else Node(runs.op, inputs, runs.attrs, runs.spec, runs.source)
        self.order.append(made)
        if is_group(runs) and node is not runs:
            made = Node.of(result, [made], {"number": 0}, node.source)
            self.order.append(made)
        self.there[node] = made
        self.live += size
        for own in self._read(node, first):
            needed[own] -= 1
        for own in (*self._read(node, first), self.values.owner[node]):
            if self.values.last[own] <= self.now and not needed[own]:
                self._forget(own)
        if node in self.values.droppable and node in self.there:
            self._offer(node)

    def _forget(self, own: Node) -> None:
        """Free the memory of a planned value."""
        if own in self.values.size and own in self.there:
            self.live -= self.values.size[own]
            for view in self.values.views[own]:
                self.there.pop(view, None)

    def _drop(self, needed: Counter[Node]) -> bool:
        """Drop the value with about the highest gain; gains are stale, since they fall as values nearby are dropped."""
        seen: dict[Node, float] = {}
        kept: list[tuple[float, int, Node]] = []
        while self.waiting and len(seen) < TRIES and (not seen or -self.waiting[0][0] > max(seen.values())):
            offer = heapq.heappop(self.waiting)
            if needed[offer[2]]:
                kept.append(offer)
            elif offer[2] in self.there:
                seen[offer[2]] = self._gain(offer[2])
        best = max(seen, key=lambda node: seen[node], default=None)
        for offer in kept:
            heapq.heappush(self.waiting, offer)
        for node in seen.keys() - {best}:
            self._offer(node, seen[node])
        if best is None or not seen[best]:
            return False
        self._forget(best)
        return True

    def _offer(self, node: Node, gain: float | None = None) -> None:
        heapq.heappush(self.waiting, (-(self._gain(node) if gain is None else gain), next(self.offers), node))

    def _gain(self, node: Node) -> float:
        """Return the gain of dropping a value: its bytes, times a power of the steps until its next read, per work.

        Returns 0 if too many nodes would run again.
        """
        again = self._missing(self.values.runs[node], LONGEST)
        reads = self.values.reads[node]
        at = bisect.bisect_right(reads, self.now)
        if len(again) >= LONGEST or at == len(reads):
            return 0.0
        work = self.values.cost[node] + sum(self.values.cost[source] for source in again)
        return self.values.size[node] * float(reads[at] - self.now) ** FAR / work


def _is_repeatable(node: Node) -> bool:
    """Whether a node gives the same bits again; a sum over a group's blocks does so only in blocks of equal length."""
    if is_group(node):
        return all(output.op.family == "elementwise" for output in node.attrs["body"].outputs)
    return node.op.repeatable


def _alone(value: Node) -> Node:
    """Return the fused group of a result, cut down to the nodes that this result needs."""
    (group,) = value.inputs
    body: Graph = group.attrs["body"]
    output = body.outputs[value.attrs["number"]]
    nodes = _live_nodes(body.nodes, [output])
    read = {source for node in nodes for source in node.inputs}
    taken = [(node, source) for node, source in zip(body.inputs, group.inputs, strict=True) if node in read]
    inside = [node for node in nodes if node.inputs or node in read]
    smaller = Graph(body.name, [node for node, _ in taken], inside, [output])
    return Node.of(fused, [source for _, source in taken], group.attrs | {"body": smaller}, group.source)


def _live_nodes(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Return the nodes that are still read; a fused group keeps all of its results, or goes with them."""
    read = set(outputs)
    kept: list[Node] = []
    for node in reversed(order):
        if node in read or (not is_group(node) and not node.op.repeatable):
            kept.append(node)
            if not is_result(node) or node in read:
                read.update(node.inputs)
    return [node for node in reversed(kept) if not is_result(node) or node.inputs[0] in read]
