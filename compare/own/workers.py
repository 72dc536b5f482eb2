"""Fresh processes that answer about a user's function within a time limit, and the last words of one that was ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from compare import text
from compare.engines import process
from compare.errors import CompareError, FunctionError, InputsError, OverrunError, WorkerError, explain_user_error
from compare.instruments.judge import TOLERANCES
from compare.instruments.timing import COLD
from compare.own.journal import Answers
from compare.own.plan import ComparisonPlan
from compare.own.subject import LIMIT, Subject
from compare.records.cells import Call, Glimpse, GlimpseRow, Parity, ParityRow, Time, TimeRow
from compare.records.job import Job
from compare.records.own import FunctionFault
from compare.records.record import Failure, Record, Status, error_of, kind_of, records_of
from compare.records.results import to_json
from compare.run.environment import environment
from compare.run.processes import ask
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.steps import CallTimes, FirstCall, Told

R = TypeVar("R", bound=Record)


# What is wrong with a user's file or function, on its way from the worker that has met it ---------------------------


def answer_or_fault(function: str, find: Callable[[], R]) -> R | FunctionFault:
    """Return a worker's finding on the function, or its fault as the answer."""
    try:
        with explain_user_error(function):
            return find()
    except CompareError as error:
        return FunctionFault(str(error), error.exit_code)


def check_answer(answer: Record, function: str) -> Any:
    """Return a worker's answer about a user's function. Raises CompareError, with its exit code, for a fault."""
    if isinstance(answer, FunctionFault):
        raise (InputsError if answer.code == InputsError.exit_code else FunctionError)(answer.error)
    if error := error_of(answer):
        raise FunctionError(f"{function}: {error}")
    return answer


def answer(kind: type[R], function: str, arguments: Mapping[str, Any], limit: float = LIMIT) -> R:
    """Return the answer of a fresh worker about a user's function.

    Raises CompareError, with its exit code, for a fault of the user's file, function or calls.
    """
    job = Job(kind_of(kind), size=function, asked=arguments)
    try:
        record = ask(job, limit)
    except WorkerError as error:
        raise FunctionError(f"{function}: {error}") from None
    reply: R = check_answer(record, function)
    return reply


# What a process tells before there is an answer ---------------------------------------------------------------------


@dataclass
class Account:
    """The messages so far of a job's process about its modes."""

    subject: Subject
    calls: list[FirstCall] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def hear(self, told: Told) -> list[str]:
        """Note a message; return the sentences that it is worth."""
        if isinstance(told, CallTimes):
            self.seconds = dict(told.seconds)
            return list(_ratios(self.subject, self.seconds))
        if not isinstance(told, FirstCall):
            return []
        self.calls.append(told)
        which = "the first call" if told.calls == 1 else f"the first of {told.calls:,} calls"
        said = f"{self.subject.label(told.mode)}: {which} took {text.seconds(told.seconds)}"
        return [said] if told.number == 1 else []

    def first(self, mode: str) -> GlimpseRow | None:
        """Return the first calls of a mode so far; None if it has not begun."""
        begun = [call for call in self.calls if call.mode == mode]
        if not begun:
            return None
        ended = [call.seconds for call in begun if call.number]
        return GlimpseRow("ok", None, begun[0].calls, ended, self.seconds.get(mode))

    def has_run(self, mode: str) -> bool:
        """Return whether all first calls of a mode have ended."""
        first = self.first(mode)
        return first is not None and len(first.first) == first.calls

    def glimpse(self, job: Job, label: str) -> Glimpse | None:
        """Return the record of the messages so far; None where no call has ended."""
        label_of = self.subject.label
        rows = {label_of(mode): first for mode in job.modes if (first := self.first(mode)) and first.first}
        place = {
            "workload": job.workload,
            "size": job.size,
            "eager": label_of(self.subject.base),
            "mode": job.mode,
        }
        return Glimpse(**place, modes=rows, label=label, environment=environment()) if rows else None  # type: ignore[arg-type]


def _ratios(subject: Subject, seconds: Mapping[str, float]) -> Sequence[str]:
    base = subject.base
    return [
        f"a call of {subject.label(mode)} takes {text.ratio(each / seconds[base])} the time of "
        f"{subject.label(base)}: in one process, with no interval, and not compared yet"
        for mode, each in seconds.items()
        if mode != base and base in seconds
    ]


# A fresh process for each job ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workers:
    """The function that an executor runs for a job: a fresh process, with compiled code in the plan's folder.

    If a first process does not end, a glimpse of its messages is kept.
    """

    plan: ComparisonPlan
    reporter: Reporter
    journal: Answers

    def __call__(self, job: Job, limit: float) -> Record:
        """Return the record of a worker, also where it was ended at its limit; a failure where it left none.

        Raises FunctionError where the first worker gave no answer and no compiled mode is to blame, and CompareError
        for a fault of the user's file or function.
        """
        job, account, arrived = self._equip(job), Account(self.plan.subject), list[Record]()

        def hear(told: Told | Record) -> None:
            """Note a message or the answer, which counts at once: its process may take seconds to end."""
            arrived.append(told) if isinstance(told, Record) else self._hear(job, account, told)

        try:
            return self._checked(ask(job, limit, hear), job)
        except WorkerError as error:
            answer = self._loss_record(job, account, error)
            self._keep_glimpse(job, account)
            return self._checked(answer, job)
        except KeyboardInterrupt:
            if arrived and not isinstance(arrived[0], Failure):
                self.journal.keep(self._checked(arrived[0], job))
            else:
                self._keep_glimpse(job, account)
            raise

    def _checked(self, answer: Record, job: Job) -> Record:
        """Return the answer under the title of its job."""
        if not isinstance(answer, Failure):
            check_answer(answer, self.plan.subject.function).label = job.title
        return answer

    def _keep_glimpse(self, job: Job, account: Account) -> None:
        """Keep a glimpse of a first process in a framework, or that of an earlier start."""
        if self.plan.subject.adapter.is_reference or job.process not in (COLD, None):
            return
        if glimpse := account.glimpse(job, job.title):
            self.journal.keep(glimpse)
        else:
            self.journal.take_glimpse(job)

    def _hear(self, job: Job, account: Account, told: Told) -> None:
        """Show a worker's message; sentences only on first calls without code on the disk."""
        self.reporter.hear(told)
        said = account.hear(told)
        if not self.plan.subject.adapter.is_reference and job.process in (COLD, None):
            for words in said:
                self.reporter.notice(words)

    def _equip(self, job: Job) -> Job:
        """Return the job with its worker's environment, and whether it compares.

        Modes that may not find code that another mode has compiled have a cache each, and a first process has an empty
        one, also where a stopped one has left some code.
        """
        situation, engine = self.plan.situation, self.plan.subject.adapter
        folder = Path(situation.folder)
        cache = folder / (job.mode or ("code" if job.modes else "look"))
        if job.mode and job.process in (COLD, None):
            shutil.rmtree(cache, ignore_errors=True)
        counts = not engine.is_reference and job.process in (COLD, None) and situation.device == "cpu"
        counting = process.heap_environment(folder) if counts else {}
        asked = job.asked if job.source else {**job.asked, "checks": not self._has_compared(job)}
        variables = {**engine.environment(cache, situation.device), **counting}
        return replace(job, asked=asked, variables=variables)

    def _has_compared(self, job: Job) -> bool:
        """Return whether an earlier process has compared the job's mode: the first may have given no answer."""
        labels = [self.plan.subject.label(mode) for mode in job.modes[-1:]]
        rows = [parity.modes.get(label) for parity in records_of(self.journal.records, Parity) for label in labels]
        return any(row is not None and row.status in ("ok", "disagree") for row in rows)

    def _loss_record(self, job: Job, account: Account, error: WorkerError) -> Record:
        """Return the record in the place of an answer that a worker did not give.

        The user's function first runs eager: if its process ends there, the function is at fault.
        """
        in_compiled = job.modes[1:] and error.step.endswith(f" in {job.modes[-1]}")
        at_first = not job.source and job.process in (COLD, None) and not in_compiled
        if at_first and not account.has_run(self.plan.subject.base):
            raise FunctionError(f"{self.plan.subject.function}: {error}") from None
        first, overran = account.first(job.modes[-1]), isinstance(error, OverrunError)
        cut = overran and not at_first
        return self._overrun_record(job, first) if cut and first else failure(job, str(error), overran=overran)

    def _overrun_record(self, job: Job, first: GlimpseRow) -> Time:
        """Return the record of a mode whose process was ended at its limit: `3 of 8 calls in 300 s`."""
        plan, subject = self.plan, self.plan.subject
        reason = f"{len(first.first)} of {first.calls} calls in {plan.situation.limit:.0f} s"
        status: Status = "unsupported"
        head = {**job.head, "eager": subject.label(subject.base), "process": job.process or 0}
        stream = [Call(0, seconds, True, True) for seconds in first.first]
        label = subject.label(job.modes[-1])
        row = TimeRow(status, reason, whole=False, stream=stream)
        cache: Any = None if job.process is None else "cold" if job.process == COLD else "warm"
        time = Time(**head, modes={label: row}, cache=cache, clock=plan.clock_name)
        head.pop("process")
        refused = {label: ParityRow(status, reason, None, None, TOLERANCES["float32"])}
        time.beside = [to_json(Parity(**head, agree=True, modes=refused, same_graph=None, kernel_calls={}))]
        return time
