"""The findings of one process on a user's function in an engine: its effects, its modes' agreement, and their times.

A worker finds them, which alone imports the user's file, or this process if no other can find the function. In a
framework one process is gate, clock and scales at once; in our engine each of these is a job of its own.
"""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from compare import engines, steps
from compare.engines import Engine
from compare.engines.graphduel.standin import as_named
from compare.engines.process import limit_seconds
from compare.engines.step import Context
from compare.errors import CompareError, EffectsError, FunctionError, InputsError, describe_error
from compare.instruments import inspection, parity, rounding, timing
from compare.instruments.bench import Bench
from compare.instruments.timing import Limited
from compare.own import graph
from compare.own.workers import Account, Answers, answer_or_fault, loaded_files
from compare.plans.comparison import ComparisonPlan, admitted_modes, follow
from compare.records.cells import Memory, Parity, Time
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import FunctionLook
from compare.records.record import Bare, OfModes, Record, Setting, kind_of
from compare.records.results import of_json, to_json, valid
from compare.run import environment
from compare.run.executors import Pool, Serial
from compare.run.progress import Reporter
from compare.run.runner import Runner
from compare.run.worker import failure, handler
from compare.subjects import effects, exchange, origin, traffic
from compare.subjects.case import FunctionCase, open_case
from compare.subjects.effects import SideEffect, effects_in
from compare.subjects.subject import Subject
from compare.workloads import Workload
from compare.workloads.base import Case

ASIDE = 0.9
"""The share of the limit of a process that a look beside the times may take in it."""


def look_record(
    subject: Subject, case: FunctionCase, source: str = "", records: Sequence[Record] = (),
    *, fresh: Context | None = None, own: str = "",
) -> FunctionLook:  # fmt: skip
    """Return the record of the first look at a case, with the records of its measurements.

    Within `fresh`, changes that are worth a try are looked for by running the function. `own` is the mode in which the
    whole step runs as its file compiles it: then that is no further mode.
    """
    settings: dict[str, Setting] = {
        "inputs": len(case.calls),
        "gradient": case.argnum is not None,
        "converted": case.branches,
        "effects": list(map(str, case.effects)),
        **subject.adapter.trials.facts(case.function, case.calls, fresh),
    }
    if own in subject.modes:
        settings["own"] = subject.label(own)
    elif subject.adapter.compiles:
        settings["compiles"] = True
    if subject.adapter.trials.tries and (line := origin.line_of_inputs(subject.function, subject.inputs)):
        settings["inputs_at"] = line
    beside = list(map(to_json, records))
    return FunctionLook(subject.name, list(subject.modes), settings, source, files=loaded_files(), beside=beside)


# A worker -------------------------------------------------------------------------------------------------------------


def measure(job: Job) -> Record:
    """Return a worker's answer; a fault of the user's file is an answer too."""
    plan = ComparisonPlan.from_dict(job.asked)
    return answer_or_fault(plan.subject.function, lambda: _answer(plan, job))


def _answer(plan: ComparisonPlan, job: Job) -> Record:
    subject, situation = plan.subject, plan.situation
    steps.now(f"started {subject.adapter.title}")
    subject.started(situation)
    steps.now(f"imported {subject.function.rpartition(':')[0]}")
    if subject.stands_in:
        case = open_case(subject, *exchange.program_of(subject, situation))
    else:
        case = open_case(subject, *origin.load_function(subject.function, subject.inputs))
    if not subject.adapter.is_reference:
        gc.freeze()  # keeps loaded objects out of each collection below
        return times(plan, case, job)
    source = write_case(plan, case) if situation.processes else ""
    answers = Answers(records=untimed_records(plan, case))
    if not source:
        plan = _with_trials(plan, answers.records)
        here = Pool(Serial(raises=True), Here(plan, case, answers))
        follow(plan, Runner(answers, _Steps(), here, situation.limit, strict=True))
    return look_record(subject, case, source, answers.records)


def _with_trials(plan: ComparisonPlan, records: Sequence[Record]) -> ComparisonPlan:
    """Return the plan with the modes that the records of a first look ask for."""
    if not plan.situation.tries:
        return plan
    return plan.widened([FunctionLook(plan.subject.name, list(plan.subject.modes), {}, ""), *records])


class _Steps(Reporter):
    """A reporter that tells each job as a step of this worker."""

    def start(self, label: str) -> None:
        """Note that a job begins."""
        super().start(label)
        steps.now(f"measured {label}")


def write_case(plan: ComparisonPlan, case: FunctionCase, dims: Any = None) -> str:
    """Write a bundle to the plan's folder; return its source.

    Raises InputsError if function or inputs cannot reach a worker.
    """
    folder = Path(plan.situation.folder)
    if plan.subject.stands_in:
        return exchange.write_again(folder, plan.to_dict(), case, dims)
    function, written = case.function, plan.subject.function
    place = origin.origin_of(function) or (origin.PlaceInFile.of(written).origin() if ":" in written else None)
    if place is None:
        raise InputsError(
            f"{getattr(function, '__qualname__', type(function).__name__)} cannot be imported by name in a worker; "
            "define it at the top level of a module, or measure in this process: processes=0, on the command line "
            "--processes 0"
        )
    return exchange.write_bundle(folder, place, case, dims)


# Where one process is gate, clock and scales --------------------------------------------------------------------------


def times(plan: ComparisonPlan, case: FunctionCase, job: Job) -> Time:
    """Return the times of the modes in this process: checked and counted in the first process, timed in the others."""
    subject, situation, engine, numbers = plan.subject, plan.situation, plan.subject.adapter, plan.situation.numbers
    is_first = job.process in (timing.COLD, None)
    checks, needed = is_first or bool(job.asked.get("checks")), subject.gradient is True
    bench = Bench.of_function(
        engine, subject.base, subject.function, case.function, case.calls, case.argnum, checks=checks, needed=needed
    )
    names = {mode: subject.label(mode) for mode in (subject.base, *job.modes)}
    with silence_output():
        if is_first:
            exchange.leave_numbers(numbers, engine, case)
        try:
            record = timing.answer(job, bench, _limits(plan), names)
        except InputsError:
            _as_written(subject, case)
            raise
        except CompareError:
            raise
        except Exception as error:
            if (explained := _effects_of(bench, subject) or _explain_error(subject, error)) is error:
                raise
            raise explained from error
        if is_first:
            with _aside(bench):
                left = _alone(job, partial(exchange.leave_expected, numbers, bench))
            seen = list[SideEffect]()
            with _aside(bench):
                trains = bench.state.training is not None
                missed = _alone(
                    job, lambda: seen.extend(effects_in(subject, case.function, case.calls[0], trains=trains))
                )
            record.beside += [to_json(fault) for fault in (left, missed) if fault]
            case = replace(case, argnum=bench.argnum, effects=seen)
            tries = situation.tries == "remedies" and job.modes[-1:] == subject.modes[1:2]
            looked = look_record(subject, case, fresh=bench.state.fresh if tries else None, own=bench.own_mode)
            record.beside = [to_json(looked), *record.beside]
        if situation.bisects and job.process in (timing.WARM, None):
            asked = {mode: name for mode, name in names.items() if mode not in (subject.base, *subject.tried)}
            record.beside += map(to_json, graph.bisections(job, bench, asked))
    return without_mode(record, subject.label(subject.base)) if engine.traits(job.modes[-1]).python else record


def without_mode(record: Time, mode: str) -> Time:
    """Return the record and those beside it without a mode: the base of another Python is not the base of the run."""
    for each in (record, *(beside := [told for line in record.beside if (told := of_json(line))])):
        if isinstance(each, OfModes):
            each.modes = {name: row for name, row in each.modes.items() if name != mode}
    record.beside = [to_json(each) for each in beside if not isinstance(each, OfModes) or each.modes]
    return record


@contextmanager
def _aside(bench: Bench) -> Iterator[None]:
    """A context in which the function runs in eager, from the state of the start."""
    with bench.state.fresh(), bench.engine.compiler.eagerly(bench.case.loss):
        yield


def _effects_of(bench: Bench, subject: Subject) -> Exception | None:
    """Return the EffectsError for the function, if any: side effects may be why a later call raises."""
    try:
        with _aside(bench):
            effects_in(subject, bench.case.loss, bench.case.examples[0])
    except EffectsError as refusal:
        return refusal
    except Exception:  # noqa: BLE001  (the same error as before)
        return None
    return None


def _explain_error(subject: Subject, error: Exception) -> Exception:
    """Return the error in the framework's own sentence where it has one, else the error itself."""
    said = subject.adapter.errors.said(error)
    return FunctionError(f"{subject.function}: {said}") if said else error


def _as_written(subject: Subject, case: FunctionCase) -> None:
    """Raise FunctionError if the file's own compiled code is refused, which is what its user sees."""
    if not subject.adapter.compiles:
        return
    try:
        case.function(*case.calls[0])
    except Exception as error:
        if (explained := _explain_error(subject, error)) is not error:
            raise explained from error


def _limits(plan: ComparisonPlan) -> Limited:
    """Return the limit of each mode but the base; the worker is ended at it, as a compiler may be in native code."""

    def limit_mode(mode: str) -> AbstractContextManager[None]:
        if mode == plan.subject.base:
            return traffic.one_process(plan.subject.function)
        return steps.bound_seconds(plan.situation.limit) if steps.is_asked() else limit_seconds(plan.situation.limit)

    return limit_mode


# Where each has a job of its own --------------------------------------------------------------------------------------


def untimed_records(plan: ComparisonPlan, case: Case) -> list[Record]:
    """Return the gate's record, and those records that need no clock if the gate admits a mode.

    These are shape policies where calls differ, hints where there are any, for the report the graphs of the step, and
    what the gate says of the modes that these ask for.
    """
    job = plan.job(kind_of(Parity), plan.subject.modes)
    with silence_output():
        record = _gate(job, case, plan)
        if len(admitted_modes(plan.subject, [record])) < 2:
            return [record]
        looks: list[Callable[..., Record | None]] = [
            inspection.shape_policies,
            partial(inspection.rewrite_hints, scans=not plan.subject.stands_in),
        ]
        looks += [inspection.engine_graphs] if plan.situation.apart else []
        seen = [_alone(job, partial(look, job, case)) for look in looks]
        records = [record, *(extra for extra in seen if extra is not None)]
        wider = _with_trials(plan, records)
        if tried := wider.subject.tried:
            records.append(_gate(wider.job(kind_of(Parity), (wider.subject.base, *tried)), case, wider))
    return records


def _alone(job: Job, look: Callable[[], Record | None]) -> Record | None:
    """Return the finding of a look beside the measurement; after an error a failure record for that look alone."""
    try:
        return look()
    except CompareError:
        raise
    except Exception as error:  # noqa: BLE001  (the function has run, so that the fault is of this look)
        return failure(job, describe_error(error))


def _gate(job: Job, case: Case, plan: ComparisonPlan) -> Parity:
    """Return the parity record; a disagreement by padding is told with its remedy."""
    if plan.subject.stands_in:
        references = exchange.references(case, plan.subject.name, plan.situation.numbers)
        record = parity.check(job, case, job.modes, limit=plan.situation.limit, references=references)
        for row in record.modes.values():
            row.reason = row.reason and as_named(row.reason)
        record.label_rows()
        return record
    record = parity.check(job, case, job.modes, limit=plan.situation.limit)
    disagreeing = [row for row in record.modes.values() if row.status == "disagree"]
    if disagreeing and _differs_from_itself(job.modes[0], case):
        raise effects.not_deterministic(job.workload or "a function")
    for mode, row in record.modes.items():
        if row.status == "disagree" and engines.of_mode(mode).traits(mode).pads:
            row.reason = (
                f"{row.reason}; padding changes the result: give f a bool mask among its arguments, which is padded"
            )
    record.label_rows()
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

    plan: ComparisonPlan
    case: FunctionCase
    answers: Journal

    def __call__(self, job: Job, _: float) -> Record:
        """Return the record of the job: of its times, or of the first look, as a worker would give it.

        Raises as `open_case` for a look, or in a framework; else an error becomes a failure record.
        """
        if not self.plan.subject.adapter.is_reference:
            return self._anew(job)
        if job.kind == kind_of(FunctionLook):
            return look_record(self.plan.subject, self.case, records=untimed_records(self.plan, self.case))
        try:
            environment.shift_memory(job)
            with pin_process(job.threads), silence_output(), self._limit(job):
                record = valid(handler(replace(job, source=_live(self.case)))())
                record.threads = job.threads
                if isinstance(record, OfModes):
                    record.label_rows()
        except Exception as error:  # noqa: BLE001  (as in a worker: whatever a cell raises is its result)
            return failure(job, describe_error(error))
        if isinstance(record, Memory):
            for row in record.modes.values():
                row.resident_growth = 0  # means nothing in a process that has held all this before
        return record

    def _limit(self, job: Job) -> AbstractContextManager[None]:
        """Return the limit of a look beside the times, which it may not cost: this process is ended a little later."""
        return nullcontext() if job.kind == kind_of(Time) else limit_seconds(ASIDE * self.plan.situation.limit)

    def _anew(self, job: Job) -> Time:
        """Return the times as in a fresh worker: nothing that was compiled or counted before has a part in them."""
        subject = self.plan.subject
        account = Account(subject)
        try:
            with subject.adapter.compiler.anew(), steps.hearing(account.hear):
                return times(self.plan, self.case, job)
        except KeyboardInterrupt:
            if glimpse := account.glimpse(job, f"first calls of {subject.label(job.modes[-1])}"):
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
def restore_arguments(engine: Engine, case: FunctionCase) -> Iterator[None]:
    """A context after which the arguments of a framework's function hold their old values again."""
    before = None if engine.is_reference else engine.state.snapshot(case.function, case.calls)
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
def pin_process(threads: int = 1) -> Iterator[None]:
    """A context with as many cores and BLAS threads, as a worker has."""
    from threadpoolctl import threadpool_limits

    cores = environment.affinity()
    mine = not gc.get_freeze_count()  # the caller's frozen objects cannot be unfrozen apart
    if mine:
        gc.freeze()  # keeps earlier objects out of each collection
    with threadpool_limits(threads):
        try:
            if cores:
                os.sched_setaffinity(0, cores[-threads:])
            yield
        finally:
            if cores:
                os.sched_setaffinity(0, cores)
            if mine:
                gc.unfreeze()
