"""The runner of jobs: it runs as many at once as the pool takes, and appends each record when its job is done.

A run that was stopped goes on where it stopped: jobs with a record are not run again, failed ones are. A job that was
ended at its limit is tried once more when the others of its stage are done, as the machine may have been busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from uuid import uuid4

from compare.errors import CompareError, InputsError, describe_error
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.record import Failure, ModeRow, OfModes, Record, Run, Setting, error_of
from compare.run import processes
from compare.run.environment import affinity
from compare.run.executors import MOST_WAITING, Execute, Pool, Serial, open_executor
from compare.run.progress import Reporter

Wanted = tuple[Job, Mapping[str, ModeRow]]
"""A job, with a row for its record for each mode that the gate refused."""


@dataclass(frozen=True)
class JobStage:
    """Independent jobs, and how many may run at once if there are as many cores; None stands for an impossible job.

    Where the jobs run one by one and do not depend on each other's records, their workers may start `ahead`.
    """

    jobs: Iterable[Wanted | None]
    at_once: int = 1
    ahead: bool = False


ENVIRONMENT = ("cpu", "python", "numpy", "commit")
"""The fields of the environment whose changes a resumed run reports."""


AGAIN = 2.0
"""The factor on the limit of a job that is tried once more."""


@dataclass(frozen=True)
class Runner:
    """The runner of a run's jobs, with its journal, its reporter and its executor.

    `limit` is the seconds that a job may take without progress, on a machine of typical speed; a job that was ended at
    it is tried once more. A `strict` limit is not scaled, and nothing is tried again.
    """

    journal: Journal
    reporter: Reporter
    pool: Pool
    limit: float
    strict: bool = False

    @classmethod
    def of_workers(cls, reporter: Reporter, limit: float, execute: Execute | None = None) -> Runner:
        """Return a runner that keeps records in memory: fresh workers here, one after another, with a strict limit."""
        return cls(Journal(), reporter, Pool(Serial(), execute or processes.run_job), limit, strict=True)

    def run(self, stages: Iterable[JobStage]) -> None:
        """Run stage by stage: the next one is asked for when all jobs of the last have ended."""
        for stage in stages:
            with self.side_by_side(stage.at_once) as several:
                several.jobs(self._ahead(iter(stage.jobs)) if stage.ahead else stage.jobs)

    def _ahead(self, wanted: Iterator[Wanted | None]) -> Iterator[Wanted | None]:
        """Yield the jobs; before each few of them, one for each core, the pool starts their processes side by side."""
        while some := list(islice(wanted, min(MOST_WAITING, len(affinity() or (0,))))):
            self.pool.ahead([job for job, _ in filter(None, some) if not self.journal.has(job)])
            yield from some

    def jobs(self, wanted: Iterable[Wanted | None]) -> None:
        """Run jobs that have no record yet, as many at once as the pool takes; None stands for an impossible job."""
        late: list[Wanted] = []
        self._run(wanted, 1.0, None if self.strict else late)
        for job, _ in late:
            self.reporter.notice(f"{job.label} was ended at its limit of time; it is tried once more, with twice that")
        self.reporter.pace.expect(job for job, _ in late)
        self._run(late, AGAIN)

    def _run(self, wanted: Iterable[Wanted | None], more: float, late: list[Wanted] | None = None) -> None:
        """Run jobs with `more` times the limit; those that overrun it are appended to `late`, if given."""
        flying: dict[Future[Record], tuple[Job, Mapping[str, ModeRow], int]] = {}
        for asked in wanted:
            job, refused = asked or (None, {})
            if job is None or self.journal.has(job):
                self.reporter.skip(job)
                continue
            lane = min(set(range(self.pool.at_once)) - {lane for _, _, lane in flying.values()})
            self.reporter.start(job.title or job.label)
            limit = self.limit if self.strict else more * self.limit * self.reporter.pace.slowness
            flying[self.pool.submit(job, limit, lane)] = (job, refused, lane)
            self._land(flying, self.pool.at_once - 1, late)
        self._land(flying, 0, late)

    @contextmanager
    def side_by_side(self, most: int) -> Iterator[Runner]:
        """A context with a runner of up to `most` jobs at once, each on a core of its own.

        An executor that was asked for stays as it is.
        """
        at_once = min(most, len(affinity() or ()))
        if at_once < 2 or not isinstance(self.pool.executor, Serial):
            yield self
            return
        with open_executor(partial(ThreadPoolExecutor, at_once)) as executor:
            yield replace(self, pool=replace(self.pool, executor=executor, at_once=at_once, lanes=True))

    def _land(
        self,
        flying: dict[Future[Record], tuple[Job, Mapping[str, ModeRow], int]],
        most: int,
        late: list[Wanted] | None,
    ) -> None:
        """Keep the records that have come, and wait until no more than `most` jobs are under way."""
        while len(flying) > most:
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                job, refused, _ = flying.pop(future)
                record = _record(job, future)
                if isinstance(record, OfModes):
                    record.add(refused)
                if late is not None and isinstance(record, Failure) and record.overran:
                    late.append((job, refused))
                else:
                    self.journal.keep(record)
                self.reporter.label = job.title or job.label  # another job may have started since
                self.reporter.finish(error_of(record), job)
                self.reporter.cause(record.ended)

    def asked(self, job: Job) -> Record:
        """Return the answer of a job that leaves no record. Raises InputsError where the job fails."""
        answer = _record(job, self.pool.submit(job, self.limit))
        if isinstance(answer, Failure):
            raise InputsError(answer.error)
        return answer

    def header(self, settings: Mapping[str, Setting]) -> None:
        """Append the run's own line, with the environment that a worker sees; a resumed run gets one for each start.

        Raises CompareError where no worker starts.
        """
        job = Job("environment")
        answer = _record(job, self.pool.submit(job, self.limit))
        if isinstance(answer, Failure):
            raise CompareError(f"no worker process could start: {answer.error}; try `graphduel doctor`")
        for header in self.journal.headers[-1:]:
            for name in ENVIRONMENT:
                earlier, now = (getattr(record.environment, name, None) for record in (header, answer))
                if earlier != now:
                    self.reporter.notice(f"resumed with another {name}: {earlier}, {now}")
        self.journal.keep(start_record(settings, answer))


def start_record(settings: Mapping[str, Setting], answer: Record) -> Run:
    """Return the line of a start now, with the environment and the host of a worker's answer."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(uuid4().hex[:12], at, dict(settings), environment=answer.environment, host=answer.host)


def _record(job: Job, future: Future[Record]) -> Record:
    """Return the record of a job; a failure record if it could not run. Raises CompareError for a broken executor."""
    try:
        return future.result()
    except BrokenExecutor as error:
        raise CompareError(f"the executor broke: {error}; every finished job is kept, go on with --resume") from error
    except Exception as error:  # noqa: BLE001  (one lost job never ends a run)
        return Failure(job.name, describe_error(error))
