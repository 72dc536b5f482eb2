"""The commands on finished runs: `diff` and `trend` compare several, `export` writes one for another tool.

The options `--save-baseline NAME` and `--baseline NAME` keep a run by a name, and compare a later run with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.errors import CompareError
from compare.text import echo

if TYPE_CHECKING:
    from compare.claims.changes import CellChange, Comparison, JudgedRun
    from compare.gate.rules import Judgement
    from compare.records.record import Cell, Records


def _several(_ctx: click.Context, _param: click.Parameter, directories: tuple[Path, ...]) -> tuple[Path, ...]:
    if len(directories) < 2:
        raise click.UsageError("give two runs or more")
    return directories


DIRECTORIES = click.argument(
    "directories", nargs=-1, required=True, callback=_several,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip


@click.command()
@DIRECTORIES
@click.option(
    "--out", type=options.FILE, help="Write all tables and the conditions of each run to this file, .html or Markdown."
)
@click.option("--all", "whole", is_flag=True, help="Show what did not change too.")
@click.option("--unlike-machines", is_flag=True, help="Compare the times of two machines too.")
@options.FAIL_IF
@options.JSON_ALONE
@click.pass_context
@options.of_results
def diff(
    ctx: click.Context,
    *,
    directories: tuple[Path, ...],
    out: Path | None,
    whole: bool,
    unlike_machines: bool,
    fail_if: Sequence[str],
    path: Path | None,
) -> None:
    """Show the verdicts on the runs in DIRECTORIES side by side.

    All runs are judged by the same rules. Of two runs also show what changed from the first to the second: time and
    bytes of each cell, beyond 5% with 95% confidence. A rule of --fail-if is about the second run, in each cell; in it
    `baseline` is the first: 'static / baseline > 1.1'. The exit code is 6 if a rule holds, 5 if its modes were not
    measured, and 1 if two runs settle a claim differently.
    """
    from compare.claims import changes
    from compare.report import runs as pages

    runs = _runs(directories)
    judged = _judge(fail_if, runs)
    compared = changes.compare_runs(*runs, unlike_machines=unlike_machines) if len(runs) == 2 else None
    if str(path) != "-":
        _print(runs, compared, whole=whole)
    changed = compared.to_dict() if compared else {}
    options.write_json(path, {"schema": 1, "runs": [run.to_dict() for run in runs], **changed})
    if out:
        options.write_page(out, pages.beside(runs, compared))
    for cell, judgement in judged:
        echo(f"{cell}: {judgement}", err=str(path) == "-")
    ctx.exit(_exit_code(judged) or int(bool(changes.differing(runs))))


def _judge(rules: Sequence[str], runs: Sequence[JudgedRun]) -> list[tuple[Cell, Judgement]]:
    """Judge rules on the second of two runs. Raises UsageError for rules on more runs."""
    if not rules:
        return []
    from compare.gate.rules import judge_change

    if len(runs) != 2:
        raise click.UsageError("--fail-if judges the second of two runs; give two")
    return judge_change(rules, *(run.records for run in runs))


def _exit_code(judged: Sequence[tuple[Cell, Judgement]]) -> int:
    if not judged:
        return 0
    from compare.gate.rules import exit_code

    return exit_code(0, [judgement for _, judgement in judged])


def _runs(directories: Sequence[Path]) -> list[JudgedRun]:
    from compare.claims.changes import JudgedRun

    return [JudgedRun(str(path), options.results_in(path)) for path in directories]


def _print(runs: Sequence[JudgedRun], compared: Comparison | None, *, whole: bool) -> None:
    from compare.claims import changes
    from compare.report import runs as pages
    from compare.text import show_table

    if changes.is_settled(runs):
        table = pages.verdict_table(runs)
        show_table(table.headers, table.rows)
        echo(f"\n{changes.verdict_sentence(runs)}\n")
    if compared:
        show(compared, whole=whole)
        echo()
    for run in runs:
        options.say(f"{run.name}: {run.measured}")


def show(compared: Comparison, *, whole: bool = False) -> None:
    """Print the changes from one run to another: all of them, or those beyond 5%."""
    from compare.claims import changes

    for sentence in compared.sentences:
        options.say(sentence)
    _table(compared.changes if whole else changes.significant(compared.changes))


def _table(shown: Sequence[CellChange]) -> None:
    from compare.report import runs as pages
    from compare.text import show_table

    if shown:
        show_table(pages.CHANGED, pages.change_table(shown).rows, whole=pages.CHANGED[-2:])


@click.command()
@DIRECTORIES
@click.option(
    "--out", type=options.FILE, default=Path("trend.html"), show_default=True,
    help="Write the page to this file, .html or .md.",
)  # fmt: skip
@options.of_results
def trend(*, directories: tuple[Path, ...], out: Path) -> None:
    """Draw each measure of the runs in DIRECTORIES over time.

    The command also shows what the last run changed. Runs are ordered by the time at which they began. Times are
    compared with earlier ones of the same machine only.
    """
    from compare.claims import changes
    from compare.report import runs as pages

    if out.suffix not in (".html", ".md"):
        raise click.UsageError(f"--out {out} is neither .html nor .md")
    runs = sorted(_runs(directories), key=lambda run: run.began)
    rows = changes.over_time(runs)
    if not rows:
        raise CompareError("no two of these runs measured the same on one machine; graphduel diff shows their verdicts")
    last = pages.last_changes(runs, rows)
    for sentence in changes.tallies(last):
        options.say(sentence)
    shown = changes.significant(last)
    if shown:
        echo(f"\nChanged by more than 5% since the run before {runs[-1].name}:")
        _table(shown)
    options.write_page(out, pages.over_time(runs, rows))
    echo(f"\nPage: {out}")


FOLDER = Path("reports", "baselines")
"""The folder of baselines, below the current folder, so that each project has its own."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def _folder(_ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    if name is not None and not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name; write letters, digits, dots, dashes and underscores", param=param
        )
    return FOLDER / name if name else None


def _baseline_folder(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    folder = _folder(ctx, param, name)
    if folder and not folder.is_dir():
        names = ", ".join(sorted(path.name for path in FOLDER.iterdir())) if FOLDER.is_dir() else ""
        there = f"there are {names}" if names else "there is none"
        raise click.BadParameter(f"no baseline {name!r} in {FOLDER}; {there}: make it by --save-baseline", param=param)
    return folder


def baselines(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options --save-baseline and --baseline."""
    save = click.option("--save-baseline", metavar="NAME", callback=_folder, help="Keep the results under this name.")
    against = click.option(
        "--baseline",
        metavar="NAME",
        callback=_baseline_folder,
        help="Show what changed since the results of this name.",
    )
    return save(against(command))


def changed_since(records: Records, save: Path | None, against: Path | None) -> None:
    """Print changes since the baseline `against`, and save the records as the baseline `save`. Raises CompareError."""
    from compare.records import results

    if against:
        from compare.claims.changes import JudgedRun, compare_runs

        echo(f"\nChanges since the baseline {against.name}:")
        with options.reading(against):
            show(compare_runs(JudgedRun(against.name, options.results_in(against)), JudgedRun("", records)))
    if save:
        results.replace(save / results.RESULTS, records)
        echo(f"\nBaseline: {save}")


FORMATS = ("pyperf", "pytest-benchmark", "asv", "speedscope", "perfetto")
STDOUT = Path("-")
OUT = options.out("Write to this file; by default to stdout.", options.FILE)


@click.command()
@options.DIRECTORY
@click.option("--format", "kind", type=click.Choice(FORMATS), default="pyperf", show_default=True)
@click.option(
    "mode",
    "--mode",
    "--arm",  # the name of an earlier version
    shell_complete=options.complete_run_modes,
    help="Export this mode alone, and name it by its cell, so that two modes of one run can be compared.",
)
@OUT
@options.of_results
def export(directory: Path, *, kind: str, mode: str | None, out: Path | None) -> None:
    """Write what was measured in DIRECTORY for another tool.

    `pyperf` has the steady times, for `python -m pyperf compare_to`, and `pytest-benchmark` and `asv` have them for
    those. `speedscope` and `perfetto` have the step of a function of yours line by line, for
    https://www.speedscope.app and https://ui.perfetto.dev.
    """
    from compare.report import formats

    write = getattr(formats, kind.replace("-", "_"))
    options.write_json(out or STDOUT, write(options.results_in(directory), mode))


@click.command()
@OUT
def schema(*, out: Path | None) -> None:
    """Write the JSON Schema of a line of results.jsonl."""
    from compare.report import formats

    options.write_json(out or STDOUT, formats.json_schema())
