"""The stage of a run in which frameworks are measured, after our own engines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from compare.engines import named
from compare.instruments.time.measure import COLD
from compare.records.job import Job
from compare.records.record import Cell, Record, of
from compare.records.time import Time, TimeArm
from compare.run.runner import Runner, Wanted
from compare.suite import outside_jobs as jobs
from compare.suite.settings import Settings

AT_ONCE = 2
"""Jobs that time no steady state, where there are as many cores: more would wait for the memory bus."""


def measure(runner: Runner, settings: Settings, chosen: Sequence[Cell]) -> None:
    """Run the jobs about frameworks; one that is not installed is left out, with how to install it.

    Jobs that time no steady state run two at once where there are two cores: compilers take most of their time.
    """
    for name in settings.frameworks:
        if missing := named(name).missing:
            runner.reporter.notice(f"left out: {missing}")
    directory, records = runner.journal.path.parent, runner.journal.records
    with tempfile.TemporaryDirectory(prefix="graphduel-") as counter:
        cold, first, others = jobs.jobs(settings, chosen, directory, Path(counter))
        runner.reporter.pace.expect([*cold, *first, *others])

        def run(runner: Runner, asked: Iterable[Job]) -> None:
            runner.jobs(_wanted(runner, job, directory) for job in asked)

        with runner.side_by_side(AT_ONCE) as beside:
            run(beside, cold)
        run(runner, first)
        with runner.side_by_side(AT_ONCE) as beside:
            run(beside, [job for job in others if ended(records, job)])
        run(runner, [job for job in others if not ended(records, job)])
    shutil.rmtree(directory / jobs.FOLDER, ignore_errors=True)


def _wanted(runner: Runner, job: Job, directory: Path) -> Wanted | None:
    """A job, unless it is done or the cold process has shown that its arm cannot be timed."""
    if job.name in runner.journal.done or not worthwhile(runner.journal.records, job):
        return None
    return jobs.without_code(directory, job), {}


def worthwhile(records: Iterable[Record], job: Job) -> bool:
    """Whether the cold process found an arm of a job right, beside the eager one if there are others."""
    return job.claim is not None or job.process == COLD or any(row.status == "ok" for row in rows(records, job, COLD))


def ended(records: Iterable[Record], job: Job) -> bool:
    """Whether the first process that found compiled code came through no first epoch: the next will not either."""
    found = rows(records, job, COLD + 1)
    return bool(found) and not any(row.whole for row in found)


def rows(records: Iterable[Record], job: Job, process: int) -> list[TimeArm]:
    """What another process of a job has found of its arms, but for the eager one if there are others."""
    name = replace(job, process=process).name
    return [r.arms[arm] for r in of(records, Time) if r.job == name for arm in job.arms[1:] or job.arms]
