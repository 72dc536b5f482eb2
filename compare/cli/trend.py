"""`graphduel trend`: how every measure of every cell went over many runs."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli import options
from compare.errors import CompareError
from compare.words.terminal import echo


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=options.FILE, default=Path("trend.html"), show_default=True,
    help="Write the page to this file, .html or .md.",
)  # fmt: skip
def trend(*, directories: tuple[Path, ...], out: Path) -> None:
    """Draw each measure of the runs in DIRECTORIES over time.

    The command also shows what the last run changed. Runs are ordered by the time at which they began. Times are
    compared with earlier ones of the same machine only.
    """
    from compare.page import changes, html, markdown, tables
    from compare.page import trend as trends
    from compare.records.files import write_atomic

    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    printed = {".html": html.render, ".md": markdown.render}.get(out.suffix)
    if printed is None:
        raise click.UsageError(f"--out {out} is neither .html nor .md")
    runs = trends.ordered({str(path): options.results_in(path) for path in directories})
    series = trends.series(runs)
    if not series:
        raise CompareError("no two of these runs measured the same on one machine; graphduel diff shows their verdicts")
    for sentence in trends.sentences(series):
        options.say(sentence)
    shown = trends.significant(series)
    if shown:
        echo(f"\nChanged by more than 5% since the run before {runs[-1].name}:")
        tables.show(changes.HEADERS, changes.table(shown).rows, whole=changes.HEADERS[-2:])
    write_atomic(out, printed(trends.page(runs, series)).encode())
    echo(f"\nPage: {out}")
