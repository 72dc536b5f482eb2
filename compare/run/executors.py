"""The places where jobs run: here one by one, in threads, or on a dask cluster's hosts.

Any `concurrent.futures.Executor` will do, as each job starts a fresh worker process wherever it is run. All modes of a
job are measured on one host, even if each has a process of its own.

On a cluster (`Cluster`) a host has one job at a time, whatever its cores. The job of a worker that is lost is run again
elsewhere. Ratios are only pooled over machines that are alike (`compare.records.record.fingerprint`): a run refuses
hosts that differ when it starts, and does not use one that joins later.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from compare.engines import of_mode
from compare.errors import CompareError
from compare.instruments.rounds import rotate
from compare.records.job import KINDS, Job
from compare.records.record import (
    Environment,
    Fingerprint,
    OfModes,
    Record,
    fingerprint,
    host_label,
    machine_differences,
)

Execute = Callable[[Job, float], Record]
AnExecutor = TypeVar("AnExecutor", bound=Executor)

LOSSES = 3
"""The number of workers lost under one job from which on the job is taken for the cause."""
PATIENCE = 60.0
"""The seconds to wait for a worker where none is left."""
MOST_WAITING = 4
"""The most processes that a pool starts `ahead`: each holds what it has imported in memory until its turn."""
_POLL = 0.2
_NANNY = "MALLOC_TRIM_THRESHOLD_"  # set by dask for its workers, and inherited by ours: fresh arrays would cost more


@dataclass(frozen=True)
class Pool:
    """An executor, the function that it runs for a job, and how many jobs it gets at once.

    With `lanes`, jobs that run at once are kept on cores of their own; that is for executors of one machine. `ahead`
    starts the processes of jobs that will follow each other, before the first of them.
    """

    executor: Executor
    execute: Execute
    at_once: int = 1
    lanes: bool = False
    ahead: Callable[[Sequence[Job]], None] = lambda _: None

    def submit(self, job: Job, timeout: float, lane: int = 0) -> Future[Record]:
        """Submit a job; return the future of its record."""
        placed = replace(job, lane=lane) if self.lanes else job
        return self.executor.submit(measure_job, self.execute, placed, timeout)


def measure_job(execute: Execute, job: Job, timeout: float) -> Record:
    """Return the record of a job with its host; it runs on that host."""
    shared = groups_of(job)
    record = execute(job, timeout) if len(shared) < 2 else _of_groups(execute, job, shared, timeout)
    record.host = record.host or host_label()
    return record


def groups(kind: str, modes: Sequence[str], *, alone: bool = False, threads: int = 1) -> list[tuple[str, ...]]:
    """Return the groups of modes that share a process in a job of that kind.

    No modes share one where memory that one mode freed would hide what the next one takes, or on several threads,
    where those of one mode would spin beside those of another. Otherwise all do. Each mode
    but the first is alone with the first, which is eager, where compiling one mode costs another, or with `alone`,
    where a mode that reaches its limit ends its process.
    """
    if KINDS[kind].by_mode or threads > 1:
        return [(mode,) for mode in modes]
    if len(modes) < 2 or (of_mode(modes[0]).shares and not alone):
        return [tuple(modes)] if modes else []
    return [(modes[0], mode) for mode in modes[1:]]


def groups_of(job: Job) -> list[tuple[str, ...]]:
    """Return the groups of a job's modes that share a process: all do where a framework's modes are compared."""
    apart = (KINDS[job.kind].by_mode and not job.thin) or job.threads > 1
    if not job.modes or not apart:
        return [job.modes]
    compares = not (job.process or of_mode(job.modes[0]).is_reference)
    return [job.modes] if compares else groups(job.kind, job.modes, threads=job.threads)


def _of_groups(execute: Execute, job: Job, shared: Sequence[tuple[str, ...]], timeout: float) -> Record:
    """Return one record of a job's modes, whose groups have a process each."""
    records: list[OfModes] = []
    for modes in rotate(shared, job.process or 0):
        record = execute(replace(job, modes=modes), timeout)
        if not isinstance(record, OfModes):
            return record
        records.append(record)
    rows = {mode: row for record in records for mode, row in record.modes.items()}
    records[-1].modes = {mode: rows[mode] for modes in shared for mode in modes if mode in rows}
    records[-1].beside = [beside for record in records for beside in record.beside]
    return records[-1]


class Serial(Executor):
    """Runs each call where and when it is submitted; raises Ctrl-C at once, and with `raises` any error."""

    at_once = 1

    def __init__(self, *, raises: bool = False) -> None:
        self.raises = raises

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the call; return its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            if self.raises:
                raise
            future.set_exception(error)  # as any executor: it belongs to the future
        return future


@contextmanager
def open_executor(make: Callable[[], AnExecutor]) -> Iterator[AnExecutor]:
    """A context with the executor that `make` makes, which is shut down at the end.

    After an error or Ctrl-C, measuring processes that this process, or one of its own, has started are ended. Raises
    CompareError for a cluster that cannot be used.
    """
    executor = make()
    try:
        yield executor
    except BaseException:
        import psutil

        from compare.run.processes import WORKER

        executor.shutdown(wait=False, cancel_futures=True)
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if WORKER in child.cmdline():
                    child.kill()
        raise
    executor.shutdown()


class Cluster(Executor):
    """The hosts behind a dask scheduler, with one call at a time on each.

    A call waits for a free host and is bound to one worker there. When that worker is lost the call is made again on
    another. Raises CompareError where dask is missing, the scheduler does not answer, it has no workers, or the hosts
    are not alike.
    """

    def __init__(self, scheduler: str, notice: Callable[[str], None] = print) -> None:
        self.client = _client(scheduler)
        self.notice = notice
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._known: dict[str, bool] = {}  # whether the worker at this address may be used
        self._reference: Fingerprint | None = None
        self._closed = False
        try:
            self._admit_first()
        except BaseException:
            self.client.close()
            raise
        self.at_once = len({_host(address) for address in self._known})
        self._threads = ThreadPoolExecutor(self.at_once, "graphduel-host")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call to some host; return the future of its result, with the host noted if it is a record."""
        return self._threads.submit(self._somewhere, partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the calls that run here; scheduler and workers stay as they were."""
        self._closed = not wait
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        self.client.close()

    def _somewhere(self, call: Callable[[], Any]) -> Any:
        for _ in range(LOSSES):
            address = self._take()
            try:
                return self._on(address, call)
            except _LostError:
                self.notice(f"a worker on {host_label(_host(address))} was lost; its job is run again elsewhere")
            finally:
                with self._changed:
                    self._busy.discard(_host(address))
                    self._changed.notify_all()
        raise CompareError(f"{LOSSES} workers were lost while they ran it; it may take more memory than they have")

    def _on(self, address: str, call: Callable[[], Any], patience: float = math.inf) -> Any:
        """Return the result of a call on one worker.

        Raises _LostError when that worker is lost first, or takes longer.
        """
        deadline = time.monotonic() + patience
        future = self.client.submit(_there, call, workers=[address], allow_other_workers=False, pure=False)
        while not future.done() and not self._closed:
            if address not in self._addresses() or time.monotonic() > deadline:
                future.cancel()
                raise _LostError
            time.sleep(_POLL)
        if self._closed:  # the running call is lost, but no worker
            future.cancel()
            raise CompareError("the run has ended")
        if future.status in ("lost", "cancelled") or (future.status == "error" and _is_loss(future.exception())):
            raise _LostError
        result = future.result()
        if isinstance(result, Record):
            result.host = host_label(_host(address))
        return result

    def _take(self) -> str:
        """Reserve a worker on a free host and return its address. Raises BrokenExecutor when none is left for long."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while True:
                usable = [address for address in self._addresses() if self._may_use(address)]
                free = [address for address in usable if _host(address) not in self._busy]
                if free:
                    self._busy.add(_host(free[0]))
                    return free[0]
                if usable:
                    deadline = time.monotonic() + PATIENCE
                if self._closed or time.monotonic() > deadline:
                    raise BrokenExecutor(f"no worker was left for {PATIENCE:g} s")
                self._changed.wait(_POLL)

    def _addresses(self) -> list[str]:
        """Return the addresses of the present workers."""
        return sorted(self.client.nthreads())

    def _admit_first(self) -> None:
        addresses = self._addresses()
        if not addresses:
            raise CompareError("the scheduler has no workers; start one on each host: dask worker ADDRESS --nthreads 1")
        for address in addresses:
            try:
                unlike = self._unlike(address)
            except _LostError:  # nothing runs on it yet, and other workers may be left
                continue
            if unlike:
                raise CompareError(
                    f"the hosts are not alike, and their numbers cannot be pooled: {', '.join(unlike)}; "
                    "measure each kind of host with a scheduler and an --out of its own"
                )
            self._known[address] = True
        if not self._known:
            raise CompareError("the workers of the scheduler were lost, or did not answer, before the run began")

    def _may_use(self, address: str) -> bool:
        """Return whether a worker is on a host like the first; a worker that has joined later is asked once."""
        if address not in self._known:
            try:
                unlike = self._unlike(address)
            except _LostError:  # asked again when it comes back
                return False
            self._known[address] = not unlike
            if unlike:
                host, differences = host_label(_host(address)), ", ".join(unlike)
                self.notice(f"{host} has joined and is not used, as it is not alike: {differences}")
        return self._known[address]

    def _unlike(self, address: str) -> list[str]:
        """Return the differences of a worker's graphduel from this one, and of its machine. Raises _LostError."""
        code, there = self._on(address, _environment, PATIENCE)
        self._reference = self._reference or fingerprint(there)
        return [*_of_another(code, there), *machine_differences(self._reference, fingerprint(there))]


class _LostError(Exception):
    """The worker of a call is lost."""


def _there(call: Callable[[], Any]) -> Any:
    """Run a call inside a dask worker, without dask's setting of malloc."""
    os.environ.pop(_NANNY, None)
    return call()


def _environment() -> tuple[str, Environment]:
    """Return a digest of the code that runs here, and the environment."""
    from compare.run.environment import code_digest, environment

    return code_digest(), environment()


def _of_another(code: str, there: Environment) -> list[str]:
    """Return the differences of a worker's code and tape from those of this command."""
    own, here = _environment()
    pairs = (("code", own, code), ("tape", here.tape, there.tape))
    return [
        f"{name} {ours} in this command and {theirs} in its workers" for name, ours, theirs in pairs if ours != theirs
    ]


def _client(scheduler: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise CompareError("--executor dask needs dask.distributed: pip install 'graphduel[cluster]'") from None
    try:
        return distributed.Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CompareError(
            f"no dask scheduler answers at {scheduler!r}: {error}; give --scheduler tcp://HOST:PORT"
        ) from error


def _is_loss(error: BaseException | None) -> bool:
    """Return whether dask gave up a call because its worker died."""
    return type(error).__name__ in ("KilledWorker", "CommClosedError", "FutureCancelledError")


def _host(address: str) -> str:
    return urlsplit(address).hostname or address
