"""Are the ratios that `graphduel compare` shows of short steps right? `python -m benchmarks.by_hand`, a row for each.

The six steps of `benchmarks/short_steps.py` are timed by hand, with nothing of the harness: fresh processes, in which
blocks of eager and of compiled calls take turns, each call written as its author writes it. Half of these processes run
before the command and half after it, so that a machine that drifts favours neither.

Where its memory lies makes a process some percent faster or slower, so that a few processes by hand are an estimate as
those of the command are. The two agree where the interval of the one ÷ the other holds 1. What a harness adds has the
same sign in each step, so the mean over steps is held to the same, and its interval is the narrowest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from compare.instruments.timing import COLD
from compare.records.cells import Time
from compare.records.record import records_of
from compare.records.results import VERSION, of_json
from compare.run.environment import pin
from compare.stats import LEAST, Interval, geometric_mean, geometric_mean_interval, unpaired_ratio_interval
from compare.text import show_table

FILE = Path(__file__).with_name("short_steps.py")
STEPS = ("cross_entropy", "penalty", "perceptron", "gated", "attention", "recurrent")
BLOCK = 0.05
"""Seconds of a block: a loop of hundreds of calls, as a program has it. In one of 60 calls on a busy machine a compiled
call takes a tenth more, since what ran before it has the caches."""
ROUNDS = 15
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
    counts = [max(1, round(BLOCK / block_seconds(step, 20))) for step in calls]
    blocks = [[block_seconds(step, count) for step, count in zip(calls, counts, strict=True)] for _ in range(ROUNDS)]
    eager, compiled = (median(column) for column in zip(*blocks, strict=True))
    return eager, compiled


def _names(function: Callable[..., Any], module: Any) -> bool:
    """Whether the function calls the module by its name."""
    return any(function.__globals__.get(name) is module for name in function.__code__.co_names)


def block_seconds(step: Callable[[], None], count: int) -> float:
    """Return the processor seconds of a call, in a block of so many."""
    start = time.process_time_ns()
    for _ in range(count):
        step()
    return (time.process_time_ns() - start) / count / 1e9


def by_hand(name: str, processes: int) -> list[tuple[float, float]]:
    """Seconds of an eager and of a compiled call in each of so many fresh processes."""
    alone = [sys.executable, "-m", "benchmarks.by_hand", "--one", name]
    return [
        json.loads(subprocess.run(alone, env=ONE_THREAD, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(processes)
    ]


def compared(file: Path, name: str, options: Sequence[str]) -> dict[str, Any]:
    """The answer of the command on one thread, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answer.json")
        asked = ("--inputs", f"{name}_calls", "--threads", "1", *options, "--json", str(out))
        command = [sys.executable, "-m", "compare", "compare", f"{file}:{name}", *asked]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not out.exists():
            raise click.ClickException(done.stdout + done.stderr)
        answer: dict[str, Any] = json.loads(out.read_text("utf-8"))
        return answer


def told_ratios(answer: dict[str, Any]) -> list[list[float]]:
    """Compiled ÷ eager of each block in each process of the command that timed both."""
    read = (of_json({"schema": VERSION, **value}) for value in answer["records"])
    records = [record for record in read if record is not None]
    rows = [each.modes for each in records_of(records, Time) if each.process > COLD and len(each.modes) > 1]
    return [
        [compiled / eager for eager, compiled in zip(row["eager"].blocks, row["compile"].blocks, strict=True)]
        for row in rows
    ]


def difference(hand: list[tuple[float, float]], answer: dict[str, Any]) -> Interval:
    """The ratio by hand ÷ the command's ratio, with an interval over the processes of both."""
    return unpaired_ratio_interval([[compiled / eager] for eager, compiled in hand], told_ratios(answer))


def agree(found: Interval) -> str:
    """Say whether two ways of timing agree, by the interval of the ratio by hand ÷ the command's ratio."""
    if not found.bounded:
        return "cannot tell"
    return "yes" if found.low <= 1 <= found.high else "no"


@click.command()
@click.argument("names", nargs=-1, metavar="[STEP]...", type=click.Choice(STEPS))
@click.option("--processes", default=5, show_default=True, type=click.IntRange(LEAST), help="Of each way.")
@click.option("--one", is_flag=True, help="One step, in this process; its seconds as JSON.")
def main(names: tuple[str, ...], processes: int, *, one: bool) -> None:
    """Time steps by hand and by the command, and show whether the two agree."""
    if one:
        click.echo(json.dumps(timed(names[0])))
        return
    rows, found = [], list[Interval]()
    for name in names or STEPS:
        before = by_hand(name, processes // 2)
        answer = compared(FILE, name, ("--modes", "eager,compile", "--processes", str(processes)))
        hand = [*before, *by_hand(name, processes - len(before))]
        found.append(difference(hand, answer))
        rows.append(_row(name, hand, answer, found[-1]))
    together = geometric_mean_interval([[each.estimate] for each in found])
    rows.append(("all", "", "", "", "", _shown(together), agree(together)))
    columns = ("step", "µs eager, by hand", "compiled ÷ eager, by hand", "processes", "the command")
    show_table((*columns, "by hand ÷ the command", "agree"), rows)


def _row(name: str, hand: list[tuple[float, float]], answer: dict[str, Any], found: Interval) -> tuple[str, ...]:
    ratios = sorted(compiled / eager for eager, compiled in hand)
    micro = median(eager for eager, _ in hand) * 1e6
    mean, spread = f"{geometric_mean(ratios):.3f}", f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
    estimate, *bounds = answer["verdict"]["of_base"].get("compile", [None, None])
    told = "no interval" if None in bounds else _shown(Interval(estimate, *bounds))
    return name, f"{micro:.1f}", mean, spread, told, _shown(found), agree(found)


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval.bounded else "")


if __name__ == "__main__":
    main()
