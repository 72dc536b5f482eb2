"""The figure of parity: the graph of one branch in each engine, recorded on the tape and traced, drawn in layers.

The layer of a node is its longest path from the sources; sources sink to just above their first reader. Edges that skip
a layer get a waypoint in it. The order inside a layer is by barycentre (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Route
from networkx.algorithms.isomorphism import categorical_edge_match, categorical_node_match

from compare.records.record import Run, records_of
from compare.report.figures import Drawing, alt_text, style
from compare.report.summary import Summary
from graphs.errors import GraphError

Point = tuple[float, float]
_SWEEPS = 8


@dataclass(frozen=True)
class LayeredLayout:
    """The places of nodes, and the points through which edges run; neighbours are 1 apart, y grows downwards."""

    nodes: dict[Hashable, Point]
    edges: dict[tuple[Hashable, Hashable], list[Point]]
    width: int
    depth: int


def layer_graph(graph: Any) -> LayeredLayout:
    """Return the layout of `graph`, a networkx DiGraph without cycles."""
    layer = {node: depth for depth, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in graph:
        if graph.in_degree(node) == 0 and graph.out_degree(node) > 0:
            layer[node] = min(layer[reader] for reader in graph.successors(node)) - 1
    routed, paths = _with_waypoints(graph, layer)
    rows = _order_layers(routed, layer)
    place = {node: (at - (len(row) - 1) / 2, float(y)) for y, row in enumerate(rows) for at, node in enumerate(row)}
    edges = {edge: [place[node] for node in path] for edge, path in paths.items()}
    return LayeredLayout({node: place[node] for node in graph}, edges, max(map(len, rows), default=0), len(rows))


def _with_waypoints(graph: Any, layer: dict[Hashable, int]) -> tuple[Any, dict[tuple[Hashable, Hashable], list[Any]]]:
    """Cut long edges into edges from layer to layer; returns the new graph and each edge's path of nodes.

    The layers of the new waypoint nodes are added to `layer`.
    """
    routed, paths = nx.DiGraph(), {}
    routed.add_nodes_from(graph)
    for head in graph:
        for tail in graph.predecessors(head):
            middle = [("waypoint", tail, head, at) for at in range(layer[tail] + 1, layer[head])]
            layer.update({point: point[3] for point in middle})
            paths[tail, head] = [tail, *middle, head]
            nx.add_path(routed, paths[tail, head])
    return routed, paths


def _order_layers(routed: Any, layer: dict[Hashable, int]) -> list[list[Hashable]]:
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
    """Sort `row` by the mean place of its nodes' neighbours in the row `near`; nodes without neighbours stay."""
    at = {node: place - (len(near) - 1) / 2 for place, node in enumerate(near)}
    own = {node: place - (len(row) - 1) / 2 for place, node in enumerate(row)}

    def operand(node: Hashable, reader: Hashable) -> int:
        return list(routed.predecessors(reader)).index(node)

    def centre(node: Hashable) -> float:
        if down:
            places = [at[source] for source in routed.predecessors(node)]
        else:  # operands of one reader keep their order
            places = [at[reader] + 0.1 * operand(node, reader) for reader in routed.successors(node)]
        return sum(places) / len(places) if places else own[node]

    row.sort(key=centre)


_TITLE = "One function, two engines, one graph"
_CAPTION = (
    "The textbook branch, 2x where the sum of x is positive and x − 2 elsewhere, written once with the op "
    "where and given to both engines: first what dynamic recorded while it ran, then what "
    "static traced before any run. Data flows downwards; inputs and constants are tinted, and small "
    "digits number the operands of an op. {same}"
)
_SAME = "The two are isomorphic as labelled graphs: ops, specs and operand order agree node by node."
_DIFFERENT = "The two are not isomorphic, which the parity table should explain."
_TINT, _EDGE = style.TINT, style.EDGE
_BOX = "round,pad=0,rounding_size=0.06"
_HALF_WIDTH, _HALF_HEIGHT, _SPREAD = 0.43, 0.27, 0.2  # half a box's sides; distance of its operands


def draw_parity(summary: Summary) -> Drawing | None:
    """Draw the graphs of this installation's engines; None for a run of a user's function or of real models."""
    if any(run.is_own or run.is_of_models for run in records_of(summary.records, Run)):
        return None
    try:
        return drawing(engine_graphs())
    except GraphError as error:
        return Drawing("graphs", _TITLE, f"Not drawn, since an engine refused the function: {error}")


def engine_graphs() -> dict[str, Any]:
    """Return the graphs of a branch on a sum, one networkx graph for each engine, by title."""
    import dynamic
    import graphs
    import static

    def branch(x: Any) -> Any:
        return graphs.where(graphs.sum(x) > 0, x * 2, x - 2)

    x = np.array([1.0, -1.0, 2.0], dtype=np.float32)
    # a tensor, since Python operators on a bare array are NumPy's own and no engine sees them
    recorded, traced = dynamic.record(branch, dynamic.tensor(x)), static.trace(branch, x)
    return {
        "dynamic: recorded while running": _name_constants(recorded),
        "static: traced ahead": _name_constants(traced),
    }


def _name_constants(graph: Any) -> Any:
    """Convert a graph to networkx; a constant of one element has its value in its name."""
    named = graph.to_networkx()
    for number, node in enumerate(graph.nodes):
        value = node.attrs.get("value")
        if node.is_constant and np.size(value) == 1:
            named.nodes[number]["name"] = f"constant {np.asarray(value).item()}"
    return named


def drawing(graphs: Mapping[str, Any]) -> Drawing:
    """Draw networkx DiGraphs side by side, by title, with `op`, `spec`, `label` on nodes and `positions` on edges."""
    layouts = {title: layer_graph(graph) for title, graph in graphs.items()}
    depth = max(layout.depth for layout in layouts.values())
    grid = style.grid(list(graphs), len(graphs), 0.5 + 0.95 * depth, head=0)
    for title, axes in grid.axes.items():
        _panel(axes, title, graphs[title], layouts[title], depth)
    caption = _CAPTION.format(same=_SAME if _isomorphic(list(graphs.values())) else _DIFFERENT)
    nodes = {title: ", ".join(" ".join(_words(graph, node)) for node in graph) for title, graph in graphs.items()}
    parts = (f"{title}: {words}" for title, words in nodes.items())
    alt = alt_text("Layered drawings of computation graphs.", parts)
    return Drawing("graphs", _TITLE, caption, alt, grid.figure)


def _isomorphic(graphs: list[Any]) -> bool:
    """Whether all graphs are isomorphic to the first, with equal ops, specs, attributes and operand positions."""
    same_node = categorical_node_match(["op", "spec", "label"], ["", "", ""])
    same_edge = categorical_edge_match("positions", ())
    first, *others = graphs
    return all(nx.is_isomorphic(first, other, node_match=same_node, edge_match=same_edge) for other in others)


def _panel(axes: Axes, title: str, graph: Any, layout: LayeredLayout, depth: int) -> None:
    axes.set_axis_off()
    axes.set_title(style.clean(title), loc="center")
    axes.set_xlim(-layout.width / 2 - 0.05, layout.width / 2 + 0.05)
    axes.set_ylim(depth - 0.6, -0.4)
    for node in graph:
        _node(axes, graph, node, layout.nodes[node])
    for (tail, head), points in layout.edges.items():
        _edge(axes, points, graph.edges[tail, head].get("positions", ()), graph.in_degree(head))


def _node(axes: Axes, graph: Any, node: Hashable, at: Point) -> None:
    """Draw a node as a box with op and spec, tinted for a source and with a heavy edge for a sink."""
    source, sink = graph.in_degree(node) == 0, graph.out_degree(node) == 0
    fill, weight = _TINT if source else "white", 2.2 if sink else 0.9
    corner = (at[0] - _HALF_WIDTH, at[1] - _HALF_HEIGHT)
    look: dict[str, Any] = {"facecolor": fill, "linewidth": weight, "edgecolor": style.INK, "zorder": 3}
    box = FancyBboxPatch(corner, 2 * _HALF_WIDTH, 2 * _HALF_HEIGHT, boxstyle=_BOX, **look)
    axes.add_patch(box)
    label = "\n".join(style.clean(part, 16) for part in _words(graph, node))
    axes.text(at[0], at[1] + 0.05, label, ha="center", va="center", fontsize=8.5, linespacing=1.3, zorder=4)


def _edge(axes: Axes, points: list[Point], positions: tuple[int, ...], operands: int) -> None:
    """Draw an arrow from box to box, vertical at each waypoint; operands enter their reader from left to right."""
    (x0, y0), *between, (x1, y1) = points
    shift = _SPREAD * (min(positions, default=0) - (operands - 1) / 2) if operands > 1 else 0.0
    stops = [(x0, y0 + _HALF_HEIGHT), *between, (x1 + shift, y1 - _HALF_HEIGHT)]
    arrow = FancyArrowPatch(path=_curve(stops), arrowstyle="-|>", mutation_scale=10, color=_EDGE, zorder=2)
    axes.add_patch(arrow)
    if operands > 1:
        digit: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 6.5, "color": _EDGE, "zorder": 4}
        axes.text(x1 + shift, y1 - _HALF_HEIGHT + 0.02, ",".join(map(str, positions)), **digit)


def _curve(stops: list[Point]) -> Route:
    vertices, codes = [stops[0]], [Route.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(stops):
        middle = (y0 + y1) / 2
        vertices += [(x0, middle), (x1, middle), (x1, y1)]
        codes += [Route.CURVE4] * 3
    return Route(vertices, codes)


def _words(graph: Any, node: Hashable) -> tuple[str, str]:
    data = graph.nodes[node]
    return str(data.get("name", data.get("op", ""))), str(data.get("spec", ""))
