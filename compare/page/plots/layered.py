"""A layered drawing of a small directed acyclic graph, top to bottom.

Layers are longest paths from the sources, sources sink to just above their first reader, edges that skip a
layer get a waypoint in it, and the order inside a layer is by barycentre (Sugiyama, Tagawa and Toda 1981).
"""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import networkx as nx

Point = tuple[float, float]
_SWEEPS = 8


@dataclass(frozen=True)
class LayeredLayout:
    """Where nodes are and through which points edges run; neighbours are 1 apart, y grows downwards."""

    nodes: dict[Hashable, Point]
    edges: dict[tuple[Hashable, Hashable], list[Point]]
    width: int
    depth: int


def layered(graph: Any) -> LayeredLayout:
    """The layout of `graph` (a networkx DiGraph without cycles)."""
    layer = _layers(graph)
    routed, paths = _with_waypoints(graph, layer)
    rows = _ordered(routed, layer)
    place = {node: (at - (len(row) - 1) / 2, float(y)) for y, row in enumerate(rows) for at, node in enumerate(row)}
    edges = {edge: [place[node] for node in path] for edge, path in paths.items()}
    return LayeredLayout({node: place[node] for node in graph}, edges, max(map(len, rows), default=0), len(rows))


def _layers(graph: Any) -> dict[Hashable, int]:
    layer = {node: depth for depth, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in graph:
        if graph.in_degree(node) == 0 and graph.out_degree(node) > 0:
            layer[node] = min(layer[reader] for reader in graph.successors(node)) - 1
    return layer


def _with_waypoints(graph: Any, layer: dict[Hashable, int]) -> tuple[Any, dict[tuple[Hashable, Hashable], list[Any]]]:
    """`graph` with long edges cut into edges from layer to layer; `layer` learns where the new nodes are."""
    routed, paths = nx.DiGraph(), {}
    routed.add_nodes_from(graph)
    for head in graph:
        for tail in graph.predecessors(head):
            middle = [("waypoint", tail, head, at) for at in range(layer[tail] + 1, layer[head])]
            layer.update({point: point[3] for point in middle})
            paths[tail, head] = [tail, *middle, head]
            nx.add_path(routed, paths[tail, head])
    return routed, paths


def _ordered(routed: Any, layer: dict[Hashable, int]) -> list[list[Hashable]]:
    rows: defaultdict[int, list[Hashable]] = defaultdict(list)
    for node in nx.topological_sort(routed):
        rows[layer[node]].append(node)
    ordered = [rows[depth] for depth in sorted(rows)]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for near, row in pairwise(ordered if down else ordered[::-1]):
            _by_barycentre(routed, row, near, down)
    return ordered


def _by_barycentre(routed: Any, row: list[Hashable], near: list[Hashable], down: bool) -> None:
    """Sort `row` by the mean place of its nodes' neighbours in the row `near`; nodes without any stay put."""
    at = {node: place - (len(near) - 1) / 2 for place, node in enumerate(near)}
    own = {node: place - (len(row) - 1) / 2 for place, node in enumerate(row)}

    def operand(node: Hashable, reader: Hashable) -> int:
        return list(routed.predecessors(reader)).index(node)

    def centre(node: Hashable) -> float:
        if down:
            places = [at[source] for source in routed.predecessors(node)]
        else:  # the operands of one reader stand in their order
            places = [at[reader] + 0.1 * operand(node, reader) for reader in routed.successors(node)]
        return sum(places) / len(places) if places else own[node]

    row.sort(key=centre)
