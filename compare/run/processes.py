"""Worker processes: one job, one fresh interpreter; a crash or an overrun becomes a failure record.

A worker runs code that may end it, hang, or leave threads behind. So the way it ends means nothing: an answer is a
whole line on its pipe, whatever comes after it. A missing answer is an error, which names the worker's last step.

A worker has a limit of seconds without progress, and one for a part of its work that it names itself
(`steps.bounded`); a slow or busy machine alone does not reach them. Seconds in which it waited for a core do not count,
where the system tells them (`SpentSeconds` in `compare.engines.process`). The slowness of the machine, against the one
on which limits were set, is a factor on them (`Pace.slowness` in `compare.run.progress`).
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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from compare import steps
from compare.engines.process import SpentSeconds, looks_every
from compare.errors import OverrunError, ResultsError, WorkerError, is_users
from compare.records.job import Job
from compare.records.record import Record
from compare.records.results import parse_line
from compare.run import environment, start
from compare.run.environment import THREAD_VARIABLES
from compare.run.worker import failure


class Allowance:
    """The seconds that a process may spend until it makes progress; `look` must be called `every` so many seconds."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.seconds, self.every = seconds, looks_every(seconds)
        self._spent = SpentSeconds(pid)

    def renew(self) -> None:
        """Start the allowance anew, since the process has made progress."""
        self._spent.seconds = 0.0

    def look(self) -> bool:
        """Return whether nothing was left at the last look; a message sent since may still wait for a core."""
        is_over = self._spent.seconds >= 0.99 * self.seconds  # a look comes a moment early
        self._spent.look()
        return is_over


WORKER = str(start.__file__)
"""The file that a worker is started by, which distinguishes it from other processes."""
STARTING = 10
"""The factor on a worker's limit until it begins its job, as none of the user's code runs until then."""
PATIENCE = 1.0, 10.0
"""The least and the most seconds that a worker may take to end after its answer; PyTorch takes a second or two."""
_SAID = 200
"""The number of last lines of a worker's stderr that are kept."""
_CRASHED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in ')
"""Matches a line of a traceback by `faulthandler`, where the innermost call comes first."""

Heard = Callable[[steps.Told | Record], None]
"""A function that gets each message of a worker, and its answer as soon as that is there."""


def run_job(
    job: Job, limit: float, heard: Heard = lambda _: None, start: Callable[[Job], Worker] | None = None
) -> Record:  # fmt: skip
    """Return the record of a job from a fresh process; a failure record if it crashes or overruns its limit.

    `start` gives its worker, which may have started before its turn.
    """
    try:
        return (start or Worker)(job).ask(limit, heard)
    except WorkerError as error:
        return failure(job, str(error), overran=isinstance(error, OverrunError))


def ask(job: Job, limit: float, heard: Heard = lambda _: None) -> Record:
    """Return the answer of a fresh worker, as `Worker.ask` does."""
    return Worker(job).ask(limit, heard)


def worker_environment(job: Job) -> dict[str, str]:
    """Return this process's variables, with threads for BLAS, a fixed hash seed, a layout, and the job's own."""
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(job.threads)),
        "PYTHONHASHSEED": str((job.seed + (job.process or 0)) % 2**32),
        **environment.layout_variable(job),
        **job.variables,
    }


class Worker:
    """A worker that has its job, with threads that read its messages; one that `waits` begins when it is asked.

    Raises WorkerError when it cannot be started.
    """

    def __init__(self, job: Job, *, waits: bool = False) -> None:
        self.step, self.began, self.started = "", time.monotonic(), 0.0
        self.waits, self._ready = waits, threading.Event()
        self.allowances: dict[str, Allowance] = {}
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.said: deque[str] = deque(maxlen=_SAID)
        self.readers: list[threading.Thread] = []
        try:
            self.process = subprocess.Popen(
                [job.python or sys.executable, "-P", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=worker_environment(job),
                start_new_session=True,  # Ctrl-C reaches the run alone, which then ends the worker
            )
        except OSError as error:
            raise _not_started(error.strerror or str(error)) from error
        path = [str(Path(entry).absolute()) for entry in sys.path]
        files = environment.package_files()
        facts = environment.shared_facts()
        if job.python:  # which has packages of its own, and a compiled tape of its own if any
            path, facts = list(filter(environment.is_users, path)), {}
            files.pop(environment.TAPE)
        request = {"parent": os.getpid(), "files": files, "facts": facts, "path": path, "job": job.to_dict()}
        message = json.dumps({"spawned": time.time(), "waits": waits, **request}).encode() + b"\n"
        try:
            for run in (lambda: self._send(message), self._read_lines, self._read_errors):
                reader = threading.Thread(target=run, daemon=True)
                reader.start()
                self.readers.append(reader)
        except RuntimeError as error:  # the system gives no further thread
            with self.process:  # closes the pipes that no thread reads
                self.end()
            raise _not_started(str(error)) from error

    def ready(self, seconds: float) -> None:
        """Return when the worker has started, has ended, or has had so many seconds."""
        self._ready.wait(seconds)

    def ask(self, limit: float, heard: Heard = lambda _: None) -> Record:
        """Let the worker begin, and return its answer; `heard` gets its messages.

        Raises WorkerError when it ends without an answer, and OverrunError when it makes no progress in `limit`
        seconds. The worker and the processes that it has started have ended when this returns; the record says if it
        had to be ended.
        """
        try:
            if self.waits:
                self._begin()
            record = self.answer(limit, heard)
            heard(record)
            record.ended = self.left()
            return record
        finally:
            self.end()

    def answer(self, limit: float, heard: Heard) -> Record:
        """Return the record that the worker answers with. Raises WorkerError and OverrunError."""
        self.allowances = {"progress": Allowance(self.process.pid, STARTING * limit)}
        look, has_ended = time.monotonic(), False
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, look - time.monotonic()))
            except queue.Empty:
                if has_ended:  # all its messages were read; a forked copy holds the pipe
                    return self._parse_answer(b"")
                has_ended = self.process.poll() is not None
                look = time.monotonic() + self._check_allowances()
                continue
            told = steps.parse_step(line) if line.endswith(b"\n") else None
            if told is None:
                return self._parse_answer(line)
            self._hear(told, limit, heard)

    def _check_allowances(self) -> float:
        """Check the worker's allowances; return the seconds until the next look. Raises OverrunError."""
        for allowance in self.allowances.values():
            if allowance.look():
                words = f"the worker ran longer than {allowance.seconds:g} s{self._while} and was ended"
                raise OverrunError(words, self.step)
        return min(allowance.every for allowance in self.allowances.values())

    def _hear(self, told: steps.Told, limit: float, heard: Heard) -> None:
        """Note a message: progress, or the worker's limit for a part of its work."""
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
        """Wait for the worker's end as long as its start took; return what it still did, or None if it ended."""
        if self._ends():
            return None
        # Note the steps that were told after the answer.
        with suppress(queue.Empty):
            while line := self.lines.get_nowait():
                told = steps.parse_step(line)
                self.step = told if isinstance(told, str) else self.step
        return f"the worker had answered, and still {self.step}: it was ended"

    def end(self) -> None:
        """End the worker and the processes that it has started, where they still run."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # none of them is left
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()
        self._begin()  # closes the pipe to one that never began
        for reader in self.readers:
            reader.join(1.0)  # a process that has left the group may hold a pipe

    def _ends(self) -> bool:
        """Return whether the worker ends by itself in as long as it worked: it unloads what it has loaded."""
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
        """Return the record in a line that may be an answer; b"" means a closed pipe. Raises WorkerError for others."""
        with suppress(ResultsError):
            if line.endswith(b"\n") and (record := parse_line(line)) is not None:
                return record
        if not self._ends():
            what = "wrote what is none into" if line else "closed"
            raise WorkerError(f"the worker {what} the pipe of its answer{self._while} and was ended", self.step)
        code = self.process.wait()
        self.readers[-1].join(1.0)  # its last words may still be on their way
        raise WorkerError(f"the worker {_ending(code)}{self._while.rstrip(',')}{self._reason()}", self.step)

    def _reason(self) -> str:
        """Return `: mine.py:7` for a crash, or else the last line on stderr."""
        said = list(self.said)
        crash = next((i for i, line in enumerate(said) if line.startswith("Fatal Python error")), None)
        if crash is None:
            return f": {said[-1].strip()}" if said else ""
        places = [match for line in said[crash:] if (match := _CRASHED.match(line))]
        users = next(
            (f"{Path(place['file']).name}:{place['line']}" for place in places if is_users(place["file"])), None
        )
        return f": {users or said[crash].strip()}"

    def _send(self, message: bytes) -> None:
        stream = _open_stream(self.process.stdin)
        with suppress(OSError):
            stream.write(message)
            stream.flush()
        if not self.waits:
            self._begin()

    def _begin(self) -> None:
        with suppress(OSError):
            _open_stream(self.process.stdin).close()

    def _read_lines(self) -> None:
        with suppress(ValueError), _open_stream(self.process.stdout) as stream:
            for line in stream:
                if not self._ready.is_set() and steps.parse_step(line) == steps.READY:
                    self._ready.set()
                else:
                    self.lines.put(line)
        self._ready.set()
        self.lines.put(b"")

    def _read_errors(self) -> None:
        with suppress(ValueError), _open_stream(self.process.stderr) as stream:
            for line in stream:
                if text := line.decode("utf-8", "replace").rstrip():
                    self.said.append(text)


class WaitingWorkers:
    """Workers that have started before their turn, by the title or the label of their jobs."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def start(self, jobs: Mapping[str, Job], limit: float) -> None:
        """Start a worker for each of several jobs, side by side; return when all wait, or after `limit` seconds each.

        Workers whose turn never came are ended. A single job gets none, and one that cannot start is told in its turn.
        """
        self.close()
        if len(jobs) > 1:
            with suppress(WorkerError):
                for title, job in jobs.items():
                    self._workers[title] = Worker(job, waits=True)
        for worker in self._workers.values():
            worker.ready(limit)

    def take(self, title: str) -> Worker | None:
        """Return the worker of a job whose turn has come; None where none was started."""
        return self._workers.pop(title, None)

    def run_job(self, job: Job, limit: float) -> Record:
        """Return the record of a job, as `run_job` does, from the worker that waits for it if there is one."""
        return run_job(job, limit, start=lambda job: self.take(job.label) or Worker(job))

    def close(self) -> None:
        """End the workers whose turn never came."""
        while self._workers:
            self._workers.popitem()[1].end()


def _open_stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101  (each is a pipe)
    return stream


def _not_started(why: str) -> WorkerError:
    return WorkerError(
        f"a worker cannot be started: {why}; end other processes, or raise the limit of processes (`ulimit -u`),"
        " open files (`ulimit -n`) or memory (`ulimit -v`)"
    )


def _ending(code: int) -> str:
    """Return words on how a worker ended without an answer."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
            return f"died of {name}" + (", as one does for which there is no memory left" if name == "SIGKILL" else "")
        except ValueError:
            return f"died of signal {-code}"
    return f"ended with exit code {code} and without an answer"
