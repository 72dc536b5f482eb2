"""The stage of a run in which frameworks are measured, after our own engines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from compare.frameworks import named
from compare.frameworks.outside import jobs
from compare.frameworks.outside.measure import COLD
from compare.frameworks.outside.schema import FrameworkCell
from compare.records.record import Cell, Record, of
from compare.run.job import Job
from compare.run.runner import Runner, Wanted
from compare.run.settings import Settings


def measure(runner: Runner, settings: Settings, chosen: Sequence[Cell]) -> None:
    """Run the jobs about frameworks; one that is not installed is left out, with how to install it."""
    for name in settings.frameworks:
        if missing := named(name).missing:
            runner.reporter.notice(f"left out: {missing}")
    directory = runner.journal.path.parent
    with tempfile.TemporaryDirectory(prefix="graphduel-") as counter:
        found = list(jobs.jobs(settings, chosen, directory, Path(counter)))
        runner.reporter.pace.total += len(found)
        runner.jobs(_wanted(runner, job, directory) for job in found)
    shutil.rmtree(directory / jobs.FOLDER, ignore_errors=True)


def _wanted(runner: Runner, job: Job, directory: Path) -> Wanted | None:
    """A job, unless the cold process has shown that its arm cannot be timed."""
    if job.name in runner.journal.done:
        return None
    if job.claim is None and job.process != COLD and not timed(runner.journal.records, job):
        return None
    return jobs.without_code(directory, job), {}


def timed(records: Iterable[Record], job: Job) -> bool:
    """Whether the cold process found an arm of a job right, beside the eager one if there are others."""
    cold = replace(job, process=COLD).name
    rows = [r.arms[arm] for r in of(records, FrameworkCell) if r.job == cold for arm in job.arms[1:] or job.arms]
    return any(row.status == "ok" for row in rows)
