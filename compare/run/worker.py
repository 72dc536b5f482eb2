"""The worker, which `compare/run/start.py` starts: it reads a job on stdin and writes its record on stdout, in JSON.

It measures nothing unless it has imported the same files as the process that asks. The folders on that process's path,
such as one with a user's workloads, are appended to the worker's own path.

It may be started before its turn: it then waits, and nothing of it runs while another one is timed.

It pins itself to a core for each of its threads, unless its kind of job takes all. It does so first, or after its wait:
workers that wait start side by side. Whatever a workload prints goes to stderr, so that stdout holds only the steps and
the record (`compare.steps`). Every record has the seed, the environment of the measurement, and the seconds that the
worker took to start. A copy of the worker, made by a fork in the user's code, answers nothing.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from compare import steps
from compare.errors import UnknownNameError, describe_error
from compare.records.job import KINDS, Job
from compare.records.record import Failure, OfModes, Record, gpu_in_use
from compare.records.results import encode, valid
from compare.run import environment


def main() -> None:
    """Measure the job on stdin.

    Raises SystemExit where this is another graphduel than that of the process that asks.
    """
    steps.open_pipe()
    own, end = os.getpid(), os._exit
    faulthandler.enable(2)
    message = json.loads(sys.stdin.readline())
    environment.end_with(message["parent"])
    sys.path += [entry for entry in message["path"] if entry not in sys.path]  # last, so that it hides nothing
    if others := environment.package_differences(message["files"]):
        raise SystemExit(f"it has imported another graphduel than the one that started it: {others[0]}")
    job = Job.from_dict(message["job"])
    if not message["waits"]:
        _pin(job)
    record = perform(job, message["spawned"], message["facts"], waits=message["waits"])
    if os.getpid() != own:
        end(0)
    steps.answer(encode(record))
    steps.now(_rest())


def _pin(job: Job) -> None:
    environment.pin(job.lane, job.threads, all_cores=job.kind in KINDS and KINDS[job.kind].all_cores)


def _rest() -> str:
    """Return the remaining work of this process, which may take for ever, as the user's code has a part in it."""
    others = [
        thread.name for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon
    ]
    return f"waited for the thread {others[0]}" if others else "ran its exit handlers (atexit)"


def perform(
    job: Job, spawned: float | None = None, facts: Mapping[str, Any] = {}, *, waits: bool = False
) -> Record:  # fmt: skip
    """Return the record of a job, or a failure record for an error: one failed cell never ends a run.

    `spawned` is the time at which the worker was asked for, in seconds since the epoch, and `facts` are those of the
    process that asked (`environment.shared_facts`). A worker that `waits` begins when its stdin is closed.
    """
    started, there = None, environment.environment(facts)
    try:
        measure = handler(job)
        if spawned is not None:
            gc.freeze()  # in a process for this job alone, what is loaded need not be walked by each collection
            gc.enable()
        started = spawned and max(0.0, time.time() - spawned)
        if waits:
            if job.mode:
                _prepare_framework(job.mode)
            steps.now(steps.READY)
            sys.stdin.readline()
            _pin(job)
        steps.now(steps.BEGAN)
        environment.limit_memory(job.memory)
        environment.shift_memory(job)
        record = valid(measure())
        if isinstance(record, OfModes):
            record.label_rows()
    except MemoryError as error:
        record = failure(job, f"out of memory, of which it may take {job.memory:,} bytes: {describe_error(error)}")
    except BaseException as error:  # noqa: BLE001  (whatever a cell raises is its result, also a SystemExit)
        record = failure(job, describe_error(error))
    there.gpu = gpu_in_use()
    record.mode, record.seed, record.environment, record.startup = job.mode, job.seed, there, started
    record.threads = job.threads
    return record


def _prepare_framework(mode: str) -> None:
    """Import the framework of a mode and what hears its compiler: most of what its worker does before it begins."""
    from compare.engines import of_mode

    with suppress(ImportError, UnknownNameError):  # the job says what is missing
        engine = of_mode(mode)
        import_module(engine.module)
        engine.process.listen()


def handler(job: Job) -> Callable[[], Record]:
    """Return the function that makes the record of a job; all that it needs is imported."""
    kind = KINDS.get(job.kind) if job.source else KINDS[job.kind]
    if kind is None:  # the check of a claim that this process has not imported
        return partial(_load_function(job.source), job)
    return partial(_load_function(kind.measure if job.source else kind.of_subject or kind.measure), job)


def failure(job: Job, error: str, *, overran: bool = False) -> Failure:
    """Return the record of a job that gave no result."""
    return Failure(job.name, error, overran=overran)


def _load_function(source: str) -> Any:
    module, _, function = source.partition(":")
    return getattr(import_module(module), function)


if __name__ == "__main__":
    main()
