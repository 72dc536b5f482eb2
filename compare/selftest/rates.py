"""The rates of a selftest, from its records: detections of injected differences, and false alarms.

A comparison detects a difference if the 95% interval of its ratio excludes 1, and a leak if an epoch leaves more than
`LEAST_LEAK` bytes behind. Coverage is the share of intervals that hold the injected ratio, with all processes of a
comparison and with its first few. Each rate has Wilson's interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, steady
from compare.page.blocks import Table
from compare.page.printers import markdown_table
from compare.records.checks import Coverage, LeakRate, Outcome, Rate, Selftest, SpeedRate, TrialMemory, TrialTime
from compare.records.record import Cell, Environment, Records, kind_of, records_of
from compare.selftest.trials import NAME, SIZES, size_of
from compare.stats import LEAST, Interval, proportion_interval
from compare.text import count_noun

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


SPEED = {0.0: Target(most=0.05, highest=0.09), 0.05: Target(least=0.95), 0.10: Target(least=0.99)}
LEAKS = {0.0: Target(most=0.05, highest=0.09), 2.0**20: Target(least=1.0)}
"""The targets by injected share (`SPEED`) and injected bytes (`LEAKS`); rates without one are published too."""
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
    cell = Evidence(*group[0].cell, tuple(record.modes for record in group))
    base, *changed = group[0].modes
    for mode in changed:
        ratio = cell.ratio(mode, base, steady)
        if ratio is not None and ratio.bounded:
            calls, runs = (sum(getattr(row, count) for row in cell.of(mode)) for count in ("calls", "runs"))
            yield size_of(mode), Trial(ratio, calls, runs)


def coverage(groups: Sequence[Sequence[TrialTime]]) -> list[Coverage]:
    """Return the coverage for each number of processes, from the fewest that give an interval."""
    most = max(map(len, groups), default=0)
    return [_coverage(count, [group for group in groups if len(group) >= count]) for count in range(LEAST, most + 1)]


def _coverage(count: int, groups: Sequence[Sequence[TrialTime]]) -> Coverage:
    pairs = [(share, trial.ratio) for group in groups for share, trial in _trials(group[:count])]
    held = sum(ratio.low <= 1 + share <= ratio.high for share, ratio in pairs)
    rate = proportion_interval(held, len(pairs))
    return Coverage(
        processes=count,
        comparisons=len(pairs),
        held=held,
        rate=rate.estimate,
        interval=[rate.low, rate.high],
        half_width=_half_width([ratio for _, ratio in pairs]),
        met=COVERED.is_met_by(rate, len(pairs)) if len(pairs) >= WHOLE else None,
    )


def _half_width(ratios: Sequence[Interval]) -> float:
    return median((ratio.high / ratio.low) ** 0.5 - 1 for ratio in ratios)


def _speed_row(subject: str, share: float, trials: Sequence[Trial]) -> SpeedRate:
    ratios = [trial.ratio for trial in trials]
    slower, faster = sum(ratio.low > 1 for ratio in ratios), sum(ratio.high < 1 for ratio in ratios)
    return SpeedRate(
        **_rate(share, slower + faster * (share == 0), len(ratios), SPEED.get(share)),
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
            **_rate(size, sum(seen > LEAST_LEAK for seen in kept[size]), len(kept[size]), LEAKS.get(size)),
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


_TARGET = {None: "none", True: "met", False: "missed"}
_PAGE = """# How far the harness can be trusted

The selftest compared an engine with itself: unchanged, slowed down by a known share of its own work, and leaking known
bytes. It did the same with functions as `graphduel compare` measures them, of about 5 us, 1 ms and 100 ms a call. It
finds a slowdown if the 95% interval of the ratio excludes 1. It finds a leak if an epoch leaves more than {least:,}
bytes behind. If it finds something where nothing was injected, that is a false alarm.

{table}

The intervals should contain the injected ratio in 95 of 100 comparisons, also with few processes:

{coverage}

{comparisons} comparisons of {processes} processes each, and {own} of each function of one's own, {at_once} at a time, \
{took}, on {cpu} with \
{cores} cores{load}; {python}, NumPy {numpy}, commit {commit}, {at}. Targets: **{outcome}**.

    graphduel selftest --comparisons {comparisons} --seed {seed}
"""


def rates_table(rates: Selftest) -> Table | None:
    """Return a table with a row for each injected size; None without rows."""
    return Table.of("lrrrll", [*map(_speed_cells, rates.speed), *map(_leak_row, rates.leaks)])


def coverage_table(rates: Selftest) -> Table | None:
    """Return a table with the coverage for each number of processes; None without rows."""
    return Table.of("rlrrll", map(_covered_row, rates.coverage))


def markdown(rates: Selftest) -> str:
    """Return the page of a selftest in Markdown."""
    environment, settings = rates.environment or Environment(), rates.settings
    return _PAGE.format(
        least=LEAST_LEAK,
        table=markdown_table(rates_table(rates)),
        coverage=markdown_table(coverage_table(rates)),
        took=_took(rates),
        outcome=rates.outcome,
        at=rates.at,
        **{name: settings[name] for name in ("comparisons", "own", "processes", "at_once", "seed")},
        commit=environment.commit or "unknown",
        load="" if environment.load is None else f", load {environment.load:.2f} when it began",
        **{name: getattr(environment, name) for name in ("cpu", "cores", "python", "numpy")},
    )


def _took(rates: Selftest) -> str:
    minutes = count_noun(max(1, round(rates.seconds / 60)), "minute")
    return f"in {minutes}" if rates.starts == 1 else f"in {rates.starts} starts, the last of {minutes}"


def _speed_cells(row: SpeedRate) -> dict[str, str]:
    injected = f"{row.injected:.0%} slower, counted {row.counted:.2%}" if row.injected else "nothing"
    if row.subject:
        injected = f"own function, {row.subject}: {injected}"
    return _rate_row(injected, f"{row.estimate:.3f} ±{row.half_width:.1%}", row)


def _leak_row(row: LeakRate) -> dict[str, str]:
    injected = f"{row.injected:,.0f} bytes an epoch" if row.injected else "no leak"
    return _rate_row(injected, f"{row.kept:,.0f} bytes", row)


def _covered_row(row: Coverage) -> dict[str, str]:
    low, high = row.interval
    return {
        "processes": str(row.processes),
        "interval": f"±{row.half_width:.1%}",
        "held the truth": str(row.held),
        "of": str(row.comparisons),
        "rate, 95% interval": f"{row.rate:.1%} ({low:.1%} to {high:.1%})",
        "target": _TARGET[row.met],
    }


def _rate_row(injected: str, measured: str, rate: Rate) -> dict[str, str]:
    low, high = rate.interval
    return {
        "injected": injected,
        "measured": measured,
        "found": str(rate.detected),
        "of": str(rate.comparisons),
        "rate, 95% interval": f"{rate.rate:.1%} ({low:.1%} to {high:.1%})",
        "target": _TARGET[rate.met],
    }
