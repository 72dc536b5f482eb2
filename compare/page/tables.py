"""Tables on stdout: framed on a terminal, plain aligned columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphs.plain import plain

if TYPE_CHECKING:
    from rich.console import Console

    from compare.claims.base import Verdict
    from compare.records.record import Records

PLAIN_WIDTH = 200
"""The width of a table in a file or a pipe, in columns."""
WIDE = 120
"""A terminal narrower than this gets tables with fewer columns."""


def show(
    columns: Sequence[str], rows: Iterable[Sequence[str]], whole: Iterable[str] = (), width: int = PLAIN_WIDTH
) -> None:
    """Print a table on stdout, at most `width` wide; columns in `whole` are never wrapped. NO_COLOR is respected."""
    from rich import box
    from rich.table import Table

    console = _console()
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=frame, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="ellipsis" if column in whole else "fold")
    for row in rows:
        table.add_row(*map(_literal, row))
    console.print(table, width=min(width, console.width))


def verdict_table(verdicts: Iterable[Verdict]) -> None:
    """Print the verdict on each claim with effect and 95% interval; the name of the effect only if there is room."""
    from compare.page.verdicts import mark as marked

    columns = ["", "claim", "verdict", "effect, 95% interval", "of what"]
    marks = [(verdict.claim, marked(verdict)) for verdict in verdicts]
    rows = [[claim.id, claim.title, mark.word, mark.effect, mark.of] for claim, mark in marks]
    if _console().width < WIDE:
        columns, rows = columns[:4], [row[:4] for row in rows]
    show(columns, rows, whole=columns[2:4])


def narrow_table(records: Records) -> None:
    """Print static ÷ dynamic in steady state for each cell, for a run with too few cells to judge claims."""
    from compare.page.summary import summarise
    from compare.words import text

    columns = ("cell", "mode", "steady state, static ÷ dynamic", "")
    rows = [
        (
            ratio.cell.title,
            ratio.mode,
            text.estimate(ratio.interval),
            ratio.words,
        )
        for ratio in summarise(records).ratios
    ]
    if rows:
        show(columns, rows, whole=columns)


def _console() -> Console:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    return console if console.is_terminal else Console(file=sys.stdout, highlight=False, width=PLAIN_WIDTH)


def _literal(text: str) -> Any:
    """Return rich text without markup: square brackets stay, and control characters are removed."""
    from rich.text import Text

    return Text(plain(text))
