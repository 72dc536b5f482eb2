"""What it costs to compile: `python -m benchmarks.compiling`.

The time to trace, differentiate, run every pass, plan and bind the step of each row of `benchmarks.table`. How that
grows with the graph, and which part takes it, is measured by `benchmarks.compile_time`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import click

import static
from benchmarks.programs import ROWS
from benchmarks.rows import Row
from compare.instruments.rounds import without_collection
from compare.run.environment import pin
from compare.text import show_table


class Compiled(NamedTuple):
    """A compilation: the nodes that were traced, those that are left, and the seconds it took."""

    traced: int
    left: int
    seconds: float


def step(row: Row) -> Compiled:
    """The loss and gradients of a row."""
    return compiled(static.value_and_grad(row.loss), (row.params, *row.inputs))


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> Compiled:
    """Compile once, as a user's call does it."""
    traced = len(static.trace(f, *args))
    with without_collection():
        start = time.perf_counter()
        executable = static.compile(f, *args)
        seconds = time.perf_counter() - start
    return Compiled(traced, len(executable.graph), seconds)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Compilations of each step.")
def main(rounds: int) -> None:
    """Measure compilation and print a table."""
    pin()
    rows = []
    for name, make in ROWS.items():
        compiled = [step(make()) for _ in range(rounds)]
        seconds = [each.seconds for each in compiled]
        rows.append([name, str(compiled[0].traced), str(compiled[0].left), *_ms(seconds[0], median(seconds))])
    show_table(["step", "nodes traced", "left", "ms, first", "ms, median"], rows)


def _ms(*seconds: float) -> list[str]:
    return [f"{s * 1e3:.3g}" for s in seconds]


if __name__ == "__main__":
    main()
