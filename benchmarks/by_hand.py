"""Are the ratios that `graphduel compare` shows of short steps right? `python -m benchmarks.by_hand`, a row for each.

The six steps of `benchmarks/short_steps.py` are timed by hand, with nothing of the harness: fresh processes, in which
blocks of eager and of compiled calls take turns, each call written as its author writes it. The ratio by hand has to
lie in the interval that the command gives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click

from compare.run.environment import pin
from compare.text import show_table

FILE = Path(__file__).with_name("short_steps.py")
STEPS = ("cross_entropy", "penalty", "perceptron", "gated", "attention", "recurrent")
BLOCK = 0.05
"""Seconds of a block: a loop of hundreds of calls, as a program has it. In one of 60 calls on a busy machine a compiled
call takes a tenth more, since what ran before it has the caches."""
ROUNDS = 40
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def timed(name: str) -> tuple[float, float]:
    """Seconds of an eager and of a compiled call in this process, by its processor time: medians of blocks."""
    pin()  # to one core, as the command keeps each of its processes
    import torch

    from benchmarks import short_steps

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    function, (call,) = getattr(short_steps, name), getattr(short_steps, f"{name}_calls")
    modules = [value for value in vars(short_steps).values() if isinstance(value, torch.nn.Module)]
    reached = [each for module in modules if _names(function, module) for each in module.parameters()]
    leaves = [*reached, *(tensor for tensor in call if tensor.requires_grad)]

    def trained(loss: Callable[..., Any]) -> Callable[[], None]:
        def step() -> None:
            for leaf in leaves:
                leaf.grad = None
            loss(*call).backward()

        return step

    calls = trained(function), trained(torch.compile(function))
    for _ in range(50):
        for step in calls:
            step()
    counts = [max(1, round(BLOCK / _block(step, 20))) for step in calls]
    blocks = [[_block(step, count) for step, count in zip(calls, counts, strict=True)] for _ in range(ROUNDS)]
    eager, compiled = (median(column) for column in zip(*blocks, strict=True))
    return eager, compiled


def _names(function: Callable[..., Any], module: Any) -> bool:
    """Whether the function calls the module by its name."""
    return any(function.__globals__.get(name) is module for name in function.__code__.co_names)


def _block(step: Callable[[], None], count: int) -> float:
    start = time.process_time_ns()
    for _ in range(count):
        step()
    return (time.process_time_ns() - start) / count / 1e9


def compared(name: str, folder: Path, processes: int) -> dict[str, Any]:
    """The answer of the command, as JSON."""
    out = folder / f"{name}.json"
    asked = ("--inputs", f"{name}_calls", "--modes", "eager,compile", "--processes", str(processes), "--json", str(out))
    command = [sys.executable, "-m", "compare", "compare", f"{FILE}:{name}", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not out.exists():
        raise click.ClickException(done.stdout + done.stderr)
    answer: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return answer


@click.command()
@click.argument("names", nargs=-1, metavar="[STEP]...", type=click.Choice(STEPS))
@click.option("--processes", default=5, show_default=True, type=click.IntRange(2), help="Of each way.")
@click.option("--one", is_flag=True, help="One step, in this process; its seconds as JSON.")
def main(names: tuple[str, ...], processes: int, *, one: bool) -> None:
    """Time steps by hand and by the command, and show whether the two agree."""
    if one:
        click.echo(json.dumps(timed(names[0])))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or STEPS:
            answer = compared(name, Path(folder), processes)
            alone = [sys.executable, "-m", "benchmarks.by_hand", "--one", name]
            hand = [
                json.loads(subprocess.run(alone, env=ONE_THREAD, stdout=subprocess.PIPE, check=True).stdout)
                for _ in range(processes)
            ]
            rows.append(_row(name, hand, answer))
    show_table(("step", "µs eager, by hand", "compiled ÷ eager, by hand", "processes", "the command", "inside"), rows)


def _row(name: str, hand: list[tuple[float, float]], answer: dict[str, Any]) -> tuple[str, ...]:
    ratios = sorted(compiled / eager for eager, compiled in hand)
    by_hand, micro = geometric_mean(ratios), median(eager for eager, _ in hand) * 1e6
    told = (name, f"{micro:.1f}", f"{by_hand:.3f}", f"{ratios[0]:.3f} to {ratios[-1]:.3f}")
    shown: list[float | None] = answer["verdict"]["of_base"].get("compile", [None])
    if None in shown:
        return *told, "no interval", "no"
    estimate, low, high = (each for each in shown if each is not None)
    return *told, f"{estimate:.3f} [{low:.3f}, {high:.3f}]", "yes" if low <= by_hand <= high else "no"


if __name__ == "__main__":
    main()
