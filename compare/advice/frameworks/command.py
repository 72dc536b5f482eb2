"""What `graphduel advise --framework` does: the costs from a file or from probes, then one function, or many judged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

from compare import workloads
from compare.advice.frameworks.calibration import Workers, calibrated, measured
from compare.advice.frameworks.costs import FrameworkCosts, Row, load, save
from compare.advice.frameworks.prediction import Prediction, predict, winner_of
from compare.errors import CompareError, InputsError
from compare.own.frameworks.asked import Asked
from compare.own.frameworks.run import asked_of
from compare.records import machines
from compare.run.environment import environment
from compare.run.progress import Reporter


def question(framework: str, function: str, inputs: str, mode: str | None) -> Asked:
    """What is asked: the eager arm and one that compiles, that of a mode or the first. Raises InputsError."""
    asked = asked_of(framework, function, inputs, (mode,) if mode else ())
    if len(asked.arms) < 2:
        raise InputsError(f"{asked.adapter.title} does not compile; there is nothing to predict")
    return replace(asked, arms=asked.arms[:2])


def costs_of(asked: Asked, path: Path | None, reporter: Reporter) -> FrameworkCosts:
    """The costs in a file, by default one of the user's cache, or new ones, which are then written there.

    A file that a user names and that is of another machine is an error: CompareError. One in the cache is replaced.
    """
    place = path or _cache() / f"{asked.arms[1]}.json"
    if place.exists():
        try:
            return load(place, asked.adapter.version, machines.fingerprint(environment()))
        except CompareError as error:
            if path is not None:
                raise
            reporter.notice(f"{error}; calibrating anew")
    reporter.notice(
        f"measuring the costs of {asked.adapter.title} with probes, which takes minutes, once on this machine"
    )
    costs = calibrated(asked, reporter)
    save(costs, place)
    return costs


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return Path(root or "~/.cache").expanduser() / "graphduel" / "advice"


def advised(asked: Asked, costs: FrameworkCosts, reporter: Reporter) -> Prediction:
    """The prediction for the user's function, which a worker runs once a call. Raises what `Workers.look` raises."""
    reporter.pace.total = 1
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        found = Workers(asked, Path(folder), reporter).look(asked.function, asked.arms[:1])
    return predict(costs, found.works, found.shapes)


@dataclass(frozen=True)
class Judged:
    """A step, predicted and measured."""

    name: str
    predicted: Prediction
    row: Row

    @property
    def measured(self) -> float:
        """Compiled ÷ eager, once warm."""
        return self.row.timed.compiled / self.row.timed.eager

    @property
    def hit(self) -> bool | None:
        """Whether the right arm was named; None where none was, or where a measured tie has no right one."""
        if "too close to call" in (self.predicted.winner, winner_of(self.measured)):
            return None
        return self.predicted.winner == winner_of(self.measured)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        said = {"name": self.name, "said": self.predicted.winner, "hit": self.hit}
        return {**said, "predicted": self.predicted.ratio, "measured": self.measured}


def judged(asked: Asked, costs: FrameworkCosts, functions: Sequence[str], reporter: Reporter) -> list[Judged]:
    """Predictions of these functions, or of the small workloads where there are none, against what they take."""
    names = functions or workloads.names()
    reporter.pace.total = len(names)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        rows = measured(Workers(asked, Path(folder), reporter), names)
        return [Judged(name, predict(costs, [row.work], 1), row) for name, row in rows]


def off_by(found: Sequence[Judged]) -> float:
    """The factor by which predicted ratios are off, as a root mean square of logarithms."""
    return exp(fmean(log(one.predicted.ratio / one.measured) ** 2 for one in found) ** 0.5)
