"""What each strategy costs over a stream of inputs of varying length, in one worker process.

A strategy's first epoch comes first, from nothing, and what it gives is compared with a float64 reference; one that
differs is not timed any further, and none of its times are kept. Then all that are right take turns in rounds.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from functools import partial
from random import Random
from statistics import median
from typing import Any, NamedTuple, cast

import numpy as np

import dynamic
from compare import engines
from compare.errors import described
from compare.instruments import thin
from compare.instruments.lengths.distributions import drawn
from compare.instruments.lengths.models import Stream, stream
from compare.instruments.lengths.strategies import STRATEGIES, ReadyStrategy, Strategy
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.measure import timed
from compare.instruments.time.rounds import collected, orders, paired_rounds
from compare.records.job import Job
from compare.records.sweeps import GroupCall, Lengths, StrategyArm
from graphs import tree

CHECKED = 8
"""Groups of a strategy that are compared with the reference, from the shortest to the longest."""
LARGEST = 1e300
"""JSON has no infinity."""
LATENCY_EPOCHS = 3
"""Steady epochs of which each call is timed alone; its latency is their median."""


class Size(NamedTuple):
    """How much is measured: examples, the longest of them (of a user's file: whatever it holds), width, batch."""

    examples: int
    longest: int
    width: int
    batch: int


SIZES: Mapping[str, Size] = {
    "small": Size(examples=10, longest=20, width=32, batch=5),
    "medium": Size(examples=40, longest=56, width=64, batch=10),
}


def measure(job: Job) -> Lengths:
    """The record of one process: a model, a distribution of lengths, every strategy."""
    size = SIZES[str(job.size)]
    lengths = job.examples or drawn(str(job.lengths), size.examples, job.seed, size.longest)
    inputs = stream(str(job.workload), lengths, size.width, size.batch, job.seed)
    gc.freeze()  # what is loaded now is not walked by each collection below
    return Lengths(**job.head, examples=list(lengths), arms=measure_strategies(inputs, job))


def measure_strategies(inputs: Stream, job: Job) -> dict[str, StrategyArm]:
    """What each strategy took, or why it did not."""
    rng = job.random()
    expected = reference(inputs)
    names = job.arms or tuple(STRATEGIES)
    ready, rows = {}, dict[str, StrategyArm]()
    for name in rng.sample(names, len(names)):
        with collected():
            ready[name], rows[name] = first_epoch(STRATEGIES[name], inputs, expected)
    usable = {name: arm for name, arm in ready.items() if arm is not None and rows[name].status == "ok"}
    if usable:
        rounds = paired_rounds({name: arm.epoch for name, arm in usable.items()}, job.budget, rng)
        latencies = steady_calls(usable, rng)
        for name, arm in usable.items():
            rows[name].latency, rows[name].steady = latencies[name], rounds.starts()[name] is not None
            rows[name].blocks = [seconds / len(inputs.lengths) for seconds in rounds.steady()[name]]
            count(rows[name], arm)
    return {name: rows[name] for name in names}


Results = list[tuple[Any, Any]]


def reference(inputs: Stream) -> Results:
    """The loss and the gradients of each example in float64, by the dynamic engine, unpadded and alone."""
    params = cast(Any, tree.tree_map(lambda leaf: leaf.astype(np.float64), inputs.params))
    step = dynamic.value_and_grad(inputs.model.loss)
    return [step(params, *example) for example in inputs.examples]


def first_epoch(strategy: Strategy, inputs: Stream, expected: Results) -> tuple[ReadyStrategy | None, StrategyArm]:
    """The first epoch of a strategy from nothing, every call timed, and whether what it gave is right."""
    row = StrategyArm("ok", None, strategy.compilation, strategy.padding, strategy.batching)
    calls, results = [], []
    try:
        started = time.perf_counter()
        arm = strategy.build(inputs)
        build = time.perf_counter() - started
        for index, group in enumerate(arm.groups):
            before = arm.compiles
            seconds, result = timed(partial(arm, index))
            calls.append(GroupCall(len(group), seconds, arm.compiles > before))
            results.append(result)
    except Exception as error:  # noqa: BLE001  (whatever a strategy raises is its result)
        row.status, row.reason = "unsupported" if _refuses(strategy, error) else "failed", described(error)
        return None, row
    off = worst(arm, results, expected)
    row.error = min(off, LARGEST)
    if off > TOLERANCES["float32"]:
        row.status, row.reason = "disagree", f"off by {off:.3g}"
        return None, row
    row.build, row.stream = build, calls
    return arm, row


def worst(arm: ReadyStrategy, results: Results, expected: Results) -> float:
    """The largest scaled error of a loss or a gradient over some groups."""
    chosen = thin.sample([sum(arm.stream.lengths[i] for i in group) for group in arm.groups], CHECKED)
    return max(_error(results[index], [expected[i] for i in arm.groups[index]]) for index in chosen)


def _error(result: tuple[Any, Any], expected: Results) -> float:
    means = [tree.tree_map(lambda *each: np.mean(each, axis=0), *part) for part in zip(*expected, strict=True)]
    return max(tree_error(got, wanted) for got, wanted in zip(result, means, strict=True))


def _refuses(strategy: Strategy, error: Exception) -> bool:
    return engines.refuses("static-symbolic" if strategy.symbolic else strategy.engine, error)


def steady_calls(usable: Mapping[str, ReadyStrategy], rng: Random) -> dict[str, list[float]]:
    """The seconds of each call in steady state, strategies in turn: what an example waits for its group."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in usable}
    for order, _ in zip(orders(tuple(usable), rng), range(LATENCY_EPOCHS), strict=False):
        with collected():
            for name in order:
                arm = usable[name]
                seconds[name].append([timed(partial(arm, index))[0] for index in range(len(arm.groups))])
    return {name: [median(call) for call in zip(*epochs, strict=True)] for name, epochs in seconds.items()}


def count(row: StrategyArm, arm: ReadyStrategy) -> None:
    """Note what does not depend on the clock: graphs compiled, elements asked for and computed, bytes held."""
    row.compiles, row.useful, row.computed = arm.compiles, sum(arm.stream.lengths), sum(arm.sizes)
    row.held, row.plans = sum(arm.plans.values()), [[size, held] for size, held in sorted(arm.plans.items())]
