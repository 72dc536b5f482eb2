"""The commands that write for other tools: results as pyperf reads them, and the schema of a results file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from compare.report.terminal import echo

OUT = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; stdout if not given."
)


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "kind", type=click.Choice(["pyperf"]), default="pyperf", show_default=True)
@click.option("--arm", help="Only this arm, named by its cell alone: two arms of one run can then be compared.")
@OUT
def export(directory: Path, *, kind: str, arm: str | None, out: Path | None) -> None:
    """Write the steady times in DIRECTORY for `python -m pyperf compare_to`."""
    from compare.records import formats, results

    path = directory / results.RESULTS
    if not path.exists():
        raise click.UsageError(f"{directory} holds no {results.RESULTS}; make it with `graphduel run`")
    records = results.read(path, lambda text: echo(text, err=True))
    _write({"pyperf": formats.pyperf}[kind](records, arm), out)


@click.command()
@OUT
def schema(*, out: Path | None) -> None:
    """Write the JSON Schema of a line of results.jsonl."""
    from compare.records import formats

    _write(formats.json_schema(), out)


def _write(value: object, out: Path | None) -> None:
    text = json.dumps(value, allow_nan=False, indent=1) + "\n"
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
