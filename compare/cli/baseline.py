"""A run that later ones are compared with, by its name: `--save-baseline NAME` and `--baseline NAME`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.words.text import echo

if TYPE_CHECKING:
    from compare.records.record import Records

FOLDER = Path("reports", "baselines")
"""Where baselines lie, below the current folder: a project has its own."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def _folder(_ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    if name is not None and not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name; write letters, digits, dots, dashes and underscores", param=param
        )
    return FOLDER / name if name else None


def _known(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    folder = _folder(ctx, param, name)
    if folder and not folder.is_dir():
        names = ", ".join(sorted(path.name for path in FOLDER.iterdir())) if FOLDER.is_dir() else ""
        there = f"there are {names}" if names else "there is none"
        raise click.BadParameter(f"no baseline {name!r} in {FOLDER}; {there}: make it by --save-baseline", param=param)
    return folder


def both(command: Callable[..., Any]) -> Callable[..., Any]:
    """The two options."""
    save = click.option("--save-baseline", metavar="NAME", callback=_folder, help="Keep the results under this name.")
    against = click.option(
        "--baseline", metavar="NAME", callback=_known, help="Show what changed since the results of this name."
    )
    return save(against(command))


def ended(records: Records, save: Path | None, against: Path | None) -> None:
    """What changed since the one baseline, and the other kept. Raises CompareError where it cannot be written."""
    from compare.records import results

    if against:
        from compare.claims.changes import JudgedRun, compared
        from compare.cli.diff import show

        echo(f"\nChanges since the baseline {against.name}:")
        with options.reading(against):
            show(compared(JudgedRun(against.name, options.results_in(against)), JudgedRun("", records)))
    if save:
        results.replace(save / results.RESULTS, records)
        echo(f"\nBaseline: {save}")
