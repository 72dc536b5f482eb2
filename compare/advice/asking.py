"""Asking workers: which prices an engine has here, and what a function or many programs do in it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from compare.advice import prices, probes
from compare.advice.prices import Prices, Row, Say, fitted
from compare.errors import CompareError, InputsError, WorkerError
from compare.own.question import Question, asked_of
from compare.own.workers import checked
from compare.records.job import Budget, Job
from compare.records.record import error_of, kind_of
from compare.records.work import CountedProgram, CountedPrograms
from compare.run.processes import run_job
from compare.run.progress import Reporter

TIMEOUT = 180.0
"""Seconds without progress: what compiles longer is left out."""
LEAST = 8
"""Programs that must have an answer: there are six prices to fit at least."""
BUDGET = Budget(rounds=12, block_seconds=0.01)
BRIEF = Budget(rounds=5, block_seconds=3e-3)
"""For a probe where there are many."""


@dataclass(frozen=True)
class Counters:
    """Fresh processes of an engine, with a cache in a folder."""

    asked: Question
    folder: Path
    reporter: Reporter
    rows: str = ""

    def look(self, names: Sequence[str], *, timed: bool, budget: Budget = BUDGET) -> list[CountedProgram]:
        """The counts of some programs, or of the user's function, from one process.

        Raises InputsError and FunctionError for what is wrong with a user's file, WorkerError where nothing came back.
        """
        job = Job(
            kind_of(CountedPrograms),
            size=names[0] if len(names) == 1 else f"{len(names)} programs",  # what the label says
            seed=self.asked.seed,
            arms=self.asked.arms,
            budget=budget,
            asked={"question": self.asked.to_dict(), "programs": list(names), "rows": self.rows, "timed": timed},
            variables=self.asked.adapter.environment(self.folder, self.asked.device),
        )
        self.reporter.start(job.label)
        answer = run_job(job, TIMEOUT, self.reporter.hear)
        self.reporter.finish(error_of(answer))
        counted: CountedPrograms = checked(answer, names[0])
        return counted.programs

    def each(self, names: Iterable[str]) -> Iterator[tuple[str, CountedProgram | str]]:
        """Each program timed in a process of its own, or why there is nothing of it."""
        for name in names:
            try:
                (program,) = self.look([name], timed=True)
            except CompareError as error:
                yield name, str(error)
            else:
                yield name, program


def question(engine: str, function: str, inputs: str, mode: str | None, gradient: bool | None = None) -> Question:
    """What is asked: the eager arm and one that compiles, that of a mode or the first. Raises InputsError."""
    asked = asked_of(engine, function, inputs, (mode,) if mode else None, gradient=gradient)
    if len(asked.arms) < 2:
        raise InputsError(f"{asked.adapter.title} does not compile; there is nothing to predict")
    return replace(asked, arms=asked.arms[:2])


def priced(asked: Question, path: Path | None, reporter: Reporter, say: Say, *, anew: bool = False) -> Prices:
    """The prices of the two arms, kept or measured now. Raises as `prices.kept` and `calibrated`."""
    return prices.kept(asked.adapter, asked.arms[1], path, lambda: calibrated(asked, reporter), say, anew=anew)


def calibrated(asked: Question, reporter: Reporter) -> Prices:
    """The prices of the two arms that are asked about, measured now. Raises WorkerError where too few came through.

    A process each, where compiling is slow, and else one for all.
    """
    started = time.perf_counter()
    engine = asked.adapter
    names = tuple(probes.FEW if engine.costly else probes.ALL)
    with workers(asked, len(names) if engine.costly else 1, reporter) as ask:
        if engine.costly:
            programs = [program for _, program in ask.each(names) if isinstance(program, CountedProgram)]
        else:
            programs = ask.look(names, timed=True, budget=BRIEF)
    rows = [row for program in programs if (row := row_of(program)) is not None]
    if len(rows) < LEAST:
        raise WorkerError(
            f"{len(rows)} of {len(names)} programs gave a result, {LEAST} are needed; try graphduel doctor"
        )
    eager, compiled = asked.arms
    return fitted((eager, compiled), prices.machine(engine), rows, time.perf_counter() - started)


def row_of(program: CountedProgram) -> Row | None:
    """A program of one call as a row of the fit; None where it was refused."""
    return Row(program.counts[0], program.timed) if program.timed and program.counts else None


@contextmanager
def workers(asked: Question, count: int, reporter: Reporter, rows: str = "") -> Iterator[Counters]:
    """Those who answer so many questions."""
    reporter.pace.total = count
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        yield Counters(asked, Path(folder), reporter, rows)
