"""What one process measures of a user's function: whether modes agree, or what each takes, first and once warm."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from compare.errors import described
from compare.frameworks import heap
from compare.frameworks.base import Framework
from compare.frameworks.own.asked import Asked, Calls, Function
from compare.frameworks.own.schema import FrameworkGate, FrameworkTime, GateMode, Made, TimedMode
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.rounds import paired_rounds
from compare.run.job import Budget, Job

SEEDS = (1, 2)
LARGEST = 1e300  # JSON has no infinity


def measure_gate(job: Job) -> FrameworkGate:
    """The gate, as a worker answers."""
    asked = Asked.from_dict(job.asked)
    asked.adapter.start(asked.seed)
    return gate(asked, *asked.load())


def measure_times(job: Job) -> FrameworkTime:
    """The times, as a worker answers."""
    asked = Asked.from_dict(job.asked)
    asked.adapter.start(asked.seed)
    return times(asked, *asked.load(), job.arms, job.process or 0)


def gate(asked: Asked, function: Function, calls: Calls) -> FrameworkGate:
    """How far each mode is from eager, and all of them from eager in float64; nothing is timed in this process.

    A function that gives another result for another seed is random. Float64 draws other numbers, so that such a
    function is compared with eager alone, by the same seed, where a compiled one can repeat what eager draws.
    """
    framework = asked.adapter
    with framework.repeatable():
        exact, expected = _expected(framework, asked.arms[0], function, calls)
        modes = {arm: _gated(framework, arm, function, calls, expected, exact) for arm in asked.arms}
    return FrameworkGate(framework.version, exact is None, modes)


def _expected(framework: Framework, eager: str, function: Function, calls: Calls) -> tuple[list[Any] | None, list[Any]]:
    """The results in float64, or None where they are random; and those of eager."""
    step = framework.build(eager, function, 0)
    first, second = (_results(framework, step, calls, seed) for seed in SEEDS)
    if tree_error(first, second) > 0:
        return None, first
    with framework.doubles():
        doubled = [framework.doubled(call) for call in calls]
        return _results(framework, framework.build(eager, function, 0), doubled, SEEDS[0]), first


def _results(framework: Framework, step: Function, calls: Calls, seed: int) -> list[Any]:
    """What each call gives, each from the same state and seed."""
    found = []
    for call in calls:
        restore = framework.state(call)
        framework.reset(seed)
        found.append(framework.numpy(step(*call)))
        restore()
    return found


def _gated(
    framework: Framework, arm: str, function: Function, calls: Calls, expected: list[Any], exact: list[Any] | None
) -> GateMode:
    try:
        found = _results(framework, framework.build(arm, function, 0), calls, SEEDS[0])
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what the gate says)
        return GateMode("refused" if framework.refuses(error) else "failed", described(error))
    worst = min(LARGEST, max(tree_error(found, wanted) for wanted in (expected, exact) if wanted is not None))
    allowed = TOLERANCES["float32"]
    if worst <= allowed:
        return GateMode("ok", error=worst)
    return GateMode("disagree", f"outputs or gradients are off by {worst:.3g}, allowed {allowed:g}", worst)


def times(asked: Asked, function: Function, calls: Calls, arms: Sequence[str], process: int) -> FrameworkTime:
    """What each of these modes takes: every first call, in an order that turns with the process, then in rounds."""
    framework = asked.adapter
    turned = (*arms[process % len(arms) :], *arms[: process % len(arms)])
    rows: dict[str, TimedMode] = {}
    passes: dict[str, Callable[[], None]] = {}
    for arm in turned:
        step = framework.build(arm, function, 0)
        rows[arm] = _first(framework, step, calls, asked.limit)
        if rows[arm].status == "ok":
            passes[arm] = partial(_pass, framework, step, calls)
    ordered = {arm: passes[arm] for arm in arms if arm in passes}
    if ordered:
        budget = Budget(rounds=15, least=5, seconds=asked.seconds * len(ordered), block_seconds=0.03)
        found = paired_rounds(ordered, budget, Random(f"{asked.seed}/{process}")).steady()
        for arm, call in ordered.items():
            rows[arm].blocks = [seconds / len(calls) for seconds in found[arm]]
            rows[arm].peak = _peak(call)
    return FrameworkTime(process, len(calls), {arm: rows[arm] for arm in arms})


def _first(framework: Framework, step: Function, calls: Calls, limit: float) -> TimedMode:
    """Each first call, until all are done or the limit is over; what compiling them meant."""
    before, row = framework.observed(step), TimedMode("ok", None, [])
    for number, call in enumerate(calls):
        if math.fsum(row.first) > limit:
            row.status, row.reason = "limit", f"{number} of {len(calls)} calls in {math.fsum(row.first):.0f} s"
            break
        start = time.perf_counter()
        try:
            framework.wait(step(*call))
        except Exception as error:  # noqa: BLE001  (whatever a mode raises is its result)
            row.status, row.reason = "refused" if framework.refuses(error) else "failed", described(error)
            break
        row.first.append(time.perf_counter() - start)
    observed = framework.observed(step).since(before)
    row.compilations = [Made(made.reason, made.seconds) for made in observed.compilations]
    row.breaks = dict(observed.breaks)
    return row


def _pass(framework: Framework, step: Function, calls: Calls) -> None:
    for call in calls:
        framework.wait(step(*call))


def _peak(call: Callable[[], None]) -> int | None:
    """The bytes from malloc that a pass reaches above what was there before it; None where nobody counts them."""
    gc.collect()
    heap.restart()
    before = heap.read()
    call()
    after = heap.read()
    return after.peak - before.live if before and after else None
