"""What a drawing holds, as plain data: items, links between them, and boxes around some of them.

From a graph to the diagram of it.

Several graphs in one picture, each in a box of its own: a tape beside the graph that static traces.

The user's lines of a diagram as they are written, with the function that each is in.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graphs.plain import one_line

Kind = Literal["input", "constant", "forward", "backward"]
Change = Literal["added", "removed", "rewritten"]
Look = Literal["input", "constant", "forward", "backward", "added", "removed", "rewritten"]


@dataclass(frozen=True)
class Item:
    """One node, or several that were folded into one.

    `saved` are the bytes that the backward pass reads of it; `count` is how many nodes it stands for; `lines` are the
    user's lines that it came from; `box` is the key of the box that it stands in, "" for none. `size` are the bytes of
    its result, 0 where a size is symbolic; `change` is what makes it differ from the graph that it is compared with.
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
        """How it is drawn: by its change, and else by its kind."""
        return self.change or self.kind


@dataclass(frozen=True)
class Link:
    """`target` reads `source`; `inside` where the target is the box of a body that the source's node runs."""

    source: str
    target: str
    inside: bool = False


@dataclass(frozen=True)
class Body:
    """A body: a branch, the condition or the step of a control-flow node. `around` is the key of the outer box."""

    key: str
    title: str
    around: str = ""


class CodeLine(NamedTuple):
    """A line of the user's: the function that it is in, "" for none, and what it says."""

    function: str
    text: str


@dataclass(frozen=True)
class Diagram:
    """A graph to be drawn; `code` says what stands in the lines of its items, as far as that can be read."""

    title: str
    items: tuple[Item, ...]
    links: tuple[Link, ...]
    boxes: tuple[Body, ...] = ()
    code: Mapping[str, CodeLine] = field(default_factory=dict, hash=False)


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
    """The graphs that a control-flow node runs, each with its name in the node."""
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
    """The diagrams as one, each in a box with its title."""
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
    """The code of each line `model.py:12`; a line is left out unless exactly one loaded file has that name."""
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
    """The innermost function of each line that is in one."""
    try:
        tree = ast.parse("".join(texts))
    except (SyntaxError, ValueError):  # a cell of a notebook with a magic in it, for one
        return {}
    return dict(_spans(tree))


def _spans(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of each function with its name, those of inner functions last."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield number, node.name
