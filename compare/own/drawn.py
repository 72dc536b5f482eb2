"""The graph of a step as each engine has it: the tape of one run, and the graph that static traces, side by side."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import dynamic
import static
from compare.engines import arms
from compare.records.own import EngineGraphs
from compare.records.record import Records, of
from compare.report import text
from compare.report.page import Inline, Section, section
from compare.run.job import Job
from compare.workloads.base import Case
from graphs.drawing import Diagram, beside, of_graph
from graphs.drawing.folding import folded
from graphs.drawing.svg import svg

WIDE, NARROW = 60, 16
"""Items of one graph that a page draws before it folds them by line; fewer on a phone."""
LEGIBLE = 0.6
"""The share of its own width below which no picture is made smaller."""
TITLES = {"dynamic": "the tape of one run", "static": "the traced graph"}
_WIDTH = re.compile(r' width="(\d+)"')
_CAPTION = (
    "The step over the input of median length: dynamic records its tape on every run, static traces its graph once, "
    "before all passes. Data flows downwards. A large graph is folded by source line; an item says more when you "
    "point at it. The command graphduel graph draws every node with --unfold."
)


def look(what: Job, case: Case) -> EngineGraphs | None:
    """The record of the graphs, where static traces the step; its control flow is converted if need be."""
    one = arms.alone(case)
    arguments = (one.params, *one.examples[0])
    try:
        traced = static.trace(arms.transformed(static, static.converted(one.loss), one.argnum), *arguments)
        tape = dynamic.record(arms.transformed(dynamic, one.loss, one.argnum), *arguments)
    except Exception:  # noqa: BLE001  (the gate says what an engine refuses; here it has no graph)
        return None
    found = {"dynamic": of_graph(tape), "static": of_graph(traced)}
    nodes = {engine: len(diagram.items) for engine, diagram in found.items()}
    return EngineGraphs(**what.head, graphs={engine: folded(one, WIDE) for engine, one in found.items()}, nodes=nodes)


def drawing(records: Records) -> Section | None:
    """The section with both graphs in one picture, below each other on a phone; None where there is no record."""
    for record in of(records, EngineGraphs):
        dynamic_nodes, static_nodes = (text.counted(record.nodes[engine], "node") for engine in TITLES)
        said = f"dynamic records {dynamic_nodes} on every run, static traces {static_nodes} once"
        titled = [replace(one, title=f"{engine}: {TITLES[engine]}") for engine, one in record.graphs.items()]
        sheets = [_sheet("wide", beside(*titled)), *(_sheet("narrow", folded(one, NARROW)) for one in titled)]
        pictures = Inline("".join(map(_apart, sheets, range(len(sheets)))), "The picture is in report.html.")
        return section("The graph in both engines", f"Here {said}.", _CAPTION, pictures)
    return None


def _sheet(which: str, diagram: Diagram) -> str:
    """The picture in a box of its own, at its own size where there is room; one that is wider can be scrolled."""
    picture = svg(diagram)
    width = int(_WIDTH.findall(picture)[0])
    sized = picture.replace("max-width:100%", f"max-width:{width}px;min-width:{width * LEGIBLE:.0f}px", 1)
    label = escape(diagram.title, quote=True)
    return f'<div class="{which} scroll" tabindex="0" role="region" aria-label="{label}">{sized}</div>'


def _apart(sheet: str, number: int) -> str:
    """The sheet with a name of its own for its arrow, as names of a page are."""
    return sheet.replace("gd-a", f"gd-{number}")
