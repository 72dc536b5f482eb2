"""The findings of one process on a user's function in an engine: its effects, its modes' agreement, and their times.

A worker finds them, which alone imports the user's file, or this process if no other can find the function. In a
framework one process is gate, clock and scales at once; in our engine each of these is a job of its own.
"""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from compare import engines, steps
from compare.engines import Engine
from compare.engines.graphduel.standin import as_named
from compare.engines.process import limit_seconds
from compare.errors import CompareError, EffectsError, FunctionError, InputsError, count_as_users, describe_error
from compare.instruments import inspection, parity, rounding, timing
from compare.instruments.runnables import FunctionRunnable
from compare.instruments.timing import Limited
from compare.own import effects, exchange, journal, origin, plan, traffic
from compare.own.case import calls_in, case_of, check_inputs, converting
from compare.own.effects import SideEffect
from compare.own.journal import Answers
from compare.own.plan import ComparisonPlan
from compare.own.question import Calls, Function, Question
from compare.own.workers import Account, answer_or_fault
from compare.records.cells import Memory, Parity, Time
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import FunctionLook
from compare.records.record import Bare, Record, Setting, kind_of
from compare.records.results import to_json, valid
from compare.run import environment
from compare.run.executors import Pool, Serial
from compare.run.progress import Reporter
from compare.run.runner import Runner
from compare.run.worker import failure, handler
from compare.workloads import Workload
from compare.workloads.base import Case


@dataclass
class Subject:
    """A function to measure in this process; `case` is its case in our engine, None in a framework."""

    question: Question
    function: Function
    calls: Calls
    case: Case | None = None
    effects: list[SideEffect] = field(default_factory=list)
    differentiates: bool = True

    @property
    def engine(self) -> Engine:
        """Return the engine that runs it."""
        return self.question.adapter

    @property
    def settings(self) -> dict[str, Setting]:
        """Return its settings for the record of a run."""
        gradient = self.differentiates if self.case is None else self.case.argnum is not None
        return {
            "inputs": len(self.calls),
            "gradient": gradient,
            "converted": self.case is not None and self.case.branches,
            "effects": list(map(str, self.effects)),
            **({"compiles": True} if self.engine.compiles else {}),
        }

    def look(self, source: str = "", records: Sequence[Record] = ()) -> FunctionLook:
        """Return the record of the function's look, with the records of its measurements."""
        name, modes = self.question.name, list(self.question.modes)
        beside = list(map(to_json, records))
        return FunctionLook(name, modes, self.settings, source, files=journal.files(), beside=beside)


def subject_of(question: Question, function: Function, inputs: Any, dims: Any = None) -> Subject:
    """Return the function ready to be measured. Raises InputsError and EffectsError, and the errors of the function.

    In a framework its first call must stay the first, so its effects are searched later.
    """
    count_as_users(function)
    engine, calls = question.adapter, calls_in(inputs, function)
    subject = Subject(
        question, function, calls if engine.is_reference else [engine.devices.placed(call) for call in calls]
    )
    if not engine.is_reference:
        return subject
    steps.now(f"called {question.name}")
    if not question.stands_in:  # PyTorch's own worker finds the side effects
        look_for_effects(subject, check_inputs(calls, function)[0])
    case = case_of(function, calls, question.gradient, dims)
    subject.case = converting(case) if question.modes[1:] else case
    return subject


def look_for_effects(subject: Subject, call: tuple[Any, ...], *, trains: bool = False) -> None:
    """Note the function's side effects. Raises EffectsError where modes would not repeat them alike."""
    question = subject.question
    with traffic.one_process(question.name):
        subject.effects = effects.effects_of(subject.function, call, subject.engine, trains=trains)
    if not (question.allow_effects or subject.engine.keeps_effects or trains):
        effects.refuse(question.name, subject.effects)


# A worker -------------------------------------------------------------------------------------------------------------


def measure(job: Job) -> Record:
    """Return a worker's answer; a fault of the user's file is an answer too."""
    question = Question.from_dict(job.asked)
    return answer_or_fault(question.function, lambda: _answer(question, job))


def _answer(question: Question, job: Job) -> Record:
    steps.now(f"started {question.adapter.title}")
    question.started()
    steps.now(f"imported {question.function.rpartition(':')[0]}")
    called = exchange.program_of if question.stands_in else _function_and_calls
    subject = subject_of(question, *called(question))
    if not subject.engine.is_reference:
        gc.freeze()  # keeps loaded objects out of each collection below
        return times(subject, job)
    assert subject.case is not None  # noqa: S101  (made above)
    source = write_subject(Path(question.folder), subject) if question.processes else ""
    answers = Answers(records=untimed_records(subject))
    if not source:
        here = Pool(Serial(raises=True), Here(subject, answers))
        plan.follow(ComparisonPlan(question), Runner(answers, _Steps(), here, question.limit, strict=True))
    return subject.look(source, answers.records)


def _function_and_calls(question: Question) -> tuple[Function, Calls]:
    return origin.load_function(question.function, question.inputs)


class _Steps(Reporter):
    """A reporter that tells each job as a step of this worker."""

    def start(self, label: str) -> None:
        """Note that a job begins."""
        super().start(label)
        steps.now(f"measured {label}")


def write_subject(folder: Path, subject: Subject, dims: Any = None) -> str:
    """Write a bundle to the folder; return its source.

    Raises InputsError if function or inputs cannot reach a worker.
    """
    assert subject.case is not None  # noqa: S101  (only functions with a case are sent)
    if subject.question.stands_in:
        return exchange.write_question(folder, subject.question, subject.case, dims)
    function, written = subject.function, subject.question.function
    place = origin.origin_of(function) or (origin.PlaceInFile.of(written).origin() if ":" in written else None)
    if place is None:
        raise InputsError(
            f"{getattr(function, '__qualname__', type(function).__name__)} cannot be imported by name in a worker; "
            "define it at the top level of a module, or measure in this process: processes=0, on the command line "
            "--processes 0"
        )
    return exchange.write_bundle(folder, place, subject.calls, subject.case, dims)


# Where one process is gate, clock and scales --------------------------------------------------------------------------


def times(subject: Subject, job: Job) -> Time:
    """Return the times of the modes in this process: checked and counted in the first process, timed in the others."""
    question, engine = subject.question, subject.engine
    is_first = job.process in (timing.COLD, None)
    runnable = FunctionRunnable(
        engine, question.base, question.function, subject.function, subject.calls, question.argnum,
        checks=is_first or question.checks, needed=question.gradient is True,
    )  # fmt: skip
    names = {mode: question.label(mode) for mode in job.modes}
    with silence_output():
        if is_first:
            exchange.leave_numbers(question.numbers, engine, subject.function, subject.calls)
        try:
            record = timing.answer(job, runnable, _limits(question), names)
        except InputsError:
            _as_written(subject)
            raise
        except CompareError:
            raise
        except Exception as error:
            if (explained := _effects_of(runnable, subject) or _explain_error(subject, error)) is error:
                raise
            raise explained from error
        subject.differentiates = runnable.argnum is not None
        if is_first:
            trains = runnable.training is not None
            for look in (
                partial(exchange.leave_expected, question.numbers, runnable),
                partial(look_for_effects, subject, subject.calls[0], trains=trains),
            ):
                with runnable.fresh(), engine.compiler.eagerly(subject.function):
                    if fault := _alone(job, look):
                        record.beside.append(to_json(fault))
            record.beside = [to_json(subject.look()), *record.beside]
    return record


def _effects_of(runnable: FunctionRunnable, subject: Subject) -> Exception | None:
    """Return the EffectsError for the function, if any: side effects may be why a later call raises."""
    try:
        with runnable.fresh(), subject.engine.compiler.eagerly(subject.function):
            look_for_effects(subject, subject.calls[0])
    except EffectsError as refusal:
        return refusal
    except Exception:  # noqa: BLE001  (the same error as before)
        return None
    return None


def _explain_error(subject: Subject, error: Exception) -> Exception:
    """Return the error in the framework's own sentence where it has one, else the error itself."""
    said = subject.engine.errors.said(error)
    return FunctionError(f"{subject.question.function}: {said}") if said else error


def _as_written(subject: Subject) -> None:
    """Raise FunctionError if the file's own compiled code is refused, which is what its user sees."""
    if not subject.engine.compiles:
        return
    try:
        subject.function(*subject.calls[0])
    except Exception as error:
        if (explained := _explain_error(subject, error)) is not error:
            raise explained from error


def _limits(question: Question) -> Limited:
    """Return the limit of each mode but the base; the worker is ended at it, as a compiler may be in native code."""

    def limit_mode(mode: str) -> AbstractContextManager[None]:
        if mode == question.base:
            return traffic.one_process(question.function)
        return steps.bound_seconds(question.limit) if steps.is_asked() else limit_seconds(question.limit)

    return limit_mode


# Where each has a job of its own --------------------------------------------------------------------------------------


def untimed_records(subject: Subject) -> list[Record]:
    """Return the gate's record, and those records that need no clock if the gate admits a mode.

    These are shape policies where calls differ, hints where there are any, and for the report the graphs of the step.
    """
    question, case = subject.question, subject.case
    assert case is not None  # noqa: S101  (only a case has a gate of its own)
    job = ComparisonPlan(question).job(kind_of(Parity), question.modes)
    with silence_output():
        record = _gate(job, case, question)
        if len(plan.admitted_modes(question, [record])) < 2:
            return [record]
        looks: list[Callable[..., Record | None]] = [
            inspection.shape_policies,
            partial(inspection.rewrite_hints, scans=not question.stands_in),
        ]
        looks += [inspection.engine_graphs] if question.apart else []
        seen = [_alone(job, partial(look, job, case)) for look in looks]
    return [record, *(extra for extra in seen if extra is not None)]


def _alone(job: Job, look: Callable[[], Record | None]) -> Record | None:
    """Return the finding of a look beside the measurement; after an error a failure record for that look alone."""
    try:
        return look()
    except CompareError:
        raise
    except Exception as error:  # noqa: BLE001  (the function has run, so that the fault is of this look)
        return failure(job, describe_error(error))


def _gate(job: Job, case: Case, question: Question) -> Parity:
    """Return the parity record; a disagreement by padding is told with its remedy."""
    if question.stands_in:
        references = exchange.references(case, question)
        record = parity.check(job, case, job.modes, limit=question.limit, references=references)
        for row in record.modes.values():
            row.reason = row.reason and as_named(row.reason)
        return record
    record = parity.check(job, case, job.modes, limit=question.limit)
    disagreeing = [row for row in record.modes.values() if row.status == "disagree"]
    if disagreeing and _differs_from_itself(job.modes[0], case):
        raise effects.not_deterministic(job.workload or "a function")
    for mode, row in record.modes.items():
        if row.status == "disagree" and engines.of_mode(mode).traits(mode).pads:
            row.reason = (
                f"{row.reason}; padding changes the result: give f a bool mask among its arguments, which is padded"
            )
    return record


def _differs_from_itself(base: str, case: Case) -> bool:
    """Return whether the function gives another result when it is called again."""
    step = engines.step(base, case)
    first, second = (step(*step.examples[0]) for _ in range(2))
    return rounding.tree_error(first, second) > 0


# This process ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Here:
    """The function that an executor runs for a job in this process: pinned to one core, with output hidden.

    If a first call is stopped, `answers` keep its glimpse.
    """

    subject: Subject
    answers: Journal

    def __call__(self, job: Job, _: float) -> Record:
        """Return the record of the job: of its times, or of the first look, as a worker would give it.

        Raises as `subject_of` for a look, or in a framework; else an error becomes a failure record.
        """
        case = self.subject.case
        if case is None:
            return self._anew(job)
        if job.kind == kind_of(FunctionLook):
            return self.subject.look(records=untimed_records(self.subject))
        try:
            environment.shift_memory(job)
            with pin_process(), silence_output():
                record = valid(handler(replace(job, source=_live(case)))())
        except Exception as error:  # noqa: BLE001  (as in a worker: whatever a cell raises is its result)
            return failure(job, describe_error(error))
        if isinstance(record, Memory):
            for row in record.modes.values():
                row.resident_growth = 0  # means nothing in a process that has held all this before
        return record

    def _anew(self, job: Job) -> Time:
        """Return the times as in a fresh worker: nothing that was compiled or counted before has a part in them."""
        account = Account(self.subject.question)
        try:
            with self.subject.engine.compiler.anew(), steps.hearing(account.hear):
                return times(self.subject, job)
        except KeyboardInterrupt:
            if glimpse := account.glimpse(job, f"first calls of {self.subject.question.label(job.modes[-1])}"):
                self.answers.keep(glimpse)
            raise


_LIVE: WeakValueDictionary[str, Case] = WeakValueDictionary()


def _live(case: Case) -> str:
    """Return the source of a case in this process; it is forgotten with the case."""
    _LIVE[str(id(case))] = case
    return f"{__name__}:{id(case)}"


def __getattr__(name: str) -> Workload:
    """Return the workload of a case in this process, which is the attribute of this module with its id."""
    case = _LIVE.get(name)
    if case is None:
        raise AttributeError(f"no case {name}")
    return exchange.workload_of(name, lambda: case)


@contextmanager
def restore_arguments(subject: Subject) -> Iterator[None]:
    """A context after which the arguments of a framework's function hold their old values again."""
    before = None if subject.case is not None else subject.engine.state.snapshot(subject.function, subject.calls)
    try:
        yield
    finally:
        if before is not None:
            before.restore()


def here() -> Bare:
    """Return the environment of this process, as a worker would answer."""
    return Bare(environment=environment.environment())


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def silence_output() -> Iterator[None]:
    """A context without Python's output: a function that is measured would print its line many times."""
    with redirect_stdout(_Nowhere()), redirect_stderr(_Nowhere()):
        yield


@contextmanager
def pin_process() -> Iterator[None]:
    """A context with one core and one BLAS thread, as a worker has."""
    from threadpoolctl import threadpool_limits

    cores = environment.affinity()
    mine = not gc.get_freeze_count()  # the caller's frozen objects cannot be unfrozen apart
    if mine:
        gc.freeze()  # keeps earlier objects out of each collection
    with threadpool_limits(1):
        try:
            if cores:
                os.sched_setaffinity(0, {max(cores)})
            yield
        finally:
            if cores:
                os.sched_setaffinity(0, cores)
            if mine:
                gc.unfreeze()
