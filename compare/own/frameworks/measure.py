"""What one process measures of a user's function: whether modes agree, or what each takes, first and once warm."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np

from compare.engines import heap
from compare.engines.base import Framework
from compare.errors import described
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.rounds import paired_rounds, turned
from compare.own import traffic
from compare.own.faults import answered
from compare.own.frameworks.asked import Asked, Calls, Function
from compare.own.frameworks.notes import Notes, reached
from compare.records.framework_steps import FrameworkAlone, FrameworkGate, FrameworkTime, GateMode, Made, TimedMode
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault
from compare.steps import now

SEEDS = (1, 2)
LARGEST = 1e300  # JSON has no infinity


def measure_gate(job: Job) -> FrameworkGate | FunctionFault:
    """The gate, as a worker answers; what is wrong with the user's file is an answer too."""
    asked = Asked.from_dict(job.asked)
    return answered(asked.function, lambda: gate(asked, *_started(asked), job.arms))


def measure_alone(job: Job) -> FrameworkAlone | FunctionFault:
    """The gate and the times, as one worker answers that measures all."""
    asked = replace(Asked.from_dict(job.asked), notes="")
    return answered(asked.function, lambda: measured_here(asked, *_started(asked)))


def measured_here(asked: Asked, function: Function, calls: Calls) -> FrameworkAlone:
    """The gate, and the times of the modes that are right, each beside eager."""
    gated = gate(asked, function, calls, asked.arms)
    right = [arm for arm, mode in gated.modes.items() if mode.status == "ok"]
    pairs = alone_beside_eager(asked.arms[0], right)
    return FrameworkAlone(gated, [times(asked, function, calls, arms, 0) for arms in pairs])


def alone_beside_eager(eager: str, arms: Sequence[str]) -> list[tuple[str, ...]]:
    """The modes that share a process: each with eager alone, since what one has compiled may change another."""
    others = [arm for arm in arms if arm != eager]
    if eager not in arms:
        return [(arm,) for arm in others]
    return [(eager, arm) for arm in others] or [(eager,)]


def in_mode(arm: str) -> str:
    """How the steps end that a worker tells while it runs a mode."""
    return f" in {arm}"


def measure_times(job: Job) -> FrameworkTime:
    """The times, as a worker answers."""
    asked = Asked.from_dict(job.asked)
    return times(asked, *_started(asked), job.arms, job.process or 0)


def _started(asked: Asked) -> tuple[Function, Calls]:
    """The function and its calls, in a process that compiles as a user's would."""
    now(f"started {asked.adapter.title}")
    asked.started()
    now(f"imported {asked.function.rpartition(':')[0]}")
    return asked.load()


def gate(asked: Asked, function: Function, calls: Calls, arms: Sequence[str]) -> FrameworkGate:
    """How far each mode is from eager, and all of them from eager in float64; nothing is timed in this process.

    A function that gives another result for another seed is random. Float64 draws other numbers, so that such a
    function is compared with eager alone, by the same seed, where a compiled one can repeat what eager draws.
    """
    framework = asked.adapter
    with framework.repeatable():
        step = framework.build(asked.arms[0], function, 0)
        with traffic.one_process(asked.function):
            first = _results(asked, asked.arms[0], step, calls, SEEDS[0])
        second = _results(asked, asked.arms[0], step, calls, SEEDS[1])
        is_random = tree_error(first, second) > 0
        exact, why = (None, None) if is_random else _doubled(asked, step, calls)
        wanted = [first] if exact is None else [first, exact]
        modes = {arm: _gated(asked, arm, function, calls, wanted) for arm in arms}
    return FrameworkGate(framework.version, is_random, modes, why)


def _doubled(asked: Asked, step: Function, calls: Calls) -> tuple[list[Any] | None, str | None]:
    """The results in float64; or None and why there are none, as with a function that makes float32 itself."""
    framework = asked.adapter
    try:
        with framework.doubles():
            return _results(asked, asked.arms[0], step, [framework.doubled(call) for call in calls], SEEDS[0]), None
    except Exception as error:  # noqa: BLE001  (eager in float32 has run, so that the function is fine)
        return None, described(error, asked.function)


def _results(
    asked: Asked, arm: str, step: Function, calls: Calls, seed: int, add: Callable[[float], None] = lambda _: None
) -> list[Any]:
    """What each call gives, each from the same state and seed."""
    framework, found = asked.adapter, []
    for number, call in enumerate(calls, 1):
        now(f"made call {number}{in_mode(arm)}")
        restore = framework.state(call)
        _reset(framework, seed)
        start = time.perf_counter()
        found.append(framework.numpy(step(*call)))
        add(time.perf_counter() - start)
        restore()
    return found


def _reset(framework: Framework, seed: int) -> None:
    """Whatever a function may draw from."""
    framework.reset(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the generator that a user's function may use)


def _gated(asked: Asked, arm: str, function: Function, calls: Calls, wanted: list[Any]) -> GateMode:
    framework = asked.adapter
    try:
        with _limited(asked, arm, len(calls)) as add:
            found = _results(asked, arm, framework.build(arm, function, 0), calls, SEEDS[0], add)
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what the gate says)
        return GateMode("refused" if framework.refuses(error) else "failed", described(error, asked.function))
    worst = min(LARGEST, max(tree_error(found, results) for results in wanted))
    allowed = TOLERANCES["float32"]
    if worst <= allowed:
        return GateMode("ok", error=worst)
    return GateMode("disagree", f"outputs or gradients are off by {worst:.3g}, allowed {allowed:g}", worst)


@contextmanager
def _limited(asked: Asked, arm: str, calls: int) -> Iterator[Callable[[float], None]]:
    """What takes the seconds of each call. Inside, a worker is ended at the limit, unless it runs eager."""
    if not asked.notes or arm == asked.arms[0]:
        yield lambda _: None
        return
    notes = Notes(asked.notes)
    with notes.ended_after(asked.limit, calls):
        yield notes.add


def times(asked: Asked, function: Function, calls: Calls, arms: Sequence[str], process: int) -> FrameworkTime:
    """What each of these modes takes: every first call, in an order that turns with the process, then in rounds."""
    framework = asked.adapter
    rows: dict[str, TimedMode] = {}
    passes: dict[str, Callable[[], None]] = {}
    for arm in turned(arms, process):
        step = framework.build(arm, function, 0)
        with _limited(asked, arm, len(calls)) as add:
            rows[arm] = _first(asked, arm, step, calls, add)
        if rows[arm].status == "ok":
            passes[arm] = partial(_pass, framework, step, calls)
    ordered = {arm: passes[arm] for arm in arms if arm in passes}
    if ordered:
        budget = Budget(rounds=15, least=5, seconds=asked.seconds * len(ordered), block_seconds=0.03)
        # one thread on one core: the time of this process is that of the wall without what others take of the core
        found = paired_rounds(ordered, budget, Random(f"{asked.seed}/{process}"), asked.clock).steady()
        for arm, call in ordered.items():
            rows[arm].blocks = [seconds / len(calls) for seconds in found[arm]]
            rows[arm].peak = heap.peak(call)
    return FrameworkTime(process, len(calls), {arm: rows[arm] for arm in arms})


def _first(asked: Asked, arm: str, step: Function, calls: Calls, add: Callable[[float], None]) -> TimedMode:
    """Each first call, until all are done or the limit is over; what compiling them meant."""
    framework = asked.adapter
    before, row = framework.observed(step), TimedMode("ok", None, [])
    for number, call in enumerate(calls):
        if math.fsum(row.first) > asked.limit:
            row.status, row.reason = "limit", reached(number, len(calls), math.fsum(row.first))
            break
        now(f"made call {number + 1}{in_mode(arm)}")
        start = time.perf_counter()
        try:
            framework.wait(step(*call))
        except Exception as error:  # noqa: BLE001  (whatever a mode raises is its result)
            row.status, row.reason = (
                "refused" if framework.refuses(error) else "failed",
                described(error, asked.function),
            )
            break
        row.first.append(time.perf_counter() - start)
        add(row.first[-1])
    observed = framework.observed(step).since(before)
    row.compilations = [Made(made.reason, made.seconds) for made in observed.compilations]
    row.breaks, row.limits = dict(observed.breaks), list(observed.limits)
    return row


def _pass(framework: Framework, step: Function, calls: Calls) -> None:
    for call in calls:
        framework.wait(step(*call))
