"""The graph of a step as each engine has it: the tape of one run, and the graph that static runs, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import dynamic
import static
from compare.engines import cases
from compare.engines.graphduel import functions
from compare.page.blocks import Inline, Section, section
from compare.records.job import Job
from compare.records.own import EngineGraphs
from compare.records.record import Records, of
from compare.words import text
from compare.workloads.base import Case
from graphs.drawing import Diagram, beside, marked, of_graph
from graphs.drawing.groups import folded
from graphs.drawing.pictures import svg

MOST = 60
"""Items of one graph that are kept; more are folded to groups."""
FOLDS = {"wide": (1010, (MOST, 30, 16, 8)), "narrow": (335, (16, 8, 5))}
"""For a desktop and a phone: the pixels that a picture may take, and the items of a graph that are tried in turn."""
LEGIBLE = 0.6
"""The share of its own width below which the words of a picture are too small to read."""
TITLES = {"dynamic": "the tape of one run", "static": "the optimised graph"}
_WIDTH = re.compile(r' width="(\d+)"')
_CAPTION = (
    "The step over the input of median length: dynamic records its tape on every run, static traces a graph once and "
    "rewrites it. − marks what the passes removed, + what they added, ~ what reads other nodes than before. Data flows "
    "downwards. A large graph is folded to groups; an item says more when you point at it. The command graphduel graph "
    "--engine both --out graph.html makes a page in which the groups open."
)


def look(what: Job, case: Case) -> EngineGraphs | None:
    """The record of the graphs, where static traces the step; its control flow is converted if need be."""
    median = cases.alone(case)
    arguments = (median.params, *median.examples[0])
    try:
        step = functions.transformed(static, median.loss, median.argnum)
        optimised = static.compile(step, *arguments, convert=True).graph
        tape = dynamic.record(functions.transformed(dynamic, median.loss, median.argnum), *arguments)
    except Exception:  # noqa: BLE001  (the gate says what an engine refuses; here it has no graph)
        return None
    diagrams = dict(zip(TITLES, marked(of_graph(tape), of_graph(optimised)), strict=True))
    nodes = {engine: len(diagram.items) for engine, diagram in diagrams.items()}
    graphs = {engine: folded(diagram, MOST) for engine, diagram in diagrams.items()}
    return EngineGraphs(**what.head, graphs=graphs, nodes=nodes)


def drawing(records: Records) -> Section | None:
    """The section with both graphs in one picture, below each other on a phone; None where there is no record."""
    for record in of(records, EngineGraphs):
        dynamic_nodes, static_nodes = (text.counted(record.nodes[engine], "node") for engine in TITLES)
        said = f"dynamic records {dynamic_nodes} on every run, static runs a graph of {static_nodes}"
        titled = [replace(diagram, title=f"{engine}: {TITLES[engine]}") for engine, diagram in record.graphs.items()]
        sheets = [sheet for which in FOLDS for sheet in _sheets(which, titled)]
        pictures = Inline("".join(map(_apart, sheets, range(len(sheets)))), "The picture is in report.html.")
        return section("The graph in both engines", f"Here {said}.", _CAPTION, pictures)
    return None


def _sheets(which: str, diagrams: Sequence[Diagram]) -> Iterator[str]:
    """The diagrams beside each other if the page has room for that, else below each other, folded until they fit."""
    room, folds = FOLDS[which]
    for most in folds:
        less = [folded(diagram, most) for diagram in diagrams]
        together = [svg(beside(*less))] if which == "wide" else []
        for pictures in filter(None, (together, [svg(beside(diagram)) for diagram in less])):
            if max(map(_width, pictures)) * LEGIBLE <= room or most == folds[-1]:
                yield from (_sheet(which, picture) for picture in pictures)
                return


def _width(picture: str) -> int:
    return int(_WIDTH.findall(picture)[0])


def _sheet(which: str, picture: str) -> str:
    """The picture as wide as the page, and no wider than it is."""
    sized = picture.replace("max-width:100%", f"max-width:min(100%,{_width(picture)}px)", 1)
    return f'<div class="{which}">{sized}</div>'


def _apart(sheet: str, number: int) -> str:
    """The sheet with a name of its own for its arrow, as names of a page are."""
    return sheet.replace("gd-a", f"gd-{number}")
