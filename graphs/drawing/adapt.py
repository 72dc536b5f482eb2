"""From a graph to the diagram of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphs.drawing.model import Body, Diagram, Item, Kind, Link

Graph = Any  # and its nodes, those of graphs/ir.py, which draws itself by this module
Node = Any


def of_graph(graph: Graph) -> Diagram:
    """The diagram of a graph; what its control-flow nodes run stands in boxes.

    A graph whose first output is a number, and whose others have the specs of inputs, is a value with its gradients:
    what only the gradients need is the backward pass, and what it reads of the forward pass is saved.
    """
    parts = _Parts()
    parts.add(graph, "", "")
    return Diagram(graph.name, tuple(parts.items), tuple(parts.links), tuple(parts.boxes))


class _Parts:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.links: list[Link] = []
        self.boxes: list[Body] = []

    def add(self, graph: Graph, prefix: str, box: str) -> None:
        """A graph and the bodies in it; keys of its items start with `prefix`."""
        names = {node: f"{prefix}%{i}" for i, node in enumerate(graph.nodes)}
        backward, outputs = backward_of(graph), set(graph.outputs)
        saved = saved_of(graph, backward)
        for node, key in names.items():
            self.items.append(_item(node, key, box, node in backward, saved.get(node, 0), node in outputs))
            self.links += [Link(names[source], key) for source in dict.fromkeys(node.inputs)]
            for part, body in bodies(node):
                inner = f"{key}.{part}"
                self.boxes.append(Body(inner, f"{part} of {node.op.name} {key}", box))
                self.links.append(Link(key, inner, inside=True))
                self.add(body, f"{inner}.", inner)


def bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs that a control-flow node runs, each with the name of its part."""
    for name, value in node.attrs.items():
        for number, one in enumerate(value if isinstance(value, tuple) else (value,)):
            if any(one is body for body in node.subgraphs):
                yield (f"{name}[{number}]" if isinstance(value, tuple) else name), one


def backward_of(graph: Graph) -> set[Node]:
    """What only the gradients need, in the graph of a value with its gradients; else nothing."""
    first, others = graph.outputs[:1], graph.outputs[1:]
    inputs = {node.spec for node in graph.inputs}
    if not others or first[0].spec.shape or not all(output.spec in inputs for output in others):
        return set()
    return _needed(others) - _needed(first) - set(graph.inputs)


def _needed(nodes: Iterable[Node]) -> set[Node]:
    """These nodes and all that they are computed from."""
    found = set(nodes)
    todo = list(found)
    while todo:
        new = set(todo.pop().inputs) - found
        found |= new
        todo += new
    return found


def saved_of(graph: Graph, backward: set[Node]) -> dict[Node, int]:
    """The bytes of each value of the forward pass that the backward pass reads; 0 where a size is symbolic."""
    read = [source for node in backward for source in node.inputs if source not in backward]
    sizes = {node: node.spec.nbytes for node in read if node.op.family != "source"}
    return {node: size if isinstance(size, int) else 0 for node, size in sizes.items()}


def _item(node: Node, key: str, box: str, is_backward: bool, saved: int, is_result: bool) -> Item:
    lines = (node.source,) if node.source else ()
    hidden = {name.partition("[")[0] for name, _ in bodies(node)}
    options = ", ".join(f"{name}={text}" for name, text in node.options.items() if name not in hidden)
    label = node.op.name
    kind: Kind = "backward" if is_backward else "forward"
    if node.op.family == "source":
        kind, options = ("input" if node.op.name == "input" else "constant"), ""
        label = node.attrs["name"] if kind == "input" else _constant(node)
    return Item(key, str(label), str(node.spec), kind, lines, saved, 1, options, box, is_result)


def _constant(node: Node) -> str:
    value = node.attrs["value"]
    return f"{value}" if getattr(value, "ndim", 1) == 0 else "constant"
