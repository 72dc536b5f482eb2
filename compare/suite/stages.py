"""The stages of a run: the jobs behind the parity gate, stage by stage, then verdicts and a report.

Jobs go to a pool (`compare.run.executors`), which by default does one at a time in a fresh worker on this machine.
A stage begins when all jobs of the last have ended: nothing is timed before the gate has judged it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.errors import NothingMeasuredError
from compare.plans import jobs
from compare.plans.settings import Settings
from compare.records import journal, results
from compare.records.cells import Parity, admit_modes
from compare.records.job import KINDS, Job
from compare.records.journal import Journal
from compare.records.record import DYNAMIC, Cell, Failure, ModeRow, Record, Run, kind_of, records_of
from compare.run.executors import Execute, Pool, Serial, groups_of
from compare.run.processes import WaitingWorkers, run_job
from compare.run.progress import Reporter
from compare.run.runner import JobStage, Runner, Wanted
from compare.suite import frameworks

if TYPE_CHECKING:
    from compare.claims import Verdict

MOST_AT_ONCE = 4
"""The number of jobs that run at once where no clock is read: gates, some checks, and counts."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: its records, the verdicts, and its faults in words.

    `overruns` are jobs that were ended at their limit and that no verdict needs; all others are `failures`.
    """

    directory: Path
    records: list[Record]
    verdicts: list[Verdict]
    disagreements: tuple[str, ...]
    failures: tuple[str, ...]
    overruns: tuple[str, ...]
    measured: int

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 fine, 1 something failed, 4 outputs or gradients disagree, 5 nothing was measured."""
        if not self.measured:
            return NothingMeasuredError.exit_code
        return 4 if self.disagreements else int(bool(self.failures))


def run(
    directory: Path,
    settings: Settings,
    reporter: Reporter,
    *,
    resume: bool = False,
    overwrite: bool = False,
    execute: Execute | None = None,
    executor: Executor | None = None,
    at_once: int = 1,
) -> Outcome:
    """Measure the cells that the settings select, and write results, verdicts and the report into the directory.

    `executor` runs the jobs, by default one after another on this machine; it gets `at_once` of them at a time.
    With `overwrite`, a run that the directory holds is begun anew.
    Raises UnknownNameError when nothing is selected, ResultsError when the directory holds another run,
    and CompareError when it cannot be written. On KeyboardInterrupt every finished job has its record.
    """
    chosen = jobs.cells(settings)
    pool, waiting = Pool(executor or Serial(), execute or run_job, at_once, lanes=at_once > 1), WaitingWorkers()
    if execute is None and isinstance(pool.executor, Serial):
        pool = replace(pool, execute=waiting.run_job, ahead=partial(_start_ahead, waiting, settings.limits.timeout))
    with journal.open_journal(directory, settings.to_dict(), resume, reporter.notice, overwrite=overwrite) as kept:
        with reporter, closing(waiting):
            runner = Runner(kept, reporter, pool, settings.limits.timeout)
            runner.header(settings.to_dict())
            if not settings.limits.models:
                runner.run(_stages(runner, settings, chosen))
            if settings.frameworks:
                limits = settings.limits.frameworks
                frameworks.measure(Runner(kept, reporter, pool, limits.timeout), settings, chosen)
        return _outcome(kept, finish(directory, kept.records))


def _start_ahead(waiting: WaitingWorkers, limit: float, jobs: Sequence[Job]) -> None:
    """Start the workers of those jobs that have one process each."""
    waiting.start({job.label: job for job in jobs if len(groups_of(job)) < 2}, limit)


def check(settings: Settings, reporter: Reporter, execute: Execute | None = None) -> list[Record]:
    """Return the parity records of the selected cells; nothing is timed or written."""
    chosen = jobs.cells(settings)
    reporter.pace.total = len(chosen)
    runner = Runner.of_workers(reporter, settings.limits.timeout, execute or run_job)
    with reporter:
        runner.jobs((settings.job("parity", cell), {}) for cell in chosen)
    return runner.journal.records


def finish(directory: Path, records: list[Record], *, python_tape: bool = False) -> list[Verdict]:
    """Judge the claims by the records, and write the verdicts and the report. Return the verdicts.

    Records of one function of the user's are judged by the claims about one function. With `python_tape`, or where the
    run was asked for it, claims are judged by a tape in Python too. Raises ResultsError where the disk refuses a file.
    """
    if any(run.is_own for run in records_of(records, Run)):
        from compare.report import function as own

        return own.finish(directory, records)
    if run := next(reversed([run for run in records_of(records, Run) if run.is_of_models]), None):
        return _of_models(directory, records, run)
    from compare import claims, report
    from compare.claims import frameworks
    from compare.claims.evidence import of_ours

    starts = [run.settings for run in records_of(records, Run)]
    asked = next((str(start["claim"]) for start in starts if start.get("claim")), None)
    tape = python_tape or any(start.get("python_tape") for start in starts)
    ours = of_ours(records)
    verdicts = claims.judge(ours, python_tape=tape, asked=asked)
    report.publish(directory, ours, verdicts, frameworks.outside(records, verdicts))
    return verdicts


def _of_models(directory: Path, records: list[Record], run: Run) -> list[Verdict]:
    """Publish the page on real models in their framework; return its verdicts."""
    from compare import engines, report
    from compare.claims import frameworks
    from compare.claims.evidence import of_framework
    from compare.report import models as shown
    from compare.workloads.models import FRAMEWORK

    framework, against = engines.find_engine(FRAMEWORK), run.settings.get("against")
    small = results.find_results(Path(str(against))) if against else None
    measured = [*records_of(records, Run), *records_of(records, Failure), *of_framework(records, framework)]
    verdicts, rows = frameworks.of_models(measured), list(frameworks.model_costs(measured, framework))
    beside = frameworks.of_models(of_framework(results.read(small), framework)) if small else []
    opening = shown.answer(rows, verdicts, framework.title)
    report.publish(directory, measured, verdicts, answer=opening, sections=shown.sections(rows, verdicts, beside))
    return verdicts


def _stages(runner: Runner, settings: Settings, chosen: list[Cell]) -> Iterator[JobStage]:
    """Yield the stages of our own engines' measurements."""

    def read(planned: Iterable[Job]) -> list[Job]:
        return [job for job in planned if jobs.is_read(settings, job.kind)]

    def free(planned: Iterable[Job]) -> Iterator[Wanted]:
        return ((job, {}) for job in planned)

    def behind_gate(planned: Iterable[Job]) -> Iterator[Wanted | None]:
        return (gate_job(records, job) for job in planned)

    records, checks = runner.journal.records, jobs.check_jobs(settings)
    timings = read([*jobs.time_jobs(chosen, settings), *jobs.beyond_times(settings)])
    tables, counts = read(jobs.table_jobs(settings)), read(jobs.beyond_counts(settings))
    closer = read(jobs.closer_jobs(chosen, settings))
    gates = read([*(settings.job("parity", cell) for cell in chosen), *jobs.beyond_parity(settings)])
    memories = read(settings.job("memory", cell) for cell in chosen)
    runner.reporter.pace.expect([*checks, *gates, *tables, *counts, *timings, *memories, *closer])
    yield JobStage(free(job for job in checks if KINDS[job.kind].timed), ahead=True)
    yield JobStage(free(job for job in (*checks, *gates) if not KINDS[job.kind].timed), MOST_AT_ONCE)
    yield JobStage(behind_gate(timings), ahead=True)
    yield JobStage(free(tables), ahead=True)
    deadline = time.monotonic() + settings.limits.more_seconds
    for process in range(settings.processes, settings.limits.most):
        yield JobStage(_sharpening(runner, settings, chosen, process, deadline), ahead=True)
    yield JobStage(behind_gate(memories), MOST_AT_ONCE)
    yield JobStage(free(counts), MOST_AT_ONCE)
    yield JobStage(behind_gate(closer), ahead=True)


def gate_job(records: Iterable[Record], job: Job) -> Wanted | None:
    """Return a job with the modes that its cell's gate admits, of those it asks for; None if there is none.

    Frameworks have gates of the same cell, with modes of their own; in a resumed run their records are there too.
    """
    gate = admit_modes(
        [record for record in records_of(records, Parity) if record.cell == job.cell and not record.eager], DYNAMIC
    )
    wanted = tuple(mode for mode in gate.modes if not job.modes or mode in job.modes)
    rows = {mode: ModeRow(row.status, row.reason) for mode, row in gate.refused.items()}
    return (replace(job, modes=wanted), rows) if wanted else None


def _sharpening(
    runner: Runner, settings: Settings, chosen: list[Cell], process: int, deadline: float
) -> Iterator[Wanted | None]:
    """Yield one more process for each cell with a wide interval, while there is time.

    Only the width decides, never the interval's value: to go on until a difference shows would find one in the end.
    """
    if time.monotonic() > deadline:
        return
    for cell in wide(runner.journal.records, chosen):
        if time.monotonic() > deadline:
            return
        job = jobs.time_job(cell, settings, process, len(chosen))
        runner.reporter.pace.expect([job])
        yield gate_job(runner.journal.records, job)


def wide(records: list[Record], chosen: list[Cell]) -> list[Cell]:
    """Return the cells whose interval of static ÷ dynamic, when steady, is wider than the smallest effect of interest.

    A cell without an interval, because too few processes measured it, is included. What frameworks took in the same
    cell does not count.
    """
    from compare.claims.base import SMALLEST_EFFECT
    from compare.claims.evidence import cells, steady
    from compare.records.cells import Time

    def widest(measured: Any) -> float:
        ratios = [measured.ratio(mode, DYNAMIC, steady) for mode in measured.static_modes]
        return max((r.high / r.low if r.bounded else inf for r in ratios if r is not None), default=1.0)

    spread = {m.cell: widest(m) for m in cells(records, Time) if m.base == DYNAMIC}
    return [cell for cell in chosen if spread.get(cell, 1.0) > 1 + SMALLEST_EFFECT]


def _outcome(kept: Journal, verdicts: list[Verdict]) -> Outcome:
    parity = records_of(kept.records, Parity)
    spared = [failure for failure in kept.lost if failure.overran and not _is_needed(failure, kept.records, verdicts)]
    failed = [failure for failure in kept.lost if failure not in spared]
    return Outcome(
        kept.path.parent,
        kept.records,
        verdicts,
        disagreements=tuple(_rows_with("disagree", parity)),
        failures=(*map(_failure_text, failed), *_rows_with("failed", parity)),
        overruns=tuple(map(_failure_text, spared)),
        measured=sum(not isinstance(r, Run | Parity | Failure) for r in kept.records),
    )


def _rows_with(status: str, parity: Iterable[Parity]) -> list[str]:
    """Return one line for each mode with that status in some parity records."""
    return [
        f"{record.cell}, {mode}: {row.reason}"
        for record in parity
        for mode, row in record.modes.items()
        if row.status == status
    ]


def _failure_text(failure: Failure) -> str:
    return f"{failure.job}: {failure.error}"


def _is_needed(failure: Failure, records: list[Record], verdicts: list[Verdict]) -> bool:
    """Return whether a claim is open because this job's record is missing and no other of its kind exists."""
    from compare.claims.base import OPEN

    kind = failure.job.kind
    if any(record.job.kind == kind for record in records if not isinstance(record, Run | Failure)):
        return False
    still = [verdict.claim for verdict in verdicts if verdict.finding.verdict in OPEN]
    return any(kind == kind_of(Parity) or kind in map(kind_of, claim.reads) for claim in still)
