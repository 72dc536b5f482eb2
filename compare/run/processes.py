"""Worker processes: one job, one fresh interpreter; a crash or an overrun becomes a failure record.

A worker runs code that may end it, hang, or leave threads behind. So nothing is taken from how it ends: an answer is a
whole line on its pipe, whatever comes after it. That there is none is an error, which says what the worker did last.

A worker may take so long without progress, and so long for a part of its work that it names itself (`steps.bounded`):
limits that a slow or busy machine does not reach by itself. Seconds in which it waited for a core count for nothing,
where the system tells them (`Spent` in `compare.engines.limit`); what a machine takes longer than the one on which
limits were set is a factor on them (`Pace.slowness` in `compare.run.progress`).
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from compare import steps
from compare.engines.limit import SpentSeconds, looks_every
from compare.errors import OverrunError, ResultsError, WorkerError, is_users
from compare.records.job import Job
from compare.records.record import Record
from compare.records.results import parse_line
from compare.run import environment, product, start
from compare.run.environment import THREAD_VARIABLES
from compare.run.worker import failure


class Allowance:
    """The seconds that a process may spend until it makes progress; `look` must be called `every` so many seconds."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.seconds, self.every = seconds, looks_every(seconds)
        self._spent = SpentSeconds(pid)

    def renew(self) -> None:
        """The process has made progress."""
        self._spent.seconds = 0.0

    def look(self) -> bool:
        """Whether nothing was left at the last look: what is told now may wait for a core of this process."""
        is_over = self._spent.seconds >= 0.99 * self.seconds  # looks come a moment early
        self._spent.look()
        return is_over


WORKER = str(start.__file__)
"""The file that a worker is started by: tells one from other processes."""
STARTING = 10
"""How many times its limit a worker may take until it begins with its job: until then nothing of the user's runs."""
PATIENCE = 1.0, 10.0
"""The least and the most seconds that a worker may take to end which has answered: PyTorch's takes a second or two."""
_SAID = 200
"""Lines of a worker's stderr that are kept: the last."""
_CRASHED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in ')
"""A line of what `faulthandler` writes, the innermost call first."""

Heard = Callable[[steps.Told | Record], None]
"""Takes what a worker tells, and its answer as soon as that is there."""


def run_job(job: Job, limit: float, heard: Heard = lambda _: None) -> Record:
    """The record of a job from a fresh process, as `ask`; a failure record if it crashes or overruns its limit."""
    try:
        return ask(job, limit, heard)
    except WorkerError as error:
        return failure(job, str(error), overran=isinstance(error, OverrunError))


def ask(job: Job, limit: float, heard: Heard = lambda _: None) -> Record:
    """What a fresh worker answers. `heard` is told what it tells.

    Raises WorkerError when it cannot be started or ends without an answer, and OverrunError when it makes no progress
    in `limit` seconds.
    The worker and what it has started have ended when this returns; where it had to be ended the record says why.
    """
    worker = _Worker(job)
    try:
        record = worker.answer(limit, heard)
        heard(record)
        record.ended = worker.left()
        return record
    finally:
        worker.end()


def worker_environment(job: Job) -> dict[str, str]:
    """This process's variables, with one thread for BLAS, a fixed hash seed and a layout, and those of the job."""
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, "1"),
        "PYTHONHASHSEED": str((job.seed + (job.process or 0)) % 2**32),
        **environment.layout_variable(job),
        **job.variables,
    }


class _Worker:
    """A worker that has its job, with threads that read what it tells."""

    def __init__(self, job: Job) -> None:
        self.step, self.began, self.started = "", time.monotonic(), 0.0
        self.allowances: dict[str, Allowance] = {}
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.said: deque[str] = deque(maxlen=_SAID)
        self.readers: list[threading.Thread] = []
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=worker_environment(job),
                start_new_session=True,  # Ctrl-C reaches the run alone, which then ends the worker
            )
        except OSError as error:
            raise _not_started(error.strerror or str(error)) from error
        path = [str(Path(entry).absolute()) for entry in sys.path]
        request = {"parent": os.getpid(), "files": product.files(), "path": path, "job": job.to_dict()}
        message = json.dumps({"spawned": time.time(), **request}).encode()
        try:
            for run in (lambda: self._send(message), self._read_lines, self._read_errors):
                reader = threading.Thread(target=run, daemon=True)
                reader.start()
                self.readers.append(reader)
        except RuntimeError as error:  # the system gives no further thread
            with self.process:  # closes the pipes that no thread reads
                self.end()
            raise _not_started(str(error)) from error

    def answer(self, limit: float, heard: Heard) -> Record:
        """The record that it answers with."""
        self.allowances = {"progress": Allowance(self.process.pid, STARTING * limit)}
        look, has_ended = time.monotonic(), False
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, look - time.monotonic()))
            except queue.Empty:
                if has_ended:  # and what it has told was read since; a copy of it, made by a fork, holds the pipe
                    return self._parse_answer(b"")
                has_ended = self.process.poll() is not None
                look = time.monotonic() + self._check_allowances()
                continue
            told = steps.parse_step(line) if line.endswith(b"\n") else None
            if told is None:
                return self._parse_answer(line)
            self._hear(told, limit, heard)

    def _check_allowances(self) -> float:
        """Look at what is left of its allowances; the seconds until the next look. Raises OverrunError."""
        for allowance in self.allowances.values():
            if allowance.look():
                words = f"the worker ran longer than {allowance.seconds:g} s{self._while} and was ended"
                raise OverrunError(words, self.step)
        return min(allowance.every for allowance in self.allowances.values())

    def _hear(self, told: steps.Told, limit: float, heard: Heard) -> None:
        """It has made progress, or names what a part of its work may take."""
        if isinstance(told, steps.SecondsBound):
            self.allowances.pop("part", None)
            if told.seconds:
                self.allowances["part"] = Allowance(self.process.pid, told.seconds)
            return
        if self.started:
            self.allowances["progress"].renew()
        else:
            self.started = time.monotonic()
            self.allowances["progress"] = Allowance(self.process.pid, limit)
        self.step = told if isinstance(told, str) else self.step
        heard(told)

    def left(self) -> str | None:
        """Wait for its end as long as its start took; what it still did then, None where it has ended by itself."""
        if self._ends():
            return None
        self._hear_out()
        return f"the worker had answered, and still {self.step}: it was ended"

    def end(self) -> None:
        """End the worker and what it has started, where that still runs."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # none of them is left
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(1.0)  # a process that has left the group may hold a pipe

    def _ends(self) -> bool:
        """Whether it ends by itself, in as long as it has worked: what it has loaded, it also unloads."""
        least, most = PATIENCE
        allowance = Allowance(self.process.pid, min(max(least, time.monotonic() - self.began), most))
        while not allowance.look():
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(allowance.every)
                return True
        return False

    @property
    def _while(self) -> str:
        return "" if self.step in ("", steps.BEGAN) else f" while it {self.step},"

    def _parse_answer(self, line: bytes) -> Record:
        """The record in what may be an answer; b"" where the pipe was closed."""
        with suppress(ResultsError):
            if line.endswith(b"\n") and (record := parse_line(line)) is not None:
                return record
        if not self._ends():
            what = "wrote what is none into" if line else "closed"
            raise WorkerError(f"the worker {what} the pipe of its answer{self._while} and was ended", self.step)
        code = self.process.wait()
        self.readers[-1].join(1.0)  # what it has said last is on its way
        raise WorkerError(f"the worker {_ending(code)}{self._while.rstrip(',')}{self._reason()}", self.step)

    def _reason(self) -> str:
        """`: mine.py:7` of a crash, or the last line on stderr."""
        said = list(self.said)
        crash = next((i for i, line in enumerate(said) if line.startswith("Fatal Python error")), None)
        if crash is None:
            return f": {said[-1].strip()}" if said else ""
        places = [match for line in said[crash:] if (match := _CRASHED.match(line))]
        users = next(
            (f"{Path(place['file']).name}:{place['line']}" for place in places if is_users(place["file"])), None
        )
        return f": {users or said[crash].strip()}"

    def _hear_out(self) -> None:
        """Take the steps that were told after the answer."""
        with suppress(queue.Empty):
            while line := self.lines.get_nowait():
                told = steps.parse_step(line)
                self.step = told if isinstance(told, str) else self.step

    def _send(self, message: bytes) -> None:
        with suppress(OSError), _open_stream(self.process.stdin) as stream:
            stream.write(message)

    def _read_lines(self) -> None:
        with suppress(ValueError), _open_stream(self.process.stdout) as stream:
            for line in stream:
                self.lines.put(line)
        self.lines.put(b"")

    def _read_errors(self) -> None:
        with suppress(ValueError), _open_stream(self.process.stderr) as stream:
            for line in stream:
                if text := line.decode("utf-8", "replace").rstrip():
                    self.said.append(text)


def _open_stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101  (each is a pipe)
    return stream


def _not_started(why: str) -> WorkerError:
    return WorkerError(
        f"a worker cannot be started: {why}; end other processes, or raise the limit of processes (`ulimit -u`),"
        " open files (`ulimit -n`) or memory (`ulimit -v`)"
    )


def _ending(code: int) -> str:
    """How a worker came to its end without an answer."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
            return f"died of {name}" + (", as one does for which there is no memory left" if name == "SIGKILL" else "")
        except ValueError:
            return f"died of signal {-code}"
    return f"ended with exit code {code} and without an answer"
