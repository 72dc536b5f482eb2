"""The order in which nodes run, which of them share memory, and how long each block of memory lives."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphs import dims
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static import clock, memory
from static.memory import ordering, sharing
from static.memory.sharing import Place
from static.passes.iteration_space import fused

TYPICAL = 64  # what a symbolic size is taken to be while nobody knows it
PAYS = 0.99  # an order must bring the peak below this share of what the user's own order takes


class Schedule(NamedTuple):
    """The nodes in the order they run, for each the node that owns the memory it looks at, and where owners lie.

    What has no place is allocated by its kernel: what the caller gets, and what control flow returns. `inner` are the
    schedules of branches and bodies.
    """

    order: tuple[Node, ...]
    views: sharing.Views
    place: Mapping[Node, Place]
    inner: Mapping[Graph, Schedule]

    @property
    def owner(self) -> Mapping[Node, Node]:
        """For each node the one that owns the memory it looks at."""
        return self.views.owner

    @property
    def buffers(self) -> list[Node]:
        """The nodes whose buffers make up the arena."""
        return list(dict.fromkeys(place.buffer for place in self.place.values()))


def schedule(graph: Graph) -> Schedule:
    """The order of the user's code, or one made for little memory where that pays, with what shares memory in it."""
    with clock.phase("schedule"):
        return _scheduled(graph)


def inner_schedules(graph: Graph) -> dict[Graph, Schedule]:
    """The schedules of the branches and bodies that nodes hold; fused groups run in the order of their nodes."""
    held = (node for node in graph.nodes if node.op is not fused)
    return {inner: schedule(inner) for node in held for inner in node.subgraphs}


def _scheduled(graph: Graph) -> Schedule:
    seen = sharing.views(graph.nodes)
    planned = sharing.in_arena(graph.nodes, graph.outputs, seen.owner)
    sizes = {node: _typical_bytes(node.spec) for node in planned}
    best = _placed(graph.nodes, seen, planned, sizes)
    order = ordering.leanest(graph, *_written(seen.owner, sizes))
    if not all(map(operator.is_, order, graph.nodes)):
        other = _placed(order, seen, planned, sizes)
        best = other if other[0] < PAYS * best[0] else best
    if any(not dims.same(place.offset, 0) for place in best[1].place.values()):
        best = min(best, _placed(best[1].order, seen, planned, sizes, join=False), key=lambda one: one[0])
    return best[1]._replace(inner=inner_schedules(graph))


def _written(owner: Mapping[Node, Node], sizes: Mapping[Node, int]) -> tuple[dict[Node, Node], dict[Node, int]]:
    """Owners and sizes as the nodes that write see them: one that has several results writes them all at once."""
    written: dict[Node, int] = {}
    for node, size in sizes.items():
        written[sharing.writer(node)] = written.get(sharing.writer(node), 0) + size
    return {node: sharing.writer(own) if own in sizes else own for node, own in owner.items()}, written


def _placed(
    order: Sequence[Node], seen: sharing.Views, planned: Sequence[Node], sizes: Mapping[Node, int], join: bool = True
) -> tuple[int, Schedule]:
    """The schedule of an order, after the most bytes that are live in it."""
    made = Schedule(tuple(order), seen, sharing.places(order, seen, planned, join), {})
    buffers = made.buffers
    return memory.max_live(lifetimes(buffers, made, [sizes[node] for node in buffers])), made


def _typical_bytes(spec: TensorSpec) -> int:
    return dims.evaluate(spec.nbytes, dict.fromkeys(spec.symbols, TYPICAL))


def lifetimes(buffers: Sequence[Node], plan_of: Schedule, sizes: Sequence[int]) -> list[memory.Buffer]:
    """For each buffer, the half-open interval of steps in which it is in use, and its bytes."""
    step = {node: i for i, node in enumerate(plan_of.order)}
    last = sharing.last_use(plan_of.order, plan_of.owner)
    lower: dict[Node, int] = {}
    upper: dict[Node, int] = {}
    for node, (buffer, _) in plan_of.place.items():
        first = step[sharing.writer(node)]
        lower[buffer] = min(lower.get(buffer, first), first)
        upper[buffer] = max(upper.get(buffer, 0), last[node] + 1)
    return [(lower[b], upper[b], size) for b, size in zip(buffers, sizes, strict=True)]


def spans(users: Sequence[Sequence[Node]], plan_of: Schedule, sizes: Sequence[int]) -> list[memory.Buffer]:
    """For each memory that only these nodes use, and only while they run: from the first of them to the last."""
    step = {node: i for i, node in enumerate(plan_of.order)}
    steps = [[step[node] for node in nodes] for nodes in users]
    return [(min(used), max(used) + 1, size) for used, size in zip(steps, sizes, strict=True)]
