"""Asking workers: each probe in a fresh process, and the user's step. All share the compiler's cache on the disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compare.advice import kept
from compare.advice.counted import CountedCosts, Row, fitted
from compare.advice.probes import PROBES
from compare.errors import CompareError, WorkerError
from compare.own.question import Question
from compare.own.workers import checked
from compare.records.framework_work import FrameworkWork
from compare.records.job import Job
from compare.records.record import kind_of
from compare.records.runs import error_of
from compare.run.processes import run_job
from compare.run.progress import Reporter

TIMEOUT = 120.0
"""Seconds for a step: what compiles longer is left out."""
LEAST = 8
"""Probes that must have an answer: there are six prices to fit."""


@dataclass(frozen=True)
class Workers:
    """Fresh processes of a framework, with a cache in a folder."""

    asked: Question
    folder: Path
    reporter: Reporter

    def look(self, function: str, arms: Iterable[str]) -> FrameworkWork:
        """The work of a probe, a workload or the user's function, timed if there are two arms.

        Raises InputsError and FunctionError for what is wrong with a user's file, WorkerError where nothing came back.
        """
        chosen = tuple(arms)
        job = Job(
            kind_of(FrameworkWork),
            size=function,  # what the label says
            seed=self.asked.seed,
            arms=chosen,
            asked={**self.asked.to_dict(), "function": function},
            variables=self.asked.adapter.environment(self.folder, self.asked.device),
        )
        self.reporter.start(job.label)
        answer = run_job(job, TIMEOUT)
        self.reporter.finish(error_of(answer))
        found: FrameworkWork = checked(answer, function)
        return found


def calibrated(asked: Question, reporter: Reporter) -> CountedCosts:
    """The costs of the two arms that are asked about, from probes. Raises WorkerError where too few came through."""
    reporter.pace.total = len(PROBES)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        rows = list(measured(Workers(asked, Path(folder), reporter), PROBES))
    if len(rows) < LEAST:
        raise WorkerError(
            f"{len(rows)} of {len(PROBES)} probes gave a result, {LEAST} are needed; try graphduel doctor"
        )
    eager, compiled = asked.arms
    return fitted((eager, compiled), asked.adapter.version, kept.machine(), [row for _, row in rows])


def measured(workers: Workers, names: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """What each of these did and took. One that fails or is refused is left out, and the reporter says so."""
    for name in names:
        try:
            found = workers.look(name, workers.asked.arms)
        except CompareError as error:
            workers.reporter.notice(f"left out: {error}")
            continue
        if found.timed is not None:
            yield name, Row(found.works[0], found.timed)
