"""The question about a user's function in a framework, asked of several processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compare.engines import heap, named
from compare.errors import FunctionError, InputsError, OverrunError, WorkerError
from compare.instruments.runnables import TOLERANCE, FunctionRunnable
from compare.instruments.time.measure import COLD
from compare.own.faults import checked
from compare.own.frameworks.measure import job_of, measured_here
from compare.own.frameworks.merged import merged
from compare.own.frameworks.notes import Notes, reached
from compare.own.measure import HERE
from compare.own.question import Calls, Function, Question, arms_of
from compare.own.result import Result
from compare.records.compilations import Compilations
from compare.records.job import Job
from compare.records.parity import Parity, ParityArm
from compare.records.record import Record, Records, of
from compare.records.results import to_json, unfolded
from compare.records.runs import OWN, Bare, Failure, Setting, error_of
from compare.records.time import Call, Time, TimeArm
from compare.run import environment
from compare.run.processes import ask, run_job
from compare.run.progress import Reporter
from compare.run.runner import started
from compare.run.worker import failure
from compare.words import text


def asked_of(framework: str, function: str, inputs: str, modes: Sequence[str], **options: Any) -> Question:
    """The question. Raises InputsError for a mode that is none, and where the framework is not installed."""
    adapter = named(framework)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Question(framework, function, inputs, arms_of(adapter, tuple(modes)), **options)


def in_workers(asked: Question, processes: int, reporter: Reporter) -> Result:
    """The result of fresh processes: for each compiled mode a first one that meets an empty cache, then so many.

    A mode that is not right is not asked again. One that reached its limit is asked once more: what it compiled by then
    may be in its cache. What is known is told after each process. No processes are one that measures all.

    Raises InputsError and FunctionError for what is wrong with the user's file or function.
    """
    eager = asked.arms[0]
    reporter.pace.total = len(_pairs(eager, asked.arms)) * (1 + processes)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        workers = _Workers(asked, Path(folder), reporter)
        if not processes:
            alone = [record for arms in _pairs(eager, asked.arms) for record in workers.answer(arms, None)]
            return result(asked, alone, processes, run_job(Job("environment"), asked.limit))
        answers = [record for arms in _pairs(eager, asked.arms) for record in workers.answer(arms, COLD)]
        if not any(asked.mode(eager) in time.arms for time in of(answers, Time)):
            answers += workers.answer((eager,), COLD)
        refused = _refused(asked, answers, asked.arms, cut=False)
        right = [arm for arm in asked.arms if arm not in refused]
        reporter.pace.total = reporter.pace.done + len(_pairs(eager, right)) * processes
        for process in range(COLD + 1, COLD + 1 + processes):
            for arms in _pairs(eager, right):
                answer = workers.answer(arms, process)
                refused = _refused(asked, answer, arms, cut=True)
                right = [arm for arm in right if arm not in refused]
                answers += answer
            for words in _so_far(asked, answers, process - COLD, processes):
                reporter.notice(words)
        header = run_job(Job("environment"), asked.limit)
    return result(asked, answers, processes, header)


def here(asked: Question, function: Function, calls: Calls) -> Result:
    """The result of this process alone, for what no other process can import: no intervals, and no cold caches."""
    adapter = asked.started()
    arrays = [adapter.arrays(call) for call in calls]
    pairs = _pairs(asked.arms[0], asked.arms)
    answers = [record for arms in pairs for record in unfolded(measured_here(asked, function, arrays, arms))]
    return result(asked, answers, 0, Bare(environment=environment.environment()))


def result(asked: Question, answers: Records, processes: int, environment: Record) -> Result:
    """The result of the records that the processes left, as those of a run on a function of the user's.

    Raises FunctionError where none has an answer.
    """
    times, lost, told = of(answers, Time), of(answers, Failure), of(answers, Compilations)
    if lost and not times:
        raise FunctionError(f"{asked.function}: {lost[0].error}")
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": asked.seed,
        "only": None,
        "where": "fresh processes" if processes else HERE,
        "function": asked.name,
        "inputs": max((len(row.stream or (0,)) for time in times for row in time.arms.values()), default=0),
        "gradient": asked.argnum is not None,
        "trains": bool(told and told[0].trains),
        "framework": asked.engine,
        "version": told[0].version if told else "",
        "device": asked.device,
        "processes": processes or 1,
        "command": asked.command or None,
    }
    records = (started(settings, environment), *merged(answers), *lost)
    return Result(asked.name, tuple(map(asked.mode, asked.arms)), records)


def _pairs(eager: str, arms: Sequence[str]) -> list[tuple[str, ...]]:
    """The modes that share a process: each with eager alone, since what one has compiled may change another."""
    others = [arm for arm in arms if arm != eager]
    if eager not in arms:
        return [(arm,) for arm in others]
    return [(eager, arm) for arm in others] or [(eager,)]


def _refused(asked: Question, answer: Records, arms: Sequence[str], *, cut: bool) -> set[str]:
    """Of these arms, those that were refused, and with `cut` those that reached their limit.

    Where a process left no times, the last is lost.
    """
    times = of(answer, Time)
    if not times:
        return set(arms[-1:])
    rows = [row for time in times for row in time.arms.items()]
    bad = {mode for mode, row in rows if (row.whole and row.status != "ok") or (cut and not row.whole)}
    return {arm for arm in arms if asked.mode(arm) in bad}


def _so_far(asked: Question, answers: Records, done: int, processes: int) -> Iterator[str]:
    """What is known after some of the processes: `after 1 of 5 processes: a call of compile takes 0.84× eager's`."""
    if done == processes:
        return
    verdict = result(asked, answers, processes, Bare()).verdict
    for mode, ratio in verdict.of_base.items():
        bounds = f" {text.interval(ratio.low, ratio.high)}" if ratio.known else ""
        yield (
            f"after {done} of {processes} processes: a call of {mode} takes "
            f"{text.ratio(ratio.estimate)}{bounds} the time of {verdict.steady.base}"
        )


@dataclass(frozen=True)
class _Workers:
    """Asks fresh processes, whose caches and notes lie in a folder."""

    asked: Question
    folder: Path
    reporter: Reporter

    @property
    def notes(self) -> Notes:
        """What the worker that was asked last has written of its first pass."""
        return Notes(str(self.folder / "notes"))

    def answer(self, arms: tuple[str, ...], process: int | None) -> list[Record]:
        """The records that a worker leaves, also where it was ended at its limit; a failure where it left none.

        Raises FunctionError where it gave no answer, and no compiled mode has a part in it.
        """
        asked = replace(self.asked, notes=str(self.notes.path))
        counting = heap.environment(self.folder) if process in (COLD, None) and asked.device == "cpu" else {}
        variables = {**asked.adapter.environment(self.folder / arms[-1], asked.device), **counting}
        job = replace(job_of(asked, arms, process), asked=asked.to_dict(), variables=variables)
        self.notes.path.unlink(missing_ok=True)
        self.reporter.start(job.label)
        try:
            answer = ask(job, asked.limit, self.reporter.step)
        except WorkerError as error:
            if process in (COLD, None) and not self._is_of_mode(arms[-1], error.step):
                raise FunctionError(f"{asked.function}: {error}") from None
            overran = isinstance(error, OverrunError) and self.notes.path.exists()
            answer = self._overrun(job) if overran else failure(job, str(error))
        said = error_of(answer)
        self.reporter.finish(said or _limit(answer))
        self.reporter.cause(answer.ended)
        return [answer] if isinstance(answer, Failure) else unfolded(checked(answer, asked.function))

    def _is_of_mode(self, arm: str, step: str) -> bool:
        """Whether a compiled mode may be why there is no answer; the user's function itself runs eager first."""
        return arm != self.asked.arms[0] and step.endswith(f" in {arm}")

    def _overrun(self, job: Job) -> Time:
        """What a mode came to whose process was ended at its limit."""
        calls, done = self.notes.read()
        reason, status = reached(len(done), calls, self.asked.limit), FunctionRunnable.cut
        eager, mode = map(self.asked.mode, (self.asked.arms[0], job.arms[-1]))
        head = {**job.head, "eager": eager, "process": job.process or 0}
        stream = [Call(0, seconds, True, True) for seconds in done]
        time = Time(
            **head, arms={mode: TimeArm(status, reason, whole=False, stream=stream)}, clock=self.asked.clock_name
        )
        head.pop("process")
        refused = {mode: ParityArm(status, reason, None, None, TOLERANCE)}
        time.beside = [to_json(Parity(**head, agree=True, arms=refused, same_graph=None, kernel_calls={}))]
        return time


def _limit(answer: Record) -> str | None:
    is_whole = not isinstance(answer, Time) or all(row.whole for row in answer.arms.values())
    return None if is_whole else "ended at its limit"
