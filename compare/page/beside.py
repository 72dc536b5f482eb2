"""The verdicts of several runs beside each other: quick and full, two machines, or one machine on two days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compare.claims import CLAIMS, Verdict, conditions, judge, models
from compare.claims.base import OPEN
from compare.claims.evidence import of_framework, of_ours
from compare.engines import named
from compare.page import markdown, verdicts
from compare.page.blocks import Table
from compare.records.record import Records, Run, of
from compare.workloads.models import FRAMEWORK


@dataclass(frozen=True)
class RunColumn:
    """A run: the name of its folder, in a sentence how it was measured, and its verdicts by claim.

    A run of the user's `function` has none to show: it was not made for the claims.
    """

    name: str
    measured: str
    verdicts: dict[str, Verdict]
    function: bool = False


def column(name: str, records: Records) -> RunColumn:
    """The column of a run: its records judged anew, so that all runs are judged by the same rules."""
    run = next(reversed(of(records, Run)), None)
    preset = f"{run.settings.get('preset', 'unknown')} run, {run.at}" if run else "no record of its settings"
    machine = run.environment.cpu if run and run.environment and run.environment.cpu else "an unknown processor"
    said = " ".join((f"{preset}, on {machine}.", *conditions.sentences(records)))
    verdicts = {verdict.claim.id: verdict for verdict in _judged(records)}
    return RunColumn(name, said, verdicts, function=run is not None and "function" in run.settings)


def _judged(records: Records) -> list[Verdict]:
    """The verdicts by the records of our engines, or of real models by those of their framework."""
    if any(run.is_of_models for run in of(records, Run)):
        return models.judged(of_framework(records, named(FRAMEWORK)))
    return judge(of_ours(records))


def judged_ids(columns: Sequence[RunColumn]) -> list[str]:
    """The claims that all of these runs are judged by."""
    return [id for id in CLAIMS if all(id in run.verdicts for run in columns)]


def judged(columns: Sequence[RunColumn]) -> bool:
    """Whether some run settles some claim: runs of a function of one's own do not."""
    return any(word not in OPEN for id in judged_ids(columns) for word in _words(columns, id))


def differing(columns: Sequence[RunColumn]) -> tuple[str, ...]:
    """The claims whose verdicts differ among the runs that have one."""
    return tuple(
        id for id in judged_ids(columns) if len({word for word in _words(columns, id) if word not in OPEN}) > 1
    )


def table(columns: Sequence[RunColumn]) -> Table:
    """A row for each claim: the verdict and the effect of each run, and whether they are the same."""
    apart = differing(columns)
    rows = tuple(
        (
            f"{id} {CLAIMS[id].title}",
            *(_cell(run.verdicts[id]) for run in columns),
            "differ" if id in apart else "the same" if not set(_words(columns, id)) & set(OPEN) else "open",
        )
        for id in judged_ids(columns)
    )
    names = tuple(run.name for run in columns)
    return Table(("claim", *names, "verdicts"), rows, "l" * (len(columns) + 2))


def page(columns: Sequence[RunColumn]) -> str:
    """The table, and under which conditions each run was measured, in Markdown."""
    measured = Table(("run", "measured"), tuple((run.name, run.measured) for run in columns), "ll")
    parts = ("# Runs beside each other", markdown.table(table(columns)), markdown.table(measured), sentence(columns))
    return "\n\n".join(parts) + "\n"


def plain(columns: Sequence[RunColumn]) -> list[dict[str, Any]]:
    """Each run with its verdicts by claim, in plain JSON values."""
    shown = [{} if run.function else run.verdicts for run in columns]
    return [
        {"run": run.name, "measured": run.measured, "verdicts": {id: v.to_dict() for id, v in verdicts.items()}}
        for run, verdicts in zip(columns, shown, strict=True)
    ]


def sentence(columns: Sequence[RunColumn]) -> str:
    """Whether the runs agree."""
    apart = differing(columns)
    return f"The verdicts on {', '.join(apart)} differ." if apart else "No two verdicts differ where both are settled."


def _words(columns: Sequence[RunColumn], id: str) -> list[str]:
    return [run.verdicts[id].finding.verdict for run in columns]


def _cell(verdict: Verdict) -> str:
    return " ".join(filter(None, (verdicts.marked(verdict), verdicts.effect(verdict.finding))))
