"""Where everything goes: layers from top to bottom, by Graphviz where it is installed, else by grandalf.

Both place the nodes of a directed graph in layers (Sugiyama, Tagawa and Toda, 1981). The content of a box is laid out
alone, and the box then takes part as a node of its size.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphs.drawing.diagram import Diagram, Item

CHARACTER, LINE, PADDING, GAP, TITLE = 7.2, 16.0, 11.0, 26.0, 24.0
"""In pixels: the width of a character, the height of a line of text, the space inside and between, a box's title."""
LANE = 12.0
"""The pixels between two links that pass a layer beside each other."""

Point = tuple[float, float]


class Rectangle(NamedTuple):
    """Where something is, in pixels: y grows downwards."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, x: float, y: float) -> Rectangle:
        """The rectangle moved by x and y."""
        return self._replace(x=self.x + x, y=self.y + y)

    @property
    def centre(self) -> float:
        """The x of the middle."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Layout:
    """The size of the picture, where its items and boxes are, by key, and through which points each link runs."""

    width: float
    height: float
    places: dict[str, Rectangle]
    routes: dict[tuple[str, str], list[Point]]


def lay_out(diagram: Diagram) -> Layout:
    """The layout of a diagram."""
    return _level(diagram, "")


def size_of(item: Item) -> tuple[float, float]:
    """The width and height of an item with its two or three lines of text."""
    lines = [item.label, item.detail, saved_text(item)]
    longest = max(map(len, lines))
    room = (
        2 * CHARACTER + 8 if item.look in ("backward", "added", "removed", "rewritten") else 0.0
    )  # for a sign and slanted sides
    return max(46.0, longest * CHARACTER + 2 * PADDING + room), sum(map(bool, lines)) * LINE + 1.2 * PADDING


def saved_text(item: Item) -> str:
    """The text `saved 1.2 KiB`; empty for 0 bytes."""
    return f"saved {in_bytes(item.saved)}" if item.saved else ""


def in_bytes(size: float) -> str:
    """A number of bytes as text, such as `1.2 KiB`."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}"


def _level(diagram: Diagram, box: str) -> Layout:
    """The items of one box and the boxes in it."""
    inner = {inner_box.key: _level(diagram, inner_box.key) for inner_box in diagram.boxes if inner_box.around == box}
    titles = {inner_box.key: inner_box.title for inner_box in diagram.boxes}
    sizes = {item.key: size_of(item) for item in diagram.items if item.box == box}
    for key, layout in inner.items():
        sizes[key] = max(layout.width, len(titles[key]) * CHARACTER) + 2 * PADDING, layout.height + TITLE + 2 * PADDING
    links = [(link.source, link.target) for link in diagram.links if link.source in sizes and link.target in sizes]
    tops, routes = _choose_placer(len(sizes))(sizes, links)
    places = dict(tops)
    for key, layout in inner.items():
        x, y = tops[key].x + PADDING, tops[key].y + TITLE + PADDING
        places |= {name: place.moved(x, y) for name, place in layout.places.items()}
        routes |= {ends: [(a + x, b + y) for a, b in points] for ends, points in layout.routes.items()}
    # The picture moved so that nothing, links included, is left of its edge.
    bends = [x for points in routes.values() for x, _ in points]
    left = min([0.0, *(x - PADDING for x in bends)])
    places = {key: place.moved(-left, 0) for key, place in places.items()}
    routes = {ends: [(x - left, y) for x, y in points] for ends, points in routes.items()}
    width = max([0.0, *(place.x + place.width for place in tops.values()), *(x + PADDING for x in bends)]) - left
    height = max((place.y + place.height for place in tops.values()), default=0.0)
    return Layout(width, height, places, routes)


Sizes = dict[str, tuple[float, float]]
Links = Sequence[tuple[str, str]]
Placed = tuple[dict[str, Rectangle], dict[tuple[str, str], list[Point]]]


MOST = 2500
"""Nodes that grandalf lays out in some seconds; its time grows with the square of them."""


def _choose_placer(count: int) -> Callable[[Sizes, Links], Placed]:
    if shutil.which("dot"):
        return _by_graphviz
    return _by_grandalf if count <= MOST else _by_depth


def _by_depth(sizes: Sizes, links: Links) -> Placed:
    """Each node below all that it reads, in rows as wide as they come: in one pass, for very large graphs."""
    depth = dict.fromkeys(sizes, 0)
    order = {key: i for i, key in enumerate(sizes)}
    for source, target in sorted(links, key=lambda ends: order[ends[1]]):
        depth[target] = max(depth[target], depth[source] + 1)
    rows: dict[int, list[str]] = {}
    for key, row in depth.items():
        rows.setdefault(row, []).append(key)
    places: dict[str, Rectangle] = {}
    y = 0.0
    for _, keys in sorted(rows.items()):
        x = 0.0
        for key in keys:
            places[key] = Rectangle(x, y, *sizes[key])
            x += sizes[key][0] + GAP
        y += max(sizes[key][1] for key in keys) + GAP
    return places, {}


class _View:
    """The size that grandalf reads, and the place that it sets."""

    def __init__(self, width: float, height: float) -> None:
        self.w, self.h = width, height
        self.xy = (0.0, 0.0)

    def corner(self) -> Point:
        """Its upper left."""
        return self.xy[0] - self.w / 2, self.xy[1] - self.h / 2


class _Route:
    """The points of an edge, which grandalf sets."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.points = points

    def past(self, heights: dict[float, float], above: float, below: float) -> Iterator[Point]:
        """The points between the ends: straight down past each layer, however high what else is in it.

        `above` and `below` are the heights of the two nodes, which may be less than those of their layers.
        """
        (x0, y0), *between, (x1, y1) = self.points
        if heights[y0] > above:
            yield x0, y0 + heights[y0] / 2
        for x, y in between:
            half = heights.get(y, 0.0) / 2
            yield from ((x, y - half), (x, y + half)) if half else ((x, y),)
        if heights[y1] > below:
            yield x1, y1 - heights[y1] / 2


def _by_grandalf(sizes: Sizes, links: Links) -> Placed:
    """The layers of grandalf, each connected part beside the one before.

    A link upwards, which only a folded loop has, takes part in the other direction: so there are no cycles.
    """
    import networkx as nx  # here, so that who draws nothing does not wait for it
    from grandalf.graphs import Edge, Vertex, graph_core

    order = {key: i for i, key in enumerate(sizes)}
    vertices = {key: Vertex(key) for key in sizes}
    for key, size in sizes.items():
        vertices[key].view = _View(*size)
    pairs = dict.fromkeys((first, other) if order[first] < order[other] else (other, first) for first, other in links)
    undirected = nx.Graph()
    undirected.add_nodes_from(sizes)
    undirected.add_edges_from(pairs)
    parts = [sorted(part, key=order.__getitem__) for part in nx.connected_components(undirected)]
    part_of = {key: number for number, part in enumerate(parts) for key in part}
    edges: list[list[Any]] = [
        [] for _ in parts
    ]  # in order, where grandalf's own split has none: the same picture again
    for source, target in pairs:
        edge = Edge(vertices[source], vertices[target])
        edge.view = _Route()
        edges[part_of[source]].append(edge)
    places: dict[str, Rectangle] = {}
    routes: dict[tuple[str, str], list[Point]] = {}
    left = 0.0
    for keys, joined in zip(parts, edges, strict=True):
        part = graph_core([vertices[key] for key in keys], joined)
        heights = _laid_part(part)
        corners = {vertex.data: vertex.view.corner() for vertex in part.sV}
        x, y = left - min(a for a, _ in corners.values()), -min(b for _, b in corners.values())
        placed = {key: Rectangle(a + x, b + y, *sizes[key]) for key, (a, b) in corners.items()}
        for edge in part.sE:
            ends = edge.v[0].data, edge.v[1].data
            points = [(a + x, b + y) for a, b in edge.view.past(heights, *(end.view.h for end in edge.v))]
            routes[ends] = _turns(points)
        places |= placed
        left = max(place.x + place.width for place in placed.values()) + GAP
    return places, {(a, b): routes[a, b] if (a, b) in routes else routes[b, a][::-1] for a, b in links}


def _turns(points: list[Point]) -> list[Point]:
    """The points without those within a piece that runs straight down."""
    inner = [b for a, b, c in zip(points, points[1:], points[2:], strict=False) if not a[0] == b[0] == c[0]]
    return [*points[:1], *inner, *points[1:][-1:]]


def _laid_part(part: Any) -> dict[float, float]:
    """Place the nodes and edges of a connected part; the height of the layer at each y."""
    from grandalf.layouts import SugiyamaLayout

    layout = SugiyamaLayout(part)
    layout.xspace, layout.yspace = GAP, 1.6 * GAP
    layout.dw, layout.dh = LANE - GAP, 0.0  # a link past a layer needs no room as wide as a node, its own default
    layout.init_all(inverted_edges=[], optimize=True)  # the graph has no cycle; inputs go next to their readers
    layout.route_edge = lambda edge, points: None  # the points are wanted as they are
    layout.draw(3)
    return {layer[0].view.xy[1]: max(vertex.view.h for vertex in layer) for layer in layout.layers if layer}


_INCH = 72.0


def _by_graphviz(sizes: Sizes, links: Links) -> Placed:
    names = {key: f"n{i}" for i, key in enumerate(sizes)}
    rows = [
        f'{names[key]} [shape=box fixedsize=true label="" width={w / _INCH:.4f} height={h / _INCH:.4f}]'
        for key, (w, h) in sizes.items()
    ]
    rows += [f"{names[source]} -> {names[target]}" for source, target in links]
    head = f"digraph {{ nodesep={GAP / _INCH:.3f} ranksep={GAP / _INCH:.3f} splines=polyline"
    text = "\n".join([head, *rows, "}"])
    command = ["dot", "-Tplain"]
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    height = float(out.split(maxsplit=4)[3])
    keys = {name: key for key, name in names.items()}
    rectangles: dict[str, Rectangle] = {}
    routes: dict[tuple[str, str], list[Point]] = {}

    def point(x: str, y: str) -> Point:
        return float(x) * _INCH, (height - float(y)) * _INCH

    for row in out.splitlines():
        word, *rest = row.split()
        if word == "node":
            key, (x, y) = keys[rest[0]], point(*rest[1:3])
            w, h = sizes[key]
            rectangles[key] = Rectangle(x - w / 2, y - h / 2, w, h)
        elif word == "edge":
            numbers = rest[3 : 3 + 2 * int(rest[2])]
            points = [point(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
            routes[keys[rest[0]], keys[rest[1]]] = points[3:-1:3]  # a polyline repeats its corners
    return rectangles, routes
