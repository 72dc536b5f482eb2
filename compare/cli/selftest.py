"""`graphduel selftest`: measure how far the harness can be trusted on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.words.text import echo

if TYPE_CHECKING:
    from compare.records.checks import Selftest

QUICK = 20
CHOSEN = {"comparisons": ["comparisons", "quick"], "own": [], "leaks": [], "seed": ["seed"]}
"""The parameters of a selftest that choose each setting."""
WHOLE = ("found", "of", "target")
"""The columns of the rates table that are never wrapped; the others fold on a narrow terminal."""
EXIT = {"met": 0, "missed": 1, "too noisy": 3}


@click.command()
@click.option(
    "--comparisons", type=click.IntRange(1), help="Compare an engine with itself this many times; 200, or 20 quick."
)
@click.option(
    "--quick", is_flag=True, help="Make few comparisons, in a minute or two; the rates then have wide intervals."
)
@options.JSON
@options.out("Write records into this folder; by default a new one in reports/.")
@options.RESUME
@options.SEED
@click.pass_context
def selftest(
    ctx: click.Context,
    *,
    comparisons: int | None,
    quick: bool,
    path: Path | None,
    out: Path | None,
    resume: bool,
    seed: int,
) -> None:
    """Measure how often the harness finds a known slowdown or leak."""
    from compare.records import results
    from compare.run import executors, progress
    from compare.selftest import Trials, run

    directory = options.folder(out, resume, "selftest", "selftest")
    wanted = comparisons or (QUICK if quick else Trials.comparisons)
    asked = {"comparisons": wanted, "own": max(1, wanted // 5), "leaks": max(2, wanted // 4), "seed": seed}
    trials = Trials(**(options.resume_settings(ctx, directory, asked, CHOSEN) if resume else asked))
    reporter = progress.reporter()
    opened = executors.open_executor("thread", trials.at_once, None, reporter.notice)
    again = ["graphduel", "selftest", "--out", str(directory), "--resume"]
    with options.stoppable(ctx, f"every finished job is in {directory}", again), opened as (executor, _):
        rates = run(directory, trials, reporter, resume=resume, executor=executor)
    options.write_json(path, results.to_json(rates))
    _show(rates)
    echo(f"\nRecords and rates: {directory}")
    ctx.exit(EXIT[rates.outcome])


def _show(rates: Selftest) -> None:
    from compare.page import tables
    from compare.selftest import Trials
    from compare.selftest.rates import coverage_table, rates_table

    for table in (rates_table(rates), coverage_table(rates)):
        if table:
            tables.show(table.headers, table.rows, whole=WHOLE)
            echo()
    for failure in rates.failures:
        echo(f"failed: {failure}", err=True)
    if not rates.whole:
        echo(f"Few comparisons: these rates have wide intervals. --comparisons {Trials.comparisons} gives narrow ones.")
    echo(f"Targets: {rates.outcome}, in {rates.seconds:.0f} s.")
