"""What one process measures of a user's function in a framework: whether modes agree, and what each takes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from compare.engines.limit import within
from compare.instruments.runnables import FunctionRunnable
from compare.instruments.time.first import Limited
from compare.instruments.time.measure import COLD, answer
from compare.own import traffic
from compare.own.bundle import SIZE
from compare.own.faults import answered
from compare.own.frameworks.notes import Notes
from compare.own.question import Calls, Function, Question
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault
from compare.records.record import kind_of
from compare.records.time import Time
from compare.steps import now

MAKER = "compare.own.frameworks.measure:measure"


def measure(job: Job) -> Time | FunctionFault:
    """What a worker answers; what is wrong with the user's file is an answer too."""
    asked = Question.from_dict(job.asked)

    def measured() -> Time:
        now(f"started {asked.adapter.title}")
        asked.started()
        now(f"imported {asked.function.rpartition(':')[0]}")
        function, calls = asked.load()
        gc.freeze()  # what is loaded now is not walked by each collection below
        return step(asked, function, calls, job)

    return answered(asked.function, measured)


def job_of(asked: Question, arms: tuple[str, ...], process: int | None) -> Job:
    """The job of one process, the first of which finds no compiled code; None is one that measures all by itself."""
    seconds = asked.seconds * len(arms)
    budget = Budget(rounds=15, least=5, seconds=seconds, block_seconds=0.03)
    return Job(
        kind_of(Time), asked.name, SIZE, process, arm=arms[-1], seed=asked.seed, arms=arms, budget=budget, maker=MAKER
    )


def step(asked: Question, function: Function, calls: Calls, job: Job) -> Time:
    """The arms of a job in this process: checked and counted where it is the first, timed in the others."""
    checks = job.process in (COLD, None)
    runnable = FunctionRunnable(
        asked.adapter, asked.arms[0], asked.function, function, calls, asked.argnum, checks=checks
    )
    return answer(job, runnable, _limits(asked), {arm: asked.mode(arm) for arm in asked.arms})


def _limits(asked: Question) -> Limited:
    """The limit of each mode but the eager one, at which a worker is ended: a compiler may be in native code."""

    @contextmanager
    def limited(arm: str, calls: int) -> Iterator[Callable[[float], None]]:
        if arm == asked.arms[0]:
            with traffic.one_process(asked.function):
                yield lambda _: None
            return
        if not asked.notes:
            with within(asked.limit):
                yield lambda _: None
            return
        notes = Notes(asked.notes)
        with notes.ended_after(asked.limit, calls):
            yield notes.add

    return limited


def measured_here(asked: Question, function: Function, calls: Calls, arms: tuple[str, ...]) -> Time:
    """What this process finds by itself; the state that the arguments hold is as before."""
    alone, training = replace(asked, notes=""), asked.adapter.training(function, calls)
    restore = training.snapshot() if training else asked.adapter.state(list(calls))
    try:
        return step(alone, function, calls, job_of(alone, arms, None))
    finally:
        restore()
