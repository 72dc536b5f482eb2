"""One question about a function of the user's, asked of fresh processes, or answered in this one."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compare import engines
from compare.errors import FunctionError, InputsError
from compare.own import journal, measure, stages
from compare.own.question import REPEATS, Question
from compare.own.result import Result, Stopped
from compare.own.show import ALONE, HERE, WORKERS
from compare.own.workers import Workers
from compare.records.cells import Compilations, Glimpse, Time
from compare.records.job import Job
from compare.records.own import FunctionLook
from compare.records.record import OWN, Bare, Failure, Record, Records, Setting, of
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import started
from compare.words import text


def compared(question: Question, reporter: Reporter, folder: Path | None = None) -> Result:
    """The result of fresh processes: the first look at the function, those that meet an empty cache, and the others.

    In a framework a mode has a first process of its own. If all of these are ended at their limit, the base
    has one alone. No processes are one that measures all. What ended in an earlier start is taken from the journal in
    the folder, where this one keeps what ends.

    Raises CompareError, with its exit code, for what is wrong with the user's file, function or calls, and Stopped.
    """
    where = WORKERS if question.processes else HERE if question.adapter.is_reference else ALONE
    with _workers(question, reporter, folder) as workers:
        try:
            question = _asked(workers)
            answer = run_job(Job("environment"), question.limit)
        except KeyboardInterrupt as stop:
            raise Stopped(_so_far(workers, where)) from stop
    return result(question, workers.answers, where, answer)


def _asked(workers: Workers) -> Question:
    """The question, all of whose jobs are done."""
    question, reporter = workers.question, workers.reporter
    jobs = question.first_jobs()
    ahead = [] if question.adapter.is_reference else stages.planned(question, question.arms)
    reporter.pace.expect([*jobs, *ahead])
    reporter.pace.alike = True
    first = [record for job in jobs for record in workers(job)]
    times = of(first, Time)
    if not question.adapter.is_reference and not any(question.mode(question.base) in time.arms for time in times):
        alone = question.time_job((question.base,), jobs[0].process)
        reporter.pace.expect([alone])
        first += workers(alone)
    if (wider := question.with_written(first)) != question:
        question, workers = wider, replace(workers, question=wider)
        written = question.time_job((question.base, question.arms[-1]), jobs[0].process)
        reporter.pace.expect([written])
        first += workers(written)
    if question.processes:
        stages.timed(question, stages.source_of(first), first, workers, reporter, len(ahead))
    return question


def _so_far(workers: Workers, where: str) -> Result | None:
    """What the finished processes say; None where they say nothing."""
    answers, question = workers.answers, workers.question.with_written(workers.answers)
    there = next((record.environment for record in answers if record.environment), None)
    if there is None:
        return None
    done = {record.label for record in answers if not isinstance(record, Glimpse)}
    labels = [workers.label(job) for job in stages.plan(question, answers)]
    missing = [label for label in labels if label not in done]
    of_all = f"after {len(labels) - len(missing)} of {text.counted(len(labels), 'process')}"
    said = f"{_where(answers)}{of_all}; {_missing(labels, missing)}"
    return result(question, answers, where, Bare(environment=there), stopped=said)


def _where(answers: Records) -> str:
    """`in the first calls of compile, `, where that is what was stopped."""
    stopped = of(answers, Glimpse)
    return f"in {stopped[-1].label}, " if stopped else ""


def _missing(labels: Sequence[str], missing: Sequence[str]) -> str:
    """`missing: times of compile in 4 of 5 processes`."""
    of_all, left = (Counter(label.partition(", process ")[0] for label in each) for each in (labels, missing))
    many = {
        name: f" in {count} of {of_all[name]} processes" if of_all[name] > 1 else "" for name, count in left.items()
    }
    return f"missing: {text.listed([name + words for name, words in many.items()])}" if left else "nothing is missing"


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
        where = WORKERS if source else HERE if question.adapter.is_reference else ALONE
        try:
            first = this.first()
            question = question.with_written(first)
            execute = replace(workers, question=question) if source else this
            answers = [*first, *stages.timed(question, source, first, execute, reporter)]
            environment = run_job(Job("environment"), question.limit) if source else measure.here()
        except KeyboardInterrupt as stop:
            so_far = [*this.answers, *workers.answers]
            said = _where(so_far) + f"after {text.counted(len({record.job for record in so_far}), 'look')}"
            question = question.with_written(so_far)
            raise Stopped(result(question, so_far, where, measure.here(), said) if so_far else None) from stop
    return result(question, answers, where, environment)


@contextmanager
def _workers(question: Question, reporter: Reporter, folder: Path | None = None) -> Iterator[Workers]:
    with tempfile.TemporaryDirectory(prefix="graphduel-") if folder is None else nullcontext(folder) as place, reporter:
        own = Path(place) / question.engine
        yield Workers(replace(question, folder=str(own)), reporter, journal.read(own))


def result(question: Question, answers: Records, where: str, environment: Record, stopped: str = "") -> Result:
    """The result of the records that the processes left, as those of a run on a function of the user's.

    `stopped` says how far it came that was stopped.

    Raises FunctionError where none has an answer.
    """
    looks, lost, told = of(answers, FunctionLook), of(answers, Failure), of(answers, Compilations)
    times, glimpses = of(answers, Time), of(answers, Glimpse)
    if lost and not (looks or times or glimpses):
        raise FunctionError(f"{question.function}: {lost[0].error}")
    repeats = question.processes or (REPEATS if question.adapter.is_reference else 1)
    if stopped:
        repeats = len({time.process for time in times if time.cache != "cold"}) or 1
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": question.seed,
        "only": None,
        "where": where,
        "function": question.name,
        "inputs": max(
            *(len(row.stream or (0,)) for time in times for row in time.arms.values()),
            *(row.calls for glimpse in glimpses for row in glimpse.arms.values()),
            *(0, 0),
        ),
        "gradient": question.argnum is not None,
        **(looks[0].settings if looks else {}),
        "trains": any(record.trains for record in told),
        "framework": None if question.engine == engines.OWN else question.engine,
        "version": question.adapter.version,
        "device": question.device,
        "processes": repeats,
        "command": question.command or None,
        **({"stopped": stopped} if stopped else {}),
    }
    return Result(question.name, question.modes, (started(settings, environment), *stages.merged(answers)))
