"""Evaluation of the advice: predictions for programs outside the fit, compared with their measured times.

`evaluate` measures and sums up. `scores` compares hits with trivial predictors, by regime, and checks the stated odds.

A prediction names the faster mode and the probability of this. It is judged if the measured times differ by more than
`DECIDED`. The Brier score (Monthly Weather Review 78, 1950) judges the stated probabilities on all rows: the mean
square of the difference between probability and outcome (0 or 1), 0 at best, 0.25 for always stating one half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise, product
from math import exp, inf, log
from statistics import fmean, median
from typing import Any

from compare import workloads
from compare.advice import counting
from compare.advice.prediction import TIE, Modes, Prices, predict, winner_of
from compare.engines import Engine
from compare.records.own import CountedProgram
from compare.records.record import group_by
from compare.run.progress import Reporter
from compare.stats import proportion_interval
from compare.subjects.subject import Subject

TARGET = 0.9
SIZES = ("small", "medium")
CALLS = (1, 10, 100, 1000)
"""The numbers of calls for which the choice between compiling and not is evaluated."""

ANYTHING = (0.0, inf)
"""The interval of a prediction without one."""


@dataclass(frozen=True)
class PredictionRow:
    """A prediction beside the measurement; both ratios are compiled ÷ eager.

    Times are pairs (predicted, measured) in seconds; `compile` is the extra time of the first pass over the examples.
    `ops` is the number of ops on the tape of a step. `interval` is the 95% interval of the prediction.
    """

    name: str
    predicted: float
    ratio: float
    eager: tuple[float, float]
    compiled: tuple[float, float]
    compile: tuple[float, float]
    confidence: float
    ops: int = 0
    interval: tuple[float, float] = ANYTHING

    def total_ratio(self, calls: int, which: int) -> float:
        """Return compiled ÷ eager over `calls` calls with the compilation, predicted (`which` 0) or measured (1)."""
        return (self.compiled[which] * calls + self.compile[which]) / (self.eager[which] * calls)

    @property
    def called(self) -> bool:
        """Whether the prediction is outside the tie zone."""
        return not 1 / TIE <= self.predicted <= TIE

    @property
    def hit(self) -> bool:
        """Whether the predicted winner was the faster mode."""
        return (self.predicted < 1) == (self.ratio < 1)

    @property
    def regime(self) -> str:
        """The name after the slash: a workload's size, or a program's size and depth."""
        return self.name.partition("/")[2]

    @property
    def probability(self) -> float:
        """The stated probability that the compiled mode is faster."""
        return self.confidence if self.predicted < 1 else 1 - self.confidence

    def to_dict(self, modes: Modes) -> dict[str, Any]:
        """Return plain JSON values, with the names of the modes; times are `[predicted, measured]`."""
        shown = {"predicted_ratio": self.predicted, "measured_ratio": self.ratio, "confidence": self.confidence}
        return {
            "name": self.name, **shown, "interval": list(self.interval), "ops": self.ops,
            "winner": winner_of(self.predicted, modes), "hit": self.hit if self.called else None,
            "eager_seconds": list(self.eager), "compiled_seconds": list(self.compiled),
            "compile_seconds": list(self.compile),
        }  # fmt: skip


def names(engine: Engine, only: str | None = None) -> list[str]:
    """Return the workloads that the glob matches, at each size; only small ones if compiling is slow."""
    sizes = SIZES[:1] if engine.compiles_slowly else SIZES
    whole = (f"{name}/{size}" for name, size in product(workloads.names(), sizes))
    return [name for name in whole if only is None or fnmatchcase(name, only) or fnmatchcase(name.split("/")[0], only)]


def evaluate(
    asked: Subject, prices: Prices, chosen: Sequence[str], reporter: Reporter, rows: str = ""
) -> dict[str, Any]:
    """Measure each program in a process of its own; returns rows, hit rates, and the reasons for programs left out."""
    judged, left_out = [], {}
    with counting.workers(asked, len(chosen), reporter, rows, prices.threads) as workers:
        for name, program in workers.each(chosen):
            why = program if isinstance(program, str) else program.refused
            if why is None and isinstance(program, CountedProgram):
                judged.append(row(program, prices))
            else:
                left_out[name] = why
    return {
        **summary(judged, prices.modes),
        "left_out": left_out,
        "machine": prices.machine,
        "calibration_seconds": prices.seconds,
    }


def row(program: CountedProgram, prices: Prices) -> PredictionRow:
    """Make the row of a program that was timed. Raises ValueError for one that was not timed or is refused."""
    said, taken = predict(prices, program), program.timed
    if taken is None or said.eager is None or said.compiled is None or said.ratio is None:
        raise ValueError(f"{program.name} was not timed, or it is refused: {said.refused}")
    return PredictionRow(
        program.name,
        said.ratio,
        taken.compiled / taken.eager,
        (said.eager, taken.eager),
        (said.compiled, taken.compiled),
        (said.compile or 0.0, taken.compile),
        said.confidence,
        said.ops,
        said.interval or ANYTHING,
    )


def summary(rows: Sequence[PredictionRow], modes: Modes) -> dict[str, Any]:
    """Sum up rows: hit rates outside the tie zone, once warm and over some calls with compilation, and errors.

    `always_compiled` is the number of hits of always naming the compiled mode. `covered` counts the measured ratios
    inside the interval of their prediction. `scores` are those of the function `scores`.
    """
    warm = _rate([(row.predicted, row.ratio) for row in rows])
    pairs = {calls: [(row.total_ratio(calls, 0), row.total_ratio(calls, 1)) for row in rows] for calls in CALLS}
    return {
        "tie_zone": [1 / TIE, TIE],
        "rows": [row.to_dict(modes) for row in rows],
        **warm,
        "target": TARGET,
        "met": warm["rate"] is not None and warm["rate"] >= TARGET,
        "scores": scores(rows, modes),
        "covered": sum(row.interval[0] <= row.ratio <= row.interval[1] for row in rows),
        "over_calls": {str(calls): _rate(ratios) for calls, ratios in pairs.items()},
        "all_calls": _rate([pair for ratios in pairs.values() for pair in ratios]),
        "ratio_off_by": _off((row.predicted, row.ratio) for row in rows),
        "eager_off_by": _off(row.eager for row in rows),
        "compiled_off_by": _off(row.compiled for row in rows),
        "compile_off_by": _off(row.compile for row in rows),
    }


def _rate(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the hit rate of pairs of predicted and measured ratio outside the tie zone, with its 95% interval."""
    called = [(predicted, ratio) for predicted, ratio in pairs if not 1 / TIE <= predicted <= TIE]
    hits = sum((predicted < 1) == (ratio < 1) for predicted, ratio in called)
    always = sum(ratio < 1 for _, ratio in called)
    return {"called": len(called), **_share(hits, len(called)), "always_compiled": always}


def _share(hits: int, of: int) -> dict[str, Any]:
    rate = proportion_interval(hits, of) if of else None
    return {"hits": hits, "rate": rate and rate.estimate, "interval": rate and rate.bounds()}


def _off(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Return the median factor between predicted and measured values, either way; None without pairs."""
    off = [abs(log(predicted / measured)) for predicted, measured in pairs if predicted > 0 and measured > 0]
    return exp(median(off)) if off else None


DECIDED = 1.15
"""Measured times that differ by no more than this factor have no winner."""
STATED = (0.5, 0.75, 0.95, 1.0)
"""The ends of the groups in which stated probabilities are compared with outcomes."""


def scores(rows: Sequence[PredictionRow], modes: tuple[str, str]) -> dict[str, Any]:
    """Count hits among rows with a winner, in all, by regime and for trivial predictors, and add the Brier score."""
    decided = [row for row in rows if max(row.ratio, 1 / row.ratio) > DECIDED]
    groups = group_by(decided, lambda row: row.regime)
    # Trivial predictors: always one mode, or a bound on the number of ops, the best in hindsight.
    eager, compiled = modes
    wins = sum(row.ratio < 1 for row in decided)
    bounds = {row.ops for row in decided}
    above = {n: sum((row.ops > n) == (row.ratio < 1) for row in decided) for n in bounds}
    best = max(sorted(above), key=above.__getitem__, default=0)
    trivial = {
        f"always {compiled}": wins,
        f"always {eager}": len(decided) - wins,
        f"{compiled} above {best} ops": above.get(best, 0),
    }
    return {
        "beyond": DECIDED,
        **_hits(decided),
        "predictors": trivial,
        "regimes": {name: _hits(group) for name, group in groups.items()},
        "brier": fmean((row.probability - (row.ratio < 1)) ** 2 for row in rows) if rows else None,
        "brier_of_one_half": 0.25,
        "stated": _calibration_rows(rows),
    }


def _hits(rows: Sequence[PredictionRow]) -> dict[str, Any]:
    return {"of": len(rows), **_share(sum(row.hit for row in rows), len(rows))}


def _calibration_rows(rows: Sequence[PredictionRow]) -> list[dict[str, float]]:
    """Return for each group of stated probabilities the number of rows, their mean, and the share that came true."""
    groups = []
    for low, high in pairwise(STATED):
        group = [row for row in rows if low <= row.confidence and (row.confidence < high or high == 1)]
        if group:
            stated, happened = fmean(row.confidence for row in group), fmean(row.hit for row in group)
            groups.append({"rows": len(group), "stated": stated, "happened": happened})
    return groups
