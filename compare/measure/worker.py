"""The worker: `python -m compare.measure.worker` reads a job on stdin, writes its record on stdout, in JSON.

It pins itself to one core first. What a workload prints goes to stderr, so that stdout holds only the record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module

from compare.errors import described
from compare.measure import environment
from compare.measure.job import Job
from compare.results import Record


def main() -> None:
    """Measure the job on stdin."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    job = Job.from_dict(json.load(sys.stdin))
    environment.pin()
    record = perform(job)
    with out:
        json.dump(record, out, allow_nan=False)


def perform(job: Job) -> Record:
    """The record of a job, or a failure record when it ends in an error: one failed cell never ends a run."""
    try:
        return _HANDLERS[job.kind](job)
    except Exception as error:  # noqa: BLE001  (whatever a cell raises is its result)
        return failure(job, described(error))


def failure(job: Job, error: str) -> Record:
    """The record of a job that gave no result."""
    return {"kind": "failure", "job": job.head, "error": error}


def _parity(job: Job) -> Record:
    from compare import parity

    return parity.measure(job)


def _time(job: Job) -> Record:
    from compare.measure import timing

    return timing.measure(job)


def _memory(job: Job) -> Record:
    from compare.measure import memory

    return memory.measure(job)


def _check(job: Job) -> Record:
    """A check of a claim: the function that the claim names, called without arguments."""
    module, _, function = job.source.partition(":")
    record: Record = getattr(import_module(module), function)()
    return record


def _environment(job: Job) -> Record:
    return {**job.head, "environment": environment.environment()}


_HANDLERS: dict[str, Callable[[Job], Record]] = {
    "parity": _parity,
    "time": _time,
    "memory": _memory,
    "gradients": _check,
    "program": _check,
    "fault": _check,
    "edit": _check,
    "environment": _environment,
}


if __name__ == "__main__":
    main()
