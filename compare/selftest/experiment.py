"""What the selftest runs: comparisons of an engine with itself, each of six fresh processes, two of them at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from compare import schema, workloads
from compare.errors import NothingMeasuredError
from compare.jobs import PRESETS
from compare.measure.job import Job
from compare.progress import Reporter
from compare.results import Record
from compare.selftest import rates
from compare.selftest.inject import AGAIN

Execute = Callable[[Job, float], Record]

SHARES = (0.03, 0.05, 0.10)
"""The slowdowns that are injected."""
LEAKS = (64 * 1024, 1024 * 1024)
"""The bytes that are leaked with each epoch."""
SUBJECTS = (
    ("tiny_mlp", "static-exact"),
    ("branch_on_sum", "dynamic"),
    ("elementwise_chain", "static-exact"),
    ("tiny_mlp", "dynamic"),
    ("branch_on_sum", "static-exact"),
)
"""What is compared with itself, in turn: both engines, short steps and large arrays, one input and a stream."""
SECONDS = 0.8
"""What the rounds of one process may take; a run allows more, where blocks cannot be as short as here."""
TIMEOUT = 120.0


@dataclass(frozen=True)
class Plan:
    """How many comparisons of speed and of memory, of how many processes each, and how many processes run at once."""

    comparisons: int = 200
    leaks: int = 50
    processes: int = PRESETS["full"].processes
    at_once: int = 2
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def run(plan: Plan, reporter: Reporter, execute: Execute | None = None) -> dict[str, Any]:
    """The rates, as `compare.schema.Selftest` describes them.

    Raises NothingMeasuredError where no process gave a result.
    """
    started = time.monotonic()
    records = measured(plan, reporter, execute or _run_job)
    return {
        "schema": schema.VERSION,
        "kind": "selftest",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": time.monotonic() - started,
        "settings": plan.to_dict(),
        "environment": next((r["environment"] for r in records if "environment" in r), {}),
        "whole": plan.comparisons >= rates.WHOLE,
        **rates.judge(records),
    }


def measured(plan: Plan, reporter: Reporter, execute: Execute) -> list[Record]:
    """The records of all comparisons, each with the number of its `comparison`."""
    reporter.pace.total = plan.comparisons + plan.leaks
    records: list[Record] = []
    with reporter, ThreadPoolExecutor(plan.at_once) as pool:
        for number, jobs in enumerate(chain(speed_jobs(plan), leak_jobs(plan))):
            reporter.start(f"comparison {number}, {jobs[0].workload}: {jobs[0].kind}")
            found = list(pool.map(lambda job: execute(job, TIMEOUT), jobs))
            records += [{**record, "comparison": number} for record in found]
            reporter.finish(next((record["error"] for record in found if record["kind"] == "failure"), None))
    if all(record["kind"] == "failure" for record in records):
        raise NothingMeasuredError(f"no worker gave a result: {records[0]['error']}; try `graphduel doctor`")
    return records


def speed_jobs(plan: Plan) -> Iterator[list[Job]]:
    """For each comparison, its processes: an engine, the same again, and the same with each slowdown."""
    for number in range(plan.comparisons):
        workload, engine = SUBJECTS[number % len(SUBJECTS)]
        changes = (AGAIN, *(f"+{share:.0%}" for share in SHARES))
        arms = (engine, *(f"{engine}|{change}" for change in changes))
        yield [_job("selftest time", workload, plan, number, arms, process) for process in range(plan.processes)]


def leak_jobs(plan: Plan) -> Iterator[list[Job]]:
    """For each comparison, a process for each arm: an engine, and the same with each leak."""
    for number in range(plan.leaks):
        workload, engine = SUBJECTS[number % len(SUBJECTS)]
        kind = ("array", "object")[number % 2]
        arms = (engine, *(f"{engine}|leak {kind} {size}" for size in LEAKS))
        yield [_job("selftest memory", workload, plan, number, (arm,), i) for i, arm in enumerate(arms)]


def _job(kind: str, workload: str, plan: Plan, number: int, arms: tuple[str, ...], process: int) -> Job:
    return Job(
        kind,
        workload,
        "small",
        process,
        source=workloads.source(workload),
        seed=plan.seed + number * plan.processes,
        arms=arms,
        budget=replace(PRESETS["full"].budget, seconds=SECONDS),
        lane=process % plan.at_once,
    )


def _run_job(job: Job, timeout: float) -> Record:
    from compare.measure.processes import run_job

    return run_job(job, timeout)
