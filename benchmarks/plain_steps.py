"""What a training step of PyTorch takes in a plain loop of 1,000 calls: eager, and compiled in one mode.

It uses nothing of the harness, so that `graphduel compare --framework torch` can be checked against it:

    python -m benchmarks.plain_steps examples/frameworks/mlp.py [default|dynamic|reduce-overhead|max-autotune ...]

Each mode has a process of its own. Gradients are those of `backward()`, as in a training loop.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

import click

CALLS, CHUNK = 1000, 100
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "dynamic": {"dynamic": True},
    "reduce-overhead": {"mode": "reduce-overhead"},
    "max-autotune": {"mode": "max-autotune"},
}


@click.command()
@click.argument("file", metavar="FILE.py", type=click.Path(exists=True, dir_okay=False))
@click.argument("modes", nargs=-1, type=click.Choice(tuple(OPTIONS)))
@click.option("--one", "alone", is_flag=True, help="One mode, in this process; the seconds as JSON.")
def main(file: str, modes: tuple[str, ...], *, alone: bool) -> None:
    """Time the `loss` of FILE.py over its `batches`, eager and compiled."""
    if alone:
        timed(file, *modes)
        return
    click.echo(f"{'mode':16}  {'eager':>10}  {'compiled':>10}  {'ratio':>6}  first pass")
    for mode in modes or OPTIONS:
        command = [sys.executable, "-m", "benchmarks.plain_steps", "--one", file, mode]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True)
        eager, compiled, first = json.loads(done.stdout.splitlines()[-1])
        ratio = compiled / eager
        click.echo(f"{mode:16}  {eager * 1e6:7.1f} µs  {compiled * 1e6:7.1f} µs  {ratio:6.3f}  {first:.1f} s")


def timed(file: str, mode: str) -> None:
    """Write the seconds of a call, eager and compiled, and those of the first compiled pass, as JSON."""
    import torch

    torch.set_num_threads(1)
    module = runpy.run_path(file)
    eager, batches = module["loss"], module["batches"]()
    compiled = torch.compile(eager, **OPTIONS[mode])
    start = time.perf_counter()
    run(compiled, batches, len(batches))
    first = time.perf_counter() - start
    for loss in (eager, compiled):
        run(loss, batches, 3 * len(batches))
    spent = {eager: 0.0, compiled: 0.0}
    for _ in range(CALLS // CHUNK):
        for loss in spent:
            start = time.perf_counter()
            run(loss, batches, CHUNK)
            spent[loss] += time.perf_counter() - start
    click.echo(json.dumps([spent[eager] / CALLS, spent[compiled] / CALLS, first]))


def run(loss: Callable[..., Any], batches: list[tuple[Any, ...]], count: int) -> None:
    for model, *data in islice(cycle(batches), count):
        model.zero_grad()
        loss(model, *data).backward()


if __name__ == "__main__":
    main()
