"""From a graph to the diagram of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphs.drawing.code import code_of
from graphs.drawing.model import Body, Diagram, Item, Kind, Link
from graphs.plain import one_line

Graph = Any  # and its nodes, those of graphs/ir.py, which draws itself by this module
Node = Any


def of_graph(graph: Graph) -> Diagram:
    """The diagram of a graph; what its control-flow nodes run stands in boxes.

    What gradient rules have made is the backward pass, and what it reads of the forward pass is saved.
    """
    parts = _Parts()
    parts.add(graph, "", "")
    code = code_of({line for item in parts.items for line in item.lines})
    return Diagram(graph.name, tuple(parts.items), tuple(parts.links), tuple(parts.boxes), code)


class _Parts:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.links: list[Link] = []
        self.boxes: list[Body] = []

    def add(self, graph: Graph, prefix: str, box: str) -> None:
        """A graph and the bodies in it; keys of its items start with `prefix`."""
        names = {node: f"{prefix}%{i}" for i, node in enumerate(graph.nodes)}
        outputs, saved = set(graph.outputs), saved_of(graph)
        for node, key in names.items():
            self.items.append(_item(node, key, box, saved.get(node, 0), node in outputs))
            self.links += [Link(names[source], key) for source in dict.fromkeys(node.inputs)]
            for part, body in bodies(node):
                inner = f"{key}.{part}"
                self.boxes.append(Body(inner, f"{part} of {node.op.name} {key}", box))
                self.links.append(Link(key, inner, inside=True))
                self.add(body, f"{inner}.", inner)


def bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs that a control-flow node runs, each with the name of its part."""
    for name, value in node.attrs.items():
        for number, graph in enumerate(value if isinstance(value, tuple) else (value,)):
            if any(graph is body for body in node.subgraphs):
                yield (f"{name}[{number}]" if isinstance(value, tuple) else name), graph


def saved_of(graph: Graph) -> dict[Node, int]:
    """The bytes of each value of the forward pass that the backward pass reads; 0 where a size is symbolic."""
    read = [source for node in graph.nodes if node.is_backward for source in node.inputs if not source.is_backward]
    sizes = {node: node.spec.nbytes for node in read if node.op.family != "source"}
    return {node: size if isinstance(size, int) else 0 for node, size in sizes.items()}


def _item(node: Node, key: str, box: str, saved: int, is_result: bool) -> Item:
    lines = (str(node.source),) if node.source else ()  # a plain one, also of a gradient
    hidden = {name.partition("[")[0] for name, _ in bodies(node)}
    options = ", ".join(f"{name}={text}" for name, text in node.options.items() if name not in hidden)
    label = node.op.name
    kind: Kind = "backward" if node.is_backward else "forward"
    if node.op.family == "source":
        kind, options = ("input" if node.op.name == "input" else "constant"), ""
        label = node.attrs["name"] if kind == "input" else _constant(node)
    size = node.spec.nbytes if isinstance(node.spec.nbytes, int) else 0
    return Item(key, one_line(str(label)), str(node.spec), kind, lines, saved, 1, options, box, is_result, size)


def _constant(node: Node) -> str:
    value = node.attrs["value"]
    return str(value) if getattr(value, "ndim", 1) == 0 else "constant"
