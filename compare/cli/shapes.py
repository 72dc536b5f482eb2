"""`graphduel shapes`: compare strategies for inputs of varying length, on the lengths of the user's data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.options import say
from compare.records.record import LENGTH_DISTRIBUTIONS, LENGTH_MODELS
from compare.text import echo

if TYPE_CHECKING:
    from compare.instruments.trace import LengthTrace, TraceSample
    from compare.plans.settings import Settings
    from compare.records.job import Budget
    from compare.records.record import Record

DRAWN, LONGEST = 2000, 56
"""The number of lengths drawn from a known distribution, and the largest length."""
MORE = 10
"""The factor by which the rounds of a worker may take longer than the seconds of the preset, if time is left."""
LEAST = 3
"""The fewest workers: the same as `compare.stats.LEAST`, repeated since importing that loads NumPy."""
COUNTS = {"quick": 48, "full": 160}
"""The largest number of lengths that are timed, by preset."""


@click.command()
@click.option(
    "--lengths",
    required=True,
    metavar="FILE.csv",
    help=f"Read lengths from a CSV file, or draw them from {', '.join(LENGTH_DISTRIBUTIONS)}.",
)
@click.option(
    "--column",
    metavar="NAME|INDEX",
    default="",
    help="Read this column; several, as a,b, if several axes vary.  [default: length, or the only one]",
)
@options.default("--model", type=click.Choice(LENGTH_MODELS), default=LENGTH_MODELS[-1], help="Time this model.")
@options.quick("full", "Time a few short examples, or more.")
@options.default("--processes", type=click.IntRange(LEAST), default=4, help="Start this many fresh workers.")
@options.SEED
@click.pass_context
def shapes(
    ctx: click.Context, /, *, lengths: str, column: str, model: str, quick: bool, processes: int, seed: int
) -> None:
    """Compare padding, batching and compiling for varying lengths.

    FILE.csv has one length in each row, in the order in which they come. The command counts compilations, cache hits
    and padding on all lengths, and times a sample that it describes.
    """
    from compare.instruments.lengths import SIZES
    from compare.plans.settings import Settings
    from compare.report.figures import lengths as screen
    from compare.text import show_table

    settings = Settings("quick" if quick else "full", seed, processes)
    trace = _trace(lengths, column, seed)
    name = Path(lengths).name
    say(screen.describe_trace(name, trace))
    laid = screen.layouts(trace, SIZES[settings.limits.tables.size].batch)
    say("Counted on the whole trace in its order; `hits` where every graph is kept:")
    show_table(screen.COUNTED, screen.count_rows(laid, screen.useful(trace)))
    if len(trace.columns) > 1:
        say("Not timed: the models take inputs of one varying axis; name one column to time it.")
        return
    ctx.exit(_time_sample(settings, model, name, trace, laid))


def _trace(lengths: str, column: str, seed: int) -> LengthTrace:
    """Read the user's trace, or draw one from a known distribution. Raises CompareError for a file without lengths."""
    from compare.instruments import trace
    from compare.workloads.lengths import draw_lengths

    if lengths in LENGTH_DISTRIBUTIONS:
        return trace.LengthTrace(("length",), (draw_lengths(lengths, DRAWN, seed, LONGEST),))
    return trace.read(Path(lengths), tuple(filter(None, column.split(","))))


def _time_sample(settings: Settings, model: str, name: str, trace: LengthTrace, laid: Any) -> int:
    """Time a sample, print it, and return the exit code. Raises NothingMeasuredError if no strategy was measured."""
    from compare.claims import c4_shapes
    from compare.errors import NothingMeasuredError
    from compare.records.cells import Lengths
    from compare.records.record import Failure, records_of
    from compare.report.figures import lengths as screen
    from compare.text import show_table

    records, sample = _measure_processes(settings, model, name, trace)
    good = records_of(records, Lengths)
    echo()
    say(screen.sample_note(sample, trace, settings.seed))
    say(screen.answer_note([failure.error for failure in records_of(records, Failure)], len(records)))
    cells = c4_shapes.tables(good)
    if not any(process for table in cells for process in table.processes):
        raise NothingMeasuredError("no worker measured a strategy; see `graphduel doctor`")
    (cell,) = cells
    say(screen.fastest(cell))
    show_table(screen.TIMED, screen.time_rows(cell, laid))
    say("epoch 1: all of the sample from nothing. plans: bytes for the whole trace, ~ about, > at least.")
    echo()
    rows = screen.contests(cell, len(c4_shapes.CONTESTS) * len(c4_shapes.PHASES))
    show_table(screen.CONTEST, rows, whole=screen.CONTEST[1:])
    if any(row[-1] == screen.UNCLEAR for row in rows):
        say(f"{screen.UNCLEAR.capitalize()}: more --processes, or --full, would narrow the intervals.")
    say("\n".join(c4_shapes.refusal_sentences(good)))
    return 4 if any(mode.status == "disagree" for record in good for mode in record.modes.values()) else 0


def _measure_processes(
    settings: Settings, model: str, name: str, trace: LengthTrace
) -> tuple[list[Record], TraceSample]:
    """Run all workers; returns the records of processes, failures included, and the sample that they timed."""
    from compare.plans.jobs import lengths_job
    from compare.run import progress
    from compare.run.runner import Runner

    reporter = progress.reporter()
    runner = Runner.of_workers(reporter, settings.limits.timeout)
    reporter.pace.total = 1 + settings.processes
    with reporter:
        reporter.start("probe")
        sample, budget = _sample(settings, model, trace)
        reporter.finish()
        processes = range(settings.processes)
        asked = (lengths_job(model, name, settings, process, sample.lengths, budget) for process in processes)
        runner.jobs((job, {}) for job in asked)
    return runner.journal.records, sample


def _sample(settings: Settings, model: str, trace: LengthTrace) -> tuple[TraceSample, Budget]:
    """Return the lengths to time and their budget, so that by a probe a worker needs half of its time limit."""
    from compare.instruments.trace import fit_sample, paces, quantiles
    from compare.plans.jobs import lengths_job
    from compare.run.processes import run_job

    limit, wanted = settings.limits.timeout, COUNTS[settings.preset]
    job = lengths_job(model, "probe", settings, 0, tuple(quantiles(sorted(trace.lengths), 6, 6)))
    asked = replace(job, kind="lengths probe", budget=replace(job.budget, seconds=limit / 4))
    probed = paces(run_job(asked, limit))
    sample = fit_sample(trace.lengths, probed, job.budget.least, limit / 2, wanted, settings.seed)
    left = limit / 2 - probed.seconds(sample.lengths, job.budget.least)
    seconds = max(job.budget.seconds, min(left, MORE * job.budget.seconds))
    return sample, replace(job.budget, seconds=seconds)
