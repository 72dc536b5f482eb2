"""Effect sizes as ratios with 95% intervals, by a bootstrap over the hierarchy process -> block.

Blocks of one process share its memory layout, its clock and its neighbours, so they are not independent: processes are
resampled first, then blocks inside each. The percentile interval of a few processes is too narrow (with three that
differ it covers 72%, not 95%), so it is widened by Student's quantile, like Hesterberg's expanded percentile interval
(The American Statistician 69, 2015). If processes hardly differ, the result is wider than necessary.

Fewer than three processes (`LEAST`) give no interval. One process does not show how processes differ: its blocks alone
would cover 7% if processes differ five times as much as blocks. Two processes have an interval by the formula, which
covers its 95% but is useless: Student's quantile for one degree of freedom is 12.7, and 229 if eighteen intervals must
hold at once. In seeded simulations (`tests/compare/test_stats.py`), intervals of 3 to 12 processes hold the truth in 94
or 95 of 100 trials if processes differ more than blocks, and in more trials if they hardly differ.

Processes that differ so much that the ends of the interval would differ by more than the factor `WIDEST` give none
either: a ratio of 0.3 to 1,000,000 says nothing, but reads as if something had been measured. This never happens if
processes differ by half or less, so it does not change how often an interval holds the truth.

A short interruption can double the time of a block. The outer quarters of a process's paired ratios are therefore moved
to its quartiles, as in the Winsorised mean (Tukey and McLaughlin, Sankhya A 25, 1963), before anything is resampled.

Of twenty true ties, one 95% interval misses 1 on average. If one verdict rests on several intervals, `comparisons` is
their number, and each is widened by Bonferroni: Student's quantile at 1 - 0.05 / comparisons, so that all of them hold
the truth at once with 95%. The percentiles stay those of one interval, as resamples do not reach farther tails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import atan, cos, exp, inf, isfinite, log, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
LEAST = 3
"""The fewest processes, or groups, that give an interval."""
WIDEST = 100.0
"""The largest ratio of upper to lower end with which an interval of a ratio is given."""
RESAMPLES = 2000

Nested = Sequence[Sequence[float]]
Side = Literal["above", "below", "tie", "unclear"]

_Floats = npt.NDArray[np.floating[Any]]
_TAIL = (1 - LEVEL) / 2
_NORMAL = NormalDist().inv_cdf(1 - _TAIL)
_HALVINGS = 60
_FARTHEST = 700.0
"""The largest logarithm of a ratio: `exp` of it is finite, also as a term of a sum."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95% interval, which is from 0 to infinity if there is none."""

    estimate: float
    low: float = 0.0
    high: float = inf

    @property
    def bounded(self) -> bool:
        """Whether there is an interval: its upper end is finite."""
        return isfinite(self.high)

    @property
    def inverse(self) -> Interval:
        """The interval of the inverse ratio."""
        return Interval(1 / self.estimate, 1 / self.high, 1 / self.low) if self.bounded else Interval(1 / self.estimate)

    def side(self, smallest: float) -> Side:
        """Return the side of a ratio: above or below 1 by more than `smallest`, a tie within it, or unclear."""
        if self.low > 1 + smallest:
            return "above"
        if self.high < 1 / (1 + smallest):
            return "below"
        inside = self.low >= 1 / (1 + smallest) and self.high <= 1 + smallest
        return "tie" if inside else "unclear"

    def bounds(self) -> list[float] | None:
        """Return `[low, high]`, as in results files; None if there is no interval."""
        return [self.low, self.high] if self.bounded else None


def ratio_interval(
    numerator: Nested, denominator: Nested, *, seed: int = 0, resamples: int = RESAMPLES, comparisons: int = 1
) -> Interval:
    """Return the geometric mean of paired ratios `numerator[process][block] / denominator[process][block]`.

    In each process, the lowest and highest quarter of its ratios are replaced by the quartiles. Every process has the
    same weight, with any number of blocks. `comparisons` intervals hold the truth at once with 95%. There is no
    interval from fewer than `LEAST` processes, or if its ends would differ by more than the factor `WIDEST`. Raises
    ValueError for data that are empty, not paired, or not positive.
    """
    return _mean_interval(_log_ratios(_logs(numerator), _logs(denominator)), seed, resamples, comparisons)


def typical(values: Sequence[float]) -> float:
    """Return the geometric mean of a process's blocks, of which the outer quarters are moved to the quartiles."""
    return exp(float(np.mean(_winsorise(_logs([values])[0]))))


def unpaired_ratio_interval(numerator: Nested, denominator: Nested) -> Interval:
    """Return the ratio of two geometric means whose processes are independent, such as those of two runs.

    Each process counts once, by the mean of its Winsorised logarithms, and the interval is Welch's (Biometrika 34,
    1947). It covers how processes of one run differ, not how a machine differs from day to day. There is no interval
    from fewer than `LEAST` processes on a side, or if its ends would differ by more than the factor `WIDEST`. Raises
    ValueError for data that are empty or not positive.
    """
    sides = [np.array([np.mean(_winsorise(logs)) for logs in _logs(side)]) for side in (numerator, denominator)]
    estimate = float(np.clip(sides[0].mean() - sides[1].mean(), -_FARTHEST, _FARTHEST))
    if min(map(len, sides)) < LEAST:
        return Interval(exp(estimate))
    shares = [float(side.var(ddof=1)) / len(side) for side in sides]
    if not any(shares):
        return Interval(exp(estimate), exp(estimate), exp(estimate))
    freedom = sum(shares) ** 2 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, sides, strict=True))
    half = student_quantile(int(freedom), _TAIL) * sqrt(sum(shares))
    if 2 * half > log(WIDEST):
        return Interval(exp(estimate))
    return Interval(exp(estimate), exp(estimate - half), exp(estimate + half))


def geometric_mean_interval(
    ratios: Nested, *, seed: int = 0, resamples: int = RESAMPLES, comparisons: int = 1
) -> Interval:
    """Return the geometric mean of `ratios[group][member]`, such as sizes in workloads; groups are resampled first.

    Every group has the same weight. The interval is missing in the cases of `ratio_interval`. Raises ValueError for
    data that are empty or not positive.
    """
    return _mean_interval(_logs(ratios), seed, resamples, comparisons)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of numbers. Raises ValueError if there are none, or if one is not positive."""
    return exp(float(np.mean(_logs([tuple(values)])[0])))


def sum_interval(
    terms: Sequence[tuple[float, Nested]], denominator: Nested, *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Return a sum of weighted ratios `numerator / denominator`, each estimated as by `ratio_interval`.

    `terms` are pairs of a weight, of either sign, and a numerator; without terms the sum is 0. The ratios are resampled
    together, so that their common noise cancels. Raises ValueError as `ratio_interval` does.
    """
    bottom = _logs(denominator)
    estimate, means = 0.0, np.zeros(resamples)
    for weight, numerator in terms:
        logs = _log_ratios(_logs(numerator), bottom)
        estimate += weight * exp(float(np.mean([np.mean(group) for group in logs])))
        means += weight * np.exp(_resampled_means(logs, np.random.default_rng(seed), resamples))  # the same draws
    if len(bottom) < LEAST:
        return Interval(estimate, -inf)
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL])
    wider = _widening(len(bottom))
    down, up = wider * max(0.0, estimate - float(low)), wider * max(0.0, float(high) - estimate)
    return Interval(estimate, estimate - down, estimate + up)


def proportion_interval(passed: int, total: int) -> Interval:
    """Return Wilson's score interval of a pass rate (JASA 22, 1927), which is valid at 0 and 1 too.

    Raises ValueError unless `0 <= passed <= total` and there was at least one trial.
    """
    if not 0 <= passed <= total or total == 0:
        raise ValueError(f"a pass rate needs 0 <= passed <= total and a trial, got {passed} of {total}")
    rate, spread = passed / total, _NORMAL**2 / total
    centre = (rate + spread / 2) / (1 + spread)
    half = _NORMAL * sqrt(rate * (1 - rate) / total + spread / (4 * total)) / (1 + spread)
    return Interval(rate, max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate)))


def _logs(nested: Nested) -> list[_Floats]:
    if not nested or any(len(group) == 0 for group in nested):
        raise ValueError("no data: there must be a process, and a block in every process")
    for value in (value for group in nested for value in group):
        if not isfinite(value) or value <= 0:
            raise ValueError(f"ratios need positive finite numbers, got {value}")
    return [np.log(np.asarray(group, dtype=np.float64)) for group in nested]


def _log_ratios(numerator: list[_Floats], denominator: list[_Floats]) -> list[_Floats]:
    """Return the logarithms of the ratios of paired blocks, Winsorised in each process."""
    if [len(process) for process in numerator] != [len(process) for process in denominator]:
        raise ValueError("numerator and denominator need the same processes and blocks, paired by index")
    ratios = (top - bottom for top, bottom in zip(numerator, denominator, strict=True))
    return [_winsorise(np.clip(ratio, -_FARTHEST, _FARTHEST)) for ratio in ratios]


def _winsorise(logs: _Floats) -> _Floats:
    """Return the values with the outer quarters moved to the quartiles; up to three values stay unchanged."""
    outside, ordered = len(logs) // 4, np.sort(logs)
    return np.clip(logs, ordered[outside], ordered[len(logs) - 1 - outside])


def _mean_interval(groups: list[_Floats], seed: int, resamples: int, comparisons: int) -> Interval:
    """Return the interval of the mean of group means of logarithms, as ratios."""
    estimate = float(np.mean([np.mean(group) for group in groups]))
    if len(groups) < LEAST:
        return Interval(exp(estimate))
    means = _resampled_means(groups, np.random.default_rng(seed), resamples)
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL])
    wider = _widening(len(groups), comparisons)
    down, up = wider * max(0.0, estimate - float(low)), wider * max(0.0, float(high) - estimate)
    if down + up > log(WIDEST):
        return Interval(exp(estimate))
    return Interval(exp(estimate), exp(estimate - down), exp(estimate + up))


def _resampled_means(groups: list[_Floats], rng: np.random.Generator, resamples: int) -> _Floats:
    """Return a mean of group means for each resample; groups may differ in length, so draws past an end weigh 0."""
    lengths = np.array([len(group) for group in groups])
    table = np.zeros((len(groups), lengths.max()))
    for row, group in zip(table, groups, strict=True):
        row[: len(group)] = group
    chosen = rng.integers(len(groups), size=(resamples, len(groups)))
    sizes = lengths[chosen][..., None]
    members = (rng.random((*chosen.shape, table.shape[1])) * sizes).astype(np.intp)
    drawn = np.where(np.arange(table.shape[1]) < sizes, table[chosen[..., None], members], 0.0)
    return np.asarray((drawn.sum(axis=2) / sizes[..., 0]).mean(axis=1))


def _widening(units: int, comparisons: int = 1) -> float:
    """Return the factor by which the percentile interval of a mean of `units` independent units is widened."""
    return sqrt(units / (units - 1)) * student_quantile(units - 1, _TAIL / comparisons) / _NORMAL


def student_within(freedom: int, bound: float) -> float:
    """Return P(|T| <= bound) for Student's t with `freedom` degrees of freedom."""
    return _student_inside(freedom, atan(bound / sqrt(freedom)))


def student_quantile(freedom: int, tail: float) -> float:
    """Return Student's quantile with the probability `tail` above it, by bisecting the angle of `_student_inside`.

    graphduel does not depend on SciPy, as it would need only these two functions.
    """
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _student_inside(freedom, middle) < 1 - 2 * tail
        low, high = (middle, high) if inside else (low, middle)
    return sqrt(freedom) * tan(low)


def _student_inside(freedom: int, angle: float) -> float:
    """Return P(|T| <= t) at t = sqrt(freedom) tan(angle), by Abramowitz and Stegun 26.7.3 and 26.7.4."""
    odd = freedom % 2
    term, total = cos(angle) if odd else 1.0, 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cos(angle) ** 2
    return (angle + sin(angle) * total) * 2 / pi if odd else sin(angle) * total
