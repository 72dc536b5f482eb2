"""Effect sizes as ratios with 95% intervals, by a bootstrap over the hierarchy process -> block.

Blocks of one process share its memory layout, its clock and its neighbours, so they are not independent:
processes are resampled first, then blocks inside each. The percentile interval of a few processes is too
narrow (of three that differ it covers 72%, not 95%), so it is widened by Student's quantile, as Hesterberg's
expanded percentile interval is (The American Statistician 69, 2015). Where processes hardly differ the
result is wider than it need be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum, isfinite, log, pi, sqrt, tan
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
RESAMPLES = 2000

Nested = Sequence[Sequence[float]]
Side = Literal["above", "below", "tie", "unclear"]

_Floats = npt.NDArray[np.floating[Any]]
_TAIL = (1 - LEVEL) / 2
_NORMAL = NormalDist().inv_cdf(1 - _TAIL)
_LARGEST = log(1e300)


@dataclass(frozen=True)
class Interval:
    """An estimate and the 95% interval around it."""

    estimate: float
    low: float
    high: float

    def side(self, smallest: float) -> Side:
        """Where a ratio stands: beyond 1 + `smallest` either way, within that tie zone, or unclear."""
        if self.low > 1 + smallest:
            return "above"
        if self.high < 1 / (1 + smallest):
            return "below"
        inside = self.low >= 1 / (1 + smallest) and self.high <= 1 + smallest
        return "tie" if inside else "unclear"

    def bounds(self) -> list[float]:
        """`[low, high]`, as results are written."""
        return [self.low, self.high]


def ratio_interval(numerator: Nested, denominator: Nested, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The geometric mean of the ratios of paired blocks: `numerator[process][block] / denominator[...]`.

    Every process weighs the same, however many blocks it has. Raises ValueError for data that are empty, not
    paired, not positive, or a single pair, of which no interval can be known.
    """
    if [len(process) for process in numerator] != [len(process) for process in denominator]:
        raise ValueError("numerator and denominator need the same processes and blocks, paired by index")
    pairs = zip(_logs(numerator), _logs(denominator), strict=True)
    return _mean_interval([top - bottom for top, bottom in pairs], seed, resamples)


def geometric_mean_interval(ratios: Nested, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The geometric mean of `ratios[group][member]`, groups resampled first: sizes within workloads, say.

    Every group weighs the same. Raises ValueError for data that are empty, not positive, or a single ratio.
    """
    return _mean_interval(_logs(ratios), seed, resamples)


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers. Raises ValueError for none, or one that is not positive."""
    return exp(float(np.mean(_logs([tuple(values)])[0])))


def proportion_interval(passed: int, total: int) -> Interval:
    """Wilson's score interval of a pass rate (JASA 22, 1927), which is sound at 0 and 1 too.

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


def _mean_interval(groups: list[_Floats], seed: int, resamples: int) -> Interval:
    """The interval of the mean of group means of logarithms, taken back to ratios."""
    units = len(groups) if len(groups) > 1 else len(groups[0])
    if units < 2:
        raise ValueError("one number has no interval: measure at least two blocks or two processes")
    estimate = float(np.mean([np.mean(group) for group in groups]))
    means = _resampled_means(groups, np.random.default_rng(seed), resamples)
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL])
    wider = _widening(units)
    down, up = wider * max(0.0, estimate - float(low)), wider * max(0.0, float(high) - estimate)
    # two processes that differ wildly could pass what a float holds, and infinity is not JSON
    return Interval(exp(estimate), exp(max(estimate - down, -_LARGEST)), exp(min(estimate + up, _LARGEST)))


def _resampled_means(groups: list[_Floats], rng: np.random.Generator, resamples: int) -> _Floats:
    """One mean of group means per resample; groups may differ in length, so draws past an end weigh 0."""
    lengths = np.array([len(group) for group in groups])
    table = np.zeros((len(groups), lengths.max()))
    for row, group in zip(table, groups, strict=True):
        row[: len(group)] = group
    chosen = rng.integers(len(groups), size=(resamples, len(groups)))
    sizes = lengths[chosen][..., None]
    members = (rng.random((*chosen.shape, table.shape[1])) * sizes).astype(np.intp)
    drawn = np.where(np.arange(table.shape[1]) < sizes, table[chosen[..., None], members], 0.0)
    return np.asarray((drawn.sum(axis=2) / sizes[..., 0]).mean(axis=1))


def _widening(units: int) -> float:
    """How much wider than its percentiles the interval of a mean of so few independent units is."""
    return sqrt(units / (units - 1)) * _student(units - 1) / _NORMAL


def _student(freedom: int) -> float:
    """Student's quantile at the upper tail: exact to two degrees, then Abramowitz and Stegun 26.7.5."""
    if freedom == 1:
        return 1 / tan(pi * _TAIL)
    if freedom == 2:
        return (1 - 2 * _TAIL) / sqrt(2 * _TAIL * (1 - _TAIL))
    z, n = _NORMAL, freedom
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + fsum(term / n**power for power, term in enumerate(terms, start=1))
