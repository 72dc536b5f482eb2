"""The command for the graph of a function: drawn, or written for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.cli.own import warn
from compare.words.text import echo

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
    text, drawing = _drawn(function, **asked)
    if out is not None:
        try:
            echo(f"{drawing.save(out)}: {_said(drawing, out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if view:
        _opened(drawing)
    if out is None and not view:
        echo(text)


def _drawn(function: str, **asked: object) -> tuple[str, GraphDrawing]:
    """The graph as text, and drawn."""
    from compare.own import workers
    from compare.records.own import FunctionGraph
    from graphs.drawing import GraphDrawing

    warn(function)
    answer = workers.answer(FunctionGraph, function, {"function": function, **asked})
    return answer.text, GraphDrawing.of_stages(answer.stages, bool(asked["unfold"]))


def _said(drawing: GraphDrawing, out: Path) -> str:
    """`loss, 18 nodes`, and in how many items they are drawn; the page has all."""
    nodes, items = len(drawing.whole.items), len(drawing.shown.items)
    folded = f" in {items:,} items" if items < nodes and out.suffix != ".html" else ""
    return f"{drawing.whole.title}, {nodes:,} nodes{folded}"


def _opened(drawing: GraphDrawing) -> None:
    """Show a drawing in Model Explorer, until that is closed."""
    import tempfile

    try:
        import model_explorer
    except ImportError:
        raise click.UsageError("--view needs Model Explorer; pip install 'graphduel[viewer]'") from None
    with tempfile.TemporaryDirectory() as folder:
        path = drawing.save(Path(folder) / "graph.model-explorer.json")
        model_explorer.visualize(str(path))
