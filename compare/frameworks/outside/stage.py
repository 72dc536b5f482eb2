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

AT_ONCE = 2
"""Jobs that time no steady state, where there are as many cores: more would wait for the memory bus."""


def measure(runner: Runner, settings: Settings, chosen: Sequence[Cell]) -> None:
    """Run the jobs about frameworks; one that is not installed is left out, with how to install it.

    Jobs that time no steady state come first, two at once where there are two cores: compilers take most of their time.
    """
    for name in settings.frameworks:
        if missing := named(name).missing:
            runner.reporter.notice(f"left out: {missing}")
    directory = runner.journal.path.parent
    with tempfile.TemporaryDirectory(prefix="graphduel-") as counter:
        first, timed = jobs.jobs(settings, chosen, directory, Path(counter))
        runner.reporter.pace.total += len(first) + len(timed)
        with runner.side_by_side(AT_ONCE) as beside:
            beside.jobs(_wanted(runner, job, directory) for job in first)
        runner.jobs(_wanted(runner, job, directory) for job in timed)
    shutil.rmtree(directory / jobs.FOLDER, ignore_errors=True)


def _wanted(runner: Runner, job: Job, directory: Path) -> Wanted | None:
    """A job, unless it is done or an earlier process has shown that it tells nothing new."""
    if job.name in runner.journal.done or not worthwhile(runner.journal.records, job):
        return None
    return jobs.without_code(directory, job), {}


def worthwhile(records: Iterable[Record], job: Job) -> bool:
    """Whether a process may tell what earlier ones have not.

    It does not where one of them found no arm right, beside the eager one if there are others, nor where one that found
    compiled code came through no first epoch: the next would be ended at the same limit.
    """
    if job.claim is not None or job.process == COLD:
        return True
    names = {replace(job, process=process).name for process in range(job.process or 0)}
    earlier = {record.process: record for record in of(records, FrameworkCell) if record.job in names}
    return COLD in earlier and all(_promising(record, job.arms[1:] or job.arms) for record in earlier.values())


def _promising(record: FrameworkCell, arms: Sequence[str]) -> bool:
    rows = [record.arms[arm] for arm in arms]
    return any(row.status == "ok" and (row.whole or record.cache == "cold") for row in rows)
