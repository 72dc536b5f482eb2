"""A diagram as text for other programs: DOT, Mermaid, JSON, and the JSON of Model Explorer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from graphs.drawing.layout import saved_text
from graphs.drawing.model import Diagram, Item
from graphs.plain import one_line, plain

_DOT = {
    "input": 'shape=box style="rounded,filled" fillcolor="#e8f1f8"',
    "constant": "shape=box style=dotted",
    "forward": 'shape=box color="#0072b2"',
    "backward": 'shape=box style=dashed color="#d55e00"',
    "added": 'shape=box penwidth=3 color="#009e73"',
    "rewritten": 'shape=box style=dashed penwidth=3 color="#7a5c00"',
    "removed": 'shape=box style=dashed penwidth=3 color="#cc79a7"',
}


def dot(diagram: Diagram) -> str:
    """For Graphviz; a box is a cluster."""
    names = _names(diagram)
    rows = [f"digraph {_quoted(diagram.title)} {{", '  node [fontname="monospace"]', *_dot_level(diagram, "", names, 1)]
    rows += [f"  {names[link.source]} -> {names[link.target]}" for link in diagram.links if link.target in names]
    return "\n".join([*rows, "}", ""])


def _dot_level(diagram: Diagram, box: str, names: dict[str, str], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in diagram.items:
        if item.box == box:
            yield f"{pad}{names[item.key]} [label={_quoted(chr(10).join(_words(item)))} {_DOT[item.look]}]"
    for number, inner in enumerate(diagram.boxes):
        if inner.around == box:
            yield f"{pad}subgraph cluster_{number} {{"
            yield f"{pad}  label={_quoted(inner.title)}"
            yield from _dot_level(diagram, inner.key, names, depth + 1)
            yield f"{pad}}}"


def mermaid(diagram: Diagram) -> str:
    """For Mermaid, as Markdown on GitHub and in notebooks shows it; a box is a subgraph."""
    names = _names(diagram)
    boxes = {box.key: f"b{i}" for i, box in enumerate(diagram.boxes)}
    rows = ["flowchart TD", *_mermaid_level(diagram, "", names, boxes)]
    for link in diagram.links:
        arrow = "-.->" if link.inside else "-->"
        rows.append(f"  {names[link.source]} {arrow} {names.get(link.target) or boxes[link.target]}")
    rows += [
        "  classDef backward stroke:#d55e00,stroke-dasharray:6 3",
        "  classDef forward stroke:#0072b2",
        "  classDef added stroke:#009e73,stroke-width:3px",
        "  classDef rewritten stroke:#7a5c00,stroke-width:3px,stroke-dasharray:8 3",
        "  classDef removed stroke:#cc79a7,stroke-width:3px,stroke-dasharray:3 4",
    ]
    return "\n".join([*rows, ""])


def _mermaid_level(diagram: Diagram, box: str, names: dict[str, str], boxes: dict[str, str]) -> Iterator[str]:
    for item in diagram.items:
        if item.box == box:
            words = "<br/>".join(map(_unquoted, _words(item)))
            open_, close = ("([", "])") if item.kind == "input" else ("[", "]")
            yield f'  {names[item.key]}{open_}"{words}"{close}:::{item.look}'
    for inner in diagram.boxes:
        if inner.around == box:
            yield f'  subgraph {boxes[inner.key]}["{_unquoted(inner.title)}"]'
            yield from _mermaid_level(diagram, inner.key, names, boxes)
            yield "  end"


def as_json(diagram: Diagram) -> str:
    """The model itself: title, items, links, boxes."""
    return json.dumps(dataclasses.asdict(diagram), indent=1)


def model_explorer(diagram: Diagram) -> str:
    """The graph collection that Google's Model Explorer opens: bodies of control flow are its layers."""
    titles = {box.key: box for box in diagram.boxes}

    def layer(key: str) -> str:
        box = titles.get(key)
        return "" if box is None else f"{layer(box.around)}/{box.title}".strip("/")

    read: dict[str, list[str]] = {}
    for link in diagram.links:
        if not link.inside:
            read.setdefault(link.target, []).append(link.source)
    nodes = [
        {
            "id": item.key,
            "label": item.label,
            "namespace": layer(item.box),
            "incomingEdges": [{"sourceNodeId": source, "sourceNodeOutputId": "0"} for source in read.get(item.key, ())],
            "attrs": [{"key": name, "value": value} for name, value in _attributes(item).items()],
        }
        for item in diagram.items
    ]
    graph = {"id": diagram.title, "nodes": nodes}
    return json.dumps({"label": diagram.title, "graphs": [graph]}, indent=1)


def _attributes(item: Item) -> dict[str, Any]:
    attributes = {"result": item.detail, "pass": item.kind, "options": item.options, "lines": ", ".join(item.lines)}
    return {name: value for name, value in (attributes | {"saved": saved_text(item)}).items() if value}


def _names(diagram: Diagram) -> dict[str, str]:
    return {item.key: f"n{i}" for i, item in enumerate(diagram.items)}


def _words(item: Item) -> list[str]:
    return [words for words in (item.label, item.detail, saved_text(item)) if words]


def _unquoted(text: str) -> str:
    return one_line(text).replace('"', "#quot;")


def _quoted(text: str) -> str:
    return json.dumps(plain(text))
