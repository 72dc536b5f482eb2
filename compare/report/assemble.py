"""The page of a run, assembled from its records: `page` puts all sections in order, the rest makes single sections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from compare import text
from compare.claims import conditions
from compare.records.cells import Memory, Parity, Time
from compare.records.checks import Gradients
from compare.records.record import Failure, OfModes, Records, Run, options_of, records_of
from compare.records.results import lost_jobs
from compare.report import blocks, verdicts
from compare.report.blocks import Block, Bullets, Code, FoldedBlock, Page, Section, Table, section
from compare.report.summary import Summary

if TYPE_CHECKING:
    from compare.claims.base import Verdict
    from compare.claims.frameworks import Outside
    from compare.report.figures import DrawnPlots

_TITLE = "graphduel: static against dynamic computation graphs"
_MODELS = "graphduel: real models, eager and compiled"
_PARITY = "parity"
_AGAIN = "Run the comparison again into a directory of its own, or rebuild this report from the results beside it:"
_GENERAL_LIMITS = (
    "One machine, one core, CPU only: ratios elsewhere, on a GPU above all, may differ in size and in sign.",
    "Intervals cover the noise between and inside the worker processes of this run, no other machine or day.",
    "The figures make no correction for the number of comparisons: one in twenty intervals may miss.",
)
_OURS = "Both engines share one op library in Python: this compares graph modes and does not rank frameworks."


def page(
    name: str,
    summary: Summary,
    judged: Sequence[Verdict],
    drawn: DrawnPlots,
    outside: Sequence[Outside] = (),
    answer: Section | None = None,
    sections: Sequence[Section] = (),
) -> Page:
    """Return the page of the run directory `name`; `answer` and `sections` are as for `compare.report.write`."""
    records = summary.records
    run = next(reversed(records_of(records, Run)), None)
    settled = [verdict for verdict in judged if verdicts.is_measured(verdict)]
    shown = {verdict.claim.id for verdict in settled}
    beside = {*shown, verdicts.NAME, _PARITY}
    shown_beside = {picture.name for claim in beside for picture in drawn.pictures.get(claim, ())}
    rest = {picture.name: picture for pictures in drawn.pictures.values() for picture in pictures}
    bare = [picture for name, picture in rest.items() if name not in shown_beside]
    rows = tuple((_name_failure(failure), failure.error) for failure in lost_jobs(records))
    failures = Table(("job", "error"), rows, "ll", "Jobs that ended in an error") if rows else None
    parity, checks = records_of(records, Parity), records_of(records, Gradients)
    bad = sum(row.status in {"disagree", "failed"} for record in parity for row in record.modes.values())
    gate = (
        f"Before anything was timed, the modes of {text.count_noun(len({r.cell for r in parity}), 'cell')} were "
        "compared "
        f"with a float64 reference: {bad or 'none'} disagreed or failed."
    )
    none = "No parity record: nothing in this run was shown to agree, so no time of it is shown."
    passed = (f"Gradients of single ops: {g.passed:,} of {g.checks:,} checks passed." for g in checks)
    failed = (f"Failed gradient check: {failure}." for g in checks for failure in g.failures[:10])
    pictures = drawn.pictures.get(verdicts.NAME, ())
    parts = (
        replace(answer, blocks=(*answer.blocks, *pictures)) if answer else verdicts.answer(summary, judged, pictures),
        *sections,
        *(verdicts.claim_section(verdict, drawn.pictures.get(verdict.claim.id, ())) for verdict in settled),
        frameworks_section(outside),
        section("More figures", *verdicts.fold_pictures(bare)),
        verdicts.calculator(summary),
        section(
            "Parity gate",
            *(gate if parity else none, *passed, *failed),
            *drawn.pictures.get(_PARITY, ()),
            parity_table(records_of(records, Parity)),
        ),
        section("Environment", _environment(run) or "The results hold no record of the environment."),
        section("How to reproduce", _AGAIN, Code(_commands(name, run))),
        section("Limits", *_limits(records, judged, drawn.missing), failures),
    )
    machine = FoldedBlock(conditions.summary(records), (Bullets(conditions.sentences(records)),))
    held = [part for part in parts if part]
    body = tuple(part for part in (*held, blocks.glossary(held)) if part)
    return Page(_title(run), _subtitle(name, run), body, machine)


def _title(run: Run | None) -> str:
    """Return the title of the page: for a user's function, a question with its name."""
    if run and run.is_own:
        return f"{run.settings.get('function', 'A function')}: compile it, or run it eagerly?"
    return _MODELS if run and run.is_of_models else _TITLE


def _subtitle(name: str, run: Run | None) -> str:
    if run is None:
        return f"Run {name}; the results hold no record of its settings."
    if run.is_own:
        return f"Run {name}, {run.at}."
    preset, seed = run.settings.get("preset", "unknown"), run.settings.get("seed", "unknown")
    return f"Run {name}, {run.at}: preset {preset}, seed {seed}."


def parity_table(parity: Sequence[Parity]) -> Table | None:
    """Return a table of the errors of each mode of each cell, with the tolerance; None without records."""
    rows = (
        {
            **record.cell._asdict(),
            "mode": mode,
            "status": row.status,
            "output error": _error(row.output_error),
            "gradient error": _error(row.gradient_error),
            "tolerance": _error(row.tolerance),
            "same graph": {True: "yes", False: "no", None: ""}[record.same_graph],
            "why": row.reason or "",
        }
        for record in parity
        for mode, row in record.modes.items()
    )
    return Table.of("llllrrrll", rows, "Every mode against the reference")


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _environment(run: Run | None) -> Table | None:
    if run is None:
        return None
    environment = msgspec.to_builtins(run.environment) if run.environment else {}
    if memory := environment.get("memory"):
        environment["memory"] = text.size(memory)
    rows = (*_flat("setting", run.settings), *_flat("", environment))
    return Table(("what", "value"), tuple(rows), "ll", "Settings, processor and versions")


def _flat(prefix: str, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return nested fields as rows of a name, `outer inner`, and a value."""
    rows = []
    for key, value in fields.items():
        name = f"{prefix} {key}".strip()
        parts = value if isinstance(value, list) else [value]
        if parts and all(isinstance(part, Mapping) for part in parts):
            rows += [row for part in parts for row in _flat(name, part)]
        else:
            rows.append((name, _plain(value)))
    return rows


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def _commands(name: str, run: Run | None) -> tuple[str, ...]:
    report = f"graphduel report {shlex.quote(f'reports/{name}')}"
    if run and run.is_own:  # for a user's function, only its own recorded command repeats the run
        again = run.settings.get("command")
        return (str(again), report) if again else (report,)
    words = ["graphduel", "run", *options_of(run.settings if run else {}), "--out", f"reports/{name}-again"]
    return shlex.join(words), report


def _limits(records: Records, judged: Sequence[Verdict], missing: Sequence[str]) -> list[Block]:
    runs, failed = records_of(records, Run), len(lost_jobs(records))
    only, claim = (
        next((run.settings[name] for run in runs if run.settings.get(name)), None) for name in ("only", "claim")
    )
    own = (
        (claim, f"Only what claim {claim} reads was measured."),
        (only, f"Only part of the suite was run: {only}."),
        (failed, f"Ended in an error: {text.count_noun(failed, 'job')}, listed below."),
        (len(runs) > 1, "Several runs wrote this directory; the settings shown are those of the last."),
    )
    of_models = any(run.is_of_models for run in runs)
    of_suite = not (of_models or any(run.is_own for run in runs))
    general = _GENERAL_LIMITS if of_models else (*_GENERAL_LIMITS, _OURS)
    limits = (*(said for happened, said in own if happened), *_exclusions(records), *general)
    open_ = (verdict for verdict in judged if not verdicts.is_measured(verdict))
    unjudged = (f"{verdict.claim.id} {verdict.claim.title}: {'; '.join(verdict.reasons)}" for verdict in open_)
    absent = (*unjudged, *(missing if of_suite else ()))  # the missing figures are about our workloads
    return [Bullets(limits), *([Bullets(absent, "What this run did not measure")] if absent else [])]


def _exclusions(records: Records) -> tuple[str, ...]:
    """Return a sentence for each mode of a workload that has no numbers, with its status and reason."""
    tried: list[OfModes] = [*records_of(records, Parity), *records_of(records, Time), *records_of(records, Memory)]
    modes = ((record.cell, mode, row) for record in tried for mode, row in record.modes.items())
    missing = {(*cell, mode, row.status, row.reason or "") for cell, mode, row in modes if row.status != "ok"}
    return tuple(
        f"{workload} ({size}) with {mode} was left out: {status}{f', {reason}' if reason else ''}."
        for workload, size, mode, status, reason in sorted(missing)
    )


def _name_failure(failure: Failure) -> str:
    job = {"kind": failure.job.kind, **failure.job.fields}
    return ", ".join(f"{key} {value}" for key, value in job.items())


NOTES = """\
Each framework runs in processes of its own, one thread on one core, in float32, on the data that our engines get.
One source: each workload is executed once more over the framework's functions. Results are waited for.
A mode is compared with the eager mode of its framework. A mode that differs from the float64 reference is not timed.
Cold: the first process finds no compiled code. Warm: later ones find what it left; the rules see these alone.
Memory is bytes from malloc, counted alike for all: how far they rise in a step."""
QUESTION = (
    "The same claims about other frameworks: their eager mode stands for dynamic, their compiled modes for static, and "
    "the rule of each claim is the one above. ✓ is the verdict that our engines have, ✗ another one; ? is open."
)
_AGREES = {"yes": "✓", "no": "✗", "cannot tell": "?"}


def frameworks_section(frameworks: Sequence[Outside]) -> Section | None:
    """Return the section on other frameworks; None if no framework was measured."""
    if not frameworks:
        return None
    notes = (
        *NOTES.splitlines(),
        *(outside.framework.remark for outside in frameworks if outside.framework.remark),
    )
    return section(
        "Other frameworks",
        QUESTION,
        _agreement(frameworks),
        *(Bullets(reasons, title) for title, reasons in _reasons(frameworks)),
        _cells(frameworks),
        *(_verdicts(outside) for outside in frameworks if outside.agreements),
        Bullets(notes, "How they were measured"),
        name="frameworks",
    )


def _agreement(frameworks: Sequence[Outside]) -> Table:
    """Return a table with a row for each claim: our verdict, and the verdict on each framework, marked if it agrees."""
    compared = [outside for outside in frameworks if outside.agreements]
    headers = ("claim", "our engines", *(f"{outside.framework.title} {outside.version}" for outside in compared))
    rows = []
    for row in zip(*(outside.agreements for outside in compared), strict=True):
        theirs = (f"{_AGREES[outside.agrees]}\N{NO-BREAK SPACE}{outside.theirs}" for outside in row)
        rows.append((row[0].claim, row[0].ours, *theirs))
    return Table(headers, tuple(rows), "l" * len(headers))


def _reasons(frameworks: Sequence[Outside]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for outside in frameworks:
        for agreement in outside.agreements:
            if agreement.agrees != "yes":
                says = {"no": "does not agree", "cannot tell": "cannot be compared"}[agreement.agrees]
                yield f"{agreement.claim}: {outside.framework.title} {says}", agreement.why


def _cells(frameworks: Sequence[Outside]) -> Table:
    headers = (
        "framework", "workload", "mode", "status", "first call, cold", "first call, warm", "steady", "mode ÷ eager",
        "compiles", "peak", "held between steps", "why",
    )  # fmt: skip
    rows = tuple(
        (
            outside.framework.title,
            mode.cell.title,
            mode.mode,
            mode.status,
            text.seconds(mode.cold),
            text.seconds(mode.warm),
            text.seconds(mode.steady),
            text.estimate(mode.ratio, unknown=False) if mode.ratio else "",
            str(mode.compiles),
            text.size(mode.peak) if mode.peak else "",
            text.size(mode.held),
            mode.reason,
        )
        for outside in frameworks
        for mode in outside.modes
    )
    return Table(headers, rows, "llllrrrrrrrl", "What each mode took on each workload")


def _verdicts(outside: Outside) -> Table:
    rows = tuple(
        (f"{v.claim.id} {v.claim.title}", verdicts.mark_label(v), verdicts.effect(v.finding), "; ".join(v.reasons[:3]))
        for v in outside.verdicts
    )
    title = f"Verdicts on {outside.framework.title} {outside.version}"
    return Table(("claim", "verdict", "effect [95% interval]", "why"), rows, "llrl", title)
