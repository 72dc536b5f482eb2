"""`graphduel diff`: the verdicts of several runs beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli import options
from compare.report.terminal import echo


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=options.FILE, help="Write the table and the conditions of each run to this Markdown file.")
@click.pass_context
def diff(ctx: click.Context, *, directories: tuple[Path, ...], out: Path | None) -> None:
    """Judge the runs in DIRECTORIES by the same rules, and show their verdicts side by side.

    Compare a quick run and a full one, or runs of two machines. The exit code is 1 if two runs settle a claim
    differently.
    """
    from compare.records.files import write_atomic
    from compare.report import beside, tables

    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    columns = [beside.column(str(path), options.results_in(path)) for path in directories]
    found = beside.table(columns)
    tables.show(found.headers, found.rows)
    for one in columns:
        options.say(f"{one.name}: {one.measured}")
    echo(f"\n{beside.sentence(columns)}")
    if out:
        write_atomic(out, beside.page(columns).encode())
    ctx.exit(int(bool(beside.differing(columns))))
