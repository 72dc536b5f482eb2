"""Are the answers of `graphduel compare` right? `python -m benchmarks.by_hand`, a row for each step.

The eight steps of `benchmarks/short_steps.py` are timed by hand, in fresh processes of that file, which import nothing
of the harness, each call written as its author writes it. With one thread blocks of eager and of compiled calls take
turns in a process. With several, `--threads 1,2`, each mode has processes of its own, as threads that wait slow down
what shares a process with them, and the clock is the wall. Half of the processes run before the command and half after
it, so that a machine that drifts favours neither.

Where its memory lies makes a process some percent faster or slower, so that a few processes by hand are an estimate as
those of the command are. The two agree where the interval of the one ÷ the other holds 1. What a harness adds has the
same sign in each step, so the mean over steps is held to the same, and its interval is the narrowest.

An answer is right if its interval lies on the side of 1 where the median by hand lies. One that holds 1 tells nothing:
with several threads the command says so. `inside` says whether the interval holds the median by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from subprocess import PIPE
from typing import Any, NamedTuple

import click

from compare.claims.evidence import cells, steady
from compare.errors import InputsError
from compare.instruments.rounds import rotate
from compare.records.cells import Time
from compare.records.results import VERSION, of_json
from compare.run.environment import thread_numbers
from compare.stats import LEAST, Interval, geometric_mean_interval, typical, unpaired_ratio_interval
from compare.text import show_table

FILE = Path(__file__).with_name("short_steps.py")
STEPS = ("cross_entropy", "penalty", "perceptron", "gated", "attention", "recurrent", "chain", "blocks")
MODES = ("eager", "compile")
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


class Answer(NamedTuple):
    """What the command says: compiled ÷ eager, its bounds if it has any, and each process's ratios of blocks."""

    ratio: Interval
    processes: list[list[float]]


def by_hand(name: str, processes: int, threads: int) -> list[list[float]]:
    """Seconds of an eager and of a compiled call, in so many fresh processes, or in two each on several threads."""
    environment = {**ONE_THREAD, "OMP_NUM_THREADS": str(threads)}

    def process(*modes: str) -> list[float]:
        alone = [sys.executable, str(FILE), name, str(threads), *modes]
        seconds: list[float] = json.loads(subprocess.run(alone, env=environment, stdout=PIPE, check=True).stdout)
        return seconds

    if threads == 1:
        return [process(*MODES) for _ in range(processes)]
    pairs = []
    for turn in range(processes):
        seconds = {mode: process(mode) for mode in rotate(MODES, turn)}
        pairs.append([seconds[mode][0] for mode in MODES])
    return pairs


def compared(file: Path, name: str, options: Sequence[str], threads: int = 1) -> dict[str, Any]:
    """The answer of the command, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answer.json")
        asked = ("--inputs", f"{name}_calls", "--threads", str(threads), *options, "--json", str(out))
        command = [sys.executable, "-m", "compare", "compare", f"{file}:{name}", *asked]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not out.exists():
            raise click.ClickException(done.stdout + done.stderr)
        answer: dict[str, Any] = json.loads(out.read_text("utf-8"))
        return answer


def answer_in(told: dict[str, Any]) -> Answer:
    """The answer in the command's JSON, without processes that do not count since others had the cores."""
    read = (of_json({"schema": VERSION, **value}) for value in told["records"])
    (of_cell,) = cells([record for record in read if record is not None], Time)
    ratios = []
    for process in of_cell.processes:
        eager, compiled = (steady(process[mode]) if mode in process else () for mode in MODES)
        if not (eager and compiled):
            continue
        pairs = [(typical(compiled), typical(eager))] if of_cell.threads > 1 else zip(compiled, eager, strict=True)
        ratios.append([top / bottom for top, bottom in pairs])
    estimate, *bounds = told["verdict"]["of_base"].get("compile", [1.0, None, None])
    return Answer(Interval(estimate) if None in bounds else Interval(estimate, *bounds), ratios)


def difference(hand: list[list[float]], answer: Answer) -> Interval:
    """The ratio by hand ÷ the command's ratio, with an interval over the processes of both.

    It is 1, without one, where no process of the command counts.
    """
    if not answer.processes:
        return Interval(1.0)
    return unpaired_ratio_interval([[compiled / eager] for eager, compiled in hand], answer.processes)


def agree(found: Interval) -> str:
    """Say whether two ways of timing agree, by the interval of the ratio by hand ÷ the command's ratio."""
    if not found.bounded:
        return "cannot tell"
    return "yes" if found.low <= 1 <= found.high else "no"


def is_right(hand: Sequence[float], told: Interval) -> str:
    """Say whether an answer is on the side of the median of ratios by hand."""
    if not told.bounded or told.low <= 1 <= told.high:
        return "cannot tell"
    return "yes" if (median(hand) > 1) == (told.low > 1) else "no"


def _numbers(_context: click.Context, _parameter: click.Parameter, asked: str) -> tuple[int, ...]:
    try:
        return thread_numbers(asked)
    except InputsError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("names", nargs=-1, metavar="[STEP]...", type=click.Choice(STEPS))
@click.option("--processes", default=5, show_default=True, type=click.IntRange(LEAST), help="Of each way.")
@click.option("--threads", default="1", show_default=True, metavar="N|1,2", callback=_numbers, help="Of a step.")
def main(names: tuple[str, ...], processes: int, threads: tuple[int, ...]) -> None:
    """Time steps by hand and by the command, and show whether the two agree."""
    for number in threads:
        rows, found = [], list[Interval]()
        for name in names or STEPS:
            before = by_hand(name, processes // 2, number)
            asked = ("--modes", ",".join(MODES), "--processes", str(processes))
            answer = answer_in(compared(FILE, name, asked, number))
            hand = [*before, *by_hand(name, processes - len(before), number)]
            rows.append(_row(name, hand, answer))
            found += [difference(hand, answer)] if answer.processes else []
            click.echo("  ".join(rows[-1]), err=True)  # as long as the others are still to come
        together = geometric_mean_interval([[each.estimate] for each in found]) if found else Interval(1.0)
        rows.append(("all", *[""] * 4, _shown(together), agree(together), "", ""))
        wall = "" if number == 1 else f", {number} threads"
        columns = (f"step{wall}", "µs eager, by hand", "compiled ÷ eager, by hand", "processes", "the command")
        show_table((*columns, "by hand ÷ the command", "agree", "right", "inside"), rows)


def _row(name: str, hand: list[list[float]], answer: Answer) -> tuple[str, ...]:
    found = difference(hand, answer)
    ratios, told = sorted(compiled / eager for eager, compiled in hand), answer.ratio
    micro, middle = median(eager for eager, _ in hand) * 1e6, median(ratios)
    spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
    shown = _shown(told) if told.bounded else "no interval"
    inside = ("yes" if told.low <= middle <= told.high else "no") if told.bounded else ""
    return (
        name,
        f"{micro:.1f}",
        f"{middle:.3f}",
        spread,
        shown,
        _shown(found),
        agree(found),
        is_right(ratios, told),
        inside,
    )


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval.bounded else "")


if __name__ == "__main__":
    main()
