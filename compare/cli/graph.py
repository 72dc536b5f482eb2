"""The commands that examine a function without timing it: `graph` shows its graph, `plan` its memory plan.

`plan` also places the buffers of a CSV file by their lifetimes.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from compare.cli import options
from compare.cli.functions import warn
from compare.cli.options import Seconds
from compare.errors import InputsError
from compare.text import echo

if TYPE_CHECKING:
    from graphs.drawing import GraphDrawing

SUFFIXES = ".svg, .html, .dot, .mmd, .json, .model-explorer.json, .png or .pdf"


@click.command()
@options.FUNCTION
@options.INPUTS
@options.gradient("Show")
@options.default(
    "--engine",
    type=click.Choice(["static", "dynamic", "both"]),
    default="static",
    help="Show the graph of this engine; both: the tape beside the optimised graph, with what differs.",
)
@click.option("--optimised", is_flag=True, help="Show the graph after all passes of static.")
@click.option(
    "--passes", is_flag=True, help="Show what each pass of static changes; with --out FILE.html, a slider over them."
)
@click.option("--unfold", is_flag=True, help="Show every node of a large graph.")
@click.option("--out", type=options.FILE, help=f"Write a file: {SUFFIXES}.")
@click.option("--view", is_flag=True, help="Open it in Model Explorer: pip install 'graphduel[viewer]'.")
@click.pass_context
def graph(ctx: click.Context, /, *, function: str, out: Path | None, view: bool, **asked: object) -> None:
    """Show the graph of a function of yours, traced or recorded.

    The command finds FUNCTION and its inputs as `graphduel compare` does, and uses the first call. Without --out it
    prints the graph, and of a graph of more than 150 nodes a repeated block once. Pictures of such a graph are folded
    to groups, which the .html page opens and closes; the JSON formats hold every node.
    """
    del ctx
    if asked["passes"] and (asked["engine"] != "static" or asked["optimised"]):
        raise click.UsageError("--passes shows the passes of static one by one: leave out --engine and --optimised")
    if asked["passes"] and (view or (out is not None and out.suffix != ".html")):
        raise click.UsageError("--passes is printed, or written as an .html page with a slider: --out FILE.html")
    text, drawing = _draw_function(function, **asked)
    if out is not None:
        try:
            echo(f"{drawing.save(out)}: {_drawing_summary(drawing, out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if view:
        import tempfile

        try:
            import model_explorer
        except ImportError:
            raise click.UsageError("--view needs Model Explorer; pip install 'graphduel[viewer]'") from None
        with tempfile.TemporaryDirectory() as folder:
            path = drawing.save(Path(folder) / "graph.model-explorer.json")
            model_explorer.visualize(str(path))
    if out is None and not view:
        echo(text)


def _draw_function(function: str, **asked: object) -> tuple[str, GraphDrawing]:
    """Return the graph of a function as text and as a drawing."""
    from compare.own import workers
    from compare.records.own import FunctionGraph
    from graphs.drawing import GraphDrawing

    warn(function)
    answer = workers.answer(FunctionGraph, function, {"function": function, **asked})
    return answer.text, GraphDrawing.of_stages(answer.stages, bool(asked["unfold"]))


def _drawing_summary(drawing: GraphDrawing, out: Path) -> str:
    """Return a summary of a drawing, as `loss, 18 nodes`, with the number of items if it is folded."""
    nodes, items = len(drawing.whole.items), len(drawing.shown.items)
    folded = f" in {items:,} items" if items < nodes and out.suffix != ".html" else ""
    return f"{drawing.whole.title}, {nodes:,} nodes{folded}"


MOST_BUFFERS = 30
"""The number of buffers that a terminal shows, the largest ones."""


@click.command()
@click.argument("file", metavar="FILE.csv|FILE.py:FUNCTION", shell_complete=options.complete_functions)
@options.INPUTS
@options.gradient("Compare")
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
        from static import memory

        readable = click.Path(exists=True, dir_okay=False, allow_dash=True)
        with click.open_file(str(readable.convert(file, None, None)), encoding="utf-8-sig", errors="replace") as stream:
            rows = read_buffers(stream, "stdin" if file == "-" else file)
        placed = memory.plan([row[1:] for row in rows], alignment, time_limit)
        write_offsets(rows, placed.offsets, out)
        echo(f"peak {placed.peak}, lower bound {placed.lower_bound}, gap {placed.gap:.2%}", err=out is None)


def _function_plan(function: str, out: Path | None, **asked: Any) -> None:
    from compare import text
    from compare.own import workers
    from compare.records.own import FunctionMemory
    from compare.text import show_table
    from graphs.drawing.drawing import MemoryMap

    warn(function)
    planned = workers.answer(FunctionMemory, function, {"function": function, **asked})
    if out is not None:
        try:
            echo(f"Map: {MemoryMap(planned.title, planned.buffers, planned.peak).save(out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    largest = sorted(planned.buffers, key=lambda buffer: -buffer.size)[:MOST_BUFFERS]
    rows = [(f"{b.offset:,}", text.size(b.size), f"{b.lower} to {b.upper - 1}", b.name) for b in largest]
    show_table(("offset", "size", "steps", "holds"), rows)
    left = len(planned.buffers) - len(largest)
    more = f"; {left:,} smaller buffers are in the map that --out draws" if left else ""
    echo(f"peak {text.size(planned.peak)}, lower bound {text.size(planned.lower_bound)}{more}")


COLUMNS = ("id", "lower", "upper", "size")
LARGEST = 2**62
"""The bound of the sum of all sizes and of every step, since offsets are 64-bit numbers."""


class BufferRow(NamedTuple):
    """A buffer: its id, its half-open lifetime [lower, upper) in steps, and its size in bytes."""

    id: str
    lower: int
    upper: int
    size: int


def read_buffers(lines: Iterable[str], name: str) -> list[BufferRow]:
    """Read the buffers of a CSV file; other columns and empty lines are ignored.

    Raises InputsError with the file, the line and the error there.
    """
    reader = csv.DictReader(lines, skipinitialspace=True)
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise InputsError(f"{name}:1: no column {', '.join(missing)}; the first line is {','.join(COLUMNS)}")
        return list(_check_rows(reader, name))
    except csv.Error as error:
        raise InputsError(f"{name}:{reader.line_num + 1}: {error}") from None


def write_offsets(rows: Sequence[BufferRow], offsets: Sequence[int], path: Path | None) -> None:
    """Write the rows with their offsets as CSV to a file, whole or not at all, or to stdout. Raises InputsError."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*COLUMNS, "offset"))
    table.writerows((*row, offset) for row, offset in zip(rows, offsets, strict=True))
    if path is None:
        sys.stdout.write(text.getvalue())
        return
    from graphs.files import write_file

    try:
        write_file(path, text.getvalue().encode())
    except OSError as error:
        raise InputsError(f"cannot write to {path}: {error.strerror}; choose another --out") from error


def _check_rows(reader: csv.DictReader[str], name: str) -> Iterator[BufferRow]:
    total, seen = 0, dict[str, int]()
    for fields in reader:
        place = f"{name}:{reader.line_num}"
        lower, upper, size = (_integer(fields[column], column, place) for column in COLUMNS[1:])
        if size < 0:
            raise InputsError(f"{place}: size is {size}; a size is 0 or more")
        if lower > upper:
            raise InputsError(f"{place}: lower is {lower} and upper is {upper}; a buffer lives in [lower, upper)")
        row = BufferRow(str(fields["id"]), lower, upper, size)
        if row.id in seen:
            raise InputsError(f"{place}: id {row.id!r} is that of line {seen[row.id]} too")
        seen[row.id] = reader.line_num
        total += row.size
        if total >= LARGEST:
            raise InputsError(f"{place}: the sizes add up to {total}, more than 64-bit offsets can hold")
        yield row


def _integer(text: str | None, column: str, place: str) -> int:
    if text is None:
        raise InputsError(f"{place}: {column} is missing")
    try:
        number = int(text)
    except ValueError:
        raise InputsError(f"{place}: {column} is {text!r}, which is no whole number") from None
    if abs(number) >= LARGEST:
        raise InputsError(f"{place}: {column} is {number}, which does not fit into 64 bits")
    return number
