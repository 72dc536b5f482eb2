"""The jobs of the selftest: comparisons of an engine with itself, each in six fresh processes, two at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from compare import workloads
from compare.errors import NothingMeasuredError
from compare.own.question import REPEATS
from compare.own.question import SECONDS as OWN_SECONDS
from compare.records import journal, results
from compare.records.checks import Selftest, TrialMemory, TrialTime
from compare.records.job import Budget, Job
from compare.records.journal import Journal
from compare.run.environment import affinity
from compare.run.executors import Execute, Pool
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import Runner
from compare.selftest.rates import MEMORY, TIME, WHOLE, judge, markdown
from compare.selftest.trials import AGAIN, NAME, SIZES, SOURCE
from compare.suite.settings import PRESETS
from graphs.files import write_file

RATES = "selftest.json"
"""The name of the JSON file with the rates."""
PAGE = "selftest.md"
"""The name of the Markdown page with the rates."""
SHARES = (0.03, 0.05, 0.10)
"""The injected slowdowns, as shares of the time."""
OWN_SHARES = (0.05, 0.10)
"""The slowdowns injected into a user's own function, which are those with a target."""
LEAKS = (64 * 1024, 1024 * 1024)
"""The bytes that are leaked in each epoch."""
SUBJECTS = (
    ("tiny_mlp", "static-exact"),
    ("branch_on_sum", "dynamic"),
    ("elementwise_chain", "static-exact"),
    ("tiny_mlp", "dynamic"),
    ("branch_on_sum", "static-exact"),
)
"""Workloads and modes that are compared with themselves, in turn: short steps, large arrays, streams."""
ENGINES = ("static-exact", "dynamic")
"""The modes in which a user's own function is compared, in turn."""
SECONDS = 0.8
"""The seconds for the rounds of one process; a run allows more, since its blocks may be longer."""
TIMEOUT = 120.0
PRESET = "selftest"


@dataclass(frozen=True)
class Trials:
    """The numbers of comparisons of speed and of memory, of processes for each, and of processes at once.

    `own` is the number of comparisons of a user's own function, for each of its sizes.
    """

    comparisons: int = 200
    own: int = 40
    leaks: int = 50
    processes: int = PRESETS["full"].processes
    at_once: int = field(default_factory=lambda: min(2, len(affinity() or (0, 1))))  # two on one core would compete
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, with the preset that marks a selftest."""
        return {"preset": PRESET, **asdict(self)}


def run(
    directory: Path,
    trials: Trials,
    reporter: Reporter,
    *,
    resume: bool = False,
    execute: Execute | None = None,
    executor: Executor | None = None,
) -> Selftest:
    """Run the selftest, write its rates into the directory and return them.

    Records go to a journal there, as in a run, from which a stopped selftest can be resumed. `executor` runs
    `trials.at_once` jobs at once, by default in threads of this process. Raises NothingMeasuredError if no process gave
    a result, and the errors of `compare.records.journal.open_journal`.
    """
    started = time.monotonic()
    with journal.open_journal(directory, trials.to_dict(), resume, reporter.notice) as kept:
        with ExitStack() as stack:
            stack.enter_context(reporter)
            executor = executor or stack.enter_context(ThreadPoolExecutor(trials.at_once))
            pool = Pool(executor, execute or run_job, trials.at_once, lanes=True)
            _measure(Runner(kept, reporter, pool, TIMEOUT), trials)
        rates = _judge_trials(kept, trials, time.monotonic() - started)
        results.write_json(directory / RATES, results.to_json(rates))
        write_file(directory / PAGE, markdown(rates).encode())
    return rates


def _judge_trials(kept: Journal, trials: Trials, seconds: float) -> Selftest:
    return Selftest(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        starts=len(kept.headers),
        settings=trials.to_dict(),
        environment=kept.headers[0].environment,
        whole=trials.comparisons >= WHOLE,
        **judge(kept.records),
        failures=[failure.error for failure in kept.lost],
    )


def _measure(runner: Runner, trials: Trials) -> None:
    asked = [*speed_jobs(trials), *own_jobs(trials), *leak_jobs(trials)]
    runner.reporter.pace.expect(asked)
    runner.header(trials.to_dict())
    runner.jobs((job, {}) for job in asked)
    if not any(isinstance(record, TrialTime | TrialMemory) for record in runner.journal.records):
        error = runner.journal.lost[0].error
        raise NothingMeasuredError(f"no worker gave a result: {error}; try `graphduel doctor`")


def speed_jobs(trials: Trials) -> Iterator[Job]:
    """Yield the jobs of speed: in each process an engine, the same again, and the same with each slowdown."""
    budget = replace(PRESETS["full"].budget, seconds=SECONDS)
    for number in range(trials.comparisons):
        workload, engine = SUBJECTS[number % len(SUBJECTS)]
        for process in range(trials.processes):
            job = _job(TIME, workload, trials, number, _changed_modes(engine, SHARES), process)
            yield replace(job, budget=budget)


def own_jobs(trials: Trials) -> Iterator[Job]:
    """Yield the jobs of speed for a user's own function, with the processes and budget of `graphduel compare`."""
    for number, size in product(range(trials.own), SIZES):
        modes = _changed_modes(ENGINES[number % len(ENGINES)], OWN_SHARES)
        for process in range(REPEATS):
            job = _job(TIME, NAME, trials, number, modes, process, SOURCE)
            yield replace(job, size=size, budget=Budget(seconds=OWN_SECONDS))


def leak_jobs(trials: Trials) -> Iterator[Job]:
    """Yield the jobs of memory: a process for each mode, which is an engine, or the same with one leak."""
    for number in range(trials.leaks):
        workload, engine = SUBJECTS[number % len(SUBJECTS)]
        kind = ("array", "object")[number % 2]
        for process, mode in enumerate((engine, *(f"{engine}|leak {kind} {size}" for size in LEAKS))):
            yield _job(MEMORY, workload, trials, number, (mode,), process)


def _changed_modes(engine: str, shares: Iterable[float]) -> tuple[str, ...]:
    return (engine, *(f"{engine}|{change}" for change in (AGAIN, *(f"+{share:.0%}" for share in shares))))


def _job(
    kind: str, workload: str, trials: Trials, number: int, modes: tuple[str, ...], process: int, source: str = ""
) -> Job:
    return Job(
        kind,
        workload,
        "small",
        process,
        comparison=number,
        source=source or workloads.source(workload),
        seed=trials.seed + number * trials.processes,
        modes=modes,
    )
