"""What the pool saves: the elementwise chain with it and without it, turn by turn on one core.

`python -m benchmarks.pool [NAME ...]` prints, for each row, microseconds and page faults of a step without a pool and
with one, the ratio, and what the pool held. Times are of the processor, the operating system's part included, which
other processes disturb less. NAME is a number of floats in the chain, or a row of `benchmarks.programs`.

Each row has a process of its own, with the C library's thresholds as the tape sets them: no page of a step
is faulted in twice without a pool either, up to 64 MB. What a pool saves beyond is that arrays lie where a cache has
them, and are written over where they die.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from typing import Any, NamedTuple

import click

import dynamic
from benchmarks.programs import ROWS
from benchmarks.rows import Row
from compare.workloads.elementwise_chain import make
from dynamic import PoolStats

CHAINS = ("20000", "100000", "400000", "1000000", "4000000")
ROUNDS = 15
SECONDS = 0.02  # of a block, at least


class Cost(NamedTuple):
    """A step in the steady state: seconds of the processor, and page faults."""

    seconds: float
    faults: float


def chosen(name: str) -> Row:
    """The row of that name. Raises click.BadParameter where there is none."""
    if name in ROWS:
        return ROWS[name]()
    if not name.isdecimal() or not int(name):
        raise click.BadParameter(f"{name!r} is no number of floats, and none of {', '.join(ROWS)}")
    case = make(int(name))
    return Row(case.loss, case.params, ())


def measure(name: str) -> tuple[Cost, Cost, float, PoolStats]:
    """A step of a row without and with a pool, each at its least; the median ratio of times; what the pool held."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()
    row = chosen(name)
    step = dynamic.value_and_grad(row.loss)

    def run() -> Any:
        return step(row.params, *row.inputs)

    run()
    calls = max(1, int(SECONDS / _cost(run, 1).seconds))
    pool = dynamic.pool()
    pairs = []
    for number in range(ROUNDS):
        order = (False, True) if number % 2 else (True, False)
        blocks = {on: _block(run, calls, pool if on else nullcontext()) for on in order}
        pairs.append((blocks[False], blocks[True]))
    plain, pooled = zip(*pairs, strict=True)
    ratio = statistics.median(with_pool.seconds / without.seconds for without, with_pool in pairs)
    return min(plain), min(pooled), ratio, pool.stats()


def _block(run: Callable[[], Any], calls: int, context: Any) -> Cost:
    gc.collect()
    with context:
        run()
        run()
        return _cost(run, calls)


def _cost(run: Callable[[], Any], calls: int) -> Cost:
    faults, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    for _ in range(calls):
        run()
    seconds = time.process_time() - start
    return Cost(seconds / calls, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / calls)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Print a line for each NAME: a number of floats in the chain, or a row of `benchmarks.programs`."""
    for name in names:
        chosen(name)
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # read by the processes that measure, when NumPy loads
    heads = ("plain us", "faults", "pool us", "faults", "ratio", "median", "peak MB", "slack")
    click.echo(" ".join([f"{'row':>18}", *(f"{head:>8}" for head in heads)]))
    workers = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)
    with workers:
        for name in names or CHAINS:
            plain, pooled, ratio, stats = workers.submit(measure, name).result()
            click.echo(
                f"{name:>18} {plain.seconds * 1e6:8.0f} {plain.faults:8.0f} {pooled.seconds * 1e6:8.0f} "
                f"{pooled.faults:8.0f} {pooled.seconds / plain.seconds:8.2f} {ratio:8.2f} "
                f"{stats.peak / 1e6:8.1f} {stats.slack:8.1%}"
            )


if __name__ == "__main__":
    main()
