"""A run: the jobs behind the parity gate, one worker at a time, each record appended when its job is done.

A run that was stopped goes on where it stopped: jobs that left a record are not run again, failed ones are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from compare import jobs, results
from compare.errors import CompareError, NothingMeasuredError, ResultsError
from compare.jobs import Cell, Settings
from compare.measure.job import Job
from compare.progress import Reporter
from compare.results import Record

Execute = Callable[[Job, float], Record]
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
    execute: Execute
    records: list[Record] = field(default_factory=list)

    def job(self, job: Job, extra: Mapping[str, Record] | None = None) -> None:
        """Run a job unless its record is there; `extra` are the arms refused at the gate, for the record."""
        if results.key(job.to_dict()) in self.done:
            self.reporter.skip()
            return
        self.reporter.start(job.label)
        record = self._memory(job) if job.kind == "memory" else self._execute(job)
        if extra and "arms" in record:
            record = {**record, "arms": {**record["arms"], **extra}}
        self.keep(record)
        self.reporter.finish(record.get("error"))

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

    def _execute(self, job: Job) -> Record:
        return self.execute(job, self.settings.limits.timeout)

    def _memory(self, job: Job) -> Record:
        """A process of its own for each arm: memory that one arm freed would hide what the next one takes."""
        merged: dict[str, Record] = {}
        for arm in job.arms:
            record = self._execute(replace(job, arms=(arm,)))
            if record["kind"] == "failure":
                return record
            merged |= record["arms"]
        return {**job.head, "arms": merged}


def run(
    directory: Path,
    settings: Settings,
    reporter: Reporter,
    *,
    resume: bool = False,
    execute: Execute | None = None,
) -> Outcome:
    """Measure what the settings select, and write results, verdicts and the report into the directory.

    Raises NothingMeasuredError when nothing is selected, ResultsError when the directory holds another run,
    and CompareError when it cannot be written. On KeyboardInterrupt every finished job has its record.
    """
    chosen = jobs.cells(settings)
    state = Run(directory / results.RESULTS, settings, reporter, execute or _run_job)
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
        path.touch()
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
    timings = list(jobs.time_jobs(chosen, settings))
    state.reporter.pace.total = len(checks) + 2 * len(chosen) + len(timings)
    _header(state)
    for job in (*checks, *(jobs.parity_job(cell, settings) for cell in chosen)):
        state.job(job)
    for cell, job in (*timings, *((cell, jobs.memory_job(cell, settings)) for cell in chosen)):
        admitted, refused = state.gate(cell)
        if admitted:
            state.job(replace(job, arms=admitted), refused)
        else:
            state.reporter.skip()  # the gate lets nothing of this cell through


def _header(state: Run) -> None:
    """The run's own line, with the environment as a worker sees it; a resumed run gets one for each start."""
    answer = state.execute(Job("environment"), state.settings.limits.timeout)
    if answer["kind"] == "failure":
        raise CompareError(f"no worker process could start: {answer['error']}; try `graphduel doctor`")
    environment = answer["environment"]
    for earlier in [r["environment"] for r in state.records if r["kind"] == "run"][-1:]:
        for name in ("cpu", "python", "numpy", "commit"):
            if earlier.get(name) != environment.get(name):
                state.reporter.notice(f"resumed with another {name}: {earlier.get(name)}, {environment.get(name)}")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    header = {"run": uuid4().hex[:12], "at": at, "settings": state.settings.to_dict()}
    state.keep({"kind": "run", **header, "environment": environment})


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
        measured=sum(r["kind"] in ("time", "memory", "gradients", "program", "fault", "edit") for r in state.records),
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


def _run_job(job: Job, timeout: float) -> Record:
    from compare.measure.processes import run_job

    return run_job(job, timeout)
