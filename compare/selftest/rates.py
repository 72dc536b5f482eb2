"""From the records of a selftest to its rates: what was found of what was there, and of what was not.

A comparison finds a difference when the 95% interval of its ratio excludes 1, and a leak when an epoch leaves more
than `LEAST_LEAK` bytes behind. Coverage is how often an interval holds the injected ratio, of all processes of a
comparison and of its first few. Each rate has Wilson's interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, steady
from compare.records.checks import Coverage, LeakRate, Outcome, SpeedRate, TrialMemory, TrialTime
from compare.records.record import Cell, Records, kind_of, of
from compare.selftest.inject import size_of
from compare.selftest.subjects import NAME, SIZES
from compare.stats import LEAST, Interval, proportion_interval

TIME, MEMORY = kind_of(TrialTime), kind_of(TrialMemory)
"""The kinds of its records."""
LEAST_LEAK = 4096
"""Bytes left behind by an epoch that are no leak yet: Python's own containers grow by less, now and then."""
NOISY = 0.02
"""Intervals that reach farther than this either way, in the median: the machine is too noisy for the targets."""
WHOLE = 200
"""The comparisons from which on intervals of rates count too: even 0 of 20 false alarms do not show 9% excluded."""


@dataclass(frozen=True)
class Target:
    """What a rate must reach or stay under, and what its interval must, where there are comparisons enough."""

    least: float = 0.0
    most: float = 1.0
    highest: float = 1.0

    def met_by(self, rate: Interval, comparisons: int) -> bool:
        """Whether a rate meets it."""
        return self.least <= rate.estimate <= self.most and (rate.high <= self.highest or comparisons < WHOLE)


SPEED = {0.0: Target(most=0.05, highest=0.09), 0.05: Target(least=0.95), 0.10: Target(least=0.99)}
LEAKS = {0.0: Target(most=0.05, highest=0.09), 2.0**20: Target(least=1.0)}
"""The targets by injected share and by injected bytes; what has none is published all the same."""
_ORDER = ("", *SIZES)
COVERED = Target(least=0.93)
"""Of 95% intervals. More is no fault: where processes hardly differ an interval is wider than it need be."""


class Trial(NamedTuple):
    """One arm with a change compared with its engine: the interval, and the calls and the runs that they made."""

    ratio: Interval
    calls: int
    runs: int


def judge(records: Records) -> dict[str, Any]:
    """The rates for all injected sizes, 0 among them, and the outcome: `met`, `missed` or `too noisy`."""
    compared: dict[tuple[Cell, int], list[TrialTime]] = defaultdict(list)
    for record in of(records, TrialTime):
        compared[record.cell, record.comparison].append(record)
    groups = [sorted(group, key=lambda record: record.process) for group in compared.values()]
    speed, leaks = _speed(groups), _leaks(of(records, TrialMemory))
    return {"outcome": outcome(speed, leaks), "speed": speed, "leaks": leaks, "coverage": coverage(groups)}


def outcome(speed: Sequence[SpeedRate], leaks: Sequence[LeakRate]) -> Outcome:
    """`met` if all targets are; `too noisy` if one of speed is not, and intervals are wide; `missed` otherwise."""
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
    """The trials of one comparison, by share, by the code that compares the arms of a run."""
    cell = Evidence(*group[0].cell, tuple(record.arms for record in group))
    base, *changed = group[0].arms
    for arm in changed:
        ratio = cell.ratio(arm, base, steady)
        if ratio is not None and ratio.bounded:
            calls, runs = (sum(getattr(row, count) for row in cell.of(arm)) for count in ("calls", "runs"))
            yield size_of(arm), Trial(ratio, calls, runs)


def coverage(groups: Sequence[Sequence[TrialTime]]) -> list[Coverage]:
    """A row for each number of processes from which on there is an interval."""
    most = max(map(len, groups), default=0)
    return [_covered(count, [group for group in groups if len(group) >= count]) for count in range(LEAST, most + 1)]


def _covered(count: int, groups: Sequence[Sequence[TrialTime]]) -> Coverage:
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
        met=COVERED.met_by(rate, len(pairs)) if len(pairs) >= WHOLE else None,
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
        for arm, row in record.arms.items():
            kept[size_of(arm)].append(row.kept)
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
        "met": target and target.met_by(rate, comparisons),
    }
