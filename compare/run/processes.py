"""Worker processes: one job, one fresh interpreter; a crash or an overrun becomes a failure record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from compare.errors import OverrunError, ResultsError, WorkerError
from compare.records.job import Job
from compare.records.record import Record
from compare.records.results import parsed
from compare.run import layout, product, start
from compare.run.environment import THREAD_VARIABLES
from compare.run.worker import failure

WORKER = str(start.__file__)
"""The file that a worker is started by: tells one from other processes."""


def run_job(job: Job, timeout: float) -> Record:
    """The record of a job from a fresh process; a failure record if it crashes or overruns `timeout`."""
    try:
        return ask(job, timeout)
    except WorkerError as error:
        return failure(job, str(error))


def ask(job: Job, timeout: float) -> Record:
    """What a fresh worker answers. Raises WorkerError when it crashes, overruns, or answers nothing."""
    path = [str(Path(entry).absolute()) for entry in sys.path]
    request = {"parent": os.getpid(), "files": product.files(), "path": path, "job": job.to_dict()}
    message = {"spawned": time.time(), **request}
    worker = subprocess.Popen(
        [sys.executable, "-P", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=worker_environment(job),
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C reaches the run alone, which then ends the worker
    )
    try:
        answer, errors = worker.communicate(json.dumps(message), timeout)
    except subprocess.TimeoutExpired:
        raise OverrunError(f"the worker ran longer than {timeout:g} s and was ended") from None
    finally:
        _end(worker)
    return _understood(worker.returncode, answer, errors)


def worker_environment(job: Job) -> dict[str, str]:
    """This process's variables, with one thread for BLAS, a fixed hash seed and a layout, and those of the job."""
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, "1"),
        "PYTHONHASHSEED": str((job.seed + (job.process or 0)) % 2**32),
        **layout.variable(job),
        **job.variables,
    }


def _end(worker: subprocess.Popen[str]) -> None:
    """End the worker and what it started, if it still runs."""
    if worker.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(worker.pid, signal.SIGKILL)
        else:
            worker.kill()
        worker.wait()
    for pipe in (worker.stdin, worker.stdout, worker.stderr):
        if pipe is not None:
            pipe.close()


def _understood(code: int, answer: str, errors: str) -> Record:
    record = None
    if code == 0:
        with suppress(ResultsError):
            record = parsed(answer.encode())
    if record is not None:
        return record
    if code == -getattr(signal, "SIGALRM", 0):  # which it asked for itself
        raise OverrunError("the worker was ended at its limit of time")
    said = errors.strip().splitlines()
    raise WorkerError(f"the worker {_ending(code)}" + (f": {said[-1].strip()}" if said else ""))


def _ending(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
            return f"died of {name}" + (", as one does for which there is no memory left" if name == "SIGKILL" else "")
        except ValueError:
            return f"died of signal {-code}"
    return f"ended with exit code {code}" if code else "gave no readable answer"
