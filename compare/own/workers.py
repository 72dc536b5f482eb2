"""Fresh processes that answer about a user's function, with a limit of time, and what an ended one has told."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from compare.engines import heap
from compare.errors import CompareError, FunctionError, InputsError, OverrunError, ResultsError, WorkerError, explained
from compare.instruments.judge import TOLERANCES
from compare.instruments.runnables import FunctionRunnable
from compare.instruments.time.measure import COLD
from compare.own.glimpse import Account
from compare.own.question import LIMIT, Question
from compare.records.cells import Call, Glimpse, GlimpseArm, Parity, ParityArm, Time, TimeArm
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import FunctionFault
from compare.records.record import Failure, Record, error_of, kind_of, of
from compare.records.results import to_json, unfolded
from compare.run.processes import ask
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.steps import Told
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

    `answers` are the records of all that have ended. Of a first process that has not, what it has told is one.
    """

    question: Question
    reporter: Reporter
    journal: Journal
    answers: list[Record] = field(default_factory=list)

    def __call__(self, job: Job) -> list[Record]:
        """The records that a worker leaves; of one that has answered in an earlier start those that are kept."""
        label = self.label(job)
        kept = [record for record in self.journal.records if record.label == label and not isinstance(record, Glimpse)]
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
        job, account, arrived = self._equipped(job), Account(self.question), list[Record]()

        def hear(told: Told | Record) -> None:
            """An answer is one as soon as it is there: its process may take seconds to end."""
            arrived.append(told) if isinstance(told, Record) else self._hear(job, account, told)

        self.reporter.start(label)
        try:
            answer = ask(job, self.question.limit, hear)
        except WorkerError as error:
            answer = self._lost(job, account, error)
            self._keep_glimpse(job, account, label)
        except KeyboardInterrupt:
            if arrived and not isinstance(arrived[0], Failure):
                self._kept(arrived[0], label)
            else:
                self._keep_glimpse(job, account, label)
            raise
        records = self._kept(answer, label)
        self._tell(job, answer)  # of what is kept
        return records

    def _kept(self, answer: Record, label: str) -> list[Record]:
        """The records in an answer, which is kept unless it is a failure."""
        records: list[Record] = [answer]
        if not isinstance(answer, Failure):
            checked(answer, self.question.function).label = label
            self._keep(answer)
            records = unfolded(answer)
        self.answers.extend(records)
        return records

    def _keep_glimpse(self, job: Job, account: Account, label: str) -> None:
        """Of a first process in a framework, what it has told, or what an earlier start of it had."""
        if self.question.adapter.is_reference or job.process not in (COLD, None):
            return
        earlier = [record for record in of(self.journal.records, Glimpse) if record.label == label]
        if glimpse := account.glimpse(job, label):
            self._keep(glimpse)
            self.answers.append(glimpse)
        else:
            self.answers.extend(earlier[-1:])

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
        others = [arm for arm in job.arms if arm != question.base] or [question.base]
        modes = text.listed(list(map(question.mode, others)))
        if job.process == COLD:
            return f"first calls of {modes}"
        return f"times of {modes}" + (f", process {job.process}" if job.process else "")

    def _cut(self, job: Job) -> str:
        """What is done about a mode that was ended at its limit."""
        mode, limit = self.question.mode(job.arms[-1]), self.question.limit
        then = "tried once more, with the code that it has left" if job.process == COLD else "not timed"
        return f"{mode} had not come through its first calls in {limit:.0f} s (--limit): it is {then}"

    def _hear(self, job: Job, account: Account, told: Told) -> None:
        """Show what a worker tells; of first calls that of each mode which had no code on the disk."""
        self.reporter.hear(told)
        said = account.hear(told)
        if not self.question.adapter.is_reference and job.process in (COLD, None):
            for words in said:
                self.reporter.notice(words)

    def _equipped(self, job: Job) -> Job:
        """The job with what its worker must know: the question where that makes the record, and its variables.

        Arms that may not meet code which another has compiled have a cache each, and a first process that of none,
        also where one that was stopped has left some.
        """
        question = self.question
        cache = self.folder / (job.arm or ("code" if job.arms else "look"))
        if job.arm and job.process in (COLD, None):
            shutil.rmtree(cache, ignore_errors=True)
        counts = not question.adapter.is_reference and job.process in (COLD, None) and question.device == "cpu"
        counting = heap.environment(self.folder) if counts else {}
        asked = job.asked if job.source else replace(question, checks=not self._has_compared(job)).to_dict()
        variables = {**question.adapter.environment(cache, question.device), **counting}
        return replace(job, asked=asked, variables=variables)

    def _has_compared(self, job: Job) -> bool:
        """Whether an earlier process has compared what the job measures: the first may have come to no answer."""
        modes = [self.question.mode(arm) for arm in job.arms[-1:]]
        rows = [parity.arms.get(mode) for parity in of(self.answers, Parity) for mode in modes]
        return any(row is not None and row.status in ("ok", "disagree") for row in rows)

    def _lost(self, job: Job, account: Account, error: WorkerError) -> Record:
        """What stands for the answer of a worker that gave none.

        The user's function first runs eager: one that ends its process there is at fault.
        """
        in_compiled = job.arms[1:] and error.step.endswith(f" in {job.arms[-1]}")
        at_first = not job.source and job.process in (COLD, None) and not in_compiled
        if at_first and not account.has_run(self.question.base):
            raise FunctionError(f"{self.question.function}: {error}") from None
        first, overran = account.first(job.arms[-1]), isinstance(error, OverrunError)
        cut = overran and not at_first
        return self._overrun(job, first) if cut and first else failure(job, str(error), overran=overran)

    def _overrun(self, job: Job, first: GlimpseArm) -> Time:
        """What a mode came to whose process was ended at its limit: `3 of 8 calls in 300 s`."""
        question = self.question
        reason, status = f"{len(first.first)} of {first.calls} calls in {question.limit:.0f} s", FunctionRunnable.cut
        head = {**job.head, "eager": question.mode(question.base), "process": job.process or 0}
        stream = [Call(0, seconds, True, True) for seconds in first.first]
        mode = question.mode(job.arms[-1])
        row = TimeArm(status, reason, whole=False, stream=stream)
        cache: Any = None if job.process is None else "cold" if job.process == COLD else "warm"
        time = Time(**head, arms={mode: row}, cache=cache, clock=question.clock_name)
        head.pop("process")
        refused = {mode: ParityArm(status, reason, None, None, TOLERANCES["float32"])}
        time.beside = [to_json(Parity(**head, agree=True, arms=refused, same_graph=None, kernel_calls={}))]
        return time
