"""The worker, which `compare/measure/start.py` starts: reads a job on stdin, writes its record on stdout, in JSON.

It measures nothing unless it has imported the files that the process which asks has imported. Where that process finds
modules, such as workloads of a user's own, the worker looks last.

It pins itself to one core first. What a workload prints goes to stderr, so that stdout holds only the record. Every
record tells the seed, the environment it was measured in, and what starting the worker took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from compare import product
from compare.errors import described
from compare.measure import environment
from compare.measure.job import Job
from compare.results import Record

MEASURES = {
    "parity": "compare.parity:measure",
    "time": "compare.measure.timing:measure",
    "memory": "compare.measure.memory:measure",
    "lengths": "compare.lengths.measure:measure",
    "lengths probe": "compare.lengths.probe:measure",
    "crossover": "compare.crossover.measure:measure",
    "crossover memory": "compare.crossover.measure:measure_memory",
    "ladder": "compare.ladder.measure:measure",
    "parts": "compare.parts.measure:measure",
    "ledger": "compare.ledger.measure:measure",
    "environment": "compare.measure.environment:measure",
    "returned memory": "compare.advice.returned:measure",
    "selftest time": "compare.selftest.measure:measure_time",
    "selftest memory": "compare.selftest.measure:measure_memory",
}
"""What makes the record of each kind of job. The check of a claim is named by its job, and takes no arguments."""


def main() -> None:
    """Measure the job on stdin. Raises SystemExit where this is another graphduel than the one that asks."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    message = json.load(sys.stdin)
    environment.end_with(message["parent"])
    sys.path += [entry for entry in message["path"] if entry not in sys.path]  # last, so that it hides nothing
    if others := product.differences(message["files"]):
        raise SystemExit(f"it has imported another graphduel than the one that started it: {others[0]}")
    job = Job.from_dict(message["job"])
    environment.pin(job.lane)
    with out:
        json.dump(perform(job, message["spawned"]), out, allow_nan=False)


def perform(job: Job, spawned: float | None = None) -> Record:
    """The record of a job, or a failure record when it ends in an error: one failed cell never ends a run.

    `spawned` is when the worker was asked for, in seconds since the epoch.
    """
    told: Record = {"seed": job.seed, "environment": environment.environment()}
    try:
        measure = handler(job)
        started = spawned and max(0.0, time.time() - spawned)
        environment.limit_memory(job.memory)
        return {**measure(), **told, "startup": started}
    except MemoryError as error:
        return {**failure(job, f"out of memory, of which it may take {job.memory:,} bytes: {described(error)}"), **told}
    except Exception as error:  # noqa: BLE001  (whatever a cell raises is its result)
        return {**failure(job, described(error)), **told}


def handler(job: Job) -> Callable[[], Record]:
    """What makes the record of a job, with all it needs imported."""
    if job.claim is not None:
        return _named(job.source)
    return partial(_named(MEASURES[job.kind]), job)


def failure(job: Job, error: str) -> Record:
    """The record of a job that gave no result."""
    return {"kind": "failure", "job": job.head, "error": error}


def _named(source: str) -> Any:
    module, _, function = source.partition(":")
    return getattr(import_module(module), function)
