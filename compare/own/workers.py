"""Fresh processes that answer about a user's function, with a limit of time, and the notes that an ended one leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from compare import steps
from compare.engines import heap
from compare.errors import CompareError, FunctionError, InputsError, OverrunError, WorkerError, explained
from compare.instruments.judge import TOLERANCES
from compare.instruments.runnables import FunctionRunnable
from compare.instruments.time.measure import COLD
from compare.own.question import LIMIT, MAKER, Question
from compare.records.cells import Call, Parity, ParityArm, Time, TimeArm
from compare.records.job import Job
from compare.records.own import FunctionFault
from compare.records.record import Failure, Record, error_of, kind_of
from compare.records.results import to_json, unfolded
from compare.run.processes import ask
from compare.run.progress import Reporter
from compare.run.worker import failure
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


# A process that is ended at a limit ---------------------------------------------------------------------------------


class Notes:
    """A file that outlives its process: how many calls there are, then a line with the seconds of each that is done."""

    def __init__(self, file: str) -> None:
        self.path = Path(file)

    @contextmanager
    def ended_after(self, seconds: float, calls: int) -> Iterator[None]:
        """Inside, so many calls may take this worker so many seconds: then it is ended, also inside a compiler."""
        self.path.write_text(f"{calls}\n", "utf-8")
        with steps.bounded(seconds):
            yield

    def add(self, seconds: float) -> None:
        """A call is done."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{seconds!r}\n")

    def read(self) -> tuple[int, list[float]]:
        """How many calls there are and what those took that are done; (0, []) where no pass has begun."""
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        calls, *done = [line for line in text.splitlines(keepends=True) if line.endswith("\n")] or ["0"]
        return int(calls), [float(line) for line in done]


@dataclass(frozen=True)
class Workers:
    """Runs each job in a fresh process. Compiled code and notes lie in a folder."""

    question: Question
    folder: Path
    reporter: Reporter

    def __call__(self, job: Job) -> list[Record]:
        """The records that a worker leaves, also where it was ended at its limit; a failure where it left none.

        Raises FunctionError where the first one gave no answer, and no compiled mode has a part in it, and CompareError
        for what is wrong with the user's file or function.
        """
        job = self._equipped(job)
        self.notes.path.unlink(missing_ok=True)
        self.reporter.start(self._label(job))
        try:
            answer = ask(job, self.question.limit, self.reporter.step)
        except WorkerError as error:
            answer = self._lost(job, error)
        ended = isinstance(answer, Time) and not all(row.whole for row in answer.arms.values())
        self.reporter.finish(error_of(answer), job)
        if ended:
            self.reporter.notice(self._cut(job))
        self.reporter.cause(answer.ended)
        return [answer] if isinstance(answer, Failure) else unfolded(checked(answer, self.question.function))

    def _label(self, job: Job) -> str:
        """What the user calls the job: `times of compile, process 2 of 5`, `memory of compile`."""
        question = self.question
        if not job.arms:
            return job.label
        if job.kind != kind_of(Time):
            return f"{job.kind} of {text.listed([question.mode(arm) for arm in job.arms])}"
        modes = text.listed([question.mode(arm) for arm in job.arms if arm != question.base] or [question.base])
        if job.process == COLD:
            return f"first calls of {modes}"
        return f"times of {modes}" + (f", process {job.process} of {question.processes}" if job.process else "")

    def _cut(self, job: Job) -> str:
        """What is done about a mode that was ended at its limit."""
        mode, limit = self.question.mode(job.arms[-1]), self.question.limit
        then = "tried once more, with the code that it has left" if job.process == COLD else "not timed"
        return f"{mode} had not come through its first calls in {limit:.0f} s (--limit): it is {then}"

    @property
    def notes(self) -> Notes:
        """What the worker that was asked last has written of its first pass."""
        return Notes(str(self.folder / "notes"))

    def _equipped(self, job: Job) -> Job:
        """The job with what its worker must know: the question where that makes the record, and its variables.

        Arms that may not meet code which another has compiled have a cache each.
        """
        question = self.question
        cache = self.folder / (job.arm or ("code" if job.arms else "look"))
        counts = question.adapter.costly and job.process in (COLD, None) and question.device == "cpu"
        counting = heap.environment(self.folder) if counts else {}
        asked = replace(question, notes=str(self.notes.path)).to_dict() if job.maker == MAKER else job.asked
        variables = {**question.adapter.environment(cache, question.device), **counting}
        return replace(job, asked=asked, variables=variables)

    def _lost(self, job: Job, error: WorkerError) -> Record:
        """What stands for the answer of a worker that gave none."""
        compiled = job.arms[1:] and error.step.endswith(f" in {job.arms[-1]}")  # the user's function first runs eager
        if job.maker == MAKER and job.process in (COLD, None) and not compiled:
            raise FunctionError(f"{self.question.function}: {error}") from None
        overran = isinstance(error, OverrunError)
        return self._overrun(job) if overran and self.notes.path.exists() else failure(job, str(error), overran=overran)

    def _overrun(self, job: Job) -> Time:
        """What a mode came to whose process was ended at its limit: `3 of 8 calls in 300 s`."""
        question = self.question
        calls, done = self.notes.read()
        reason, status = f"{len(done)} of {calls} calls in {question.limit:.0f} s", FunctionRunnable.cut
        head = {**job.head, "eager": question.mode(question.base), "process": job.process or 0}
        stream = [Call(0, seconds, True, True) for seconds in done]
        mode = question.mode(job.arms[-1])
        row = TimeArm(status, reason, whole=False, stream=stream)
        time = Time(**head, arms={mode: row}, clock=question.clock_name)
        head.pop("process")
        refused = {mode: ParityArm(status, reason, None, None, TOLERANCES["float32"])}
        time.beside = [to_json(Parity(**head, agree=True, arms=refused, same_graph=None, kernel_calls={}))]
        return time
