"""The command for the graph of a function: drawn, or written for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.errors import explained
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
    with explained(function):
        text, drawing = _drawn(function, unfold=unfold, **asked)  # type: ignore[arg-type]
    if out is not None:
        try:
            echo(f"{drawing!r}: {drawing.save(out)}")
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if view:
        _opened(drawing)
    if out is None and not view:
        echo(text)


def _drawn(
    function: str, *, inputs: str | None, gradient: bool | None, engine: str, optimised: bool, unfold: bool
) -> tuple[str, GraphDrawing]:
    """The graph as text, and drawn."""
    import dynamic
    import static
    from compare.engines.arms import transformed
    from compare.own.case import case_of
    from compare.own.origin import called
    from graphs.drawing import GraphDrawing, of_graph

    f, calls = called(function, inputs)
    case = case_of(f, calls, gradient, None)
    step = transformed(dynamic if engine == "dynamic" else static, case.loss, case.argnum)
    args = (case.params, *case.examples[0])
    if engine == "dynamic":
        found = dynamic.record(step, *args)
    elif optimised:
        found = static.compile(step, *args, convert=True).graph
    else:
        found = static.trace(static.converted(step), *args)
    return str(found), GraphDrawing(of_graph(found), unfold)


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
