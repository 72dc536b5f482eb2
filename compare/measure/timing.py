"""Timing: calibrated blocks of calls, arms in balanced random order, build and first call apart.

The arms of a round run next to each other in time, so that a slow moment of the machine meets them all, and
ratios are taken within rounds. The garbage collector runs between rounds and never inside a block.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

from compare import arms, workloads
from compare.arms import Step
from compare.measure.job import Budget, Job
from compare.results import Record
from compare.workloads.base import Case, Example

Clock = Callable[[], int]
Call = Callable[[], object]


def measure(job: Job) -> Record:
    """The time record of one process: every arm built, called first, and timed in steady state."""
    case = workloads.load(job.source).case(str(job.size))
    gc.freeze()  # what the harness itself holds is not walked by each collection below
    return measure_arms(job, case)


def measure_arms(job: Job, case: Case) -> Record:
    """The time record of the arms of a job over a case that is at hand."""
    rng = job.random()
    steps = {arm: arms.build(arm, case) for arm in rng.sample(job.arms, len(job.arms))}
    builds = {arm: step.compile_seconds for arm, step in steps.items()}
    first = first_epoch(steps, case, rng)
    calls = {arm: steady_call(step, case) for arm, step in steps.items()}
    blocks, counts = steady_blocks(calls, job.budget, rng)
    rows = {
        arm: {
            "status": "ok",
            "reason": None,
            "build": builds[arm],
            "first": first[arm][0]["seconds"],
            "calls_per_block": counts[arm] * len(case.examples),
            "blocks": [seconds / len(case.examples) for seconds in blocks[arm]],
            "stream": first[arm] if case.varies else None,
            **_counts(steps[arm], case),
        }
        for arm in job.arms
    }
    return {**job.head, "arms": rows}


def _counts(step: Step, case: Case) -> dict[str, Any]:
    return {
        "compiles": step.compiles,
        "compile_seconds": step.compile_seconds,
        "useful": sum(case.lengths),
        "computed": step.computed(case.lengths),
    }


def interleave(names: Sequence[str], rounds: int, rng: Random) -> list[tuple[str, ...]]:
    """The order of the arms in each round: random, and balanced over each group of `len(names)` rounds.

    A group is the rows, shuffled, of a Latin square over a random order: each arm takes each place once.
    """
    orders: list[tuple[str, ...]] = []
    while len(orders) < rounds:
        shuffled = rng.sample(names, len(names))
        square = [tuple(shuffled[i:] + shuffled[:i]) for i in range(len(shuffled))]
        orders += rng.sample(square, len(square))
    return orders[:rounds]


def first_epoch(steps: Mapping[str, Step], case: Case, rng: Random) -> dict[str, list[dict[str, Any]]]:
    """Every first call over the stream, one by one, arms interleaved per example.

    `new` marks a shape or structure that the arm had not met before, `compiled` a call that compiled.
    """
    calls: dict[str, list[dict[str, Any]]] = {arm: [] for arm in steps}
    seen: set[Any] = set()
    for index, order in enumerate(interleave(tuple(steps), len(case.examples), rng)):
        signature = arms.signature(case.examples[index])
        with collected():
            for arm in order:
                calls[arm].append(_first_call(steps[arm], index, case.lengths[index], signature not in seen))
        seen.add(signature)
    return calls


def _first_call(step: Step, index: int, length: int, new: bool) -> dict[str, Any]:
    before, example = step.compiles, step.examples[index]
    seconds, _ = timed(partial(step, *example))
    return {"length": length, "seconds": seconds, "new": new, "compiled": step.compiles > before}


def steady_call(step: Step, case: Case) -> Call:
    """What one steady call is: a step on the one example, or an epoch over the whole stream."""
    if case.varies:
        return partial(_epoch, step, step.examples)
    return partial(step, *step.examples[0])


def _epoch(step: Step, examples: Sequence[Example]) -> None:
    for example in examples:
        step(*example)


def steady_blocks(
    calls: Mapping[str, Call], budget: Budget, rng: Random, clock: Clock = time.perf_counter_ns
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds per call of each block of each arm, and the calls in a block.

    Block i of every arm belongs to round i. Stops between rounds once the budget is spent.
    """
    counts = {arm: calibrate(call, budget.block_seconds, clock) for arm, call in calls.items()}
    blocks: dict[str, list[float]] = {arm: [] for arm in calls}
    deadline = clock() + int(budget.seconds * 1e9)
    for done, order in enumerate(interleave(tuple(calls), budget.rounds, rng)):
        if done >= budget.least and clock() > deadline:
            break
        with collected():
            for arm in order:
                blocks[arm].append(time_block(calls[arm], counts[arm], clock))
    return blocks, counts


def calibrate(call: Call, seconds: float, clock: Clock = time.perf_counter_ns) -> int:
    """The number of calls whose block lasts at least `seconds`; the search is the warm-up too."""
    count = 1
    while True:
        with collected():
            elapsed = time_block(call, count, clock) * count
        if elapsed >= seconds:
            return count
        needed = count * seconds / elapsed if elapsed > 0 else 2.0 * count
        count = max(count + 1, min(10 * count, int(needed * 1.05) + 1))


def time_block(call: Call, count: int, clock: Clock = time.perf_counter_ns) -> float:
    """Seconds per call over `count` calls in a row."""
    turns = range(count)
    start = clock()
    for _ in turns:
        call()
    return (clock() - start) / count / 1e9


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds one call takes, and what it returns."""
    start = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - start) / 1e9, result


@contextmanager
def collected() -> Iterator[None]:
    """Collect garbage now, and none inside the block: a collection belongs to no arm."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
