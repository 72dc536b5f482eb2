"""A diagram as a bitmap or a PDF, which matplotlib paints."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path as PathOfPoints

from graphs.drawing.diagram import Diagram
from graphs.drawing.layout import lay_out, saved_text
from graphs.drawing.pictures import ends, label_with_sign

_DOTS = 96.0  # pixels of the layout in an inch
_EDGES = {"forward": "#0072b2", "backward": "#d55e00", "added": "#009e73", "removed": "#cc79a7", "rewritten": "#7a5c00"}


def paint(diagram: Diagram, kind: str) -> bytes:
    """The picture, as a file of a format that matplotlib knows."""
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
