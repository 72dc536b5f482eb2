"""On-the-fly batching: `python -m benchmarks.batched`, a training step over 64 examples, one by one and batched.

The step is the mean loss and its gradient in every parameter; a batched one whose result differs is not timed. In each
round every mode runs once, in random order, on one core. A ratio is the median over the rounds of the time one by one
to that of the mode. In the modes with cells, `node_state` of the tree and `step` of the RNN are deferred by whole
calls.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

import click
import numpy as np
from threadpoolctl import threadpool_limits

import dynamic
import graphs as g
from compare.workloads import rnn_text, tree_lstm
from compare.workloads.base import Case
from dynamic.batching import BatchStats
from dynamic.batching.batch import SCHEDULES
from graphs import tree

Step = Callable[[Any], tuple[Any, Any]]
ALONE = "one by one"
EXAMPLES = 64


def one_by_one(case: Case) -> Step:
    """Forward and backward of each example, the gradients added up."""
    step = dynamic.value_and_grad(case.loss)

    def run(params: Any) -> tuple[Any, Any]:
        total, gradients = step(params, *case.examples[0])
        for example in case.examples[1:]:
            loss, more = step(params, *example)
            total = total + loss
            gradients = tree.tree_map(np.add, gradients, more)
        return total / len(case.examples), tree.tree_map(lambda x: x / len(case.examples), gradients)

    return run


def together(case: Case, strategy: str, mode: str, stats: dict[str, BatchStats]) -> Step:
    """The same in one batch."""

    def loss(params: Any) -> Any:
        with dynamic.batched(strategy) as batch:
            mean = g.mean(g.stack([case.loss(params, *example) for example in case.examples]))
        stats[mode] = batch.stats
        return mean

    return dynamic.value_and_grad(loss)


def check(expected: tuple[Any, Any], got: tuple[Any, Any]) -> None:
    """Refuse to measure what does not agree."""
    for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def by_cells(step: Step, module: ModuleType, name: str) -> Step:
    """The same with one function of the model deferred by whole calls."""

    def run(params: Any) -> tuple[Any, Any]:
        with patch.object(module, name, dynamic.cell(getattr(module, name))):
            return step(params)

    return run


def measure(
    module: ModuleType, name: str, case: Case, rounds: int
) -> tuple[dict[str, list[float]], dict[str, BatchStats]]:
    """The seconds of each round of every mode, and what the batches of each schedule did."""
    stats: dict[str, BatchStats] = {}
    modes = {ALONE: one_by_one(case)}
    for schedule in SCHEDULES:
        modes[schedule] = together(case, schedule, schedule, stats)
        modes[f"{schedule}, cells"] = by_cells(together(case, schedule, f"{schedule}, cells", stats), module, name)
    expected = modes[ALONE](case.params)
    for step in modes.values():
        check(expected, step(case.params))
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    random = Random(0)
    for _ in range(rounds):
        for mode in random.sample(list(modes), len(modes)):
            start = time.perf_counter()
            modes[mode](case.params)
            seconds[mode].append(time.perf_counter() - start)
    return seconds, stats


def show(seconds: dict[str, list[float]], stats: dict[str, BatchStats]) -> None:
    """A line for each mode."""
    click.echo(f"  {'mode':<15}{'ms':>8}{'ratio':>8}{'ops':>8}{'groups':>8}{'mean':>8}")
    for mode, times in seconds.items():
        ratio = statistics.median(alone / own for alone, own in zip(seconds[ALONE], times, strict=True))
        s = stats.get(mode, BatchStats())
        click.echo(f"  {mode:<15}{min(times) * 1e3:>8.1f}{ratio:>8.2f}{s.ops:>8}{s.groups:>8}{s.mean_batch:>8.1f}")


@click.command
@click.option("--rounds", default=15, show_default=True)
def main(rounds: int) -> None:
    """Measure both workloads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    cases = (
        (tree_lstm, "node_state", tree_lstm.make(trees=EXAMPLES, max_nodes=48, width=32)),
        (rnn_text, "step", rnn_text.make(lines=EXAMPLES, max_length=80, width=64)),
    )
    for workload, step, case in cases:
        click.echo(f"{workload.WORKLOAD.title}: {len(case.examples)} examples, of {sum(case.lengths)} steps or nodes")
        with threadpool_limits(1):
            show(*measure(workload, step, case, rounds))


if __name__ == "__main__":
    main()
