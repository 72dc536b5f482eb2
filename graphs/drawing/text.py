"""A diagram as text for other programs: DOT, Mermaid, JSON, and the JSON of Model Explorer.

Graphs as text that fits a terminal: a repeated block is printed once, and what changed line by line.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

from graphs.drawing.diagram import Diagram, Item, of_graph
from graphs.drawing.groups import MOST, ItemGroup, Part, as_one, group_items, keys_of, open_groups
from graphs.drawing.layout import saved_text
from graphs.drawing.pictures import SIGNS
from graphs.errors import one_line, plain

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
    rows = [f"digraph {_quote(diagram.title)} {{", '  node [fontname="monospace"]', *_dot_level(diagram, "", names, 1)]
    rows += [f"  {names[link.source]} -> {names[link.target]}" for link in diagram.links if link.target in names]
    return "\n".join([*rows, "}", ""])


def _dot_level(diagram: Diagram, box: str, names: dict[str, str], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in diagram.items:
        if item.box == box:
            yield f"{pad}{names[item.key]} [label={_quote(chr(10).join(_words(item)))} {_DOT[item.look]}]"
    for number, inner in enumerate(diagram.boxes):
        if inner.around == box:
            yield f"{pad}subgraph cluster_{number} {{"
            yield f"{pad}  label={_quote(inner.title)}"
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
            words = "<br/>".join(map(_escape_mermaid, _words(item)))
            open_, close = ("([", "])") if item.kind == "input" else ("[", "]")
            yield f'  {names[item.key]}{open_}"{words}"{close}:::{item.look}'
    for inner in diagram.boxes:
        if inner.around == box:
            yield f'  subgraph {boxes[inner.key]}["{_escape_mermaid(inner.title)}"]'
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


def _escape_mermaid(text: str) -> str:
    return one_line(text).replace('"', "#quot;")


def _quote(text: str) -> str:
    return json.dumps(plain(text))


CHANGES = 12
"""Changes of one pass that are printed."""
_GONE = "-"
"""Stands before the key of a node that was removed."""
Row = tuple[float, str]  # where in the graph it stands, and what it says


def outline(graph: Any, head: str, rows: Sequence[Sequence[str]], end: str, most: int = MOST) -> str:
    """A graph (of graphs/ir.py, with its text by node) as text, folded where it has more than `most` nodes.

    Of a block that repeats itself the first time is printed. If that is too much, functions or lines are a row each.
    """
    lines = [line for each in rows for line in each]
    if len(rows) > most:
        writer = _Outline(of_graph(graph), rows)
        lines = writer.text(most)
    return "\n".join([head, *lines, end])


class _Outline:
    def __init__(self, diagram: Diagram, rows: Sequence[Sequence[str]]) -> None:
        self.rows = rows
        self.items = {item.key: item for item in diagram.items}
        self.parts = group_items(diagram)

    def text(self, most: int) -> list[str]:
        """The rows in the order of the graph."""
        every = list(self._rows(self.parts, None))
        if len(every) > most:
            every = list(self._rows(self.parts, open_groups(self.parts, most)))
        return [line for _, line in sorted(every, key=lambda row: row[0])]

    def _rows(self, parts: Sequence[Part], open_: set[str] | None) -> Iterator[Row]:
        """The rows of parts; groups that are not open are a row each, if `open_` says which are."""
        for part in parts:
            if not isinstance(part, ItemGroup):
                if _is_outer(part):
                    yield from ((_number(part), line) for line in self.rows[_number(part)])
            elif part.times > 1:
                yield from self._rows([part.first], open_)
                yield from self._more(part)
            elif open_ is None or part.key in open_:
                yield from self._rows(part.parts, open_)
            else:
                yield from self._closed_rows(part)

    def _more(self, group: ItemGroup) -> Iterator[Row]:
        first = self._outer([group.first])
        rest = [key for key in self._outer(group.parts) if key not in set(first)]
        if first and rest:
            said = f"{group.times - 1:,} more like these {len(first):,} nodes, {rest[0]} to {rest[-1]}"
            yield _number(first[-1]) + 0.5, f"    … {said}"

    def _closed_rows(self, group: ItemGroup) -> Iterator[Row]:
        keys = self._outer([group])
        if keys:
            row = as_one(group, [self.items[key] for key in keys], {})
            text = f"  {keys[0]} to {keys[-1]}: {row.detail}"
            yield _number(keys[0]), f"{text:<66}  # {group.title}"

    def _outer(self, parts: Sequence[Part]) -> list[str]:
        """The keys of computed nodes in parts, those in bodies of control flow left out, in their order."""
        keys = [key for part in parts for key in keys_of(part) if _is_outer(key)]
        return sorted((key for key in keys if self.items[key].kind not in ("input", "constant")), key=_number)


def _is_outer(key: str) -> bool:
    return key[1:].isdigit()


def _number(key: str) -> int:
    return int(key[1:])


def changes_of(diagram: Diagram, most: int | None = CHANGES) -> list[str]:
    """A row for each node that changed, `+ %3: f32[4] = tanh(%2, axis=0)  # model.py:6`; the first `most` of them.

    A node reads what it reads now; one that was removed, what it read before.
    """
    changed = [item for item in diagram.items if item.change]
    reads: dict[str, list[str]] = {item.key: [] for item in diagram.items}
    for link in diagram.links:
        if not link.inside and (link.target.startswith(_GONE) or not link.source.startswith(_GONE)):
            reads[link.target].append(link.source.lstrip(_GONE))
    rows = [_row(item, reads[item.key]) for item in changed[:most]]
    left = len(changed) - len(rows)
    return [*rows, *([f"    … and {left:,} more; --unfold prints all"] if left else [])]


def _row(item: Item, reads: Sequence[str]) -> str:
    call = f"({', '.join(filter(None, (*reads, item.options)))})" if item.kind in ("forward", "backward") else ""
    text = f"  {SIGNS[item.look]} {item.key.lstrip(_GONE)}: {item.detail} = {item.label}{call}"
    return f"{text:<66}  # {item.lines[0]}" if item.lines else text
