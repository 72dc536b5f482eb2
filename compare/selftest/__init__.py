"""The selftest of the harness: how often a run would report a difference that is not there, or miss a real one.

An engine is compared with itself, with itself slowed down by a known share, and with itself leaking known bytes, by
the workers, rounds, memory pass and intervals of a normal run, each in six fresh processes, two at a time. `trials`
has the changed engines; here are the jobs (`run`), the rates of their records (`judge`), and the page.

A comparison detects a difference if the 95% interval of its ratio excludes 1, and a leak if an epoch leaves more than
`LEAST_LEAK` bytes behind. Coverage is the share of intervals that hold the injected ratio, with all processes of a
comparison and with its first few. Each rate has Wilson's interval.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from compare import workloads
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, steady
from compare.errors import NothingMeasuredError
from compare.plans.settings import PRESETS
from compare.records import journal, results
from compare.records.checks import Coverage, LeakRate, Outcome, Rate, Selftest, SpeedRate, TrialMemory, TrialTime
from compare.records.job import Budget, Job
from compare.records.record import Cell, Environment, Records, kind_of, records_of
from compare.report.blocks import Table
from compare.report.printers import markdown_table
from compare.run.environment import affinity
from compare.run.executors import Execute, Pool
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import Runner
from compare.selftest.trials import AGAIN, NAME, SIZES, SOURCE, size_of
from compare.stats import LEAST, Interval, proportion_interval
from compare.subjects.subject import REPEATS
from compare.subjects.subject import SECONDS as OWN_SECONDS
from compare.text import count_noun
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
STATIC, NATIVE = "static-exact", "static-native"
SUBJECTS = (
    ("tiny_mlp", STATIC),
    ("branch_on_sum", "dynamic"),
    ("elementwise_chain", STATIC),
    ("tiny_mlp", "dynamic"),
    ("branch_on_sum", STATIC),
)
"""Workloads and modes that are compared with themselves, in turn: short steps, large arrays, streams."""
ENGINES = (STATIC, "dynamic")
"""The modes in which a user's own function is compared, in turn."""
SECONDS = 0.8
"""The seconds for the rounds of one process; a run allows more, since its blocks may be longer."""
TIMEOUT = 120.0
PRESET = "selftest"


@dataclass(frozen=True)
class Trials:
    """The numbers of comparisons of speed and of memory, of processes for each, and of processes at once.

    `own` is the number of comparisons of a user's own function, for each of its sizes. Speed is measured on `threads`;
    if these are several, an engine and the same engine again have processes of their own, as modes of a run have, and
    static is native code, which is what shares its work.
    """

    comparisons: int = 200
    own: int = 40
    leaks: int = 50
    processes: int = PRESETS["full"].processes
    at_once: int = field(default_factory=lambda: min(2, len(affinity() or (0, 1))))  # two on one core would compete
    seed: int = 0
    threads: int = 1

    @property
    def side_by_side(self) -> int:
        """Return how many jobs run at once, each on cores of its own."""
        return max(1, self.at_once // self.threads)

    def mode(self, name: str) -> str:
        """Return the mode whose speed is measured under a name of `SUBJECTS` or `ENGINES`."""
        return NATIVE if self.threads > 1 and name == STATIC else name

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
            executor = executor or stack.enter_context(ThreadPoolExecutor(trials.side_by_side))
            pool = Pool(executor, execute or run_job, trials.side_by_side, lanes=True)
            _measure(Runner(kept, reporter, pool, TIMEOUT), trials)
        rates = Selftest(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=time.monotonic() - started,
            starts=len(kept.headers),
            settings=trials.to_dict(),
            environment=kept.headers[0].environment,
            whole=trials.comparisons >= WHOLE,
            **judge(kept.records),
            failures=[failure.error for failure in kept.lost],
        )
        results.write_json(directory / RATES, results.to_json(rates))
        write_file(directory / PAGE, markdown(rates).encode())
    return rates


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
            modes = _changed_modes(trials.mode(engine), SHARES)
            job = _job(TIME, workload, trials, number, modes, process)
            yield replace(job, budget=budget)


def own_jobs(trials: Trials) -> Iterator[Job]:
    """Yield the jobs of speed for a user's own function, with the processes and budget of `graphduel compare`."""
    for number, size in product(range(trials.own), SIZES):
        modes = _changed_modes(trials.mode(ENGINES[number % len(ENGINES)]), OWN_SHARES)
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
        threads=trials.threads if kind == TIME else 1,
    )


# Rates ----------------------------------------------------------------------------------------------------------------


TIME, MEMORY = kind_of(TrialTime), kind_of(TrialMemory)
"""The kinds of records of a selftest."""
LEAST_LEAK = 4096
"""The most bytes left behind by an epoch that are not a leak: Python's own containers sometimes grow by less."""
NOISY = 0.02
"""The median half-width of intervals beyond which a machine is too noisy for the targets."""
WHOLE = 200
"""The number of comparisons from which on the intervals of rates are judged: 0 false alarms of 20 do not exclude 9%."""


@dataclass(frozen=True)
class Target:
    """The bounds of a rate, and the bound of its interval's upper end, which counts from `WHOLE` comparisons on."""

    least: float = 0.0
    most: float = 1.0
    highest: float = 1.0

    def is_met_by(self, rate: Interval, comparisons: int) -> bool:
        """Whether a rate, from a number of comparisons, meets the target."""
        return self.least <= rate.estimate <= self.most and (rate.high <= self.highest or comparisons < WHOLE)


SPEED_TARGETS = {
    0.0: Target(most=0.05, highest=0.09),
    0.05: Target(least=0.95),
    0.10: Target(least=0.99),
}
LEAK_TARGETS = {0.0: Target(most=0.05, highest=0.09), 2.0**20: Target(least=1.0)}
"""The targets by injected share, and by injected bytes; rates without one are published too."""
_ORDER = ("", *SIZES)
COVERED = Target(least=0.93)
"""The target of coverage of 95% intervals; more is no fault, as intervals are wide if processes hardly differ."""


class Trial(NamedTuple):
    """One changed mode compared with its engine: the interval of the ratio, its calls, and the runs they made."""

    ratio: Interval
    calls: int
    runs: int


def judge(records: Records) -> dict[str, Any]:
    """Compute the rates for all injected sizes, 0 included, and the outcome: `met`, `missed` or `too noisy`."""
    compared: dict[tuple[Cell, int], list[TrialTime]] = defaultdict(list)
    for record in records_of(records, TrialTime):
        compared[record.cell, record.comparison].append(record)
    groups = [sorted(group, key=lambda record: record.process) for group in compared.values()]
    speed, leaks = _speed(groups), _leaks(records_of(records, TrialMemory))
    return {"outcome": outcome(speed, leaks), "speed": speed, "leaks": leaks, "coverage": coverage(groups)}


def outcome(speed: Sequence[SpeedRate], leaks: Sequence[LeakRate]) -> Outcome:
    """Return `met` if all targets are; `too noisy` if only speed misses one and intervals are wide; else `missed`."""
    if all(row.met is not False for row in (*speed, *leaks)):
        return "met"
    wide = any(row.half_width > NOISY for row in speed)
    return "too noisy" if wide and all(row.met is not False for row in leaks) else "missed"


def _speed(groups: Sequence[Sequence[TrialTime]]) -> list[SpeedRate]:
    trials: dict[tuple[str, float], list[Trial]] = defaultdict(list)
    for group in groups:
        subject = group[0].cell.size if group[0].workload == NAME else ""
        for share, trial in _trials(group):
            trials[subject, share].append(trial)
    ordered = sorted(trials, key=lambda key: (_ORDER.index(key[0]), key[1]))
    return [_speed_row(subject, share, trials[subject, share]) for subject, share in ordered]


def _trials(group: Sequence[TrialTime]) -> Iterator[tuple[float, Trial]]:
    """Yield the trials of one comparison with their injected shares, compared as the modes of a run are."""
    cell = Evidence(*group[0].cell, tuple(record.modes for record in group), threads=group[0].threads)
    base, *changed = group[0].modes
    for mode in changed:
        ratio = cell.ratio(mode, base, steady)
        if ratio is not None and ratio.bounded:
            calls, runs = (sum(getattr(row, count) for row in cell.of(mode)) for count in ("calls", "runs"))
            yield size_of(mode), Trial(ratio, calls, runs)


def coverage(groups: Sequence[Sequence[TrialTime]]) -> list[Coverage]:
    """Return the coverage for each number of processes, from the fewest that give an interval."""
    rows = []
    for count in range(LEAST, max(map(len, groups), default=0) + 1):
        whole = [group[:count] for group in groups if len(group) >= count]
        pairs = [(share, trial.ratio) for group in whole for share, trial in _trials(group)]
        held = sum(ratio.low <= 1 + share <= ratio.high for share, ratio in pairs)
        rate = proportion_interval(held, len(pairs))
        rows.append(
            Coverage(
                processes=count,
                comparisons=len(pairs),
                held=held,
                rate=rate.estimate,
                interval=[rate.low, rate.high],
                half_width=_half_width([ratio for _, ratio in pairs]),
                met=COVERED.is_met_by(rate, len(pairs)) if len(pairs) >= WHOLE else None,
            )
        )
    return rows


def _half_width(ratios: Sequence[Interval]) -> float:
    return median((ratio.high / ratio.low) ** 0.5 - 1 for ratio in ratios)


def _speed_row(subject: str, share: float, trials: Sequence[Trial]) -> SpeedRate:
    ratios = [trial.ratio for trial in trials]
    slower, faster = sum(ratio.low > 1 for ratio in ratios), sum(ratio.high < 1 for ratio in ratios)
    return SpeedRate(
        **_rate(share, slower + faster * (share == 0), len(ratios), SPEED_TARGETS.get(share)),
        counted=sum(trial.runs for trial in trials) / sum(trial.calls for trial in trials) - 1,
        slower=slower,
        faster=faster,
        interval_holds_truth=sum(ratio.low <= 1 + share <= ratio.high for ratio in ratios),
        estimate=median(ratio.estimate for ratio in ratios),
        half_width=_half_width(ratios),
        sides=dict(Counter(ratio.side(SMALLEST_EFFECT) for ratio in ratios)),
        subject=subject,
    )


def _leaks(records: Sequence[TrialMemory]) -> list[LeakRate]:
    kept: dict[float, list[int]] = defaultdict(list)
    for record in records:
        for mode, row in record.modes.items():
            kept[size_of(mode)].append(row.kept)
    return [
        LeakRate(
            **_rate(size, sum(seen > LEAST_LEAK for seen in kept[size]), len(kept[size]), LEAK_TARGETS.get(size)),
            kept=median(kept[size]),
        )
        for size in sorted(kept)
    ]


def _rate(injected: float, detected: int, comparisons: int, target: Target | None) -> dict[str, Any]:
    rate = proportion_interval(detected, comparisons)
    return {
        "injected": injected,
        "comparisons": comparisons,
        "detected": detected,
        "rate": rate.estimate,
        "interval": rate.bounds(),
        "met": target and target.is_met_by(rate, comparisons),
    }


# The page -------------------------------------------------------------------------------------------------------------


_TARGET = {None: "none", True: "met", False: "missed"}
_PAGE = """# How far the harness can be trusted

The selftest compared an engine with itself: unchanged, slowed down by a known share of its own work, and leaking known
bytes. It did the same with functions as `graphduel compare` measures them, of about 5 us, 1 ms and 100 ms a call. It
finds a slowdown if the 95% interval of the ratio excludes 1. It finds a leak if an epoch leaves more than {least:,}
bytes behind. If it finds something where nothing was injected, that is a false alarm.

{table}

The intervals should contain the injected ratio in 95 of 100 comparisons, also with few processes:

{coverage}

{comparisons} comparisons of {processes} processes each{threads}, and {own} of each function of one's own, \
{at_once} at a time, {took}, on {cpu} with \
{cores} cores{load}; {python}, NumPy {numpy}, commit {commit}, {at}. Targets: **{outcome}**.

    graphduel selftest --comparisons {comparisons} --seed {seed}
"""


def rates_table(rates: Selftest) -> Table | None:
    """Return a table with a row for each injected size; None without rows."""
    rows = []
    for row in rates.speed:
        injected = f"{row.injected:.0%} slower, counted {row.counted:.2%}" if row.injected else "nothing"
        whose = f"own function, {row.subject}: " if row.subject else ""
        rows.append(_rate_row(f"{whose}{injected}", f"{row.estimate:.3f} ±{row.half_width:.1%}", row))
    for leak in rates.leaks:
        injected = f"{leak.injected:,.0f} bytes an epoch" if leak.injected else "no leak"
        rows.append(_rate_row(injected, f"{leak.kept:,.0f} bytes", leak))
    return Table.of("lrrrll", rows)


def coverage_table(rates: Selftest) -> Table | None:
    """Return a table with the coverage for each number of processes; None without rows."""
    rows = [
        {
            "processes": str(row.processes),
            "interval": f"±{row.half_width:.1%}",
            "held the truth": str(row.held),
            "of": str(row.comparisons),
            "rate, 95% interval": _rate_text(row),
            "target": _TARGET[row.met],
        }
        for row in rates.coverage
    ]
    return Table.of("rlrrll", rows)


def markdown(rates: Selftest) -> str:
    """Return the page of a selftest in Markdown."""
    environment, settings = rates.environment or Environment(), rates.settings
    minutes = count_noun(max(1, round(rates.seconds / 60)), "minute")
    return _PAGE.format(
        least=LEAST_LEAK,
        table=markdown_table(rates_table(rates)),
        coverage=markdown_table(coverage_table(rates)),
        took=f"in {minutes}" if rates.starts == 1 else f"in {rates.starts} starts, the last of {minutes}",
        outcome=rates.outcome,
        at=rates.at,
        **{name: settings[name] for name in ("comparisons", "own", "processes", "at_once", "seed")},
        threads=f" on {number} threads" if (number := settings.get("threads", 1)) != 1 else "",
        commit=environment.commit or "unknown",
        load="" if environment.load is None else f", load {environment.load:.2f} when it began",
        **{name: getattr(environment, name) for name in ("cpu", "cores", "python", "numpy")},
    )


def _rate_text(rate: Rate | Coverage) -> str:
    low, high = rate.interval
    return f"{rate.rate:.1%} ({low:.1%} to {high:.1%})"


def _rate_row(injected: str, measured: str, rate: Rate) -> dict[str, str]:
    return {
        "injected": injected,
        "measured": measured,
        "found": str(rate.detected),
        "of": str(rate.comparisons),
        "rate, 95% interval": _rate_text(rate),
        "target": _TARGET[rate.met],
    }
