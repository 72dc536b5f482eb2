"""The table of training steps: `python -m benchmarks.table`, the time of a step in every mode, and the ratios.

For each row: a process per mode, all on one core; with `--threads 2` on the same two, and each mode has two threads. A
result that disagrees with the dynamic engine in float64 is not timed. Then rounds: in each, every mode runs one block,
in random order. A figure is the median over blocks, a ratio the median over rounds, with the 95% interval of a
bootstrap.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
from msgspec import to_builtins

import dynamic
from benchmarks import summary
from benchmarks.modes import MODES
from benchmarks.programs import ROWS
from benchmarks.workers import CLOCKS, PROCESSORS, Settings, Worker, working
from compare.errors import WorkerError
from compare.instruments import parity, rounding
from compare.instruments.rounds import orders
from compare.run.environment import environment
from compare.text import show_table

Blocks = dict[str, list[float]]


TOLERANCE = parity.TOLERANCES["float32"]
MARKS = {
    "this": ("<!-- tables, made by benchmarks.table --page -->", "<!-- end of tables -->"),
    "avx2": (
        "<!-- tables with AVX2 alone, made by benchmarks.table --processor avx2 --page -->",
        "<!-- end of tables with AVX2 alone -->",
    ),
}
"""The lines of a page that tables go between, for each processor."""


def measure_row(
    name: str, modes: Sequence[str], rounds: int, settings: Settings, seed: int = 0
) -> tuple[Blocks, list[str]]:
    """Seconds per step of every block of every mode that runs and is right, and what is wrong with the others.

    Block i of each mode belongs to round i. A mode that is wrong is not timed: its time would mean nothing.
    """
    expected = reference(name)
    with working(name, modes, settings) as workers:
        errors = {worker: _error(worker, name, expected) for worker in workers}
        ready = {worker.mode: worker for worker, error in errors.items() if error is not None and error <= TOLERANCE}
        for worker in ready.values():
            worker.block()  # calibrates, and warms up
        blocks: Blocks = {mode: [] for mode in ready}
        for order in islice(orders(tuple(ready), Random(seed)) if ready else (), rounds):
            for mode in order:
                blocks[mode].append(ready[mode].block())
    wrong = {worker.mode: error for worker, error in errors.items() if error is not None and error > TOLERANCE}
    return blocks, [f"{name}: {mode} is off by {error:.3g}, so it is not timed" for mode, error in wrong.items()]


def reference(name: str) -> Any:
    """The loss and gradients of a row as the dynamic engine finds them in float64."""
    row = ROWS[name]()
    exact = [a.astype(np.float64) if a.dtype == np.float32 else a for a in row.inputs]
    params = {key: value.astype(np.float64) for key, value in row.params.items()}
    return dynamic.value_and_grad(row.loss)(params, *exact)


def _error(worker: Worker, name: str, expected: Any) -> float | None:
    """The scaled error of what a mode gives; None when it cannot run, which is said."""
    try:
        loss, grads = worker.result()
    except WorkerError as error:
        click.echo(f"{name}: {worker.mode} is left out: {error}", err=True)
        return None
    return rounding.tree_error((np.asarray(loss), dict(grads)), expected)


def chosen(patterns: str, names: Sequence[str]) -> list[str]:
    """The names that match one of several comma-separated globs. Raises click.UsageError where one matches none."""
    matched = []
    for pattern in patterns.split(","):
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise click.UsageError(f"{pattern!r} matches none of {', '.join(names)}")
        matched += [name for name in matching if name not in matched]
    return [name for name in names if name in matched]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default="*", show_default=True, metavar="GLOBS", help="Rows to measure, comma-separated.")
@click.option("--modes", default="*", show_default=True, metavar="GLOBS", help="Modes to measure, comma-separated.")
@click.option("--rounds", type=click.IntRange(2), default=15, show_default=True, help="Blocks per mode.")
@click.option("--block", type=float, default=Settings().block, show_default=True, help="Seconds per block.")
@click.option(
    "--clock",
    type=click.Choice(list(CLOCKS)),
    default="wall",
    show_default=True,
    help="Time that passes, or the process's own, which a busy machine disturbs less.",
)
@click.option(
    "--processor",
    type=click.Choice(PROCESSORS),
    default="this",
    show_default=True,
    help="This one, or no instructions beyond AVX2 in any mode, by each library's own switch (TensorFlow has none).",
)
@click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads of every mode, on as many cores."
)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write every block, and the environment.")
@click.option("--page", type=click.Path(path_type=Path, exists=True), help="Put the tables into this Markdown page.")
@click.pass_context
def main(
    ctx: click.Context,
    rows: str,
    modes: str,
    rounds: int,
    block: float,
    clock: str,
    processor: str,
    threads: int,
    file: Path | None,
    page: Path | None,
) -> None:
    """Measure the training steps and print the table. Exits with 4 when a mode was wrong, and so not timed."""
    measured: dict[str, Blocks] = {}
    wrong: list[str] = []
    settings = Settings(clock, block, processor, threads)
    for name in chosen(rows, list(ROWS)):
        click.echo(f"{name} ...", err=True)
        measured[name], complaints = measure_row(name, chosen(modes, list(MODES)), rounds, settings)
        wrong += complaints
        record = _record(measured, rounds, settings)
        if file:  # row by row: what was measured before a Ctrl-C is kept
            file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if page:
            page.write_text(with_tables(page.read_text("utf-8"), record), "utf-8")
    for table in summary.summarised(measured, processor):
        show_table(table.columns, table.rows, whole=table.columns)
    if wrong:
        click.echo("\n".join(wrong), err=True)
        ctx.exit(4)


def _record(measured: Mapping[str, Blocks], rounds: int, settings: Settings) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    settled = {"rounds": rounds, "block_seconds": settings.block, "clock": settings.clock}
    settled |= {"processor": settings.processor, "threads": settings.threads}
    return {"time": now, "settings": settled, "environment": to_builtins(environment()), "seconds_per_step": measured}


def with_tables(page: str, record: Mapping[str, Any]) -> str:
    """The page with the tables of a record between the lines of its processor, in place of what stands there.

    Raises click.UsageError for a page without these lines.
    """
    env, settings = record["environment"], record["settings"]
    processor = settings.get("processor", "this")
    told = (
        f"Measured at {record['time']}, {settings['rounds']} rounds, {settings['clock']} time, on {env['cpu']}"
        f"{', with AVX2 alone,' if processor == 'avx2' else ''}"
        f"{', with ' + str(settings['threads']) + ' threads,' if settings.get('threads', 1) > 1 else ''}"
        f" with {env['logical_cores']} logical cores under a load of {env['load']}; {env['python']}, NumPy"
        f" {env['numpy']}.\n"
    )
    parts = [told, *map(summary.markdown, summary.summarised(record["seconds_per_step"], processor))]
    return summary.placed(page, *MARKS[processor], "\n".join(parts))


if __name__ == "__main__":
    main()
