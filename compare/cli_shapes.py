"""The command for inputs of varying length: every strategy, on the lengths of the user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.lengths import DISTRIBUTIONS, MODELS

if TYPE_CHECKING:
    from compare.results import Record


@click.command()
@click.option(
    "--lengths", required=True, metavar="FILE.csv", help=f"One length a line, or one of {', '.join(DISTRIBUTIONS)}."
)
@click.option(
    "--model", type=click.Choice(MODELS), default=MODELS[-1], show_default=True, help="What reads the inputs."
)
@click.option("--quick/--full", "quick", default=False, help="A few short examples, or more.  [default: full]")
@click.option("--processes", type=click.IntRange(2), default=4, show_default=True, help="Fresh workers.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Chooses and orders the lengths.")
@click.pass_context
def shapes(ctx: click.Context, *, lengths: str, model: str, quick: bool, processes: int, seed: int) -> None:
    """Compare all strategies for inputs of varying length: padding, batching, compiling.

    FILE.csv has one length a line, or a column `length`; a sample of them is measured where there are many.
    """
    from compare import tables
    from compare.claims import length_table
    from compare.errors import NothingMeasuredError
    from compare.lengths.table import HEADERS, rows

    records = _measured(lengths, model, "quick" if quick else "full", processes, seed)
    found = length_table.tables(records)
    if not any(process for table in found for process in table.processes):
        raise NothingMeasuredError("no worker measured a strategy; see `graphduel doctor`")
    tables.show(HEADERS[1:], [row[1:] for row in rows(found)])
    click.echo()
    count = len(found) * len(length_table.CONTESTS) * len(length_table.PHASES)
    told = [cost for table in found for cost in length_table.costs(table, count)]
    tables.show(
        ("contest", "static / dynamic, 95% interval", "that static pays for the lengths"),
        [(cost.name, _text(cost), cost.verdict) for cost in told],
    )
    for line in length_table.refused(records):
        click.echo(line)
    ctx.exit(4 if any(arm["status"] == "disagree" for record in records for arm in record["arms"].values()) else 0)


def _measured(lengths: str, model: str, preset: str, processes: int, seed: int) -> list[Record]:
    """The record of each process that ended well. Raises CompareError for a file without lengths."""
    from compare import jobs, progress
    from compare.lengths.distributions import read
    from compare.measure.processes import run_job

    own = lengths not in DISTRIBUTIONS
    if own:
        read(Path(lengths))
    settings, records = jobs.Settings(preset, seed), list[Any]()
    reporter = progress.reporter()
    reporter.pace.total = processes
    with reporter:
        for process in range(processes):
            name, source = (Path(lengths).name, str(Path(lengths).resolve())) if own else (lengths, "")
            job = jobs.lengths_job(model, name, settings, process, source)
            reporter.start(job.label)
            record = run_job(job, settings.limits.timeout)
            reporter.finish(record.get("error"))
            records += [record] if record["kind"] == "lengths" else []
    return records


def _text(cost: Any) -> str:
    return f"{cost.value:.3g} ({cost.interval.low:.3g} to {cost.interval.high:.3g})" if cost.interval else "not known"
