"""Drawings that show themselves in a notebook, and that are written to a file of any format.

`GraphDrawing` draws a graph; an interactive drawing is a page with a script. `MemoryMap` draws an arena over time: a
rectangle for each buffer, as wide as its lifetime and as high as its size.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from graphs.drawing import text
from graphs.drawing.diagram import Diagram
from graphs.drawing.groups import Part, fold, group_items, open_groups
from graphs.drawing.layout import in_bytes, lay_out, saved_text
from graphs.drawing.pictures import SIGNS, STYLE, WORDS, ends, label_with_sign, svg
from graphs.errors import escape_html
from graphs.files import write_file

SMALL, ROOM = 60, 24
"""A graph of so many nodes is open when the page opens; of a larger one, so many parts are seen."""


class Stage(NamedTuple):
    """One stop of the slider of a page: a graph, its title, and a remark on it."""

    title: str
    note: str
    diagram: Diagram


def viewer(title: str, stages: Sequence[Stage]) -> str:
    """The HTML page that shows the stages."""
    code = {line: text for stage in stages for line, text in stage.diagram.code.items()}
    data = {"stages": [_stage(stage) for stage in stages], "code": code, "signs": SIGNS, "words": WORDS}
    return fill_template(
        _read("viewer.html"), _read("viewer.js"), data, title=escape_html(title), style=STYLE + _read("viewer.css")
    )


def _stage(stage: Stage) -> dict[str, Any]:
    diagram = stage.diagram
    parts = group_items(diagram)
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
    tree, open_ = _tree(parts, numbers), sorted(open_groups(parts, SMALL if len(items) <= SMALL else ROOM))
    return {"title": stage.title, "note": stage.note, "items": items, "links": links, "tree": tree, "open": open_}


def _tree(parts: Sequence[Part], numbers: dict[str, int]) -> list[Any]:
    """The parts as JSON: an item is its number, a group a list of key, title and parts."""
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
    """The HTML page with this title and `body`, which is HTML."""
    return _PAGE.format(title=escape_html(title), body=body)


def fill_template(template: str, script: str, data: Any, **parts: str) -> str:
    """The template with `{{script}}`, its hash as `{{policy}}`, `{{data}}` as JSON, and other parts, which are HTML.

    The policy of the page allows the script with this hash alone, whatever text is in the data.
    """
    policy = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    filled = {**parts, "script": script, "policy": policy, "data": _json(data)}
    return re.sub(r"\{\{(\w+)\}\}", lambda name: filled[name[1]], template)  # at once: no text is a pattern


def _json(data: Any) -> str:
    """JSON for a script: no text in it can end the script or begin a comment."""
    text = json.dumps(data, separators=(",", ":"))  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_DOTS = 96.0  # pixels of the layout in an inch
_EDGES = {"forward": "#0072b2", "backward": "#d55e00", "added": "#009e73", "removed": "#cc79a7", "rewritten": "#7a5c00"}


def paint(diagram: Diagram, kind: str) -> bytes:
    """The diagram as a bitmap or a PDF, painted by matplotlib; `kind` is a format that matplotlib knows."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
    from matplotlib.path import Path as PathOfPoints

    layout = lay_out(diagram)
    width, height = max(layout.width, 60.0) + 28, layout.height + 28
    figure = Figure(figsize=(width / _DOTS, height / _DOTS))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(-14, width - 14), ylim=(height - 14, -14))
    for box in diagram.boxes:
        x, y, w, h = layout.places[box.key]
        axes.add_patch(Rectangle((x, y), w, h, facecolor="#f5f5f2", edgecolor="0.6", zorder=0))
        axes.text(x + 8, y + 16, box.title, fontsize=8, color="0.35", family="monospace")
    for link in diagram.links:
        source, target = layout.places[link.source], layout.places[link.target]
        points = ends(source, target, layout.routes.get((link.source, link.target), ()))
        style = ":" if link.inside else "-"
        line = PathOfPoints(points)
        axes.add_patch(FancyArrowPatch(path=line, arrowstyle="->", mutation_scale=9, color="0.55", linestyle=style))
    for item in diagram.items:
        x, y, w, h = layout.places[item.key]
        fill = "#e8f1f8" if item.kind == "input" else "white"
        dashes = "--" if item.look in ("backward", "constant", "removed", "rewritten") else "-"
        look: dict[str, Any] = {
            "facecolor": fill,
            "edgecolor": _EDGES.get(item.look, "0.5"),
            "linestyle": dashes,
            "zorder": 2,
        }
        axes.add_patch(FancyBboxPatch((x + 3, y + 3), w - 6, h - 6, boxstyle="round,pad=3,rounding_size=4", **look))
        words = "\n".join(part for part in (label_with_sign(item), item.detail, saved_text(item)) if part)
        axes.text(x + w / 2, y + h / 2, words, ha="center", va="center", fontsize=8, family="monospace", zorder=3)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=_DOTS * 1.5)
    return picture.getvalue()


class GraphDrawing:
    """The result of `draw()`, which is written by `svg()`, `dot()`, `mermaid()`, `json()`, `html()` or `save(path)`.

    A graph of more than 150 nodes is folded to groups (repeated blocks, functions, lines of the user's), unless it is
    drawn with `unfold`. The HTML page opens and closes them; the JSON formats hold every node.
    """

    def __init__(self, diagram: Diagram, unfold: bool = False) -> None:
        self.whole = diagram
        self.shown = diagram if unfold else fold(diagram)
        self.stages: Sequence[Stage] = [Stage(diagram.title, "", diagram)]

    @classmethod
    def of_stages(cls, stages: Sequence[Stage], unfold: bool = False) -> GraphDrawing:
        """The drawing of the last of several stages; its HTML page has a slider over all of them."""
        drawing = cls(stages[-1].diagram, unfold)
        drawing.stages = stages
        return drawing

    def svg(self) -> str:
        """The picture, as text."""
        return svg(self.shown)

    def dot(self) -> str:
        """The drawing in the language of Graphviz."""
        return text.dot(self.shown)

    def mermaid(self) -> str:
        """The drawing in the language of Mermaid."""
        return text.mermaid(self.shown)

    def json(self) -> str:
        """The items, links and boxes as JSON."""
        return text.as_json(self.whole)

    def model_explorer(self) -> str:
        """The drawing as JSON for Google's Model Explorer."""
        return text.model_explorer(self.whole)

    def html(self) -> str:
        """A complete HTML page, in which every group opens and closes; it loads nothing from a network."""
        return viewer(self.whole.title, self.stages)

    def save(self, path: str | Path) -> Path:
        """Write a file: .svg, .html, .dot, .mmd, .json, .model-explorer.json, .png or .pdf. Returns its path.

        Raises ValueError for another suffix.
        """
        path = Path(path)
        if path.suffix in (".png", ".pdf"):
            return write_file(path, paint(self.shown, path.suffix[1:]))
        return write_file(path, self._writer(path)().encode())

    def _writer(self, path: Path) -> Callable[[], str]:
        if path.name.endswith(".model-explorer.json"):
            return self.model_explorer
        writers = {".svg": self.svg, ".html": self.html, ".dot": self.dot, ".mmd": self.mermaid, ".json": self.json}
        if path.suffix not in writers:
            suffixes = ", ".join([*writers, ".model-explorer.json", ".png", ".pdf"])
            raise ValueError(f"a drawing is not written as {path.suffix or 'a file without suffix'}; use {suffixes}")
        return writers[path.suffix]

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        nodes = sum(item.count for item in self.shown.items)
        return f"GraphDrawing({self.shown.title}: {nodes:,} nodes in {len(self.shown.items):,} items)"


WIDTH, HEIGHT, LEFT, TOP = 720.0, 320.0, 92.0, 34.0

_STYLE = """
.gm{--paper:#fff;--ink:#1c1c1c;--soft:#5c5c5c;--line:#8a8a8a;--buffer:#cfe3f1;--edge:#0072b2}
@media (prefers-color-scheme:dark){.gm{--paper:#16181b;--ink:#eceae4;--soft:#b3b0a8;--line:#8d8d8d;--buffer:#1d3a4f;
--edge:#56b4e9}}
.gm text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--soft)}
.gm .w{fill:var(--ink);text-anchor:middle;font-size:11px}.gm .y{text-anchor:end}.gm .m{text-anchor:middle}
.gm .a{stroke:var(--line);stroke-width:1;fill:none}.gm .u{fill:var(--buffer);stroke:var(--edge)}
"""


class MappedBuffer(NamedTuple):
    """A buffer: its content, the half-open interval of steps in which it lives, its size and its offset in bytes."""

    name: str
    lower: int
    upper: int
    size: int
    offset: int


class MemoryMap:
    """The result of `draw_memory()`. It shows itself in a notebook, and `save(path)` writes an .svg or .html file."""

    def __init__(self, title: str, buffers: Sequence[MappedBuffer], peak: int) -> None:
        self.title, self.buffers, self.peak = title, tuple(buffers), peak

    def svg(self) -> str:
        """The picture, as text. Hovering over a buffer shows what it holds, when, and where."""
        steps = max((buffer.upper for buffer in self.buffers), default=1)
        across, down = WIDTH / max(steps, 1), HEIGHT / max(self.peak, 1)
        body = "".join(_buffer(buffer, across, down) for buffer in self.buffers if buffer.size)
        label = escape_html(f"{self.title}: {len(self.buffers)} buffers in an arena of {in_bytes(self.peak)}")
        width, height = LEFT + WIDTH + 18, TOP + HEIGHT + 46
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gm" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}" '
            f'style="max-width:100%;height:auto;background:var(--paper)"><style>{_STYLE}</style>'
            f'<text x="{LEFT:.0f}" y="20">{label}: each buffer while it lives</text>'
            f'<path class="a" d="M{LEFT} {TOP}V{TOP + HEIGHT}H{LEFT + WIDTH}"/>{body}{_axes(self.peak, steps)}</svg>'
        )

    def html(self) -> str:
        """A page of its own."""
        return page(self.title, self.svg())

    def save(self, path: str | Path) -> Path:
        """Write a .svg or .html file. Returns its path. Raises ValueError for another suffix."""
        path = Path(path)
        writers = {".svg": self.svg, ".html": self.html}
        if path.suffix not in writers:
            suffix = path.suffix or "a file without suffix"
            raise ValueError(f"a map of memory is not written as {suffix}; use .svg or .html")
        return write_file(path, writers[path.suffix]().encode())

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"MemoryMap({self.title}: {len(self.buffers)} buffers, {self.peak:,} bytes)"


def _axes(peak: int, steps: int) -> str:
    ticks = [f'<text class="y" x="{LEFT - 8}" y="{TOP + 4}">{in_bytes(peak)}</text>']
    ticks.append(f'<text class="y" x="{LEFT - 8}" y="{TOP + HEIGHT + 4}">0 B</text>')
    for at in sorted({0, steps // 2, steps}):
        x = LEFT + WIDTH * at / max(steps, 1)
        ticks.append(f'<text class="m" x="{x:.0f}" y="{TOP + HEIGHT + 18}">{at}</text>')
    ticks.append(f'<text class="m" x="{LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}">step of the run</text>')
    return "".join(ticks)


def _buffer(buffer: MappedBuffer, across: float, down: float) -> str:
    x, w = LEFT + buffer.lower * across, (buffer.upper - buffer.lower) * across
    y, h = TOP + HEIGHT - (buffer.offset + buffer.size) * down, buffer.size * down
    said = f"{buffer.name}: {in_bytes(buffer.size)} at {buffer.offset:,}, steps {buffer.lower} to {buffer.upper - 1}"
    word = buffer.name.split(" ")[0]
    fits = w > 7.2 * len(word) and h > 13
    text = f'<text class="w" x="{x + w / 2:.1f}" y="{y + h / 2 + 4:.1f}">{escape_html(word)}</text>' if fits else ""
    rect = f'<rect class="u" x="{x:.2f}" y="{y:.2f}" width="{max(w, 0.5):.2f}" height="{max(h, 0.5):.2f}"/>'
    return f"<g><title>{escape_html(said)}</title>{rect}{text}</g>"
