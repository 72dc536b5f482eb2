"""The question about a user's function, asked: the gate in one process, then the times in several, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from compare.errors import InputsError, WorkerError
from compare.frameworks import heap, named
from compare.frameworks.own.asked import Asked, Calls, Function, arms_of
from compare.frameworks.own.measure import gate, times
from compare.frameworks.own.result import Result
from compare.frameworks.own.schema import FrameworkGate, FrameworkTime
from compare.records.record import Record
from compare.records.runs import error_of
from compare.run.job import Job
from compare.run.processes import ask, run_job
from compare.run.progress import Reporter

GATE, TIMES = "framework gate", "framework time"
R = TypeVar("R", bound=Record)


def asked_of(framework: str, function: str, inputs: str, modes: Sequence[str], **options: float) -> Asked:
    """The question. Raises InputsError for a mode that is none, and where the framework is not installed."""
    adapter = named(framework)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Asked(framework, function, inputs, arms_of(adapter, tuple(modes)), **options)  # type: ignore[arg-type]


def in_workers(asked: Asked, processes: int, reporter: Reporter) -> Result:
    """The answer by fresh processes, of which the first meets an empty cache of compiled code, and all others its own.

    Raises WorkerError where the gate gives no answer: then nothing can be timed.
    """
    timeout = 120 + 2 * len(asked.arms) * (asked.limit + asked.seconds)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        first = ask(_job(GATE, asked, Path(folder, "gate"), asked.arms), timeout)
        if not isinstance(first, FrameworkGate):
            raise WorkerError(f"{asked.function}: {error_of(first)}")
        right = tuple(arm for arm, mode in first.modes.items() if mode.status == "ok")
        jobs = [_job(TIMES, asked, Path(folder, "times"), right, process) for process in range(processes) if right]
        reporter.pace.total = len(jobs)
        found = []
        with reporter:
            for job in jobs:
                reporter.start(job.label)
                record = run_job(job, timeout)
                reporter.finish(error_of(record))
                found.append(record)
    lost = [error for record in found if (error := error_of(record))]
    return Result(asked, first, tuple(r for r in found if isinstance(r, FrameworkTime)), tuple(lost))


def here(asked: Asked, function: Function, calls: Calls) -> Result:
    """The answer by this process alone, for what no other process can import: no intervals, and no cold caches."""
    adapter = asked.adapter
    adapter.start(asked.seed)
    arrays = [adapter.arrays(call) for call in calls]
    first = gate(asked, function, arrays)
    right = [arm for arm, mode in first.modes.items() if mode.status == "ok"]
    return Result(asked, first, (times(asked, function, arrays, right, 0),) if right else ())


def _job(kind: str, asked: Asked, folder: Path, arms: Sequence[str], process: int | None = None) -> Job:
    variables = {**asked.adapter.environment(folder), **heap.environment(folder)}
    return Job(
        kind,
        process=process,
        seed=asked.seed,
        arms=tuple(arms),
        asked=asked.to_dict(),
        variables=variables,
    )
