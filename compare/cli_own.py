"""The commands for what is the user's own: a function to compare, and lifetimes to lay out in memory."""

from __future__ import annotations

import shlex
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare import ending
from compare.cli_types import Seconds
from compare.errors import CompareError, FunctionError, InputsError
from compare.terminal import echo

if TYPE_CHECKING:
    from compare.own import Result

INPUTS = "inputs"
"""The name looked for beside the function where --inputs is not given."""


@click.command()
@click.argument("function", metavar="FILE.py:FUNCTION")
@click.option("--inputs", metavar="FILE.py:NAME", help="A list of calls, each a tuple of arguments, or what makes it.")
@click.option("--modes", default="dynamic,static", show_default=True, help="Also static-symbolic, -bucket and -pad.")
@click.option("--gradient/--no-gradient", default=None, help="Gradients of argument 0.  [default: where they exist]")
@click.option("--allow-effects", is_flag=True, help="Time it though it prints, draws random numbers or changes state.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for results, verdicts and a report.")
@click.option("--processes", type=click.IntRange(0), default=5, show_default=True, help="Fresh workers; 0 for none.")
@click.option("--seconds", type=Seconds(0.01), default=2.5, show_default=True, help="Of timing, per process.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Orders the measurements.")
@click.pass_context
def compare(ctx: click.Context, /, *, function: str, out: Path | None, **asked: Any) -> None:
    """Compare a function of your own in both engines.

    FUNCTION is plain Python over graphs ops. FILE.py is imported, so what it runs belongs under
    `if __name__ == "__main__":`. Without --inputs, the calls are the list `inputs` in the same file.
    """
    from compare.own.result import empty

    if out is not None:
        empty(out)
    try:
        found = _measured(function, **asked)
    except KeyboardInterrupt as stop:
        echo("\nStopped; nothing was written.", err=True)
        ctx.exit(ending.exit_code(stop))
    echo(str(found))
    if out is not None:
        echo(f"\nReport: {found.save(out)}")
    ctx.exit(found.exit_code)


@click.command()
@click.argument("file", metavar="FILE.csv", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Where the offsets go; stdout if not given."
)
@click.option(
    "--alignment", type=click.IntRange(1), default=1, show_default=True, help="Every offset is a multiple of it."
)
@click.option(
    "--time-limit", type=Seconds(0), default=0.0, show_default=True, help="Seconds to search for a better one."
)
def plan(file: str, *, out: Path | None, alignment: int, time_limit: float) -> None:
    """Lay out buffers in one block of memory: an offset for each, by its lifetime.

    FILE.csv has the columns id, lower, upper and size. A buffer lives from step lower up to, and not at, step upper.
    The same rows are written with their offset; peak, lower bound and gap are told apart from them. `-` reads stdin.
    """
    from compare import lifetimes
    from static import memory

    with click.open_file(file, encoding="utf-8-sig", errors="replace") as stream:
        rows = lifetimes.read(stream, "stdin" if file == "-" else file)
    found = memory.plan([row.buffer for row in rows], alignment, time_limit)
    lifetimes.write(rows, found.offsets, out)
    echo(f"peak {found.peak}, lower bound {found.lower_bound}, gap {found.gap:.2%}", err=out is None)


def _measured(function: str, *, inputs: str | None, modes: str, **options: Any) -> Result:
    """The result, with what the user's own code raises as a FunctionError that says where."""
    from compare import own, progress

    allowed = ["--allow-effects"] if options["allow_effects"] else []
    given = [*(["--inputs", inputs] if inputs else []), "--modes", modes, *allowed]
    command = shlex.join(["graphduel", "compare", function, *given])
    try:
        f, calls = called(function, inputs)
        names = modes.replace(" ", "").split(",")
        return own.compare(f, calls, names, **options, command=command, reporter=progress.reporter())
    except CompareError:
        raise
    except Exception as error:
        raise FunctionError(f"{function}: {line(error, function)}{type(error).__name__}: {error}") from error


def called(function: str, inputs: str | None) -> tuple[Any, Any]:
    """The function and the list of its calls."""
    from compare.own import origin

    f = origin.named(function)
    for entry in origin.hidden(Path(function.rpartition(":")[0])):
        echo(f"{entry} is named as a package of graphduel, so no import of that name finds it; rename it", err=True)
    if not callable(f):
        raise InputsError(f"{function} is no function but a {type(f).__name__}")
    place = inputs or f"{function.rpartition(':')[0]}:{INPUTS}"
    try:
        calls = origin.named(place)
    except InputsError as error:
        how = f"{INPUTS} = [(params, x), ...], a tuple of arguments for each call; or name one by --inputs FILE.py:NAME"
        raise error if inputs else InputsError(f"{function} needs inputs to be called with: write {how}") from None
    return f, list(calls() if callable(calls) else calls)


def line(error: Exception, function: str) -> str:
    """`mine.py:12: `, the last line of the user's file that ran."""
    file = Path(function.rpartition(":")[0]).name
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    return f"{file}:{lines[-1]}: " if lines else ""
