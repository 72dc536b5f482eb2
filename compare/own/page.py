"""The report of one function: its answer, and the sections that no report of the suite has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compare import engines, page
from compare.own import compiled, inspection, show, verdict
from compare.own.verdict import Measured
from compare.page import answer as suite
from compare.page.blocks import Bullets, Section, Table, section
from compare.records.cells import Parity
from compare.records.own import PolicyCount, RewriteHints, ShapePolicies
from compare.records.record import Record, Records, Run, of
from compare.words import text

if TYPE_CHECKING:
    from compare.claims.base import Verdict

_POLICIES = (
    "A static graph is compiled for the shapes that it has seen. A shape policy says when a new shape needs a new "
    "graph. These are counts over the calls that you gave: no clock is read, and they are the same in every run."
)
_NUMBERS = ("compiles", "elements", "a call ÷ exact")


def finish(directory: Path, records: list[Record]) -> list[Verdict]:
    """Judge the records, and write verdicts and report into the folder. Raises ResultsError where that fails."""
    verdicts = verdict.judge(records)
    page.publish(directory, records, verdicts, answer=answer(records, verdicts), sections=sections(records))
    return verdicts


def answer(records: Records, judged: Sequence[Verdict]) -> Section:
    """What to do, a row for each mode, and the claims."""
    measured = _measured(records)
    header, *rows = show.table(measured)
    table = Table(header, tuple(rows), "l" + "r" * (len(header) - 1)) if rows else None
    notes = (*compiled.agreement(records), *show.notes_of(measured))
    first = (*show.answer(measured), table, suite.claims(judged))
    further = (show.heading(measured), suite.EXPLAINED, _roles(measured), Bullets(notes) if notes else None)
    return Section("The answer", tuple(filter(None, (*first, *further))), suite.NAME)


def _roles(measured: Measured) -> str | None:
    """What the words of the claims stand for in a framework."""
    settings = show.settings_of(measured.records)
    name = settings.get("framework")
    if settings.get("engines"):
        return (
            f"A file ran in {engines.named(name).title}, and in our engine, which stood for it, on the same numbers. "
            "Ratios between engines are taken between processes. Claims are about our engine alone. "
            f"{show.rung_sentence(measured.records)}"
        ).strip()
    base = measured.verdict.steady.base
    return f"In {engines.named(name).title}, dynamic is {base} here, and static is a compiled mode." if name else None


def _measured(records: Records) -> Measured:
    name = str(next((run.settings.get("function") for run in of(records, Run)), ""))
    modes = dict.fromkeys(arm for record in of(records, Parity) for arm in record.arms)
    return Measured(name, tuple(modes), tuple(records))


def sections(records: Records) -> tuple[Section, ...]:
    """What was found in the function without a clock; nothing of what there is nothing to say about."""
    parts = (
        ladder(records),
        rewrites(records),
        recompiles(records),
        compiled.reasons(records),
        inspection.graph_section(records),
    )
    return tuple(filter(None, parts))


def ladder(records: Records) -> Section | None:
    """What each part of compiling adds, beside a framework."""
    rows = show.rung_table(records) if any(run.settings.get("engines") for run in of(records, Run)) else []
    if not rows:
        return None
    return section("The step rung by rung", Table(rows[0], tuple(rows[1:]), "lrrl"), show.rung_sentence(records))


def rewrites(records: Records) -> Section | None:
    """The lines that keep a fixed graph from helping, and what to write instead."""
    rows = tuple(
        (line, record.code.get(line, ""), f"{count:,}", *(("", "") if place else (hint.what, hint.remedy)))
        for record in of(records, RewriteHints)
        for hint in record.hints
        for place, (line, count) in enumerate((hint.lines or {"": 0}).items())
    )
    headers = ("line", "source", "count", "what was found", "what to do")
    return section("What to rewrite", Table(headers, rows, "llrll")) if rows else None


def recompiles(records: Records) -> Section | None:
    """How often each shape policy compiles, and why."""
    for record in of(records, ShapePolicies):
        usual = record.policies[inspection.DEFAULT]
        calls = tuple((f"{compilation.call:,}", compilation.reason) for compilation in usual.compiles)
        each = Table(("call", "why"), calls, "rl", f"Each compile with {usual.options}") if calls else None
        return section("Recompiles", _POLICIES, _table(records, record), each)
    return None


def _table(records: Records, record: ShapePolicies) -> Table | None:
    """A row for each policy; of padding and of times only if there are some."""
    rows = [_row(records, name, row) for name, row in record.policies.items()]
    shown = [header for header in rows[0] if any(row[header] for row in rows)]
    align = "".join("r" if header in _NUMBERS else "l" for header in shown)
    return Table.of(align, ({header: row[header] for header in shown} for row in rows))


def _row(records: Records, name: str, row: PolicyCount) -> Mapping[str, str]:
    ratio = inspection.beside_exact(records, name)
    return {
        "policy": row.options,
        "compiles": f"{len(row.compiles):,}" if row.status == "ok" else "not possible",
        "elements": text.ratio(row.padding) if row.padding > 1 else "",
        "a call ÷ exact": text.ratio(ratio.estimate) if ratio and name != inspection.EXACT else "",
        "why": inspection.policy_reasons(row),
    }
