"""The command for a memory plan: of lifetimes in a file, or of a function of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from compare.cli import complete, options
from compare.cli.options import Seconds
from compare.cli.own import warn
from compare.words.terminal import echo

MOST_BUFFERS = 30
"""Buffers that a terminal shows: the largest."""


@click.command()
@click.argument("file", metavar="FILE.csv|FILE.py:FUNCTION", shell_complete=complete.functions)
@options.INPUTS
@options.GRADIENT
@options.out("Write the offsets to this file, or the map of a function: .svg or .html.", options.FILE)
@options.default("--alignment", type=click.IntRange(1), default=1, help="Make every offset a multiple of this number.")
@options.default("--time-limit", type=Seconds(0), default=0.0, help="Search this many seconds for a better plan.")
def plan(
    file: str, *, inputs: str | None, gradient: bool | None, out: Path | None, alignment: int, time_limit: float
) -> None:
    """Place buffers in one block of memory, by their lifetimes.

    FILE.csv has the columns id, lower, upper and size. A buffer lives from step lower to the step before upper. The
    command writes the same rows with an offset each. Peak, lower bound and gap go to stderr, or to stdout with --out.
    `-` reads stdin. Of a FUNCTION it shows the plan that static has made for its first call; FUNCTION and its inputs
    are found as `graphduel compare` finds them.
    """
    if file.partition(":")[0].endswith(".py"):
        _function_plan(file, out, inputs=inputs, gradient=gradient)
    else:
        _plan_of_rows(file, out, alignment, time_limit)


def _plan_of_rows(file: str, out: Path | None, alignment: int, time_limit: float) -> None:
    from compare.records import lifetimes
    from static import memory

    readable = click.Path(exists=True, dir_okay=False, allow_dash=True)
    with click.open_file(str(readable.convert(file, None, None)), encoding="utf-8-sig", errors="replace") as stream:
        rows = lifetimes.read(stream, "stdin" if file == "-" else file)
    placed = memory.plan([row.buffer for row in rows], alignment, time_limit)
    lifetimes.write(rows, placed.offsets, out)
    echo(f"peak {placed.peak}, lower bound {placed.lower_bound}, gap {placed.gap:.2%}", err=out is None)


def _function_plan(function: str, out: Path | None, **asked: Any) -> None:
    from compare.own import workers
    from compare.page import tables
    from compare.records.own import FunctionMemory
    from compare.words import text
    from graphs.drawing.memory_map import MemoryMap

    warn(function)
    planned = workers.answer(FunctionMemory, function, {"function": function, **asked})
    if out is not None:
        try:
            echo(f"Map: {MemoryMap(planned.title, planned.buffers, planned.peak).save(out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    largest = sorted(planned.buffers, key=lambda buffer: -buffer.size)[:MOST_BUFFERS]
    rows = [(f"{b.offset:,}", text.size(b.size), f"{b.lower} to {b.upper - 1}", b.name) for b in largest]
    tables.show(("offset", "size", "steps", "holds"), rows)
    left = len(planned.buffers) - len(largest)
    more = f"; {left:,} smaller buffers are in the map that --out draws" if left else ""
    echo(f"peak {text.size(planned.peak)}, lower bound {text.size(planned.lower_bound)}{more}")
