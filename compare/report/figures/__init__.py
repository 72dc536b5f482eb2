"""The figures of the page: each function `draw_NAME(summary)` returns a `Drawing`, or None for other kinds of runs.

A caption says what a reader should see in the figure, or why it could not be drawn. `style` has the common look.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from compare.report.blocks import Picture, Table
from compare.report.summary import Summary
from graphs.files import write_file

FIGURES = {
    "maps:draw_decision": ("answer",),
    "costs:draw_threads": ("answer",),
    "costs:draw_modes": ("answer",),
    "costs:draw_steady": ("C6", "F1"),
    "parts:draw_lines": ("F1",),
    "parts:draw_ladder": ("C6", "F1"),
    "parts:draw_parts": ("C6", "F1"),
    "maps:draw_crossover": ("C6",),
    "lengths:draw_lengths": ("C4",),
    "memory:draw_ledger": ("F3", "C5"),
    "memory:draw_memory": ("C5", "F3"),
    "parity:draw_parity": ("parity",),
    "costs:draw_break_even": ("C6", "F2"),
    "costs:draw_first_calls": ("C4", "F2"),
}
"""Each figure, as `module:function`, in the order of the page, with the claims beside which it is shown.

The claims are of the suite (C) or of one function (F). A figure whose claims are not on the page comes after all
claims.
"""


@dataclass(frozen=True)
class Drawing:
    """A figure with its texts; if there was nothing to draw, `figure` is None and `caption` says why."""

    name: str
    title: str
    caption: str
    alt: str = ""
    figure: Figure | None = None
    table: Table | None = None


@dataclass(frozen=True)
class DrawnPlots:
    """The pictures by claim, sentences on missing figures, and the paths of the written files."""

    pictures: dict[str, list[Picture]]
    missing: tuple[str, ...]
    files: list[Path]


def draw_all(summary: Summary, directory: Path) -> DrawnPlots:
    """Draw every figure that the records allow, and write it into `directory` as PNG and SVG."""
    from compare.report.figures import style  # imported here, since it loads the engines

    pictures: dict[str, list[Picture]] = defaultdict(list)
    missing, files = [], []
    with rc_context(style.STYLE), style.of_modes(mode for _, mode in summary.courses):
        for place, claims in FIGURES.items():
            module, _, name = place.partition(":")
            draw = getattr(import_module(f"{__name__}.{module}"), name)
            drawing = draw(summary)
            if drawing is None:  # a run of this kind has no such figure
                continue
            if drawing.figure is None:
                missing.append(f"{drawing.title}: {drawing.caption}")
                continue
            picture, written = _write_picture(drawing, partial(draw, summary), directory)
            files += written
            for claim in claims:
                pictures[claim].append(picture)
    return DrawnPlots(dict(pictures), tuple(missing), files)


def draw_one(draw: Callable[[], Drawing], modes: Iterable[str], directory: Path) -> Picture:
    """Draw one figure, in which these modes have looks of their own, and write it into `directory`."""
    from compare.report.figures import style

    with rc_context(style.STYLE), style.of_modes(modes):
        return _write_picture(draw(), draw, directory)[0]


def _write_picture(drawing: Any, draw: Callable[[], Any], directory: Path) -> tuple[Picture, list[Path]]:
    """Write a figure into `directory` as PNG and SVG; return its picture, with one for a phone, and the files."""
    from compare.report.figures import style

    with style.narrow():
        phone = style.render(draw().figure, "svg")
    svg, png = (style.render(drawing.figure, kind) for kind in ("svg", "png"))
    files = [write_file(directory / f"{drawing.name}.{kind}", data) for kind, data in (("svg", svg), ("png", png))]
    words = (drawing.title, drawing.caption, drawing.alt, drawing.name)
    return Picture(*words, svg.decode(), drawing.table, phone.decode()), files


def alt_text(opening: str, facts: Iterable[str]) -> str:
    """Return the alt text of a figure: an opening, and facts with semicolons between them."""
    return f"{opening} {'; '.join(facts)}."
