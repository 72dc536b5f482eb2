"""Real models on a GPU: `python -m benchmarks.gpu FOLDER`, where a machine with CUDA and PyTorch is lent for minutes.

It is the run of `graphduel run --suite models --device cuda` with two compiled modes: its jobs, runner, records,
verdicts and page. What differs is that it ends in time. Models come in the order of what they teach, and when the
seconds are over, the jobs under way are dropped, the claims are judged by what there is, and the page is written. The
same command again measures the others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import click

from compare.claims.conditions import summary
from compare.errors import CompareError
from compare.plans import jobs
from compare.plans.settings import REAL, Settings
from compare.records.cells import Time
from compare.records.journal import Journal, open_journal
from compare.records.record import MODELS as SUITE
from compare.records.record import Cell, Record, records_of
from compare.report.verdicts import verdict_table
from compare.run.executors import Pool, Serial
from compare.run.processes import run_job
from compare.run.progress import Reporter, reporter
from compare.run.runner import Runner
from compare.suite import frameworks
from compare.suite.stages import finish
from compare.text import count_noun, echo
from compare.workloads.models import FRAMEWORK, MODELS
from graphs.files import write_file

MODES = ("compile", "reduce-overhead")
"""The modes beside eager, in the words of `--modes`."""
LAST = 45.0
"""The seconds that are kept for the verdicts and the page."""
ENVIRONMENT = "environment.txt"
COLLECT = [sys.executable, "-m", "torch.utils.collect_env"]
"""PyTorch's own report of its build, CUDA, the driver, the GPUs and the processor."""
EXACT = {"NVIDIA_TF32_OVERRIDE": "0"}
"""Keeps products and convolutions in float32, as the gate compares with float64: TF32 has 10 bits of mantissa."""


class OutOfTime(KeyboardInterrupt):
    """The seconds for measuring are over."""


def taught(cells: Sequence[Cell]) -> list[Cell]:
    """The cells in the order of what they teach: the next one differs most from those before it.

    It differs in what varies from call to call and in its layers. Models of packages come last.
    """
    seen: Counter[tuple[str, str]] = Counter()
    ordered, left = [], list(cells)

    def known(cell: Cell) -> tuple[bool, int]:
        model = MODELS[cell.workload]
        return bool(model.package), seen["varies", model.varies] + seen["layers", model.layers]

    while left:
        ordered.append(left.pop(left.index(min(left, key=known))))
        model = MODELS[ordered[-1].workload]
        seen.update([("varies", model.varies), ("layers", model.layers)])
    return ordered


def measure(folder: Path, settings: Settings, hears: Reporter, seconds: float) -> tuple[list[Record], int]:
    """Measure until all is done or the seconds are over; return the records, and how many models are left.

    Raises CompareError where the device is missing, or the folder holds another run.
    """
    with open_journal(folder, settings.to_dict(), resume=True, notice=hears.notice) as journal:
        cells = left(folder, journal, taught(jobs.cells(settings)))
        runner = Runner(journal, hears, Pool(Serial(), run_job), settings.limits.frameworks.timeout)
        with suppress(OutOfTime), at_most(seconds), hears:
            runner.header(settings.to_dict())
            frameworks.measure(runner, settings, cells)
            return journal.records, 0
        times, last = records_of(journal.records, Time), settings.processes - 1
        return journal.records, len(set(cells) - {time.cell for time in times if time.process == last})


def left(folder: Path, journal: Journal, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that can be gone on with; those come last of which a job has failed.

    Where compiled code is gone, a model that was begun is left as it is: its next process should find that code.
    """
    failed = {(failure.job.workload, failure.job.size) for failure in journal.lost}
    begun = {record.cell for record in records_of(journal.records, Time)}
    kept = [cell for cell in cells if cell not in begun or (folder / frameworks.FOLDER).is_dir()]
    return sorted(kept, key=lambda cell: (cell.workload, cell.size) in failed)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A context in which OutOfTime is raised when the seconds are over. It is for the main thread."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--seconds", type=click.FloatRange(LAST), default=480.0, show_default=True, help="End after these.")
def main(folder: Path, seconds: float) -> None:
    """Measure real models in PyTorch on a GPU into FOLDER, or go on there, and end in time."""
    began = time.monotonic()
    for name, value in EXACT.items():
        os.environ.setdefault(name, value)
    if not (folder / ENVIRONMENT).exists():
        write_file(folder / ENVIRONMENT, subprocess.run(COLLECT, capture_output=True, check=False).stdout)
    settings = Settings(SUITE, frameworks=[FRAMEWORK], device="cuda", modes=MODES, processes=REAL.frameworks.processes)
    try:
        records, more = measure(folder, settings, reporter(), seconds - LAST - (time.monotonic() - began))
        verdict_table(finish(folder, records))
    except CompareError as error:
        raise click.ClickException(str(error)) from error
    rest = f"{count_noun(more, 'model')} left: the same command goes on" if more else "all models are measured"
    echo(f"\nConditions: {summary(records)}; {rest}.\nReport: {folder / 'report.html'}")


if __name__ == "__main__":
    main()
