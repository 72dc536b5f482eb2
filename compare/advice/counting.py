"""What a worker does for the advice: count the ops of a step that runs eagerly, and, of a probe, take its times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, cast

import optree

from compare import workloads
from compare.advice import probes
from compare.engines.base import Engine
from compare.instruments.time.rounds import paired_rounds
from compare.own.question import Question
from compare.own.workers import answered
from compare.records.framework_work import FrameworkWork, Timed
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault
from compare.records.work import counted

BUDGET = Budget(rounds=12, least=5, seconds=1.2, block_seconds=0.01)

Losses = Callable[[str], Callable[..., Any]]
"""The loss that an arm is given."""


def measure(job: Job) -> FrameworkWork | FunctionFault:
    """The work of what a job names: PROBE, a workload, or the user's FILE.py:NAME, as `asked` says.

    It is timed where the job has two arms, the eager one first. What is wrong with the user's file is an answer too.
    """
    asked = Question.from_dict(job.asked)
    return answered(asked.function, lambda: _measured(asked.started(), job.arms, job, *_found(asked)))


def _found(asked: Question) -> tuple[Losses, Sequence[tuple[Any, ...]]]:
    """The losses for each arm, and the calls."""
    framework = asked.adapter
    if asked.function in probes.PROBES:
        loss, args = framework.load(probes.__name__).PROBES[asked.function]
        return lambda _: loss, [framework.arrays(args)]
    if asked.function in workloads.names():
        case = framework.workload(workloads.source(asked.function)).case("small")
        return partial(framework.loss, case=case), [framework.arrays((case.params, *case.examples[0]))]
    function, calls = asked.load()
    return lambda _: function, calls


def _measured(
    framework: Engine, arms: Sequence[str], job: Job, losses: Losses, calls: Sequence[tuple[Any, ...]]
) -> FrameworkWork:
    eager = framework.build(arms[0], losses(arms[0]), 0)
    works = []
    for call in calls:
        restore = framework.state(call)
        works.append(counted(framework.ran(eager, call)))
        restore()
    found = FrameworkWork(framework.version, works, len({_shapes(call) for call in calls}))
    if len(arms) > 1:
        found.timed = _timed(framework, eager, framework.build(arms[1], losses(arms[1]), 0), calls, job)
    return found


def _timed(
    framework: Engine, eager: Callable[..., Any], compiled: Callable[..., Any], calls: Sequence[Any], job: Job
) -> Timed:
    """Steady calls by this process's own clock, the first by that of the wall: compilers are other processes."""

    def run(step: Callable[..., Any]) -> None:
        for call in calls:
            framework.wait(step(*call))

    run(eager)
    start = time.perf_counter()
    framework.wait(compiled(*calls[0]))
    first = time.perf_counter() - start
    run(compiled)
    arms = {"eager": partial(run, eager), "compiled": partial(run, compiled)}
    steady = paired_rounds(arms, BUDGET, job.random(), time.process_time_ns).steady()
    return Timed(median(steady["eager"]) / len(calls), median(steady["compiled"]) / len(calls), first)


def _shapes(call: tuple[Any, ...]) -> tuple[Any, ...]:
    leaves: list[Any] = optree.tree_leaves(cast("Any", call), none_is_leaf=True)
    return tuple(tuple(getattr(leaf, "shape", ())) for leaf in leaves)
