"""The options of `graphduel run` that say where jobs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

KINDS = ("local", "thread", "process", "dask")


@dataclass(frozen=True)
class Where:
    """What was asked for; `check` has been passed."""

    kind: Any
    at_once: int
    scheduler: str | None

    def words(self) -> list[str]:
        """The options again, for the command that goes on with a run."""
        if self == Where("local", 1, None):
            return []
        scheduler = ["--scheduler", self.scheduler] if self.scheduler else []
        return ["--executor", self.kind, *scheduler, *(["--at-once", str(self.at_once)] if self.at_once > 1 else [])]


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, which arrive as `executor`, `at_once` and `scheduler`."""
    for option in (
        click.option("--scheduler", metavar="ADDRESS", help="Of the dask cluster, as tcp://HOST:PORT."),
        click.option(
            "--at-once", type=click.IntRange(1), default=1, show_default=True,
            help="Jobs at a time of thread and process, on cores of their own; they share caches and memory.",
        ),
        click.option(
            "--executor", type=click.Choice(KINDS), default="local", show_default=True,
            help="Where jobs run: here one by one, from threads or processes, or on the hosts of a dask cluster.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def check(kind: str, at_once: int, scheduler: str | None) -> Where:
    """What was asked for. Raises UsageError for options that do not go together."""
    if (kind == "dask") != (scheduler is not None):
        raise click.UsageError("--executor dask and --scheduler ADDRESS go together")
    if at_once > 1 and kind not in ("thread", "process"):
        raise click.UsageError(f"--at-once is for --executor thread and process; {kind} has one job a host")
    return Where(kind, at_once, scheduler)
