"""The commands over several runs: `graphduel diff` shows them beside each other, `graphduel trend` over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.errors import CompareError
from compare.words.text import echo

if TYPE_CHECKING:
    from compare.claims.changes import CellChange, Comparison, JudgedRun


def _several(_ctx: click.Context, _param: click.Parameter, directories: tuple[Path, ...]) -> tuple[Path, ...]:
    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    return directories


DIRECTORIES = click.argument(
    "directories", nargs=-1, required=True, callback=_several,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip


@click.command()
@DIRECTORIES
@click.option(
    "--out", type=options.FILE, help="Write all tables and the conditions of each run to this file, .html or Markdown."
)
@click.option("--all", "whole", is_flag=True, help="Show what did not change too.")
@click.option("--unlike-machines", is_flag=True, help="Compare the times of two machines too.")
@options.JSON_ALONE
@click.pass_context
@options.of_results
def diff(
    ctx: click.Context,
    *,
    directories: tuple[Path, ...],
    out: Path | None,
    whole: bool,
    unlike_machines: bool,
    path: Path | None,
) -> None:
    """Show the verdicts on the runs in DIRECTORIES side by side.

    All runs are judged by the same rules. Of two runs also show what changed from the first to the second: time and
    bytes of each cell, beyond 5% with 95% confidence. The exit code is 1 if two runs settle a claim differently.
    """
    from compare.claims import changes
    from compare.page import runs as pages

    runs = _runs(directories)
    compared = changes.compared(*runs, unlike_machines=unlike_machines) if len(runs) == 2 else None
    if str(path) != "-":
        _print(runs, compared, whole=whole)
    changed = compared.to_dict() if compared else {}
    options.written(path, {"schema": 1, "runs": [run.to_dict() for run in runs], **changed})
    if out:
        options.write_page(out, pages.beside(runs, compared))
    ctx.exit(int(bool(changes.differing(runs))))


def _runs(directories: Sequence[Path]) -> list[JudgedRun]:
    from compare.claims.changes import JudgedRun

    return [JudgedRun(str(path), options.results_in(path)) for path in directories]


def _print(runs: Sequence[JudgedRun], compared: Comparison | None, *, whole: bool) -> None:
    from compare.claims import changes
    from compare.page import runs as pages
    from compare.page import tables

    if changes.is_settled(runs):
        table = pages.verdict_table(runs)
        tables.show(table.headers, table.rows)
        echo(f"\n{changes.verdict_sentence(runs)}\n")
    if compared:
        show(compared, whole=whole)
        echo()
    for run in runs:
        options.say(f"{run.name}: {run.measured}")


def show(compared: Comparison, *, whole: bool = False) -> None:
    """What changed from one run to another: all of it, or what changed by more than 5%."""
    from compare.claims import changes

    for sentence in compared.sentences:
        options.say(sentence)
    _table(compared.changes if whole else changes.significant(compared.changes))


def _table(shown: Sequence[CellChange]) -> None:
    from compare.page import runs as pages
    from compare.page import tables

    if shown:
        tables.show(pages.CHANGED, pages.change_table(shown).rows, whole=pages.CHANGED[-2:])


@click.command()
@DIRECTORIES
@click.option(
    "--out", type=options.FILE, default=Path("trend.html"), show_default=True,
    help="Write the page to this file, .html or .md.",
)  # fmt: skip
@options.of_results
def trend(*, directories: tuple[Path, ...], out: Path) -> None:
    """Draw each measure of the runs in DIRECTORIES over time.

    The command also shows what the last run changed. Runs are ordered by the time at which they began. Times are
    compared with earlier ones of the same machine only.
    """
    from compare.claims import changes
    from compare.page import runs as pages

    if out.suffix not in (".html", ".md"):
        raise click.UsageError(f"--out {out} is neither .html nor .md")
    runs = sorted(_runs(directories), key=lambda run: run.began)
    rows = changes.over_time(runs)
    if not rows:
        raise CompareError("no two of these runs measured the same on one machine; graphduel diff shows their verdicts")
    last = pages.last_changes(runs, rows)
    for sentence in changes.tallies(last):
        options.say(sentence)
    shown = changes.significant(last)
    if shown:
        echo(f"\nChanged by more than 5% since the run before {runs[-1].name}:")
        _table(shown)
    options.write_page(out, pages.over_time(runs, rows))
    echo(f"\nPage: {out}")
