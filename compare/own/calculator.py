"""The calculator of a result in a notebook: a slider over the runs of the function, and what they cost in each mode."""

from __future__ import annotations

from importlib import resources

from compare.claims.crossover import course
from compare.claims.evidence import cells, joined
from compare.own.verdict import Measured
from compare.records.cells import Time
from graphs.drawing.viewer import scripted
from graphs.plain import escaped

HEIGHT = 144
"""The pixels of the frame without its rows on a phone, where its lines break, and of a row."""
ROW = 26


def calculator(result: Measured) -> str:
    """A frame of its own, so that neither page nor notebook reach each other; nothing of fewer than two modes.

    Calls cost what was measured of them from the start, compiling included, and later ones what they cost once warm.
    """
    warm, first = result.verdict.steady, result.verdict.first
    times = cells(result.records, Time)
    courses = {mode: course(joined(times), mode) for mode in warm.values if mode in first.values}
    modes = [{"name": mode, "early": path.early.tolist(), "steady": path.steady} for mode, path in courses.items()]
    if len(modes) < 2:
        return ""
    template, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in _FILES)
    title = f"{result.name}: what many runs cost"
    page = scripted(template, script, {"modes": modes, "base": warm.base}, title=escaped(title))
    style = f"width:100%;height:{HEIGHT + ROW * len(modes)}px;border:0"
    head = f'<iframe title="{escaped(title)}" sandbox="allow-scripts" style="{style}"'
    return f'{head} srcdoc="{escaped(page)}"></iframe>'


_FILES = "calculator.html", "calculator.js"
