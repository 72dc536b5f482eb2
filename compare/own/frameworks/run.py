"""The question about a user's function in a framework, asked of several processes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compare.engines import heap, named
from compare.errors import FunctionError, InputsError, OverrunError, WorkerError
from compare.instruments.outside.measure import COLD
from compare.own.faults import checked
from compare.own.frameworks.asked import Asked, Calls, Function, arms_of
from compare.own.frameworks.measure import job_of, measured_here
from compare.own.frameworks.notes import Notes, reached
from compare.own.frameworks.parts import parts
from compare.own.measure import HERE
from compare.own.result import Result
from compare.records.framework_cells import FrameworkArm, FrameworkStep
from compare.records.job import Job
from compare.records.record import Record
from compare.records.runs import OWN, Bare, Failure, Setting, error_of
from compare.records.time import Call
from compare.run import environment
from compare.run.processes import ask, run_job
from compare.run.progress import Reporter
from compare.run.runner import started
from compare.run.worker import failure


def asked_of(framework: str, function: str, inputs: str, modes: Sequence[str], **options: Any) -> Asked:
    """The question. Raises InputsError for a mode that is none, and where the framework is not installed."""
    adapter = named(framework)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Asked(framework, function, inputs, arms_of(adapter, tuple(modes)), **options)


def in_workers(asked: Asked, processes: int, reporter: Reporter) -> Result:
    """The result of fresh processes: for each compiled mode a first one that meets an empty cache, then so many.

    A mode that is not right, or reached its limit, is not asked again. No processes are one that measures all. Raises
    InputsError and FunctionError for what is wrong with the user's file or function.
    """
    eager = asked.arms[0]
    reporter.pace.total = len(_pairs(eager, asked.arms)) * (1 + processes)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        workers = _Workers(asked, Path(folder), reporter)
        if not processes:
            answers: list[Record] = [workers.answer(arms, None) for arms in _pairs(eager, asked.arms)]
            return result(asked, answers, processes, run_job(Job("environment"), asked.limit))
        answers = [workers.answer(arms, COLD) for arms in _pairs(eager, asked.arms)]
        if not any(isinstance(answer, FrameworkStep) and eager in answer.arms for answer in answers):
            answers.append(workers.answer((eager,), COLD))
        right = _right(answers, asked.arms)
        reporter.pace.total = reporter.pace.done + len(_pairs(eager, right)) * processes
        for process in range(COLD + 1, COLD + 1 + processes):
            for arms in _pairs(eager, right):
                answers.append(workers.answer(arms, process))
                right = [arm for arm in right if arm in _right(answers[-1:], arms) or arm not in arms]
        header = run_job(Job("environment"), asked.limit)
    return result(asked, answers, processes, header)


def here(asked: Asked, function: Function, calls: Calls) -> Result:
    """The result of this process alone, for what no other process can import: no intervals, and no cold caches."""
    adapter = asked.started()
    arrays = [adapter.arrays(call) for call in calls]
    pairs = _pairs(asked.arms[0], asked.arms)
    answers: list[Record] = [measured_here(asked, function, arrays, arms) for arms in pairs]
    return result(asked, answers, 0, Bare(environment=environment.environment()))


def result(asked: Asked, answers: Sequence[Record], processes: int, environment: Record) -> Result:
    """The result of what the processes answered, as records of a run on a function of the user's.

    Raises FunctionError where none has an answer.
    """
    steps = [answer for answer in answers if isinstance(answer, FrameworkStep)]
    lost = [answer for answer in answers if isinstance(answer, Failure)]
    if lost and not steps:
        raise FunctionError(f"{asked.function}: {lost[0].error}")
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": asked.seed,
        "only": None,
        "where": "fresh processes" if processes else HERE,
        "function": asked.name,
        "inputs": max((len(row.stream or (0,)) for step in steps for row in step.arms.values()), default=0),
        "gradient": asked.argnum is not None,
        "framework": asked.framework,
        "version": steps[0].version if steps else "",
        "device": asked.device,
        "processes": processes or 1,
        "command": asked.command or None,
    }
    records = (started(settings, environment), *parts(asked, steps), *lost)
    return Result(asked.name, tuple(map(asked.mode, asked.arms)), records)


def _pairs(eager: str, arms: Sequence[str]) -> list[tuple[str, ...]]:
    """The modes that share a process: each with eager alone, since what one has compiled may change another."""
    others = [arm for arm in arms if arm != eager]
    if eager not in arms:
        return [(arm,) for arm in others]
    return [(eager, arm) for arm in others] or [(eager,)]


def _right(answers: Sequence[Record], arms: Sequence[str]) -> list[str]:
    """Of these arms, those that every answer found right and whole."""
    rows = [(arm, row) for answer in answers if isinstance(answer, FrameworkStep) for arm, row in answer.arms.items()]
    wrong = {arm for arm, row in rows if row.status != "ok" or not row.whole}
    return [arm for arm in arms if arm in {arm for arm, _ in rows} - wrong]


@dataclass(frozen=True)
class _Workers:
    """Asks fresh processes, whose caches and notes lie in a folder."""

    asked: Asked
    folder: Path
    reporter: Reporter

    @property
    def notes(self) -> Notes:
        """What the worker that was asked last has written of its first pass."""
        return Notes(str(self.folder / "notes"))

    def answer(self, arms: tuple[str, ...], process: int | None) -> Record:
        """What a worker answers: a FrameworkStep, also where it was ended at its limit, or a failure.

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
        self.reporter.finish(said or self._limit(answer, arms[-1]))
        self.reporter.cause(answer.ended)
        if isinstance(answer, Failure):
            return answer
        found: Record = checked(answer, asked.function)
        return found

    def _is_of_mode(self, arm: str, step: str) -> bool:
        """Whether a compiled mode may be why there is no answer; the user's function itself runs eager first."""
        return arm != self.asked.arms[0] and step.endswith(f" in {arm}")

    def _overrun(self, job: Job) -> FrameworkStep:
        """What a mode came to whose process was ended at its limit."""
        calls, done = self.notes.read()
        stream = [Call(0, seconds, True, True) for seconds in done]
        row = FrameworkArm("ok", reached(len(done), calls, self.asked.limit), whole=False, stream=stream)
        return FrameworkStep(**job.head, version=self.asked.adapter.version, arms={job.arms[-1]: row})

    @staticmethod
    def _limit(answer: Record, arm: str) -> str | None:
        whole = not isinstance(answer, FrameworkStep) or arm not in answer.arms or answer.arms[arm].whole
        return None if whole else "ended at its limit"
