"""Advice by counted steps: the question, the prices from a file or from probes, then one function, or many judged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from compare.advice import kept
from compare.advice.compiling import Prediction, predict
from compare.advice.counted import CountedCosts, Row, load, save
from compare.advice.evaluation import PredictionRow
from compare.advice.kept import Kept
from compare.advice.probing import Workers, calibrated, measured
from compare.errors import InputsError
from compare.own.question import Question, asked_of
from compare.records.framework_work import Timed
from compare.run.progress import Reporter


def question(framework: str, function: str, inputs: str, mode: str | None) -> Question:
    """What is asked: the eager arm and one that compiles, that of a mode or the first. Raises InputsError."""
    asked = asked_of(framework, function, inputs, (mode,) if mode else None)
    if len(asked.arms) < 2:
        raise InputsError(f"{asked.adapter.title} does not compile; there is nothing to predict")
    return replace(asked, arms=asked.arms[:2])


def prices(asked: Question, reporter: Reporter) -> Kept[CountedCosts]:
    """Where the prices of the two arms are kept, and how they are measured."""
    return Kept(
        asked.arms[1],
        lambda path: load(path, asked.adapter.version, kept.machine()),
        save,
        lambda: calibrated(asked, reporter),
        "with probes, in minutes",
    )


def advised(asked: Question, costs: CountedCosts, reporter: Reporter) -> Prediction:
    """The prediction for the user's function, which a worker runs once a call. Raises what `Workers.look` raises."""
    with _workers(asked, 1, reporter) as workers:
        found = workers.look(asked.function, asked.arms[:1])
    return predict(costs, found.works, found.shapes)


def judged(asked: Question, costs: CountedCosts, names: list[str], reporter: Reporter) -> list[PredictionRow]:
    """Predictions for these workloads against what they take."""
    with _workers(asked, len(names), reporter) as workers:
        return [_row(name, predict(costs, [row.work], 1), row) for name, row in measured(workers, names)]


def _row(name: str, said: Prediction, row: Row) -> PredictionRow:
    """What was said beside what was measured."""
    taken = row.timed
    return PredictionRow(
        f"{name}/small",
        said.ratio,
        taken.compiled / taken.eager,
        (said.times.eager, taken.eager),
        (said.times.compiled, taken.compiled),
        (_more(said.times), _more(taken)),
        said.confidence,
        row.work.ops,
        said.interval,
    )


def _more(times: Timed) -> float:
    """What the first call takes more than others."""
    return max(0.0, times.first - times.compiled)


@contextmanager
def _workers(asked: Question, steps: int, reporter: Reporter) -> Iterator[Workers]:
    reporter.pace.total = steps
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        yield Workers(asked, Path(folder), reporter)
