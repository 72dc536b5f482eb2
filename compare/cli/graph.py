"""The command for the graph of a function: drawn, or written for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.cli.own import warn
from compare.words.terminal import echo

if TYPE_CHECKING:
    from graphs.drawing import GraphDrawing

SUFFIXES = ".svg, .html, .dot, .mmd, .json, .model-explorer.json, .png or .pdf"


@click.command()
@click.argument("function", metavar="FILE.py:FUNCTION")
@options.INPUTS
@options.GRADIENT
@options.default(
    "--engine", type=click.Choice(["static", "dynamic"]), default="static", help="Show the graph of this engine."
)
@click.option("--optimised", is_flag=True, help="Show the graph after all passes of static.")
@click.option("--unfold", is_flag=True, help="Draw every node of a large graph.")
@click.option("--out", type=options.FILE, help=f"Write a file: {SUFFIXES}.")
@click.option("--view", is_flag=True, help="Open it in Model Explorer: pip install 'graphduel[viewer]'.")
@click.pass_context
def graph(ctx: click.Context, /, *, function: str, out: Path | None, view: bool, unfold: bool, **asked: object) -> None:
    """Show the graph of a function of yours, traced or recorded.

    The command finds FUNCTION and its inputs as `graphduel compare` does, and uses the first call. Without --out it
    prints the graph. It folds a graph of more than 150 nodes by source line; the JSON formats hold every node.
    """
    del ctx
    text, drawing = _drawn(function, unfold=unfold, **asked)
    if out is not None:
        try:
            echo(f"{drawing!r}: {drawing.save(out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if view:
        _opened(drawing)
    if out is None and not view:
        echo(text)


def _drawn(function: str, *, unfold: bool, **asked: object) -> tuple[str, GraphDrawing]:
    """The graph as text, and drawn."""
    from compare.own import workers
    from compare.records.own import FunctionGraph
    from graphs.drawing import GraphDrawing

    warn(function)
    found = workers.answer(FunctionGraph, function, {"function": function, **asked})
    return found.text, GraphDrawing(found.diagram, unfold)


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
