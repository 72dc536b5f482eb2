"""The diagram of a graph as plain data: items, links between them, and boxes around some of them.

`of_graph` makes the diagram of a graph. `beside` puts several diagrams into one picture, each in a box of its own, such
as a tape beside a static graph. `code_of` reads the user's lines that a diagram names, each with its function.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graphs.errors import one_line

Kind = Literal["input", "constant", "forward", "backward"]
Change = Literal["added", "removed", "rewritten"]
Look = Literal["input", "constant", "forward", "backward", "added", "removed", "rewritten"]


@dataclass(frozen=True)
class Item:
    """One node of the graph, or one group of nodes that is folded.

    `lines` are the user's lines that it came from, and `box` is the key of the box around it, "" for none. `size` is
    the size of its result in bytes, 0 where a size is symbolic; `saved` is the number of bytes that the backward pass
    reads of it. `count` is the number of nodes in it. `change` says how it differs from the graph that it is compared
    with.
    """

    key: str
    label: str
    detail: str
    kind: Kind
    lines: tuple[str, ...] = ()
    saved: int = 0
    count: int = 1
    options: str = ""
    box: str = ""
    is_result: bool = False
    size: int = 0
    change: Change | None = None

    @property
    def look(self) -> Look:
        """The look of the item: its change where it has one, else its kind."""
        return self.change or self.kind


@dataclass(frozen=True)
class Link:
    """An edge: `target` reads `source`. With `inside`, `target` is the box of a body that the node of `source` runs."""

    source: str
    target: str
    inside: bool = False


@dataclass(frozen=True)
class Body:
    """The box of a body of control flow: a branch, a condition or a step. `around` is the key of the outer box."""

    key: str
    title: str
    around: str = ""


class CodeLine(NamedTuple):
    """A line of the user's code: its text, and the name of its function, "" for none."""

    function: str
    text: str


@dataclass(frozen=True)
class Diagram:
    """A graph as items, links and boxes. `code` holds the user's lines that its items name, where they can be read."""

    title: str
    items: tuple[Item, ...]
    links: tuple[Link, ...]
    boxes: tuple[Body, ...] = ()
    code: Mapping[str, CodeLine] = field(default_factory=dict, hash=False)


Graph = Any  # and its nodes, those of graphs/ir.py, which draws itself by this module
Node = Any


def of_graph(graph: Graph) -> Diagram:
    """The diagram of a graph; the bodies of its control-flow nodes are boxes.

    Nodes that gradient rules made are marked as the backward pass, and what that reads of the forward pass as saved.
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
        """Add a graph and the bodies in it; the keys of their items start with `prefix`."""
        names = {node: f"{prefix}%{i}" for i, node in enumerate(graph.nodes)}
        outputs, saved = set(graph.outputs), saved_bytes(graph)
        for node, key in names.items():
            self.items.append(_item(node, key, box, saved.get(node, 0), node in outputs))
            self.links += [Link(names[source], key) for source in dict.fromkeys(node.inputs)]
            for part, body in bodies(node):
                inner = f"{key}.{part}"
                self.boxes.append(Body(inner, f"{part} of {node.op.name} {key}", box))
                self.links.append(Link(key, inner, inside=True))
                self.add(body, f"{inner}.", inner)


def bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs that a control-flow node runs, each with the name of its attribute."""
    for name, value in node.attrs.items():
        for number, graph in enumerate(value if isinstance(value, tuple) else (value,)):
            if any(graph is body for body in node.subgraphs):
                yield (f"{name}[{number}]" if isinstance(value, tuple) else name), graph


def saved_bytes(graph: Graph) -> dict[Node, int]:
    """The bytes of each value of the forward pass that the backward pass reads; 0 where a size is symbolic."""
    read = [source for node in graph.nodes if node.is_backward for source in node.inputs if not source.is_backward]
    sizes = {node: node.spec.nbytes for node in read if not node.is_source}
    return {node: size if isinstance(size, int) else 0 for node, size in sizes.items()}


def _item(node: Node, key: str, box: str, saved: int, is_result: bool) -> Item:
    lines = (str(node.source),) if node.source else ()  # a plain one, also of a gradient
    hidden = {name.partition("[")[0] for name, _ in bodies(node)}
    options = ", ".join(f"{name}={text}" for name, text in node.options.items() if name not in hidden)
    label = node.op.name
    kind: Kind = "backward" if node.is_backward else "forward"
    if node.is_source:
        kind, options = ("input" if node.is_input else "constant"), ""
        label = node.attrs["name"] if kind == "input" else _constant(node)
    size = node.spec.nbytes if isinstance(node.spec.nbytes, int) else 0
    return Item(key, one_line(str(label)), str(node.spec), kind, lines, saved, 1, options, box, is_result, size)


def _constant(node: Node) -> str:
    value = node.attrs["value"]
    return str(value) if getattr(value, "ndim", 1) == 0 else "constant"


def beside(*diagrams: Diagram) -> Diagram:
    """One diagram of several: each is a box with its title."""
    titles = [diagram.title for diagram in diagrams]
    items, links, boxes = [], [], []
    for number, diagram in enumerate(diagrams):
        name = f"{number}:"
        boxes.append(Body(name, diagram.title))
        boxes += [Body(name + part.key, part.title, name + part.around) for part in diagram.boxes]
        items += [replace(item, key=name + item.key, box=name + item.box) for item in diagram.items]
        links += [Link(name + part.source, name + part.target, part.inside) for part in diagram.links]
    code = {line: text for diagram in diagrams for line, text in diagram.code.items()}
    return Diagram(" beside ".join(titles), tuple(items), tuple(links), tuple(boxes), code)


def code_of(lines: Iterable[str]) -> dict[str, CodeLine]:
    """The code of each line `model.py:12`. A line is left out unless exactly one loaded file has that name."""
    numbers: dict[str, set[int]] = {}
    for line in lines:
        name, _, digits = line.rpartition(":")
        if digits.isdigit():
            numbers.setdefault(name, set()).add(int(digits))
    code = dict[str, CodeLine]()
    for name, wanted in numbers.items():
        # The lines of the only loaded file of this name.
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        files = {file for file in (*modules, *linecache.cache) if isinstance(file, str) and Path(file).name == name}
        texts = linecache.getlines(files.pop()) if len(files) == 1 else []
        functions = _functions(texts)
        for number in sorted(wanted):
            if number <= len(texts):
                code[f"{name}:{number}"] = CodeLine(functions.get(number, ""), texts[number - 1].strip())
    return code


def _functions(texts: list[str]) -> dict[int, str]:
    """The innermost function around each line, by line; lines outside of functions are left out."""
    try:
        tree = ast.parse("".join(texts))
    except (SyntaxError, ValueError):  # a cell of a notebook with a magic in it, for one
        return {}
    return dict(_spans(tree))


def _spans(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each line of each function, with the name of the function; inner functions come last."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield number, node.name
