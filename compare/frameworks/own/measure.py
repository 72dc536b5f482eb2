"""What one process measures of a user's function: whether modes agree, or what each takes, first and once warm."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from compare.errors import described
from compare.frameworks import heap
from compare.frameworks.base import Framework, Observed
from compare.frameworks.own.asked import Asked
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.rounds import Rounds, paired_rounds
from compare.run.job import Budget

Calls = Sequence[tuple[Any, ...]]
Step = Callable[..., Any]
SEEDS = (1, 2)


def gate(asked: Asked) -> dict[str, Any]:
    """How far each mode is from eager, and eager from itself in float64; nothing is timed in this process.

    A function that gives another result for another seed is random. Float64 draws other numbers, so that it is
    compared with eager alone, with equal seeds, where the framework can repeat them compiled.
    """
    framework = asked.adapter
    framework.start(asked.seed)
    function, calls = asked.load()
    with framework.repeatable():
        exact, expected = _expected(framework, asked.arms[0], function, calls)
        rows = {arm: _gated(framework, arm, function, calls, expected, exact) for arm in asked.arms}
    return {"version": framework.version, "random": exact is None, "arms": rows}


def _expected(framework: Framework, eager: str, function: Step, calls: Calls) -> tuple[list[Any] | None, list[Any]]:
    """The results in float64, or None where they are random; and those of eager."""
    step = framework.build(eager, function, 0)
    first, second = (_results(framework, step, calls, seed) for seed in SEEDS)
    if tree_error(first, second) > 0:
        return None, first
    with framework.doubles():
        doubled = [framework.doubled(call) for call in calls]
        return _results(framework, framework.build(eager, function, 0), doubled, SEEDS[0]), first


def _results(framework: Framework, step: Step, calls: Calls, seed: int) -> list[Any]:
    """What each call gives, from the same state and seed."""
    found = []
    for call in calls:
        restore = framework.state(call)
        framework.reset(seed)
        found.append(framework.numpy(step(*call)))
        restore()
    return found


def _gated(
    framework: Framework, arm: str, function: Step, calls: Calls, expected: list[Any], exact: list[Any] | None
) -> dict[str, Any]:
    try:
        found = _results(framework, framework.build(arm, function, 0), calls, SEEDS[0])
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what the gate says)
        status = "refused" if framework.refuses(error) else "failed"
        return {"status": status, "reason": described(error), "error": None, "ulp": None}
    worst = max(tree_error(found, expected), tree_error(found, exact) if exact is not None else 0.0)
    agrees = worst <= TOLERANCES["float32"]
    reason = None if agrees else f"outputs or gradients are off by {worst:.3g}, allowed {TOLERANCES['float32']:g}"
    return {"status": "ok" if agrees else "disagree", "reason": reason, "error": worst, "ulp": worst / 2**-23}


def timed(asked: Asked, arms: tuple[str, ...], process: int) -> dict[str, Any]:
    """What each of these arms takes: every first call, in an order that turns with the process, then in rounds."""
    framework = asked.adapter
    framework.start(asked.seed)
    function, calls = asked.load()
    turned = (*arms[process % len(arms) :], *arms[: process % len(arms)])
    rows: dict[str, dict[str, Any]] = {}
    epochs: dict[str, Callable[[], None]] = {}
    for arm in turned:
        step = framework.build(arm, function, 0)
        rows[arm] = _first(framework, step, calls, asked.limit)
        if rows[arm]["status"] == "ok":
            epochs[arm] = partial(_epoch, framework, step, calls)
    if epochs:
        ordered = {arm: epochs[arm] for arm in arms if arm in epochs}
        budget = Budget(rounds=15, least=5, seconds=asked.seconds * len(ordered), block_seconds=0.03)
        gc.freeze()
        rounds = paired_rounds(ordered, budget, Random(f"{asked.seed}/{process}"))
        for arm, epoch in ordered.items():
            rows[arm] |= _steady(rounds, arm, len(calls)) | _memory(epoch)
    return {"process": process, "calls": len(calls), "arms": rows}


def _first(framework: Framework, step: Step, calls: Calls, limit: float) -> dict[str, Any]:
    """Each first call, until all are done or the limit is over; what compiling them meant."""
    before, seconds = framework.observed(step), []
    row: dict[str, Any] = {"status": "ok", "reason": None}
    for number, call in enumerate(calls):
        if sum(seconds) > limit:
            row = {"status": "limit", "reason": f"{number} of {len(calls)} calls in {sum(seconds):.0f} s"}
            break
        start = time.perf_counter()
        try:
            framework.wait(step(*call))
        except Exception as error:  # noqa: BLE001  (whatever a mode raises is its result)
            row = {"status": "refused" if framework.refuses(error) else "failed", "reason": described(error)}
            break
        seconds.append(time.perf_counter() - start)
    return {**row, "first": seconds, **_told(framework.observed(step).since(before))}


def _told(observed: Observed) -> dict[str, Any]:
    made = [{"reason": c.reason, "seconds": c.seconds} for c in observed.compilations]
    return {"compilations": made, "breaks": dict(observed.breaks)}


def _epoch(framework: Framework, step: Step, calls: Calls) -> None:
    for call in calls:
        framework.wait(step(*call))


def _steady(rounds: Rounds, arm: str, calls: int) -> dict[str, Any]:
    return {"blocks": [seconds / calls for seconds in rounds.steady()[arm]]}


def _memory(epoch: Callable[[], None]) -> dict[str, Any]:
    """The bytes from malloc that a pass reaches above what was there before; None where nobody counts."""
    epoch()
    gc.collect()
    heap.restart()
    before = heap.read()
    epoch()
    after = heap.read()
    return {"peak": after.peak - before.live if before and after else None}
