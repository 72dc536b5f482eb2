"""How good the advice is: predictions for workloads that nothing was calibrated on, against what they then take.

Both are seconds of the thread's own clock, which stands still while others have the core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from math import exp, inf, log
from random import Random
from statistics import geometric_mean, median
from typing import Any

from compare import engines, workloads
from compare.advice import TIE, Costs, advise_case, scores
from compare.advice.prediction import winner
from compare.errors import described
from compare.instruments.time.measure import steady_call
from compare.instruments.time.rounds import paired_rounds
from compare.records.job import Budget
from compare.run.progress import Reporter
from compare.stats import proportion_interval
from compare.workloads.base import Case

BUDGET = Budget(rounds=8, least=4, seconds=1.0, block_seconds=2e-3, width=0.05)
EXAMPLES = 6
"""Of a stream, so that no row takes long."""
TARGET = 0.9
SIZES = ("small", "medium")
CALLS = (1, 10, 100, 1000)
"""As many calls decide between compiling and not."""

Make = Callable[[], Case]
Arms = tuple[str, str]
"""What the two arms are called, the one that compiles nothing first."""
ANYTHING = (0.0, inf)
"""An interval that says nothing."""
OURS: Arms = ("dynamic", "static")


@dataclass(frozen=True)
class PredictionRow:
    """A prediction and what was measured: both ratios are compiled ÷ eager, static ÷ dynamic of our engines.

    Times are `(predicted, measured)`; what the first pass over the examples takes more is the compilation. `ops` are
    those on the tape of a step. `interval` is that of the prediction.
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
        """The ratio over so many calls with the compilation, predicted (0) or measured (1)."""
        return (self.compiled[which] * calls + self.compile[which]) / (self.eager[which] * calls)

    @property
    def called(self) -> bool:
        """Whether the prediction is outside the tie zone."""
        return winner(self.predicted) != "too close to call"

    @property
    def hit(self) -> bool:
        """Whether the engine that was said to win did."""
        return (self.predicted < 1) == (self.ratio < 1)

    def to_dict(self, arms: Arms = OURS) -> dict[str, Any]:
        """Plain JSON values, the arms by these names; the times are predicted, measured."""
        names: dict[str, str] = dict(zip(OURS, arms, strict=True))
        said = winner(self.predicted)
        shown = {"predicted_ratio": self.predicted, "measured_ratio": self.ratio, "confidence": self.confidence}
        return {
            "name": self.name, **shown, "interval": list(self.interval), "ops": self.ops,
            "winner": names.get(said, said), "hit": self.hit if self.called else None,
            "eager_seconds": list(self.eager), "compiled_seconds": list(self.compiled),
            "compile_seconds": list(self.compile),
        }  # fmt: skip


def cases(sizes: tuple[str, ...] = SIZES, only: str | None = None) -> dict[str, Make]:
    """Every workload at each size that the glob matches, made when it is called."""
    return {
        f"{name}/{size}": partial(_case, name, size)
        for name, size in product(workloads.names(), sizes)
        if only is None or fnmatchcase(f"{name}/{size}", only) or fnmatchcase(name, only)
    }


def _case(name: str, size: str) -> Case:
    return workloads.get(name).case(size)


def from_rows(rows: Mapping[str, Callable[[], Any]]) -> dict[str, Make]:
    """Cases of a table whose entries make a loss, its parameters and its inputs."""
    return {name: partial(_made, make) for name, make in rows.items()}


def _made(make: Callable[[], Any]) -> Case:
    loss, params, inputs = make()
    return Case(loss, params, (tuple(inputs),), (1,))


def evaluate(chosen: Mapping[str, Make], costs: Costs, reporter: Reporter) -> dict[str, Any]:
    """The rows with their hit rate, and why others were left out; measured in this process."""
    rows, left_out = [], {}
    reporter.pace.total = len(chosen)
    with reporter:
        for name, make in chosen.items():
            reporter.start(name)
            problem = None
            try:
                rows.append(row(name, make(), costs))
            except Exception as error:  # noqa: BLE001  (one row that fails ends no evaluation)
                problem = left_out[name] = described(error)
            reporter.finish(problem)
    return {**summary(rows), "left_out": left_out, "machine": costs.machine, "calibration_seconds": costs.seconds}


def row(name: str, whole: Case, costs: Costs) -> PredictionRow:
    """Predict, then measure. Raises UnsupportedError and what the engines raise."""
    case = replace(whole, examples=whole.examples[:EXAMPLES], lengths=whole.lengths[:EXAMPLES])
    found = advise_case(case, costs)
    predicted = found.ratio
    steps, first = {}, {}
    for arm in ("dynamic", "static-exact"):
        started = time.thread_time()
        steps[arm] = engines.step(arm, case)
        steady_call(steps[arm])()
        first[arm] = time.thread_time() - started
    calls = {arm: steady_call(step) for arm, step in steps.items()}
    blocks = paired_rounds(calls, BUDGET, Random(name), time.thread_time_ns).steady()
    eager, compiled = blocks["dynamic"], blocks["static-exact"]
    ratio = geometric_mean(a / b for a, b in zip(compiled, eager, strict=True))
    if predicted is None or found.static is None or found.dynamic is None:
        raise ValueError(f"the prediction says that static refuses it: {found.refused}")
    count = len(case.examples)
    return PredictionRow(
        name,
        predicted,
        ratio,
        eager=(found.dynamic.total, min(eager) / count),
        compiled=(found.static.total, min(compiled) / count),
        compile=(found.compile or 0.0, max(0.0, first["static-exact"] - min(compiled))),
        confidence=found.confidence,
        ops=found.dynamic.count,
        interval=found.interval or ANYTHING,
    )


def summary(rows: list[PredictionRow], arms: Arms = OURS) -> dict[str, Any]:
    """Hit rates outside the tie zone, once warm and over some calls with the compilation, and how far times are off.

    `always_compiled` is what naming the compiled arm each time would have hit among the same rows; `covered` are the
    measured ratios in the interval of their prediction; `scores` are those of `compare.advice.scores`.
    """
    warm = _rate([(one.predicted, one.ratio) for one in rows])
    pairs = {calls: [(one.total_ratio(calls, 0), one.total_ratio(calls, 1)) for one in rows] for calls in CALLS}
    return {
        "tie_zone": [1 / TIE, TIE],
        "rows": [one.to_dict(arms) for one in rows],
        **warm,
        "target": TARGET,
        "met": warm["rate"] is not None and warm["rate"] >= TARGET,
        "scores": scores.scores(rows, arms),
        "covered": sum(one.interval[0] <= one.ratio <= one.interval[1] for one in rows),
        "over_calls": {str(calls): _rate(found) for calls, found in pairs.items()},
        "all_calls": _rate([pair for found in pairs.values() for pair in found]),
        "ratio_off_by": _off((one.predicted, one.ratio) for one in rows),
        "eager_off_by": _off(one.eager for one in rows),
        "compiled_off_by": _off(one.compiled for one in rows),
        "compile_off_by": _off(one.compile for one in rows),
    }


def _rate(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Of predicted and measured ratios: how many were called, how many of those rightly, and the share with its 95%."""
    called = [(predicted, ratio) for predicted, ratio in pairs if winner(predicted) != "too close to call"]
    hits = sum((predicted < 1) == (ratio < 1) for predicted, ratio in called)
    rate = proportion_interval(hits, len(called)) if called else None
    return {
        "called": len(called),
        "hits": hits,
        "rate": rate and rate.estimate,
        "interval": rate and rate.bounds(),
        "always_compiled": sum(ratio < 1 for _, ratio in called),
    }


def _off(pairs: Iterator[tuple[float, float]]) -> float | None:
    """The median factor between predicted and measured, either way."""
    found = [abs(log(predicted / measured)) for predicted, measured in pairs if predicted > 0 and measured > 0]
    return exp(median(found)) if found else None
