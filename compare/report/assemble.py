"""From the records of a run to everything its report says."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from compare.jobs import OWN
from compare.report import text, verdicts
from compare.report.page import Page, Picture, Table, Verdict
from compare.report.records import Memory, Parity, Results, Run, Timing
from compare.report.summary import Ratio, Summary

_TITLE = "graphduel: static against dynamic computation graphs"
_TOLD = {"faster": "faster", "slower": "slower", "tie": "a tie", "cannot tell": "not told apart"}
_GENERAL_LIMITS = (
    "One machine, one core, CPU only: ratios elsewhere, on a GPU above all, may differ in size and in sign.",
    "Both engines share one op library in Python: this compares graph modes and does not rank frameworks.",
    "Intervals cover the noise between and inside the worker processes of this run, no other machine or day.",
    "The figures make no correction for the number of comparisons: one in twenty intervals may miss.",
)


def assemble(
    name: str, summary: Summary, found: Sequence[Verdict], pictures: Sequence[Picture], skipped: int, tape: str
) -> Page:
    """The page of the run directory `name`; `skipped` entries of its verdicts could not be read.

    `tape` says which tape ran.
    """
    results = summary.results
    run = results.runs[-1] if results.runs else None
    return Page(
        title=_TITLE,
        subtitle=f"{_subtitle(name, run)} {tape}",
        headline=(verdicts.headline(found), _speed(summary.ratios)),
        verdicts=tuple(found),
        pictures=tuple(pictures),
        parity_notes=_parity_notes(results),
        parity=_parity_table(results.parity),
        environment=_environment(run),
        commands=_commands(name, run),
        limits=_limits(results, skipped),
        failures=_failures(results),
    )


def _subtitle(name: str, run: Run | None) -> str:
    if run is None:
        return f"Run {name}; the results hold no record of its settings."
    preset, seed = run.settings.get("preset", "unknown"), run.settings.get("seed", "unknown")
    return f"Run {name}, {run.at}: preset {preset}, seed {seed}."


def _speed(ratios: Sequence[Ratio]) -> str:
    """How many cells the best static arm wins, ties and loses."""
    best: dict[Any, Ratio] = {}
    for ratio in sorted(ratios, key=lambda ratio: ratio.interval.estimate):
        best.setdefault(ratio.cell, ratio)
    if not best:
        return "No steady-state time of dynamic and of a static arm can be compared in this run."
    found = Counter(ratio.words for ratio in best.values())
    parts = [f"{told} in {found[words]}" for words, told in _TOLD.items() if found[words]]
    cells = f"over {len(best)} cells (workload and size)"
    return f"Once warm, the best static arm against dynamic, {cells}: {text.listed(parts)}."


def _parity_notes(results: Results) -> tuple[str, ...]:
    cells = {record.cell for record in results.parity}
    bad = sum(record.status in {"disagree", "failed"} for record in results.parity)
    gate = (
        f"Before anything was timed, the arms of {text.counted(len(cells), 'cell')} were compared with a float64 "
        f"reference: {bad or 'none'} disagreed or failed."
    )
    none = "No parity record: nothing in this run was shown to agree, so no time of it is shown."
    checks = (f"Gradient checks for {g.claim}: {g.passed:,} of {g.checks:,} passed." for g in results.gradients)
    failed = (f"Failed gradient check: {failure}." for g in results.gradients for failure in g.failures[:10])
    return (gate if cells else none, *checks, *failed)


def _parity_table(parity: Sequence[Parity]) -> Table | None:
    errors = ("output error", "gradient error", "tolerance")
    headers = ("workload", "size", "arm", "status", *errors, "same graph", "why")
    rows = tuple(
        (
            *record.cell,
            record.arm,
            record.status,
            *(_error(value) for value in (record.output_error, record.gradient_error, record.tolerance)),
            {True: "yes", False: "no", None: ""}[record.same_graph],
            record.reason,
        )
        for record in parity
    )
    return Table(headers, rows, "llllrrrll") if rows else None


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _environment(run: Run | None) -> Table | None:
    if run is None:
        return None
    memory = run.environment.get("memory")
    environment = {**run.environment, "memory": text.size(memory)} if memory else run.environment
    rows = (*_flat("setting", run.settings), *_flat("", environment))
    return Table(("what", "value"), tuple(rows), "ll")


def _flat(prefix: str, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Nested fields as `outer inner`, one row each."""
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
    settings = run.settings if run else {}
    if settings.get("preset") == OWN:  # a function of the user's: what it was called with is theirs to say again
        again = (str(settings["command"]),) if settings.get("command") else ()
        return (*again, f"graphduel report {_quoted(f'reports/{name}')}")
    quick = " --quick" if settings.get("preset") == "quick" else ""
    only = f" --only {_quoted(settings['only'])}" if settings.get("only") else ""
    return (
        f"graphduel run{quick}{only} --out {_quoted(f'reports/{name}-again')}",
        f"graphduel report {_quoted(f'reports/{name}')}",
    )


def _quoted(word: Any) -> str:
    return shlex.quote(str(word))


def _limits(results: Results, skipped: int) -> tuple[str, ...]:
    only = next((run.settings["only"] for run in results.runs if run.settings.get("only")), None)
    failed, unreadable = len(results.failures), results.unreadable
    own = (
        (only, f"Only part of the suite was run: {only}."),
        (failed, f"Ended in an error: {text.counted(failed, 'job')}, listed below."),
        (unreadable, f"Not readable, and left out: {text.counted(unreadable, 'line')} of the results."),
        (skipped, f"Not readable, and left out: {text.counted(skipped, 'verdict')}."),
        (len(results.runs) > 1, "Several runs wrote this directory; the settings shown are those of the last."),
    )
    return (*(told for happened, told in own if happened), *_left_out(results), *_GENERAL_LIMITS)


def _left_out(results: Results) -> tuple[str, ...]:
    """A sentence for each arm of a workload that has no numbers, with the reason that was recorded."""
    tried: tuple[Parity | Timing | Memory, ...] = (*results.parity, *results.timings, *results.memory)
    missing = {(*r.cell, r.arm, r.status, r.reason) for r in tried if r.status != "ok"}
    return tuple(
        f"{workload} ({size}) with {arm} was left out: {status}{f', {reason}' if reason else ''}."
        for workload, size, arm, status, reason in sorted(missing)
    )


def _failures(results: Results) -> Table | None:
    rows = tuple((failure.job, failure.error) for failure in results.failures)
    return Table(("job", "error"), rows, "ll") if rows else None
