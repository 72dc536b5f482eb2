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
"""Columns of a table that goes to a file or a pipe, where nobody's window bounds it."""
WIDE = 120
"""A terminal with fewer columns than this gets fewer in its tables."""


def show(
    columns: Sequence[str], rows: Iterable[Sequence[str]], whole: Iterable[str] = (), width: int = PLAIN_WIDTH
) -> None:
    """Print a table on stdout, at most so wide; the columns in `whole` are never wrapped. NO_COLOR is respected."""
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
    """The verdict on each claim, with its effect and the 95% interval; what the effect is of, if there is room."""
    from compare.page.verdicts import mark as marked

    columns = ["", "claim", "verdict", "effect, 95% interval", "of what"]
    marks = [(verdict.claim, marked(verdict)) for verdict in verdicts]
    rows = [[claim.id, claim.title, mark.word, mark.effect, mark.of] for claim, mark in marks]
    if _console().width < WIDE:
        columns, rows = columns[:4], [row[:4] for row in rows]
    show(columns, rows, whole=columns[2:4])


def narrow_table(records: Records) -> None:
    """The steady times of each cell, static ÷ dynamic, for a run of a few cells: no claim is judged by so few."""
    from compare.page.summary import summarise
    from compare.words import text

    columns = ("cell", "arm", "steady state, static ÷ dynamic", "")
    rows = [
        (
            ratio.cell.title,
            ratio.arm,
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
    """Text as it is: square brackets are not markup, and nothing in it moves the cursor."""
    from rich.text import Text

    return Text(plain(text))
