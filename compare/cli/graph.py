"""The commands that examine a function without timing it: `graph` shows its graph, `plan` its memory plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.functions import warn
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
@options.FUNCTION
@options.INPUTS
@options.gradient("Compare")
@options.out("Write the map to this file, .svg or .html.", options.FILE)
def plan(function: str, *, out: Path | None, **asked: Any) -> None:
    """Show where the values of a compiled step lie in memory.

    The command finds FUNCTION and its inputs as `graphduel compare` does, and compiles it for the first call.
    """
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
