"""The cost of each strategy over a stream of inputs of varying length, in one worker process.

A strategy's first epoch starts from nothing, and its results are compared with a float64 reference; a strategy that
differs is not timed further, and none of its times are kept. Then all that are right take turns in rounds.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from functools import cached_property
from random import Random
from statistics import median
from typing import Any, NamedTuple, cast

import numpy as np

import dynamic
from compare import engines
from compare.engines.nudge import DOUBLE
from compare.instruments import sample
from compare.instruments.judge import Result, Standard
from compare.instruments.lengths.strategies import STRATEGIES, Group, ReadyStrategy, Strategy
from compare.instruments.runnables import Runnable
from compare.instruments.time.measure import first_epoch, no_limit, steady_rounds, time_call
from compare.instruments.time.rounds import orders, without_collection
from compare.records.cells import GroupCall, Lengths, StrategyRow
from compare.records.job import Job
from compare.workloads.lengths import Stream, draw_lengths, stream
from graphs import tree

Results = list[tuple[Any, Any]]
CHECKED = 8
"""The number of groups of a strategy that are compared with the reference, from the shortest to the longest."""
LATENCY_EPOCHS = 3
"""The number of steady epochs in which each call is timed alone; a latency is their median."""


class Size(NamedTuple):
    """The extent of a measurement: number of examples, longest length (not of a user's file), width, batch size."""

    examples: int
    longest: int
    width: int
    batch: int


SIZES: Mapping[str, Size] = {
    "small": Size(examples=10, longest=20, width=32, batch=5),
    "medium": Size(examples=40, longest=56, width=64, batch=10),
}


def measure(job: Job) -> Lengths:
    """Return the record of one process: one model, one distribution of lengths, every strategy."""
    size = SIZES[str(job.size)]
    lengths = job.examples or draw_lengths(str(job.lengths), size.examples, job.seed, size.longest)
    inputs = stream(str(job.workload), lengths, size.width, size.batch, job.seed)
    gc.freeze()  # keeps loaded objects out of each collection below
    return Lengths(**job.head, examples=list(lengths), modes=measure_strategies(inputs, job))


class StrategyRunnable(Runnable):
    """A stream under a strategy; each group of examples is a call. `exact` has the float64 results of each example."""

    varies = True

    def __init__(self, strategy: Strategy, inputs: Stream, exact: Results) -> None:
        self.engine, self.strategy, self.inputs = engines.find_engine(engines.OWN), strategy, inputs
        self.laid = strategy.layout(inputs.lengths, inputs.batch)
        self.lengths = [sum(inputs.lengths[i] for i in group) for group in self.laid.groups]
        self.exact = exact

    @cached_property
    def expected(self) -> Mapping[int, Standard]:
        """Return the expected mean results of the groups that are compared."""
        return {index: Standard(self._mean(self.laid.groups[index])) for index in sample.sample(self.lengths, CHECKED)}

    def _mean(self, group: Group) -> Result:
        columns = zip(*(self.exact[i] for i in group), strict=True)
        return tuple(tree.tree_map(lambda *each: np.mean(each, axis=0), *part) for part in columns)

    def step(self, mode: str) -> ReadyStrategy:
        """Return the strategy's step over the stream."""
        return self.strategy.build(self.inputs)

    def form(self, index: int) -> int:
        """Return the number of elements computed for the group."""
        return self.laid.sizes[index]


def measure_strategies(inputs: Stream, job: Job) -> dict[str, StrategyRow]:
    """Return the row of each strategy: its times, or why it has none."""
    rng, exact = job.random(), reference(inputs)
    names = job.modes or tuple(STRATEGIES)
    ready, rows = dict[str, ReadyStrategy](), dict[str, StrategyRow]()
    for name in rng.sample(names, len(names)):
        step, rows[name] = first_run(STRATEGIES[name], inputs, exact)
        if step:
            ready[name] = step
    if ready:
        settled = steady_rounds(ready, job.budget, rng).settled()
        latencies = steady_calls(ready, rng)
        for name, step in ready.items():
            row, (is_steady, blocks) = rows[name], settled[name]
            row.latency, row.steady = latencies[name], is_steady
            row.blocks = [seconds / len(inputs.lengths) for seconds in blocks]
            row.compiles, row.useful, row.computed = step.compiles, sum(inputs.lengths), sum(step.laid.sizes)
            row.held, row.plans = sum(step.plans.values()), [[size, held] for size, held in sorted(step.plans.items())]
    return {name: rows[name] for name in names}


def reference(inputs: Stream) -> Results:
    """Return the loss and gradients of each example in float64, by the dynamic engine, unpadded and alone."""
    params = engines.find_engine(engines.OWN).numbers.changed(inputs.params, DOUBLE)
    step = dynamic.value_and_grad(inputs.model.loss)
    return [step(params, *example) for example in inputs.examples]


def first_run(strategy: Strategy, inputs: Stream, exact: Results) -> tuple[ReadyStrategy | None, StrategyRow]:
    """Time each call of a strategy's first epoch; return its step if the results are right, and its row."""
    runnable = StrategyRunnable(strategy, inputs, exact)
    epoch = first_epoch(runnable, strategy.mode, no_limit)
    off = max((error for error in epoch.judged.errors if error is not None), default=0.0)
    row = StrategyRow(epoch.status, epoch.reason, strategy.compilation, strategy.padding, strategy.batching, off)
    if epoch.status != "ok":
        return None, row
    row.build = epoch.build
    for group, call in zip(runnable.laid.groups, epoch.calls, strict=True):
        row.stream.append(GroupCall(len(group), call.seconds, call.compiled))
    return cast(ReadyStrategy, epoch.step), row


def steady_calls(ready: Mapping[str, ReadyStrategy], rng: Random) -> dict[str, list[float]]:
    """Return the steady seconds of each call, by strategies in turn: how long an example waits for its group."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in ready}
    for order, _ in zip(orders(tuple(ready), rng), range(LATENCY_EPOCHS), strict=False):
        with without_collection():
            for name in order:
                step = ready[name]
                seconds[name].append([time_call(step.bind(index).run)[0] for index in range(len(step.examples))])
    return {name: [median(call) for call in zip(*epochs, strict=True)] for name, epochs in seconds.items()}
