"""`graphduel selftest`: how far the harness can be trusted on this machine."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli import resume as cli_resume
from compare.report.terminal import echo
from compare.run import ending

if TYPE_CHECKING:
    from compare.records.trials import Selftest

QUICK = 20
CHOSEN = {"comparisons": ["comparisons", "quick"], "leaks": [], "seed": ["seed"]}
"""The parameters of a selftest by the setting that they choose."""
EXIT = {"met": 0, "missed": 1, "too noisy": 3}


@click.command()
@click.option("--comparisons", type=click.IntRange(1), help="Comparisons of an engine with itself; 200, or 20 quick.")
@click.option("--quick", is_flag=True, help="A minute or two: few comparisons, so rates with wide intervals.")
@click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the rates here too.")
@click.option("--out", type=click.Path(path_type=Path), help="Where records go; a new folder in reports/ if not given.")
@click.option(
    "--resume", is_flag=True, help="Go on with the selftest in --out: what is measured is not measured again."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Orders the measurements.")
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
    """Compare an engine with itself, slowed down or leaking by known sizes: how often is that seen?"""
    from compare.records import results
    from compare.run import executors, progress
    from compare.selftest import Plan, run

    if resume and out is None:
        raise click.UsageError("--resume needs --out: the folder of the selftest to go on with")
    wanted = comparisons or (QUICK if quick else Plan.comparisons)
    directory = out or Path("reports") / f"selftest-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    asked = {"comparisons": wanted, "leaks": max(2, wanted // 4), "seed": seed}
    plan = Plan(**(cli_resume.settings(ctx, directory, asked, CHOSEN) if resume else asked))
    reporter = progress.reporter()
    opened = executors.opened("thread", plan.at_once, None, reporter.notice)
    try:
        with opened as (executor, _):
            rates = run(directory, plan, reporter, resume=resume, executor=executor)
    except KeyboardInterrupt as stop:
        again = f"graphduel selftest --out {shlex.quote(str(directory))} --resume"
        echo(f"\nStopped; every finished job is in {directory}. Go on with:\n  {again}", err=True)
        ctx.exit(ending.exit_code(stop))
    if path:
        results.write_json(path, results.to_json(rates))
    _show(rates)
    echo(f"\nRecords and rates: {directory}")
    ctx.exit(EXIT[rates.outcome])


def _show(rates: Selftest) -> None:
    from compare.report import tables
    from compare.selftest import page

    tables.show(page.COLUMNS, page.rows(rates), whole=page.COLUMNS)
    for failure in rates.failures:
        echo(f"failed: {failure}", err=True)
    if not rates.whole:
        echo("Few comparisons: the intervals of these rates are wide. For narrow ones leave out --quick.")
    echo(f"Targets: {rates.outcome}, in {rates.seconds:.0f} s.")
