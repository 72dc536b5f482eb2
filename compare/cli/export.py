"""The commands that write for other tools: for pyperf and viewers of profiles, and the schema of a results file."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli import complete, options

KINDS = ("pyperf", "speedscope", "perfetto")
STDOUT = Path("-")
OUT = options.out("Write to this file; by default to stdout.", options.FILE)


@click.command()
@options.DIRECTORY
@click.option("--format", "kind", type=click.Choice(KINDS), default="pyperf", show_default=True)
@click.option(
    "--arm",
    shell_complete=complete.arms,
    help="Export this arm alone, and name it by its cell, so that two arms of one run can be compared.",
)
@OUT
@options.of_results
def export(directory: Path, *, kind: str, arm: str | None, out: Path | None) -> None:
    """Write what was measured in DIRECTORY for another tool.

    `pyperf` has the steady times, for `python -m pyperf compare_to`. `speedscope` and `perfetto` have the step of a
    function of yours line by line, for https://www.speedscope.app and https://ui.perfetto.dev.
    """
    from compare.page import formats

    made = {"pyperf": formats.pyperf, "speedscope": formats.speedscope, "perfetto": formats.perfetto}[kind]
    options.written(out or STDOUT, made(options.results_in(directory), arm))


@click.command()
@OUT
def schema(*, out: Path | None) -> None:
    """Write the JSON Schema of a line of results.jsonl."""
    from compare.page import formats

    options.written(out or STDOUT, formats.json_schema())
