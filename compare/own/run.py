"""One question about a function of the user's, asked of fresh processes, or answered in this one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compare import engines
from compare.errors import FunctionError, InputsError
from compare.own import measure, stages
from compare.own.question import REPEATS, Question
from compare.own.result import Result
from compare.own.show import HERE
from compare.own.workers import Workers
from compare.records.cells import Compilations, Time
from compare.records.job import Job
from compare.records.own import FunctionLook
from compare.records.record import OWN, Failure, Record, Records, Setting, of
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import started


def compared(question: Question, reporter: Reporter) -> Result:
    """The result of fresh processes: the first look at the function, those that meet an empty cache, and the others.

    Where compiling is costly a mode has a first process of its own. If all of these are ended at their limit, the base
    has one alone. No processes are one that measures all.

    Raises CompareError, with its exit code, for what is wrong with the user's file, function or calls.
    """
    with _workers(question, reporter) as workers:
        question = workers.question
        jobs = question.first_jobs()
        ahead = stages.planned(question, question.arms) if question.adapter.costly else []
        reporter.pace.expect([*jobs, *ahead])
        first = [record for job in jobs for record in workers(job)]
        looks, times = of(first, FunctionLook), of(first, Time)
        if question.adapter.costly and not any(question.mode(question.base) in time.arms for time in times):
            alone = question.time_job((question.base,), jobs[0].process)
            reporter.pace.expect([alone])
            first += workers(alone)
        if (wider := question.with_written(first)) != question:
            question, workers = wider, replace(workers, question=wider)
            first += workers(question.time_job((question.base, question.arms[-1]), jobs[0].process))
        source = next((look.source for look in looks if look.source), "")
        if question.processes:
            first += stages.timed(question, source, first, workers, reporter, len(ahead))
        answer = run_job(Job("environment"), question.limit)
    return result(question, first, "fresh workers" if question.processes else HERE, answer)


def here(
    question: Question,
    function: Any,
    inputs: Any,
    dims: Any = None,
    processes: int | None = 0,
    reporter: Reporter | None = None,
) -> Result:
    """The result of a function that is in this process already; workers measure it where they can find it.

    They are taken unless `processes` is 0, and where that is a number they must be able to.
    Raises InputsError where they are asked for and cannot be had.
    """
    reporter = reporter or Reporter()
    with question.adapter.visit(question.seed), _workers(question, reporter) as workers:
        subject = measure.subject_of(question, function, inputs, dims)
        this = measure.Here(subject)
        source = ""
        if processes != 0 and subject.case is not None:
            with suppress(*([] if processes else [InputsError])):
                source = measure.bundled(workers.folder, subject, dims)
        question = replace(workers.question, processes=(processes or REPEATS) if source else 0)
        first = this.first()
        question = question.with_written(first)
        execute = replace(workers, question=question) if source else this
        answers = [*first, *stages.timed(question, source, first, execute, reporter)]
        environment = run_job(Job("environment"), question.limit) if source else measure.here()
    where = "fresh workers" if source else HERE
    return result(question, answers, where, environment)


@contextmanager
def _workers(question: Question, reporter: Reporter) -> Iterator[Workers]:
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        yield Workers(replace(question, folder=folder), Path(folder), reporter)


def result(question: Question, answers: Records, where: str, environment: Record) -> Result:
    """The result of the records that the processes left, as those of a run on a function of the user's.

    Raises FunctionError where none has an answer.
    """
    looks, lost, told = of(answers, FunctionLook), of(answers, Failure), of(answers, Compilations)
    times = of(answers, Time)
    if lost and not (looks or times):
        raise FunctionError(f"{question.function}: {lost[0].error}")
    repeats = question.processes or (1 if question.adapter.costly else REPEATS)
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": question.seed,
        "only": None,
        "where": where,
        "function": question.name,
        "inputs": max((len(row.stream or (0,)) for time in times for row in time.arms.values()), default=0),
        "gradient": question.argnum is not None,
        **(looks[0].settings if looks else {}),
        "trains": any(record.trains for record in told),
        "framework": None if question.engine == engines.OWN else question.engine,
        "version": question.adapter.version,
        "device": question.device,
        "processes": repeats,
        "command": question.command or None,
    }
    return Result(question.name, question.modes, (started(settings, environment), *stages.merged(answers)))
