"""Numbers, lists, lines and tables as text, the same on every page, terminal and message.

A number has three significant digits, a unit with a prefix, and an exponent only if it is tiny. `echo` prints plain
text on a terminal, and `show_table` a table, without control characters that a results file or a user's names may have.
"""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from compare.stats import Interval


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
RATIO_UNITS = frozenset({"x", "×", "ratio", "fold"})
_SECOND_UNITS = frozenset({"s", "second", "seconds"})
_BYTE_UNITS = frozenset({"B", "byte", "bytes"})

PLAIN_WIDTH = 200
"""The width of a table in a file or a pipe, in columns."""


def number(value: float) -> str:
    """Return `value` with three significant digits, as 0.412, 41.2 or 41,200; below 0.001 as 1.2e-07."""
    if not math.isfinite(value):
        return "unbounded" if value > 0 else "n/a"
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def seconds(value: float | None) -> str:
    """Return a number of seconds in s, ms, µs or ns; "" for None."""
    return "" if value is None else _scale_unit(value, _TIMES)


def size(value: float | None) -> str:
    """Return a number of bytes in GiB, MiB, KiB or B; "" for None."""
    return "" if value is None else _scale_unit(value, _SIZES)


def byte_unit(value: float) -> tuple[float, str]:
    """Return the largest unit in which a number of bytes is at least 1: the bytes in the unit, and its name."""
    return _unit(value, _SIZES)


def ratio(value: float) -> str:
    """Return a factor as text: 0.41×."""
    return f"{number(value)}×" if math.isfinite(value) else number(value)


def interval(low: float, high: float) -> str:
    """Return an interval as [0.40, 0.42], with a fourth digit if three are equal; `(no interval)` if unbounded."""
    if not math.isfinite(high):
        return "(no interval)"
    ends = (number(low), number(high))
    if ends[0] == ends[1] and low != high:
        ends = (f"{low:.4g}", f"{high:.4g}")
    return f"[{ends[0]}, {ends[1]}]"


def estimate(ratio_of: Interval, *, unknown: bool = True) -> str:
    """Return a ratio with its interval, as 0.41× [0.40, 0.42]; a missing one is mentioned only if `unknown` is true."""
    figure = ratio(ratio_of.estimate)
    return f"{figure} {interval(ratio_of.low, ratio_of.high)}" if unknown or ratio_of.bounded else figure


def quantity(value: float, unit: str) -> str:
    """Return `value` in the unit of a verdict; an unknown unit is written after the number."""
    if unit in RATIO_UNITS:
        return ratio(value)
    if unit == "share":
        return f"{number(100 * value)}%"
    if unit in _SECOND_UNITS:
        return seconds(value)
    if unit in _BYTE_UNITS:
        return size(value)
    return f"{number(value)}{'' if unit in {'', '%'} else ' '}{unit}"


def join_words(words: Sequence[str]) -> str:
    """Join words as `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def begin_sentence(words: str) -> str:
    """Return words with a capital first letter."""
    return f"{words[:1].upper()}{words[1:]}"


def count_noun(number_of: int, noun: str) -> str:
    """Return a number with its noun: 1 job, 2 jobs, 3 processes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number_of:,} {noun if number_of == 1 else plural}"


def _scale_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    if value == 0 or not math.isfinite(value):
        return number(value)
    factor, unit = _unit(value, units)
    return f"{number(value / factor)} {unit}"


def _unit(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """Return the largest unit in which the value, rounded to three digits, is at least 1: 0.9996 s is 1 s."""
    return next((pair for pair in units if float(f"{abs(value) / pair[0]:.3g}") >= 1), units[-1])


def wrap(text: str) -> str:
    """Wrap the lines of a text between words if stderr is a terminal; otherwise return it unchanged."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join(lines)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line on stdout, or on stderr, without control characters."""
    import click

    from graphs.errors import plain  # imported here, since it loads NumPy, which help does not need

    click.echo(plain(text), err=err)


# Tables ---------------------------------------------------------------------------------------------------------------


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], whole: Iterable[str] = (), width: int = PLAIN_WIDTH
) -> None:
    """Print a table on stdout, at most `width` wide; columns in `whole` are never wrapped. NO_COLOR is respected."""
    from rich import box
    from rich.table import Table

    terminal = console()
    frame = box.SIMPLE_HEAD if terminal.is_terminal else None
    table = Table(box=frame, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="ellipsis" if column in whole else "fold")
    for row in rows:
        table.add_row(*map(_literal, row))
    terminal.print(table, width=min(width, terminal.width))


def console() -> Console:
    """Return the terminal of stdout; where stdout is a file or a pipe, it is as wide as a plain table."""
    from rich.console import Console

    terminal = Console(file=sys.stdout, highlight=False)
    return terminal if terminal.is_terminal else Console(file=sys.stdout, highlight=False, width=PLAIN_WIDTH)


def _literal(words: str) -> Any:
    """Return rich text without markup: square brackets stay, and control characters are removed."""
    from rich.text import Text

    from graphs.errors import plain

    return Text(plain(words))
