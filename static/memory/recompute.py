"""Memory within a budget: values that wait long to be read again are dropped, and computed again when they are.

What is live where most is, and not read there, is what could be dropped. Of these the one goes first that frees the
most bytes for the least work, then the next, as long as the most that is live at one step gets less: checkpointing
(Griewank and Walther, ACM TOMS 26(1), 2000; Chen et al., arXiv 1604.06174), on any graph. The same kernels run again
on the same numbers, so results keep their bits. Random numbers, loops and ops of the user's own never run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from graphs.cost import node_cost
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from static import memory
from static.memory import sharing
from static.memory.schedule import Schedule, lifetimes, schedule
from static.passes.iteration_space import fused, result

REPEATABLE = frozenset({"elementwise", "reduction", "movement", "linalg", "creation", "sorting", "window"})
LONGEST = 64  # nodes that may run again for one value
TRIES = 8  # values that are tried before it is taken that nothing helps any more

PeakOf = Callable[[Graph], int]


def fit(graph: Graph, budget: int, peak_of: PeakOf) -> Graph:
    """The graph, with as little computed again as brings the memory that is planned for it within a budget of bytes.

    Sizes must be numbers. `peak_of` plans a graph. Raises GraphError naming the smallest budget that can be met.
    """
    if peak_of(graph) <= budget:
        return graph
    reached: list[_Run] = []
    for run in _ever_less(_Run(schedule(graph).order, graph.outputs)):
        reached.append(run)
        if run.peak <= budget and peak_of(made := run.graph(graph)) <= budget:
            return made
    smallest = _smallest(graph, reached, peak_of)
    raise GraphError(
        f"{graph.name}: does not fit into a memory_budget of {budget:,} bytes, whatever is computed again; "
        f"the smallest that it fits into is {smallest:,}"
    )


def _smallest(graph: Graph, reached: Sequence[_Run], peak_of: PeakOf) -> int:
    least: int | None = None
    for run in sorted(reached, key=lambda run: run.peak):
        if least is not None and run.peak >= least:
            break  # no plan takes less than what is live
        peak = peak_of(run.graph(graph))
        least = peak if least is None else min(least, peak)
    return least or 0


def _ever_less(run: _Run) -> Iterator[_Run]:
    """A run, and others in which ever less is live at once, until nothing is found that helps."""
    current: _Run | None = run
    while current is not None:
        yield current
        current = next(current.improvements(), None)


class _Run:
    """Nodes in an order that computes the outputs, and what is live at each step of it."""

    def __init__(self, order: Sequence[Node], outputs: Sequence[Node]) -> None:
        self.order, self.outputs = list(order), list(outputs)
        self.step = {node: i for i, node in enumerate(self.order)}
        self.seen = sharing.views(self.order)
        self.planned = sharing.in_arena(self.order, self.outputs, self.seen.owner)
        places = sharing.places(self.order, self.seen, self.planned)
        made = Schedule(tuple(self.order), self.seen, places, {})
        buffers = made.buffers
        sizes = [_rounded(node) for node in buffers]
        change = np.zeros(len(self.order) + 1, np.int64)
        for lower, upper, size in lifetimes(buffers, made, sizes):
            change[lower] += size
            change[upper] -= size
        self.live = np.cumsum(change)
        self.peak = int(self.live.max())

    def graph(self, like: Graph) -> Graph:
        """As a graph, which is verified."""
        return Graph(like.name, like.inputs, self.order, self.outputs)

    def improvements(self) -> Iterator[_Run]:
        """Runs in which less is live at once, or the same at fewer steps."""
        highest = int(self.live.argmax())
        drops = sorted(self._drops(highest), key=lambda drop: -drop.gain)
        for drop in drops[:TRIES]:
            found = drop.run()
            if (found.peak, found._steps_at_peak) < (self.peak, self._steps_at_peak):
                yield found

    @cached_property
    def _steps_at_peak(self) -> int:
        return int((self.live == self.peak).sum())

    @cached_property
    def users(self) -> dict[Node, list[int]]:
        """For each owner of memory the steps in which it, or a view of it, is an input."""
        users: dict[Node, list[int]] = {node: [] for node in self.order}
        for step, node in enumerate(self.order):
            for read in dict.fromkeys(self.seen.owner[source] for source in node.inputs):
                users[read].append(step)
        return users

    def reads(self, node: Node, start: int) -> list[int]:
        """The steps from `start` in which the memory of a node is read, not only viewed."""
        owner = self.seen.owner
        return [step for step in self.users[node] if step >= start and owner[self.order[step]] is not node]

    def _drops(self, at: int) -> Iterator[_Drop]:
        """What is live at a step but not read or written there, where it can be computed again."""
        for node in self.planned:
            later = self.reads(node, at)
            if later and later[0] > at > self.step[sharing.writer(node)]:
                drop = _Drop(self, node, later[0])
                if drop.possible:
                    yield drop


def _rounded(node: Node) -> int:
    size = int(node.spec.nbytes)
    return -(-size // memory.ALIGNMENT) * memory.ALIGNMENT


class _Drop:
    """A value that is dropped, and computed again before a later step, from what is live there."""

    def __init__(self, run: _Run, node: Node, before: int) -> None:
        self.source, self.node, self.before = run, node, before
        self.again: dict[Node, Node] = {}  # for each node that runs again, the node that does
        self.possible = all(map(self._compute, self._names()))

    @property
    def gain(self) -> float:
        """Bytes freed for an operation, or a byte moved."""
        costs = [node_cost(node) for node in self.again.values()]
        return _rounded(self.node) / (1.0 + sum(float(cost.flops) + float(cost.bytes) for cost in costs))

    def _names(self) -> list[Node]:
        """What the later steps read of the value: itself, and views that were made earlier."""
        owner, step = self.source.seen.owner, self.source.step
        later = [self.source.order[at] for at in self.source.users[self.node] if at >= self.before]
        read = dict.fromkeys(source for node in later for source in node.inputs)
        return [source for source in read if owner[source] is self.node and step[source] < self.before]

    def _compute(self, value: Node) -> bool:
        """Have a value at the later step, if need be by computing it again; whether that can be."""
        if value in self.again or (self.source.seen.owner[value] is not self.node and self._is_there(value)):
            return True
        runs = _alone(value) if value.op is result else value
        if len(self.again) >= LONGEST or not _is_repeatable(runs) or not all(map(self._compute, runs.inputs)):
            return False
        self.again[runs] = self._copy(runs)
        if runs is not value:
            self.again[value] = Node.of(result, [self.again[runs]], {"number": 0}, value.source)
        return True

    def _copy(self, node: Node) -> Node:
        return Node(node.op, [self.again.get(s, s) for s in node.inputs], node.attrs, node.spec, node.source)

    def _is_there(self, value: Node) -> bool:
        owner = self.source.seen.owner[value]
        held = owner.op.family == "source" or owner in self._kept
        return held or bool(self.source.reads(owner, self.before))

    @cached_property
    def _kept(self) -> set[Node]:
        return {self.source.seen.owner[output] for output in self.source.outputs}

    def run(self) -> _Run:
        """The run in which it is dropped."""
        order, step = self.source.order, self.source.step
        made = {node: again for node, again in self.again.items() if self.source.seen.owner.get(node) is self.node}
        later: list[Node] = []
        for node in order[self.before :]:
            inputs = [made.get(source, source) for source in node.inputs]
            same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
            made[node] = node if same else Node(node.op, inputs, node.attrs, node.spec, node.source)
            later.append(made[node])
        outputs = [made.get(o, o) if step[o] >= self.before else o for o in self.source.outputs]
        return _Run(_needed([*order[: self.before], *self.again.values(), *later], outputs), outputs)


def _is_repeatable(node: Node) -> bool:
    """Whether a node gives the same bits again; a sum over the blocks of a group does so only in blocks as long."""
    if node.op is fused:
        return all(output.op.family == "elementwise" for output in node.attrs["body"].outputs)
    return node.op.family in REPEATABLE


def _alone(value: Node) -> Node:
    """The fused group of a result, with nothing but what this result needs."""
    (group,) = value.inputs
    body: Graph = group.attrs["body"]
    output = body.outputs[value.attrs["number"]]
    nodes = _needed(body.nodes, [output])
    read = {source for node in nodes for source in node.inputs}
    taken = [(node, source) for node, source in zip(body.inputs, group.inputs, strict=True) if node in read]
    inside = [node for node in nodes if node.inputs or node in read]
    smaller = Graph(body.name, [node for node, _ in taken], inside, [output])
    return Node.of(fused, [source for _, source in taken], group.attrs | {"body": smaller}, group.source)


def _needed(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """The nodes without those that nobody reads any more. A group keeps all of its results, or goes with them."""
    read = set(outputs)
    kept: list[Node] = []
    for node in reversed(order):
        if node in read or (node.op is not fused and node.op.family not in REPEATABLE):
            kept.append(node)
            if node.op is not result or node in read:
                read.update(node.inputs)
    return [node for node in reversed(kept) if node.op is not result or node.inputs[0] in read]
