"""What `graphduel compare` does with a function of the user's: a worker looks at it first, then others measure it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from compare.own import measure
from compare.own.bundle import SIZE
from compare.own.faults import checked
from compare.own.question import Question
from compare.own.result import Result
from compare.records.job import Budget, Job
from compare.records.own import FunctionLook
from compare.records.record import Record, kind_of
from compare.records.results import unfolded
from compare.records.runs import Setting, error_of
from compare.run.processes import run_job
from compare.run.progress import Reporter

R = TypeVar("R", bound=Record)


def compared(asked: Question, reporter: Reporter) -> Result:
    """The result of fresh workers, none of which may go on for `asked.limit` seconds without progress.

    Raises CompareError, with its exit code, for what is wrong with the user's file, function or calls.
    """
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        look = looked(replace(asked, folder=folder), reporter)
        records = unfolded(look)[:-1]
        what = Job(
            "parity",
            look.name,
            SIZE,
            source=look.source,
            seed=asked.seed,
            arms=tuple(look.arms),
            budget=Budget(seconds=asked.seconds),
        )
        head = measure.header(what, look, {**look.settings, **_said(asked)})
        if look.source:
            execute = partial(measure.worker, limit=asked.limit)
            records += measure.timed(
                what,
                records,
                execute,
                reporter,
                asked.processes,
                gradient=bool(look.settings["gradient"]),
                apart=asked.apart,
            )
    return Result(look.name, tuple(look.arms), (head, *records))


def looked(asked: Question, reporter: Reporter) -> FunctionLook:
    """What a worker finds of the function before it is timed. Raises as `compared`."""
    return answer(FunctionLook, asked.function, asked.to_dict(), asked.limit, reporter, asked.seed)


def answer(
    kind: type[R],
    function: str,
    asked: Mapping[str, Any],
    limit: float = measure.LIMIT,
    reporter: Reporter | None = None,
    seed: int = 0,
) -> R:
    """What a worker of its own finds of a function of the user's. Raises as `compared`."""
    reporter = reporter or Reporter()
    job = Job(kind_of(kind), size=function, seed=seed, asked=asked)
    reporter.pace.expect([job])
    with reporter:
        reporter.start(job.label)
        record = run_job(job, limit, reporter.step)
        reporter.finish(error_of(record), job)
    reporter.cause(record.ended)
    found: R = checked(record, function)
    return found


def _said(asked: Question) -> Mapping[str, Setting]:
    return {"processes": asked.processes or measure.REPEATS, "command": asked.command}
