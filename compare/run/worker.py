"""The worker, which `compare/run/start.py` starts: reads a job on stdin, writes its record on stdout, in JSON.

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

from compare.errors import described
from compare.records import device
from compare.records.job import Job
from compare.records.kinds import KINDS
from compare.records.record import Record
from compare.records.results import encoded
from compare.records.runs import Failure
from compare.run import environment, layout, product


def main() -> None:
    """Measure the job on stdin. Raises SystemExit where this is another graphduel than the one that asks."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    message = json.load(sys.stdin)
    environment.end_with(message["parent"])
    sys.path += [entry for entry in message["path"] if entry not in sys.path]  # last, so that it hides nothing
    if others := product.differences(message["files"]):
        raise SystemExit(f"it has imported another graphduel than the one that started it: {others[0]}")
    job = Job.from_dict(message["job"])
    environment.pin(job.lane)
    with out:
        out.write(encoded(perform(job, message["spawned"])))


def perform(job: Job, spawned: float | None = None) -> Record:
    """The record of a job, or a failure record when it ends in an error: one failed cell never ends a run.

    `spawned` is when the worker was asked for, in seconds since the epoch.
    """
    started, there = None, environment.environment()
    try:
        measure = handler(job)
        started = spawned and max(0.0, time.time() - spawned)
        environment.limit_memory(job.memory)
        layout.moved(job)
        record = measure()
    except MemoryError as error:
        record = failure(job, f"out of memory, of which it may take {job.memory:,} bytes: {described(error)}")
    except Exception as error:  # noqa: BLE001  (whatever a cell raises is its result)
        record = failure(job, described(error))
    there.gpu = device.noted()
    record.arm, record.seed, record.environment, record.startup = job.arm, job.seed, there, started
    return record


def handler(job: Job) -> Callable[[], Record]:
    """What makes the record of a job, with all it needs imported."""
    if job.claim is not None:
        check = _named(job.source)
        return partial(check, job.arm) if job.arm else check
    return partial(_named(KINDS[job.kind].measure), job)


def failure(job: Job, error: str) -> Failure:
    """The record of a job that gave no result."""
    return Failure(job.name, error)


def _named(source: str) -> Any:
    module, _, function = source.partition(":")
    return getattr(import_module(module), function)


if __name__ == "__main__":
    main()
