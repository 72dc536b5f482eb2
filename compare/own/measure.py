"""Measuring a user's function: the gate here, then time and memory in fresh workers or, if need be, in this process."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dynamic
from compare.engines import cases
from compare.engines.graphduel import functions
from compare.engines.graphduel.steps import PADDING, STATIC
from compare.errors import InputsError, described
from compare.instruments.ladder import measure as ladder
from compare.instruments.ledger import ARMS as LEDGERS
from compare.instruments.ledger import measure as ledger
from compare.instruments.lines import measure as lines
from compare.instruments.memory import measure as memory
from compare.instruments.parity import measure as parity
from compare.instruments.parts import measure as parts
from compare.instruments.time import measure as timing
from compare.instruments.time.clock import NAME
from compare.own import bundle, drawn, hints, policies
from compare.own.origin import origin_of
from compare.records.job import Job
from compare.records.ledger import Ledger
from compare.records.memory import Memory
from compare.records.parity import Parity
from compare.records.record import OfArms, Record, of
from compare.records.runs import OWN, Bare, Failure, Setting, error_of
from compare.records.time import Time
from compare.run import environment, layout
from compare.run.gate import sorted_out
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import started
from compare.run.worker import failure
from compare.workloads.base import Case

LIMIT = 300.0
"""Seconds without progress after which a worker is ended, unless a user says otherwise."""
SECONDS = 2.5
"""What the rounds of one process may take, unless a user says otherwise."""
HERE = "one process, built anew each time"
REPEATS = 5
"""How often all is built and measured anew, so that intervals cover more than one layout of memory."""

Execute = Callable[[Job], Record]


@contextmanager
def executor(
    f: Callable[..., Any], inputs: Sequence[Any], case: Case, dims: Any, processes: int | None, limit: float
) -> Iterator[tuple[str, Execute]]:
    """The source to name in jobs, "" for this process, and what runs them.

    Raises InputsError where workers are asked for and f or its inputs cannot reach them.
    """
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        source = "" if processes == 0 else bundled(Path(folder), f, inputs, case, dims, must=processes is not None)
        yield source, (partial(worker, limit=limit) if source else Here(case))


def untimed(what: Job, case: Case, *, apart: bool) -> list[Record]:
    """The gate's record, and those that need no clock where the gate admits an arm: `counts`.

    `what` is the job of the gate, which names the function, its arms, their seed and budget.
    """
    parity = gate(what, case)
    admitted, _ = sorted_out(parity.arms)
    return [parity, *(counts(what, case, apart=apart) if admitted else [])]


def timed(
    what: Job,
    before: Sequence[Record],
    execute: Execute,
    reporter: Reporter,
    repeats: int,
    *,
    gradient: bool,
    apart: bool,
) -> list[Record]:
    """The records of time, memory and the lines of the step; none where the gate `before` admits no arm.

    With `apart` a step is also taken apart: `closer_jobs`. Each of the repeats builds everything anew.
    """
    admitted, refused = sorted_out(of(before, Parity)[0].arms)
    if not admitted:
        return []
    jobs = [replace(what, kind="time", arms=admitted, process=process) for process in range(repeats)]
    chosen = replace(what, arms=admitted)
    closer = closer_jobs(chosen, gradient=gradient) if apart else [replace(chosen, kind="lines")]
    memories = [replace(what, kind="memory", arms=(arm,)) for arm in admitted]
    reporter.pace.expect([*jobs, *memories, *closer])
    with reporter:
        times = [_done(job, execute, reporter) for job in jobs]
        found = [_done(job, execute, reporter) for job in memories]
        looked = [_done(job, execute, reporter) for job in closer]
    for record in of(times, OfArms):
        record.add(refused)
    failed = [record for record in found if isinstance(record, Failure)]
    measured = {arm: row for record in found if isinstance(record, Memory) for arm, row in record.arms.items()}
    merged = Memory(**replace(what, kind="memory").head, arms=measured)
    merged.add(refused)
    return [*times, *failed, *_together(looked), *([merged] if measured else [])]


def counts(what: Job, case: Case, *, apart: bool) -> list[Record]:
    """What needs no clock, if a static mode is asked for: shape policies where calls differ, hints where there are any.

    With `apart` also the graphs of the step, for the report.
    """
    if not any(arm.startswith(STATIC) for arm in what.arms):
        return []
    found = [policies.look(what, case), hints.look(what, case), drawn.look(what, case) if apart else None]
    return [record for record in found if record is not None]


def closer_jobs(what: Job, *, gradient: bool) -> list[Job]:
    """What takes a step apart, of the engines that were admitted: lines, bytes over time, ladder and parts of time.

    The ladder and the parts of time compare both engines, so that neither is asked for where static refused; parts are
    those of a step with a gradient.
    """
    both = {"dynamic", "static-exact"} <= set(what.arms)
    ledgers = [replace(what, kind="ledger", arms=(arm,)) for arm in what.arms if arm in LEDGERS]
    clocked = [*(["ladder"] if both else []), *(["parts"] if both and gradient else [])]
    return [replace(what, kind="lines"), *ledgers, *(replace(what, kind=kind, process=0) for kind in clocked)]


def _together(records: Sequence[Record]) -> list[Record]:
    """The records, those of the arms of one ledger as one."""
    ledgers = [record for record in records if isinstance(record, Ledger)]
    others = [record for record in records if not isinstance(record, Ledger)]
    if not ledgers:
        return others
    arms = {arm: row for record in ledgers for arm, row in record.arms.items()}
    return [*others, Ledger(ledgers[0].workload, ledgers[0].size, arms=arms)]


def gate(what: Job, case: Case) -> Parity:
    """The parity record; what an arm disagrees in is said with what to do about it."""
    record = parity.check(what, case, what.arms)
    disagreeing = [row for row in record.arms.values() if row.status == "disagree"]
    if disagreeing and _differs_from_itself(case):
        for row in disagreeing:
            row.reason = f"{row.reason}; two calls on the same inputs differ: seed what the function draws"
        return record
    for arm, row in record.arms.items():
        if row.status == "disagree" and arm.removeprefix(STATIC) in PADDING:
            row.reason = (
                f"{row.reason}; padding changes the result: give f a bool mask among its arguments, which is padded"
            )
    return record


def _differs_from_itself(case: Case) -> bool:
    """Whether the function gives another result when it is called again."""
    step = functions.transformed(dynamic, case.loss, case.argnum)
    first, second = (step(case.params, *case.examples[0]) for _ in range(2))
    return parity.tree_error(first, second) > 0


class Here:
    """Runs jobs in this process, kept on one core meanwhile."""

    def __init__(self, case: Case) -> None:
        self.case = case
        alone = cases.alone(case)
        self._made: dict[str, Execute] = {
            "time": self._time,
            "memory": self._memory,
            "lines": lambda job: lines.measure_lines(job, case),
            "ledger": lambda job: Ledger(**job.head, arms={arm: ledger.measure_arm(arm, alone) for arm in job.arms}),
            "ladder": lambda job: ladder.measure_rungs(job, alone),
            "parts": lambda job: parts.measure_parts(job, alone),
        }

    def __call__(self, job: Job) -> Record:
        """The record of the job, or a failure record."""
        if job.kind == "environment":
            return Bare(environment=environment.environment())
        try:
            layout.moved(job)
            with pinned():
                return self._made[job.kind](job)
        except Exception as error:  # noqa: BLE001  (as in a worker: whatever a cell raises is its result)
            return failure(job, described(error))

    def _time(self, job: Job) -> Time:
        return Time(**job.head, arms=timing.measure_arms(job, self.case), clock=NAME)

    def _memory(self, job: Job) -> Memory:
        rows = {arm: memory.measure_arm(arm, self.case) for arm in job.arms}
        for row in rows.values():
            row.resident_growth = 0  # of a process that has held all this before, it says nothing
        return Memory(**job.head, arms=rows)


def worker(job: Job, limit: float) -> Record:
    """Runs a job in a fresh worker, which may not go on for `limit` seconds without progress."""
    return run_job(job, limit)


def bundled(folder: Path, f: Any, inputs: Sequence[Any], case: Case, dims: Any, *, must: bool = True) -> str:
    """The source of a bundle in the folder; "" where there can be none, unless it must be."""
    origin = origin_of(f)
    if origin is None:
        if must:
            raise InputsError(
                f"{getattr(f, '__qualname__', type(f).__name__)} cannot be imported by name in a worker; define it at "
                "the top level of a module, or measure in this process: processes=0, on the command line --processes 0"
            )
        return ""
    try:
        return bundle.write(folder, origin, inputs, case, dims)
    except InputsError:
        if must:
            raise
        return ""


def header(what: Job, answer: Record, said: Mapping[str, Setting]) -> Record:
    """The run's own line, with the environment that a worker has answered, or that of this process."""
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": what.seed,
        "only": None,
        "where": "fresh workers" if what.source else HERE,
        **said,
    }
    return started(settings, answer)


def _done(job: Job, execute: Execute, reporter: Reporter) -> Record:
    reporter.start(job.label)
    record = execute(job)
    reporter.finish(error_of(record), job)
    return record


@contextmanager
def pinned() -> Iterator[None]:
    """One core and one BLAS thread inside, as a worker has; as before outside."""
    from threadpoolctl import threadpool_limits

    cores = environment.affinity()
    mine = not gc.get_freeze_count()  # what the caller has frozen stays so: there is no unfreezing of some alone
    if mine:
        gc.freeze()  # what this process held before is not walked by each collection
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
