"""A run: the jobs behind the parity gate, each record appended when its job is done.

Jobs go to a pool (`compare.executors`), which by default does one at a time in a fresh worker on this machine. Between
the stages of a run all jobs are waited for: nothing is timed before the gate has spoken.

A run that was stopped goes on where it stopped: jobs that left a record are not run again, failed ones are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from compare import jobs, results
from compare.errors import CompareError, NothingMeasuredError, ResultsError, described
from compare.executors import Execute, Pool, Serial
from compare.jobs import Cell, Settings
from compare.measure.job import Job
from compare.progress import Reporter
from compare.results import Record

Wanted = tuple[Job, Mapping[str, Record]]
"""A job, with a row for each arm that was refused at the gate, for its record."""
REFERENCE = "dynamic"


@dataclass(frozen=True)
class Outcome:
    """What a run left: the verdicts, and what went wrong in words."""

    directory: Path
    verdicts: list[dict[str, Any]]
    disagreements: tuple[str, ...]
    failures: tuple[str, ...]
    measured: int

    @property
    def exit_code(self) -> int:
        """0 fine, 1 something failed, 4 outputs or gradients disagree, 5 nothing was measured."""
        if not self.measured:
            return NothingMeasuredError.exit_code
        return 4 if self.disagreements else int(bool(self.failures))


@dataclass
class Run:
    """A run in progress: where its records go, those it has, and who executes and watches."""

    path: Path
    settings: Settings
    reporter: Reporter
    pool: Pool
    records: list[Record] = field(default_factory=list)

    def jobs(self, wanted: Iterable[Wanted | None]) -> None:
        """Run jobs unless their record is there, as many at once as the pool takes; None stands for one that cannot."""
        flying: dict[Future[Record], tuple[Job, Mapping[str, Record], int]] = {}
        for one in wanted:
            if one is None or results.key(one[0].to_dict()) in self.done:
                self.reporter.skip()
                continue
            lane = min(set(range(self.pool.at_once)) - {lane for _, _, lane in flying.values()})
            self.reporter.start(one[0].label)
            flying[self.pool.submit(one[0], self.settings.limits.timeout, lane)] = (*one, lane)
            self._land(flying, self.pool.at_once - 1)
        self._land(flying, 0)

    def _land(self, flying: dict[Future[Record], tuple[Job, Mapping[str, Record], int]], most: int) -> None:
        """Keep the records that have come, and wait until no more than `most` jobs are under way."""
        while len(flying) > most:
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                job, refused, _ = flying.pop(future)
                record = _record(job, future)
                if refused and "arms" in record:
                    record = {**record, "arms": {**record["arms"], **refused}}
                self.keep(record)
                self.reporter.label = job.label  # another job may have started since
                self.reporter.finish(record.get("error"))

    def admitted(self, cell: Cell, job: Job) -> Wanted | None:
        """A job of a cell with the arms that the gate lets through, of those it asks for, if it lets any."""
        arms, refused = self.gate(cell)
        wanted = tuple(arm for arm in arms if not job.arms or arm in job.arms)
        return (replace(job, arms=wanted), refused) if wanted else None

    def keep(self, record: Record) -> None:
        """Append a record to the file, and to those at hand."""
        results.append(self.path, record)
        self.records.append(record)

    @property
    def done(self) -> set[results.Key]:
        """The jobs that have their record."""
        return results.done_jobs(self.records)

    def gate(self, cell: Cell) -> tuple[tuple[str, ...], dict[str, Record]]:
        """The arms of a cell that may be measured, and a row for each that may not, with the reason.

        None may be when the dynamic engine, the reference of every ratio, is not right itself.
        """
        found = [r for r in self.records if r["kind"] == "parity" and (r["workload"], r["size"]) == cell]
        rows: dict[str, Record] = found[-1]["arms"] if found else {}
        if rows.get(REFERENCE, {}).get("status") != "ok":
            return (), {}
        refused = {arm: row for arm, row in rows.items() if row["status"] != "ok"}
        told = {arm: {"status": row["status"], "reason": row["reason"]} for arm, row in refused.items()}
        return tuple(arm for arm in rows if arm not in refused), told


def run(
    directory: Path,
    settings: Settings,
    reporter: Reporter,
    *,
    resume: bool = False,
    execute: Execute | None = None,
    executor: Executor | None = None,
    at_once: int = 1,
) -> Outcome:
    """Measure what the settings select, and write results, verdicts and the report into the directory.

    `executor` runs the jobs, by default one after another on this machine; it gets `at_once` of them at a time.
    Raises NothingMeasuredError when nothing is selected, ResultsError when the directory holds another run,
    and CompareError when it cannot be written. On KeyboardInterrupt every finished job has its record.
    """
    chosen = jobs.cells(settings)
    pool = Pool(executor or Serial(), execute or _run_job, at_once, lanes=at_once > 1)
    state = Run(directory / results.RESULTS, settings, reporter, pool)
    state.records = prepare(directory, settings, resume, reporter.notice)
    with reporter:
        _measure(state, chosen)
    return _outcome(state, finish(directory, state.records))


def check(settings: Settings, reporter: Reporter, execute: Execute | None = None) -> list[Record]:
    """The parity records of what the settings select, nothing timed and nothing written."""
    chosen = jobs.cells(settings)
    reporter.pace.total = len(chosen)
    found = []
    with reporter:
        for cell in chosen:
            job = jobs.parity_job(cell, settings)
            reporter.start(job.label)
            found.append((execute or _run_job)(job, settings.limits.timeout))
            reporter.finish(found[-1].get("error"))
    return found


def finish(directory: Path, records: list[Record]) -> list[dict[str, Any]]:
    """Judge the claims by the records, and write the verdicts and the report. Returns the verdicts.

    Records of one function of the user's are judged by the claims about one function.
    """
    from compare import report

    verdicts = _judge(records)
    results.write_json(directory / results.VERDICTS, verdicts)
    report.write(directory)
    return verdicts


def _judge(records: list[Record]) -> list[dict[str, Any]]:
    if any(r["kind"] == "run" and r["settings"].get("preset") == jobs.OWN for r in records):
        from compare.own import claims as own

        return own.judge(records)
    from compare import claims

    return claims.judge(records)


def prepare(
    directory: Path, settings: Settings, resume: bool, notice: Callable[[str], None] = results.silent
) -> list[Record]:
    """Make the directory ready to append to. Returns the records of the run that is resumed."""
    path = directory / results.RESULTS
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not resume and any(directory.iterdir()):
            raise CompareError(f"{directory} is not empty; go on with it by --resume, or choose another --out")
        results.create(path)
        records = results.read(path, notice, strict=True)
        results.repair(path)
    except OSError as error:
        raise CompareError(f"cannot write to {directory}: {error.strerror}; choose another --out") from error
    _same_settings(path, records, settings)
    return records


def _same_settings(path: Path, records: Iterable[Record], settings: Settings) -> None:
    """Processes and cells may be added to a run; another preset or seed makes another run."""
    for earlier in (r["settings"] for r in records if r["kind"] == "run"):
        for name, value in (("preset", settings.preset), ("seed", settings.seed)):
            if earlier.get(name) != value:
                raise ResultsError(
                    f"{path} is a run with {name} {earlier.get(name)}, not {value}; "
                    f"resume it with that {name}, or choose another --out"
                )


def _measure(state: Run, chosen: list[Cell]) -> None:
    settings, checks = state.settings, jobs.check_jobs(state.settings)
    timings, tables = list(jobs.time_jobs(chosen, settings)), list(jobs.table_jobs(settings))
    closer = list(jobs.closer_jobs(chosen, settings))
    state.reporter.pace.total = len(checks) + 2 * len(chosen) + len(timings) + len(tables) + len(closer)
    _header(state)
    state.jobs((job, {}) for job in (*checks, *(jobs.parity_job(cell, settings) for cell in chosen)))
    state.jobs(state.admitted(cell, job) for cell, job in timings)
    state.jobs((job, {}) for job in tables)
    deadline = time.monotonic() + settings.limits.more_seconds
    for process in range(settings.processes, settings.limits.most):
        state.jobs(_sharpening(state, chosen, process, deadline))
    state.jobs(state.admitted(cell, jobs.memory_job(cell, settings)) for cell in chosen)
    state.jobs(state.admitted(cell, job) for cell, job in closer)


def _sharpening(state: Run, chosen: list[Cell], process: int, deadline: float) -> Iterator[Wanted | None]:
    """One more process for each cell with a wide interval, while there is time.

    Width alone decides, and never what an interval says: to go on until a difference shows would find one in the end.
    """
    if time.monotonic() > deadline:
        return
    for cell in wide(state.records, chosen):
        if time.monotonic() > deadline:
            return
        state.reporter.pace.total += 1
        yield state.admitted(cell, jobs.time_job(cell, state.settings, process, len(chosen)))


def wide(records: list[Record], chosen: list[Cell]) -> list[Cell]:
    """The cells with an interval of static / dynamic in steady state wider than the smallest effect of interest."""
    from compare.claims.base import SMALLEST_EFFECT
    from compare.claims.evidence import cells, steady

    def widest(measured: Any) -> float:
        found = [measured.ratio(arm, REFERENCE, steady) for arm in measured.static_arms]
        return max((ratio.high / ratio.low for ratio in found if ratio is not None), default=1.0)

    spread = {(m.workload, m.size): widest(m) for m in cells(records, "time")}
    return [cell for cell in chosen if spread.get(cell, 1.0) > 1 + SMALLEST_EFFECT]


def _header(state: Run) -> None:
    """The run's own line, with the environment as a worker sees it; a resumed run gets one for each start."""
    job = Job("environment")
    answer = _record(job, state.pool.submit(job, state.settings.limits.timeout))
    if answer["kind"] == "failure":
        raise CompareError(f"no worker process could start: {answer['error']}; try `graphduel doctor`")
    environment = answer["environment"]
    for earlier in [r["environment"] for r in state.records if r["kind"] == "run"][-1:]:
        for name in ("cpu", "python", "numpy", "commit"):
            if earlier.get(name) != environment.get(name):
                state.reporter.notice(f"resumed with another {name}: {earlier.get(name)}, {environment.get(name)}")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    header = {"run": uuid4().hex[:12], "at": at, "settings": state.settings.to_dict()}
    state.keep({"kind": "run", **header, "environment": environment, "host": answer["host"]})


def _outcome(state: Run, verdicts: list[dict[str, Any]]) -> Outcome:
    done = state.done
    parity = [r for r in state.records if r["kind"] == "parity"]
    lost = {results.key(r["job"]): r for r in state.records if r["kind"] == "failure"}
    failures = [f"{_name(r['job'])}: {r['error']}" for key, r in lost.items() if key not in done]
    return Outcome(
        state.path.parent,
        verdicts,
        disagreements=tuple(rows_with("disagree", parity)),
        failures=(*failures, *rows_with("failed", parity)),
        measured=sum(r["kind"] not in ("run", "parity", "failure") for r in state.records),
    )


def rows_with(status: str, parity: Iterable[Record]) -> list[str]:
    """One line for each arm with that status in some parity records."""
    return [
        f"{record['workload']}/{record['size']}, {arm}: {row['reason']}"
        for record in parity
        for arm, row in record["arms"].items()
        if row["status"] == status
    ]


def _name(job: Mapping[str, Any]) -> str:
    return " ".join(str(value) for value in job.values())


def _record(job: Job, future: Future[Record]) -> Record:
    """What a job has left, a failure record if the executor could not run it. Raises CompareError if it is broken."""
    try:
        return future.result()
    except BrokenExecutor as error:
        raise CompareError(f"the executor broke: {error}; every finished job is kept, go on with --resume") from error
    except Exception as error:  # noqa: BLE001  (one lost job never ends a run)
        return {"kind": "failure", "job": job.head, "error": described(error)}


def _run_job(job: Job, timeout: float) -> Record:
    from compare.measure.processes import run_job

    return run_job(job, timeout)
