"""The question about a user's function, asked: the gate in one process, then the times in several, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from compare.errors import InputsError, WorkerError
from compare.frameworks import heap, named
from compare.frameworks.own.asked import Asked, Calls, Function, arms_of
from compare.frameworks.own.measure import gate, times
from compare.frameworks.own.result import Result
from compare.frameworks.own.schema import FrameworkGate, FrameworkTime
from compare.records.runs import error_of
from compare.run.job import Job
from compare.run.processes import ask, run_job
from compare.run.progress import Reporter

GATE, TIMES = "framework gate", "framework time"


def asked_of(framework: str, function: str, inputs: str, modes: Sequence[str], **options: float) -> Asked:
    """The question. Raises InputsError for a mode that is none, and where the framework is not installed."""
    adapter = named(framework)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Asked(framework, function, inputs, arms_of(adapter, tuple(modes)), **options)  # type: ignore[arg-type]


def in_workers(asked: Asked, processes: int, reporter: Reporter) -> Result:
    """The answer by fresh processes: for each compiled mode so many, of which the first meets an empty cache.

    Raises WorkerError where the gate gives no answer: then nothing can be timed.
    """
    timeout = 120 + 2 * len(asked.arms) * (asked.limit + asked.seconds)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        first = ask(_job(GATE, asked, asked.arms, asked.adapter.environment(Path(folder, "gate"))), timeout)
        if not isinstance(first, FrameworkGate):
            raise WorkerError(f"{asked.function}: {error_of(first)}")
        right = [arm for arm, mode in first.modes.items() if mode.status == "ok"]
        counting = heap.environment(Path(folder))
        jobs = [
            _job(TIMES, asked, arms, {**asked.adapter.environment(Path(folder, arms[-1])), **counting}, process)
            for process in range(processes)
            for arms in alone_beside_eager(asked.arms[0], right)
        ]
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
    pairs = alone_beside_eager(asked.arms[0], right)
    return Result(asked, first, tuple(times(asked, function, arrays, arms, 0) for arms in pairs))


def alone_beside_eager(eager: str, arms: Sequence[str]) -> list[tuple[str, ...]]:
    """The modes that share a process: each with eager alone, since what one has compiled may change another."""
    others = [arm for arm in arms if arm != eager]
    if eager not in arms:
        return [(arm,) for arm in others]
    return [(eager, arm) for arm in others] or [(eager,)]


def _job(kind: str, asked: Asked, arms: Sequence[str], variables: Mapping[str, str], process: int | None = None) -> Job:
    return Job(kind, process=process, seed=asked.seed, arms=tuple(arms), asked=asked.to_dict(), variables=variables)
