"""A page of its own in which a graph is looked at: it zooms, pans, searches, and opens and closes groups.

All text of the user's stands in JSON, and the page writes it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

from graphs.drawing.grouping import Part, grouped, opened
from graphs.drawing.model import Diagram
from graphs.drawing.page import scripted
from graphs.drawing.svg import SIGNS, STYLE, WORDS
from graphs.plain import escaped

SMALL, ROOM = 60, 24
"""A graph of so many nodes is open when the page opens; of a larger one, so many parts are seen."""


class Stage(NamedTuple):
    """A graph at one moment, the title of that, and what is said of it: one of the stops of the page's slider."""

    title: str
    note: str
    diagram: Diagram


def viewer(title: str, stages: Sequence[Stage]) -> str:
    """The page that shows the stages, as HTML."""
    code = {line: text for stage in stages for line, text in stage.diagram.code.items()}
    data = {"stages": [_stage(stage) for stage in stages], "code": code, "signs": SIGNS, "words": WORDS}
    return scripted(
        _read("viewer.html"), _read("viewer.js"), data, title=escaped(title), style=STYLE + _read("viewer.css")
    )


def _stage(stage: Stage) -> dict[str, Any]:
    diagram = stage.diagram
    parts = grouped(diagram)
    numbers = {item.key: number for number, item in enumerate(diagram.items)}
    items = [
        {
            "key": item.key, "label": item.label, "spec": item.detail, "kind": item.kind, "change": item.change,
            "lines": item.lines, "size": item.size, "saved": item.saved, "options": item.options,
            "result": item.is_result,
        }
        for item in diagram.items
    ]  # fmt: skip
    links = [[numbers[link.source], numbers.get(link.target, link.target)] for link in diagram.links]
    tree, open_ = _tree(parts, numbers), sorted(opened(parts, SMALL if len(items) <= SMALL else ROOM))
    return {"title": stage.title, "note": stage.note, "items": items, "links": links, "tree": tree, "open": open_}


def _tree(parts: Sequence[Part], numbers: dict[str, int]) -> list[Any]:
    """A number for an item; key, title and parts for a group."""
    return [
        numbers[part] if isinstance(part, str) else [part.key, part.title, _tree(part.parts, numbers)] for part in parts
    ]


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
