"""What fits into the time that a worker has: a sample of a trace that keeps its spread, small enough to be timed.

For that one length after another is compiled and run once, the shortest first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import exp, log
from random import Random
from statistics import fmean

import numpy as np

from compare.errors import NothingMeasuredError
from compare.instruments.lengths.strategies import STRATEGIES
from compare.instruments.time.measure import timed
from compare.records.cells import LengthsProbe
from compare.records.job import Job
from compare.records.record import Failure, Record
from compare.workloads.lengths import stream

LEAST_SIZES = 6
"""Different lengths of a sample, where the trace has as many."""


@dataclass(frozen=True)
class TraceSample:
    """Lengths in the order they are timed, of a trace of `total`; the longest that were left out are above `cap`."""

    lengths: tuple[int, ...]
    total: int
    cap: int | None
    left_out: int

    @property
    def sizes(self) -> int:
        """The different lengths."""
        return len(set(self.lengths))

    @property
    def hits(self) -> float:
        """The share of calls whose length was there before."""
        return 1 - self.sizes / len(self.lengths)


def sample(lengths: Sequence[int], count: int, sizes: int, seed: int, cap: int | None = None) -> TraceSample:
    """At most `count` lengths of a trace, of at most `sizes` different values.

    Lengths come again as often as in the trace, as far as LEAST_SIZES values allow. The trace is cut into equal parts
    by its quantiles, and each gives the length next to its mean, as often as the others: the sample has about the mean
    of the trace. With `cap` no length is above it. Equal arguments give equal samples.
    """
    kept = sorted(length for length in lengths if cap is None or length <= cap)
    new = len(set(kept)) / len(kept)
    values = max(LEAST_SIZES, min(sizes, round(count * new)))
    turns = max(1, min(count, round(values / new)) // values)
    drawn = quantiles(kept, turns * values, values)
    Random(seed).shuffle(drawn)
    return TraceSample(tuple(drawn), len(lengths), cap, len(lengths) - len(kept))


def quantiles(ranked: Sequence[int], count: int, values: int) -> list[int]:
    """`count` of ranked lengths: of parts of equal number in turn the length next to the mean of the part."""
    ends = [round(part * len(ranked) / values) for part in range(values + 1)]
    parts = [ranked[start:end] for start, end in pairwise(ends) if start < end]
    middles = [_nearest(part, fmean(part)) for part in parts]
    return [middles[i % len(middles)] for i in range(count)]


def _nearest(lengths: Sequence[int], wanted: float) -> int:
    return min(lengths, key=lambda length: abs(length - wanted))


KEPT = (1, 0.99, 0.95, 0.9, 0.75, 0.5)
"""Shares of a trace, its shortest lengths, of which the largest is taken that fits."""
REPEATS = 4
"""A sample has so many lengths for each different one, or more where lengths of the trace come again more often."""
STEPS = 3
EPOCHS = 10
"""That a strategy runs beside its rounds: once from nothing, steady calls, calibration, and the reference."""


@dataclass(frozen=True)
class Paces:
    """Seconds by rising length: to compile a graph of that length, and to run one step of the slower engine."""

    lengths: tuple[int, ...]
    compile: tuple[float, ...]
    step: tuple[float, ...]

    def compiling(self, length: int) -> float:
        """The seconds to compile for a length."""
        return _between(self.lengths, self.compile, length)

    def stepping(self, length: int) -> float:
        """The seconds of a step."""
        return _between(self.lengths, self.step, length)

    def seconds(self, lengths: Sequence[int], rounds: int) -> float:
        """What all strategies take for these lengths with so many rounds, about: compilations and steps."""
        layouts = [STRATEGIES[name].layout(lengths, 1) for name in STRATEGIES]
        compiled = sum(
            self.compiling(int(str(size)) or min(lengths)) for layout in layouts for size in set(layout.shapes)
        )
        steps = sum(self.stepping(size) for layout in layouts for size in layout.sizes)
        return compiled + steps * (EPOCHS + rounds)


def measure(job: Job) -> LengthsProbe:
    """The record of the worker: of each of the job's lengths as long as time lasts."""
    from compare.instruments.lengths.measure import SIZES

    started, size = time.perf_counter(), SIZES[str(job.size)]
    points: list[tuple[int, float, float]] = []
    for length in sorted(set(job.examples)):
        spent = time.perf_counter() - started
        if points and spent + sum(points[-1][1:]) * (length / points[-1][0]) ** 2 > job.budget.seconds:
            break
        points.append((length, *_paces(str(job.workload), length, size.width, job.seed)))
    return LengthsProbe(points)


def _paces(model: str, length: int, width: int, seed: int) -> tuple[float, float]:
    inputs = stream(model, (length, length), width, 1, seed)
    arms = [STRATEGIES[name].build(inputs) for name in ("dynamic", "static, exact")]
    first = [timed(partial(arm, 0))[0] for arm in arms]
    steps = [min(timed(partial(arm, 1))[0] for _ in range(STEPS)) for arm in arms]
    return max(0.0, first[1] - steps[1]), max(steps)


def paces(record: Record) -> Paces:
    """What a probe's record says. Raises NothingMeasuredError where it measured no length."""
    if not isinstance(record, LengthsProbe) or not record.points:
        error = record.error if isinstance(record, Failure) else "no time"
        raise NothingMeasuredError(f"no length could be probed: {error}; see `graphduel doctor`")
    return Paces(*zip(*record.points, strict=True))


def fitted(lengths: Sequence[int], paces: Paces, rounds: int, limit: float, count: int, seed: int) -> TraceSample:
    """The largest sample of a trace that all strategies are through with in `limit` seconds.

    First it has fewer lengths, at last a quarter of `count`; then the longest lengths are left out. Where nothing fits
    it is the smallest of these.
    """
    ranked, fitting = sorted(lengths), None
    for share in KEPT:
        cap = None if share == 1 else ranked[int(share * (len(ranked) - 1))]
        for part in (1.0, 0.5, 0.25):
            fitting = sample(lengths, round(part * count), max(LEAST_SIZES, round(part * count / REPEATS)), seed, cap)
            if paces.seconds(fitting.lengths, rounds) <= limit:
                return fitting
    assert fitting is not None  # noqa: S101  (there is a share)
    return fitting


def _between(lengths: Sequence[int], seconds: Sequence[float], length: int) -> float:
    """The seconds of a length: a power law between those measured, and beyond the longest at least the square."""
    if length >= lengths[-1]:
        return seconds[-1] * max(1.0, (length / lengths[-1]) ** 2)
    return exp(np.interp(log(length), np.log(lengths), np.log(np.maximum(seconds, 1e-9))))
