"""The report of one user's function: its answer, and the sections that no report of the suite has."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compare import engines, report, text
from compare.claims import remedies, verdict
from compare.claims.threads import at_threads, threads_asked
from compare.claims.verdict import MeasuredFunction
from compare.instruments import inspection
from compare.instruments.inspection import MOST, TITLES
from compare.records.cells import Parity
from compare.records.own import EngineGraphs, PolicyCount, RewriteHints, ShapePolicies
from compare.records.record import Record, Records, Run, records_of
from compare.report import compiled, show
from compare.report import verdicts as suite
from compare.report.blocks import Bullets, Inline, Section, Table, section
from graphs.drawing import Diagram, beside
from graphs.drawing.groups import fold
from graphs.drawing.pictures import svg

if TYPE_CHECKING:
    from compare.claims.base import Verdict

_POLICIES = (
    "A static graph is compiled for the shapes that it has seen. A shape policy says when a new shape needs a new "
    "graph. These are counts over the calls that you gave: no clock is read, and they are the same in every run."
)
_NUMBERS = ("compiles", "elements", "a call ÷ exact")


def finish(directory: Path, records: list[Record]) -> list[Verdict]:
    """Judge the records, and write verdicts and report into the folder. Raises ResultsError if that fails.

    Of several numbers of threads the answer compares all; claims and figures are on the first.
    """
    number, *others = threads_asked(records)
    first = list(at_threads(records, number)) if others else records
    verdicts = verdict.judge(first)
    parts = sections(records, first, verdicts)
    report.publish(directory, first, verdicts, answer=answer(records), sections=parts, every=records)
    return verdicts


def answer(records: Records) -> Section:
    """Return the section that opens the page: what to do, what to change, why, and a row for each mode."""
    measured = _function_of(records)
    header, *rows = show.table(measured)
    table = Table(header, tuple(rows), "l" + "r" * (len(header) - 1)) if rows else None
    tried = remedies.changes_of(records)
    first = at_threads(records, threads_asked(records)[0])
    left = {*tried, *measured.verdict.refused}
    why = (*_refusals(measured, tried), *remedies.suggestions(first), *compiled.whys(first, left))
    return Section("The answer", tuple(filter(None, (*show.answer(measured, place=False), *why, table))), suite.NAME)


def _function_of(records: Records) -> MeasuredFunction:
    name = str(next((run.settings.get("function") for run in records_of(records, Run)), ""))
    modes = dict.fromkeys(mode for record in records_of(records, Parity) for mode in record.modes)
    return MeasuredFunction(name, tuple(modes), tuple(records))


def _refusals(measured: MeasuredFunction, tried: Container[str]) -> list[str]:
    """Return why each mode was not timed, unless it is a change that was tried, whose row says so."""
    refused = {mode: reason.partition(": ")[2] for mode, reason in measured.verdict.refused.items()}
    return [f"{mode}: {reason}" for mode, reason in refused.items() if reason and mode not in tried]


def measurement(records: Records) -> Section:
    """Return the section on how a function was measured, where the answer holds, and what was compared."""
    measured = _function_of(records)
    notes = dict.fromkeys((*compiled.agreement(records), *show.notes_of(measured)))
    said = (show.heading(measured), show.holds_for(measured), _below(measured), suite.EXPLAINED, _roles(measured))
    return Section("How it was measured", tuple(filter(None, (*said, Bullets(tuple(notes)) if notes else None))))


def claims(judged: Sequence[Verdict]) -> Section | None:
    """Return the section with the claims that the run could judge, a row for each; None without any."""
    rows = tuple(
        (f"{each.claim.id} {each.claim.title}", suite.mark_label(each), suite.effect(each.finding))
        for each in judged
        if suite.is_measured(each)
    )
    return section("The claims", Table(("claim", "verdict", "effect [95% interval]"), rows, "lll")) if rows else None


def _below(measured: MeasuredFunction) -> str | None:
    """Return on how many threads the rest of the page is; None where there is one number alone."""
    number, *others = measured.by_threads
    return f"Claims, figures and sections below are on {text.count_noun(number, 'thread')}." if others else None


def _roles(measured: MeasuredFunction) -> str | None:
    """Return a sentence on what static and dynamic stand for in a framework; None for our engines."""
    settings = show.settings_of(measured.records)
    name = settings.get("framework")
    if settings.get("engines"):
        return (
            f"A file ran in {engines.find_engine(name).title}, and in our engine, which stood for it, on the same "
            "numbers. "
            "Ratios between engines are taken between processes. Claims are about our engine alone. "
            f"{show.rung_sentence(measured.records)}"
        ).strip()
    base = measured.verdict.steady.base
    return (
        f"In {engines.find_engine(name).title}, dynamic is {base} here, and static is a compiled mode."
        if name
        else None
    )


def sections(records: Records, first: Records, judged: Sequence[Verdict]) -> tuple[Section, ...]:
    """Return the sections after the answer, those that there are: from what was tried to the claims.

    Most are on the `first` number of threads.
    """
    parts = (
        changes(first),
        ladder(first),
        rewrites(first),
        recompiles(first),
        compiled.reasons(first),
        compiled.parts(first),
        graph_section(first),
        measurement(records),
        claims(judged),
    )
    return tuple(filter(None, parts))


def ladder(records: Records) -> Section | None:
    """Return the section on the rungs of compiling; None unless our engine ran beside a framework."""
    rows = show.rung_table(records) if any(run.settings.get("engines") for run in records_of(records, Run)) else []
    if not rows:
        return None
    return section("The step rung by rung", Table(rows[0], tuple(rows[1:]), "lrrl"), show.rung_sentence(records))


def changes(records: Records) -> Section | None:
    """Return the section on the changes that were tried, the one that gains most first; None where none was."""
    tried = remedies.tried_changes(records)
    if not tried:
        return None
    header, *rows = remedies.rows(tried)
    said = (
        "Each change ran as a mode of its own, behind the same gate. They are ranked by the seconds of a first pass "
        f"and of {remedies.CALLS:,} warm calls."
    )
    return section("What was tried", said, Table(header, tuple(rows), "llrrrrrl"))


def rewrites(records: Records) -> Section | None:
    """Return the section on lines that keep a fixed graph from helping, with their remedies; None without any."""
    rows = tuple(
        (line, record.code.get(line, ""), f"{count:,}", *(("", "") if place else (hint.what, hint.remedy)))
        for record in records_of(records, RewriteHints)
        for hint in record.hints
        for place, (line, count) in enumerate((hint.lines or {"": 0}).items())
    )
    headers = ("line", "source", "count", "what was found", "what to do")
    return section("What to rewrite", Table(headers, rows, "llrll")) if rows else None


def recompiles(records: Records) -> Section | None:
    """Return the section on how often each shape policy compiles, and why; None without records."""
    for record in records_of(records, ShapePolicies):
        usual = record.policies[inspection.DEFAULT]
        calls = tuple((f"{compilation.call:,}", compilation.reason) for compilation in usual.compiles)
        each = Table(("call", "why"), calls, "rl", f"Each compile with {usual.options}") if calls else None
        rows = [_row(records, name, row) for name, row in record.policies.items()]
        shown = [header for header in rows[0] if any(row[header] for row in rows)]
        align = "".join("r" if header in _NUMBERS else "l" for header in shown)
        table = Table.of(align, ({header: row[header] for header in shown} for row in rows))
        return section("Recompiles", _POLICIES, table, each)
    return None


def _row(records: Records, name: str, row: PolicyCount) -> Mapping[str, str]:
    ratio = compiled.beside_exact(records, name)
    return {
        "policy": row.options,
        "compiles": f"{len(row.compiles):,}" if row.status == "ok" else "not possible",
        "elements": text.ratio(row.padding) if row.padding > 1 else "",
        "a call ÷ exact": text.ratio(ratio.estimate) if ratio and name != inspection.EXACT else "",
        "why": compiled.policy_reasons(row),
    }


# Both graphs in one picture -------------------------------------------------------------------------------------------


FOLDS = {"wide": (1010, (MOST, 30, 16, 8)), "narrow": (335, (16, 8, 5))}
"""For desktop and phone: the width of a picture in pixels, and the numbers of items to fold a graph to, in turn."""
LEGIBLE = 0.6
"""The share of its own width below which a picture's text is too small to read."""
_WIDTH = re.compile(r' width="(\d+)"')
_CAPTION = (
    "The step over the input of median length: dynamic records its tape on every run, static traces a graph once and "
    "rewrites it. − marks what the passes removed, + what they added, ~ what reads other nodes than before. Data flows "
    "downwards. A large graph is folded to groups; an item says more when you point at it. The command graphduel graph "
    "--engine both --out graph.html makes a page in which the groups open."
)


def graph_section(records: Records) -> Section | None:
    """Return the section with both graphs in one picture, below each other on a phone; None without a record."""
    for record in records_of(records, EngineGraphs):
        dynamic_nodes, static_nodes = (text.count_noun(record.nodes[engine], "node") for engine in TITLES)
        said = f"dynamic records {dynamic_nodes} on every run, static runs a graph of {static_nodes}"
        titled = [replace(diagram, title=f"{engine}: {TITLES[engine]}") for engine, diagram in record.graphs.items()]
        sheets = [sheet for which in FOLDS for sheet in _sheets(which, titled)]
        pictures = Inline("".join(map(_apart, sheets, range(len(sheets)))), "The picture is in report.html.")
        return section("The graph in both engines", f"Here {said}.", _CAPTION, pictures)
    return None


def _sheets(which: str, diagrams: Sequence[Diagram]) -> Iterator[str]:
    """Yield the diagrams side by side if the page has room, else below each other, folded until they fit."""
    room, folds = FOLDS[which]
    for most in folds:
        less = [fold(diagram, most) for diagram in diagrams]
        together = [svg(beside(*less))] if which == "wide" else []
        for pictures in filter(None, (together, [svg(beside(diagram)) for diagram in less])):
            if max(map(_width, pictures)) * LEGIBLE <= room or most == folds[-1]:
                yield from (_sheet(which, picture) for picture in pictures)
                return


def _width(picture: str) -> int:
    return int(_WIDTH.findall(picture)[0])


def _sheet(which: str, picture: str) -> str:
    """Return the picture in a div, scaled to the width of the page, but not beyond its own width."""
    sized = picture.replace("max-width:100%", f"max-width:min(100%,{_width(picture)}px)", 1)
    return f'<div class="{which}">{sized}</div>'


def _apart(sheet: str, number: int) -> str:
    """Give the arrow of a sheet an id of its own, since ids must be unique on a page."""
    return sheet.replace("gd-a", f"gd-{number}")
