"""`graphduel diff`: the verdicts of several runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.words.terminal import echo

if TYPE_CHECKING:
    from compare.page.beside import RunColumn
    from compare.page.changes import Compared


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=options.FILE, help="Write all tables and the conditions of each run to this Markdown file.")
@click.option("--all", "whole", is_flag=True, help="Show what did not change too.")
@click.option("--unlike-machines", is_flag=True, help="Compare the times of two machines too.")
@options.JSON_ALONE
@click.pass_context
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
    from compare.page import beside, changes
    from compare.records.files import write_atomic

    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    runs = [options.results_in(path) for path in directories]
    columns = [beside.column(str(folder), run) for folder, run in zip(directories, runs, strict=True)]
    compared = changes.compared(*runs, unlike_machines=unlike_machines) if len(runs) == 2 else None
    if str(path) != "-":
        _print(columns, compared, whole=whole)
    changed = changes.plain(compared) if compared else {}
    options.written(path, {"schema": 1, "runs": beside.plain(columns), **changed})
    if out:
        write_atomic(out, (beside.page(columns) + (changes.markdown(compared) if compared else "")).encode())
    ctx.exit(int(bool(beside.differing(columns))))


def _print(columns: Sequence[RunColumn], compared: Compared | None, *, whole: bool) -> None:
    from compare.page import beside, tables

    if beside.judged(columns):
        table = beside.table(columns)
        tables.show(table.headers, table.rows)
    for column in columns:
        options.say(f"{column.name}: {column.measured}")
    if beside.judged(columns):
        echo(f"\n{beside.sentence(columns)}")
    if compared:
        echo()
        show(compared, whole=whole)


def show(compared: Compared, *, whole: bool = False) -> None:
    """What changed from one run to another: all of it, or what changed by more than 5%."""
    from compare.page import changes, tables

    for sentence in compared.sentences:
        options.say(sentence)
    shown = compared.changes if whole else changes.significant(compared.changes)
    if shown:
        tables.show(changes.HEADERS, changes.table(shown).rows, whole=changes.HEADERS[-2:])
