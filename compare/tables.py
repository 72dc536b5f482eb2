"""Tables on stdout: framed on a terminal, plain aligned columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PLAIN_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where nobody's window bounds it."""


def show(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table on stdout. NO_COLOR is respected."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console = Console(file=sys.stdout, highlight=False, width=PLAIN_WIDTH)
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=frame, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*map(_literal, row))
    console.print(table)


def verdicts(found: Iterable[Mapping[str, Any]]) -> None:
    """The verdict of each claim with its effect and interval."""
    show(
        ("claim", "", "verdict", "effect", "95% interval"),
        [(v["claim"], v["title"], v["verdict"], effect(v), interval(v)) for v in found],
    )


def effect(verdict: Mapping[str, Any]) -> str:
    """`1.31 ratio (seconds, dynamic / static)`; empty where nothing was measured."""
    found = verdict.get("effect")
    return f"{found['value']:.3g} {found['unit']} ({found['name']})" if found else ""


def interval(verdict: Mapping[str, Any]) -> str:
    """`1.28 to 1.34`; empty where there is none."""
    bounds = verdict.get("interval")
    return f"{bounds[0]:.3g} to {bounds[1]:.3g}" if bounds else ""


def _literal(text: str) -> Any:
    """Text as it is: square brackets are not markup."""
    from rich.text import Text

    return Text(text)
