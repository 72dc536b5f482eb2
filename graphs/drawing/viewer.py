"""A page of its own in which a graph is looked at: it zooms, pans, searches, and opens and closes groups.

All text of the user's stands in JSON, and the page writes it as text.

Pages of their own, which need nothing from a network: a picture, or a template with a script and its data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

from graphs.drawing.diagram import Diagram
from graphs.drawing.groups import Part, grouped, opened
from graphs.drawing.pictures import SIGNS, STYLE, WORDS
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


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:0;padding:12px;font:15px system-ui,sans-serif;background:Canvas;
color:CanvasText}}h1{{font-size:18px;margin:0 0 8px}}h2{{font-size:15px;margin:16px 0 6px}}
main{{overflow-x:auto}}@media (max-width:700px){{main>svg{{max-width:none!important}}}}</style>
<h1>{title}</h1><main tabindex="0" aria-label="{title}">{body}</main></html>
"""


def page(title: str, body: str) -> str:
    """The HTML of a page with this title over `body`, which is HTML itself."""
    return _PAGE.format(title=escaped(title), body=body)


def scripted(template: str, script: str, data: Any, **parts: str) -> str:
    """The template with `{{script}}`, its hash as `{{policy}}`, `{{data}}` as JSON, and other parts, which are HTML.

    With the hash in its policy a page runs no code but the script, whatever is in the data.
    """
    policy = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    filled = {**parts, "script": script, "policy": policy, "data": _json(data)}
    return re.sub(r"\{\{(\w+)\}\}", lambda name: filled[name[1]], template)  # at once: no text is a pattern


def _json(data: Any) -> str:
    """JSON that ends no script and begins no comment, whatever text is in it."""
    text = json.dumps(data, separators=(",", ":"))  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
