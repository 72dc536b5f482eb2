"""`graphduel diff`: the verdicts of several runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.words.terminal import echo

if TYPE_CHECKING:
    from compare.page.changes import Compared
    from compare.records.record import Records


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=options.FILE, help="Write all tables and the conditions of each run to this Markdown file.")
@click.option("--all", "whole", is_flag=True, help="Show what did not change too.")
@click.option("--unlike-machines", is_flag=True, help="Compare the times of two machines too.")
@click.pass_context
def diff(
    ctx: click.Context, *, directories: tuple[Path, ...], out: Path | None, whole: bool, unlike_machines: bool
) -> None:
    """Show the verdicts on the runs in DIRECTORIES side by side.

    All runs are judged by the same rules. Of two runs also show what changed from the first to the second: time and
    bytes of each cell, beyond 5% with 95% confidence. The exit code is 1 if two runs settle a claim differently.
    """
    from compare.page import beside, changes, tables
    from compare.records.files import write_atomic

    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    runs = [options.results_in(path) for path in directories]
    columns = [beside.column(str(path), run) for path, run in zip(directories, runs, strict=True)]
    if beside.judged(columns):
        found = beside.table(columns)
        tables.show(found.headers, found.rows)
    for one in columns:
        options.say(f"{one.name}: {one.measured}")
    if beside.judged(columns):
        echo(f"\n{beside.sentence(columns)}")
    page = beside.page(columns)
    if len(runs) == 2:
        echo()
        page += changes.markdown(show(*runs, whole=whole, unlike_machines=unlike_machines))
    if out:
        write_atomic(out, page.encode())
    ctx.exit(int(bool(beside.differing(columns))))


def show(before: Records, after: Records, *, whole: bool = False, unlike_machines: bool = False) -> Compared:
    """What changed from one run to another: all of it, or what changed by more than 5%."""
    from compare.page import changes, tables

    found = changes.compared(before, after, unlike_machines=unlike_machines)
    for sentence in found.sentences:
        options.say(sentence)
    shown = found.changes if whole else changes.significant(found.changes)
    if shown:
        tables.show(changes.HEADERS, changes.table(shown).rows, whole=changes.HEADERS[-2:])
    return found
