"""The figures of the report, one a module; each says what to read from it, or why it could not be drawn."""

from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from compare.claims import CLAIMS
from compare.instruments import INSTRUMENTS
from compare.records.files import write_atomic
from compare.report.page import Picture, Table
from compare.report.summary import Summary


@dataclass(frozen=True)
class Drawing:
    """One figure with its words; where there was nothing to draw, `figure` is None and `caption` says why."""

    name: str
    title: str
    caption: str
    alt: str = ""
    figure: Figure | None = None
    table: Table | None = None


def figures() -> tuple[str, ...]:
    """The modules of all figures: those of the instruments, then those of the claims."""
    owned = [*(one.figures for one in INSTRUMENTS), *(claim.figures for claim in CLAIMS.values())]
    return tuple(chain.from_iterable(owned))


def draw(summary: Summary, directory: Path) -> tuple[list[Picture], list[Path]]:
    """Draw every figure into `directory` as PNG and SVG; the pictures for the page, and the files written."""
    from compare.report.plots import style

    pictures, paths = [], []
    with rc_context(style.STYLE):
        for module in figures():
            drawing = import_module(module).draw(summary)
            svg = b""
            if drawing.figure is not None:
                svg = style.rendered(drawing.figure, "svg")
                paths.append(write_atomic(directory / f"{drawing.name}.svg", svg))
                paths.append(write_atomic(directory / f"{drawing.name}.png", style.rendered(drawing.figure, "png")))
            pictures.append(_picture(drawing, svg))
    return pictures, paths


def _picture(drawing: Drawing, svg: bytes) -> Picture:
    name = drawing.name if svg else None
    return Picture(drawing.title, drawing.caption, drawing.alt, name, svg, drawing.table)
