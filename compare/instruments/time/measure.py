"""The times of a cell in one process: build, every first call, warm-up and steady state, each apart."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from compare import engines, workloads
from compare.engines import cases
from compare.engines.base import Step
from compare.instruments import thin
from compare.instruments.time.clock import CLOCK, NAME, Clock
from compare.instruments.time.rounds import TimedCall, collected, orders, paired_rounds
from compare.records import time as schema
from compare.records.job import Budget, Job
from compare.steps import now
from compare.workloads.base import Case, Example

Build = Callable[[str, Case], Step]


def measure(job: Job) -> schema.Time:
    """The time record of one process: every arm built, called first, and timed in steady state."""
    case = thin.case_of(job, workloads.load(job.source))
    gc.freeze()  # what the harness itself holds is not walked by each collection below
    return schema.Time(**job.head, arms=measure_arms(job, case), clock=NAME)


def measure_arms(job: Job, case: Case, build: Build = engines.step) -> dict[str, schema.TimeArm]:
    """The times of the arms of a job over a case that is at hand; `build` makes the step of an arm."""
    rng = job.random()
    steps = {arm: build(arm, case) for arm in rng.sample(job.arms, len(job.arms))}
    builds = {arm: step.compile_seconds for arm, step in steps.items()}
    first = first_epoch(steps, case, rng)
    calls = {arm: steady_call(step) for arm, step in steps.items()}
    rounds = paired_rounds(calls, job.budget, rng)
    starts, steady = rounds.starts(), rounds.steady()
    examples = len(case.examples)
    return {
        arm: schema.TimeArm(
            "ok",
            None,
            build=builds[arm],
            first=first[arm][0].seconds,
            calls_per_block=rounds.counts[arm] * examples,
            warmup=[seconds / examples for seconds in rounds.warmup(arm)],
            steady=starts[arm] is not None,
            blocks=[seconds / examples for seconds in steady[arm]],
            stream=first[arm] if case.varies else None,
            compiles=steps[arm].compiles,
            compile_seconds=steps[arm].compile_seconds,
            useful=sum(case.lengths),
            computed=steps[arm].computed(case.lengths),
        )
        for arm in job.arms
    }


def first_epoch(steps: Mapping[str, Step], case: Case, rng: Random) -> dict[str, list[schema.Call]]:
    """Every first call over the stream, one by one, arms interleaved per example.

    `new` marks a shape or structure that is new to the arm, `compiled` a call that compiled.
    """
    calls: dict[str, list[schema.Call]] = {arm: [] for arm in steps}
    seen: set[Any] = set()
    for index, order in zip(range(len(case.examples)), orders(tuple(steps), rng), strict=False):
        now(f"made first call {index + 1}")
        signature = cases.signature(case.examples[index])
        with collected():
            for arm in order:
                calls[arm].append(_first_call(steps[arm], index, case.lengths[index], signature not in seen))
        seen.add(signature)
    return calls


def _first_call(step: Step, index: int, length: int, new: bool) -> schema.Call:
    before, example = step.compiles, step.examples[index]
    seconds, _ = timed(partial(step, *example))
    return schema.Call(length, seconds, new, step.compiles > before)


def steady_call(step: Any) -> TimedCall:
    """What one steady call is: a step on its one example, or an epoch over the whole stream."""
    if len(step.examples) > 1:
        return partial(_epoch, step, step.examples)
    return partial(step, *step.examples[0])


def _epoch(step: Step, examples: Sequence[Example]) -> None:
    for example in examples:
        step(*example)


def steady_blocks(
    calls: Mapping[str, TimedCall], budget: Budget, rng: Random, clock: Clock = CLOCK
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds per call of each steady block of each arm, paired by index, and the calls in a block."""
    rounds = paired_rounds(calls, budget, rng, clock)
    return rounds.steady(), rounds.counts


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds one call takes, and what it returns."""
    start = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - start) / 1e9, result
