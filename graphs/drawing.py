"""Pictures of graphs that networkx holds: those of a trace, and those of a tape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
from matplotlib.figure import Figure


def draw(graph: nx.DiGraph[int], path: str | Path | None = None) -> Figure:
    """A matplotlib figure of an acyclic graph, what reads nothing on top; saved where `path` says.

    Each node shows its attributes `op` and `spec`; below all that it reads, beside others as deep.
    """
    layers = [sorted(layer) for layer in nx.topological_generations(graph)]
    places = {node: (x, -y) for y, layer in enumerate(layers) for x, node in enumerate(layer)}
    width, height = max(map(len, layers)), len(layers)
    figure = Figure(figsize=(1.6 * width, 0.8 * height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(-0.5, width - 0.5), ylim=(0.5 - height, 0.5))
    for source, node in graph.edges():
        axes.annotate("", places[node], places[source], arrowprops={"arrowstyle": "->", "color": "0.6"})
    for node, (x, y) in places.items():
        _write(axes, x, y, graph.nodes[node], is_source=not graph.in_degree(node))
    if path is not None:
        figure.savefig(path)
    return figure


def _write(axes: Any, x: float, y: float, attributes: dict[str, Any], *, is_source: bool) -> None:
    text = f"{attributes['op']}\n{attributes['spec']}"
    colour = "#dbe9f6" if is_source else "white"
    axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox={"boxstyle": "round", "fc": colour})
