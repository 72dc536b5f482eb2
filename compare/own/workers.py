"""Fresh processes that answer about a user's function, with a limit of time, and what an ended one has told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from compare.engines import heap
from compare.errors import CompareError, FunctionError, InputsError, OverrunError, ResultsError, WorkerError, explained
from compare.instruments.judge import TOLERANCES
from compare.instruments.runnables import FunctionRunnable
from compare.instruments.time.measure import COLD
from compare.own.question import LIMIT, Question
from compare.records.cells import Call, Parity, ParityArm, Time, TimeArm
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import FunctionFault
from compare.records.record import Failure, Record, error_of, kind_of
from compare.records.results import to_json, unfolded
from compare.run.processes import ask
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.steps import FirstCall, Told
from compare.words import text

R = TypeVar("R", bound=Record)


# What is wrong with a user's file or function, on its way from the worker that has met it ---------------------------


def answered(function: str, find: Callable[[], R]) -> R | FunctionFault:
    """What a worker finds of the function, or what is wrong with it: that is an answer too."""
    try:
        with explained(function):
            return find()
    except CompareError as error:
        return FunctionFault(str(error), error.exit_code)


def checked(answer: Record, function: str) -> Any:
    """The answer of a worker about a user's function. Raises CompareError, with its exit code, where it is none."""
    if isinstance(answer, FunctionFault):
        raise (InputsError if answer.code == InputsError.exit_code else FunctionError)(answer.error)
    if error := error_of(answer):
        raise FunctionError(f"{function}: {error}")
    return answer


def answer(kind: type[R], function: str, arguments: Mapping[str, Any], limit: float = LIMIT) -> R:
    """What a worker of its own finds of a function of the user's.

    Raises CompareError, with its exit code, for what is wrong with the user's file, function or calls.
    """
    job = Job(kind_of(kind), size=function, asked=arguments)
    try:
        record = ask(job, limit)
    except WorkerError as error:
        raise FunctionError(f"{function}: {error}") from None
    reply: R = checked(record, function)
    return reply


# A fresh process for each job ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workers:
    """Runs each job in a fresh process, unless the journal has its answer; compiled code lies in the question's folder.

    `answers` are the records of all that have ended, and `calls` the first calls that the process now running has told.
    """

    question: Question
    reporter: Reporter
    journal: Journal
    answers: list[Record] = field(default_factory=list)
    calls: list[FirstCall] = field(default_factory=list)

    def __call__(self, job: Job) -> list[Record]:
        """The records that a worker leaves; of one that has answered in an earlier start those that are kept."""
        label = self.label(job)
        kept = [record for record in self.journal.records if record.label == label]
        if kept:
            self.reporter.skip(job)
            self.answers.extend(kept)
        return kept or self._asked(job, label)

    @property
    def folder(self) -> Path:
        """Where compiled code lies."""
        return Path(self.question.folder)

    def _asked(self, job: Job, label: str) -> list[Record]:
        """The records that a worker leaves, also where it was ended at its limit; a failure where it left none.

        Raises FunctionError where the first one gave no answer, and no compiled mode has a part in it, and CompareError
        for what is wrong with the user's file or function.
        """
        job = self._equipped(job)
        self.calls.clear()
        self.reporter.start(label)
        try:
            answer = ask(job, self.question.limit, partial(self._hear, job))
        except WorkerError as error:
            answer = self._lost(job, error)
        records: list[Record] = [answer]
        if not isinstance(answer, Failure):
            checked(answer, self.question.function).label = label
            self._keep(answer)
            records = unfolded(answer)
        self.answers.extend(records)
        self._tell(job, answer)  # of what is kept
        return records

    def _keep(self, answer: Record) -> None:
        """One line, so that all of an answer is kept, or nothing; a disk that does not take it costs no answer."""
        try:
            self.journal.keep(answer)
        except (OSError, ResultsError) as error:
            self.reporter.notice(f"not kept, so that --resume asks again: {error}")

    def _tell(self, job: Job, answer: Record) -> None:
        """Say that a job has ended, and how."""
        self.reporter.finish(error_of(answer), job)
        if isinstance(answer, Time) and not all(row.whole for row in answer.arms.values()):
            self.reporter.notice(self._cut(job))
        self.reporter.cause(answer.ended)

    def label(self, job: Job) -> str:
        """What the user calls the job: `times of compile, process 2`, `memory of compile`."""
        question = self.question
        if not job.arms:
            return job.label
        if job.kind != kind_of(Time):
            return f"{job.kind} of {text.listed([question.mode(arm) for arm in job.arms])}"
        modes = text.listed([question.mode(arm) for arm in job.arms if arm != question.base] or [question.base])
        if job.process == COLD:
            return f"first calls of {modes}"
        return f"times of {modes}" + (f", process {job.process}" if job.process else "")

    def _cut(self, job: Job) -> str:
        """What is done about a mode that was ended at its limit."""
        mode, limit = self.question.mode(job.arms[-1]), self.question.limit
        then = "tried once more, with the code that it has left" if job.process == COLD else "not timed"
        return f"{mode} had not come through its first calls in {limit:.0f} s (--limit): it is {then}"

    def _hear(self, job: Job, told: Told) -> None:
        """Show what a worker tells; of first calls that of each mode which had no code on the disk."""
        self.reporter.hear(told)
        if isinstance(told, FirstCall):
            self.calls.append(told)
            if told.number == 1 and not self.question.adapter.is_reference and job.process in (COLD, None):
                which = "the first call" if told.calls == 1 else f"the first of {told.calls:,} calls"
                self.reporter.notice(f"{self.question.mode(told.mode)}: {which} took {text.seconds(told.seconds)}")

    def _equipped(self, job: Job) -> Job:
        """The job with what its worker must know: the question where that makes the record, and its variables.

        Arms that may not meet code which another has compiled have a cache each.
        """
        question = self.question
        cache = self.folder / (job.arm or ("code" if job.arms else "look"))
        counts = not question.adapter.is_reference and job.process in (COLD, None) and question.device == "cpu"
        counting = heap.environment(self.folder) if counts else {}
        asked = job.asked if job.source else question.to_dict()
        variables = {**question.adapter.environment(cache, question.device), **counting}
        return replace(job, asked=asked, variables=variables)

    def _lost(self, job: Job, error: WorkerError) -> Record:
        """What stands for the answer of a worker that gave none."""
        compiled = job.arms[1:] and error.step.endswith(f" in {job.arms[-1]}")  # the user's function first runs eager
        if not job.source and job.process in (COLD, None) and not compiled:
            raise FunctionError(f"{self.question.function}: {error}") from None
        overran = isinstance(error, OverrunError)
        began = any(call.mode == job.arms[-1] for call in self.calls)
        return self._overrun(job) if overran and began else failure(job, str(error), overran=overran)

    def _overrun(self, job: Job) -> Time:
        """What a mode came to whose process was ended at its limit: `3 of 8 calls in 300 s`."""
        question = self.question
        began, *done = [call for call in self.calls if call.mode == job.arms[-1]]
        reason, status = f"{len(done)} of {began.calls} calls in {question.limit:.0f} s", FunctionRunnable.cut
        head = {**job.head, "eager": question.mode(question.base), "process": job.process or 0}
        stream = [Call(0, call.seconds, True, True) for call in done]
        mode = question.mode(job.arms[-1])
        row = TimeArm(status, reason, whole=False, stream=stream)
        cache: Any = None if job.process is None else "cold" if job.process == COLD else "warm"
        time = Time(**head, arms={mode: row}, cache=cache, clock=question.clock_name)
        head.pop("process")
        refused = {mode: ParityArm(status, reason, None, None, TOLERANCES["float32"])}
        time.beside = [to_json(Parity(**head, agree=True, arms=refused, same_graph=None, kernel_calls={}))]
        return time
