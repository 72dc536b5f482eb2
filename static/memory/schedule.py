"""The order in which nodes run, which of them share memory, and how long each block of memory lives."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphs import dims
from graphs.ir import Graph, Node
from static import clock, memory
from static.memory import ordering, sharing
from static.memory.sharing import BufferPlace
from static.passes.iteration_space import fused
from static.passes.together import nbytes

PAYS = 0.99  # an order must bring the peak below this share of what the user's own order takes


Lives = Mapping[Node, tuple[int, int]]  # of each buffer, the half-open interval of steps in which it is in use


class Workspace(NamedTuple):
    """Memory that only these nodes use, while they run: in the half-open interval of steps [lower, upper)."""

    nodes: tuple[Node, ...]
    lower: int
    upper: int


class Schedule(NamedTuple):
    """The nodes in the order they run, for each the node that owns the memory it looks at, and where owners lie.

    What has no place is allocated by its kernel: what the caller gets, and what control flow returns. `lives` are the
    buffers that make up the arena, each with the half-open interval of steps in which it is in use; `workspaces` is
    what nodes that hold graphs need beside them. `inner` are the schedules of branches and bodies.
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
        """The schedule of these places in this order; `lives` are their `lifetimes`, where they are known already."""
        lives = lifetimes(order, seen.owner, place) if lives is None else lives
        inner = {graph: schedule(graph) for node in order if node.op is not fused for graph in node.subgraphs}
        return cls(tuple(order), seen, place, lives, _workspaces(order), inner)

    @property
    def owner(self) -> Mapping[Node, Node]:
        """For each node the one that owns the memory it looks at."""
        return self.views.owner


def schedule(graph: Graph) -> Schedule:
    """The order of the user's code, or one made for little memory where that pays, with what shares memory in it."""
    with clock.phase("schedule"):
        return _scheduled(graph)


def _scheduled(graph: Graph) -> Schedule:
    seen = sharing.views(graph.nodes)
    planned = sharing.in_arena(graph.nodes, graph.outputs, seen.owner)
    sizes = {node: nbytes(node) for node in planned}
    best = _placed(graph.nodes, seen, sizes)
    order = ordering.leanest(graph, *_written(seen.owner, sizes))
    if not all(map(operator.is_, order, graph.nodes)):
        other = _placed(order, seen, sizes)
        best = other if other.live < PAYS * best.live else best
    if any(not dims.same(place.offset, 0) for place in best.place.values()):
        best = min(best, _placed(best.order, seen, sizes, join=False), key=lambda candidate: candidate.live)
    return Schedule.of(best.order, seen, best.place, best.lives)


def _written(owner: Mapping[Node, Node], sizes: Mapping[Node, int]) -> tuple[dict[Node, Node], dict[Node, int]]:
    """Owners and sizes as the nodes that write see them: one that has several results writes them all at once."""
    written: dict[Node, int] = {}
    for node, size in sizes.items():
        written[sharing.writer(node)] = written.get(sharing.writer(node), 0) + size
    return {node: sharing.writer(own) if own in sizes else own for node, own in owner.items()}, written


class _Placed(NamedTuple):
    """An order, where owners lie in it, when their buffers are in use, and the most bytes that are live at one step."""

    order: Sequence[Node]
    place: Mapping[Node, BufferPlace]
    lives: Lives
    live: int


def _placed(order: Sequence[Node], seen: sharing.Views, sizes: Mapping[Node, int], join: bool = True) -> _Placed:
    place = sharing.places(order, seen, sizes, join)
    lives = lifetimes(order, seen.owner, place)
    return _Placed(order, place, lives, memory.max_live([(*steps, sizes[node]) for node, steps in lives.items()]))


def lifetimes(
    order: Sequence[Node], owner: Mapping[Node, Node], places: Mapping[Node, BufferPlace]
) -> dict[Node, tuple[int, int]]:
    """For each buffer, the half-open interval of steps in which it is in use."""
    step = {node: i for i, node in enumerate(order)}
    last = sharing.last_use(order, owner)
    lives: dict[Node, tuple[int, int]] = {}
    for node, (buffer, _) in places.items():
        lower, upper = step[sharing.writer(node)], last[node] + 1
        before = lives.get(buffer, (lower, upper))
        lives[buffer] = min(lower, before[0]), max(upper, before[1])
    return lives


def _workspaces(order: Sequence[Node]) -> list[Workspace]:
    """One for each node that holds graphs; all fused groups have the same, which stays in the cache."""
    groups = [(i, node) for i, node in enumerate(order) if node.op is fused]
    workspaces = [
        Workspace((node,), i, i + 1) for i, node in enumerate(order) if node.subgraphs and node.op is not fused
    ]
    if groups:
        workspaces.append(Workspace(tuple([node for _, node in groups]), groups[0][0], groups[-1][0] + 1))
    return workspaces
