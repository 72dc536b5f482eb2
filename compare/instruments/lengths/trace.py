"""A trace of lengths in a CSV file of the user's: one axis that varies, or several, a row for each call."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.errors import CompareError

COLUMN = "length"
LEAST = 2
LONGEST = 1 << 31
_DELIMITERS = ",;\t|"

Row = tuple[int, list[str]]


@dataclass(frozen=True)
class LengthTrace:
    """The sizes of each call in the order of the file, a tuple of them for each of the axes."""

    axes: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sizes of the first axis."""
        return self.columns[0]


def read(path: Path, columns: Sequence[str] = ()) -> LengthTrace:
    """The lengths in columns of a CSV file, each by its name or its number, from 1.

    Without `columns` it is the one called `length`, or the only one there is. The cells are divided by what divides the
    first line: a comma, a semicolon, a tab or a bar. A first line without a number in these columns is a heading. Blank
    lines are left out.

    Raises CompareError naming the file, the line and the remedy for one that cannot be read, for a column that is not
    there or not said, for a cell that is no whole number from 1 on, and for fewer than two rows.
    """
    rows = list(_rows(path))
    head = [cell.strip() for cell in rows[0][1]] if rows else []
    places = _places(path, head, columns)
    headed = bool(head) and all(_number(head[place]) is None for place in places)
    lengths = [[_length(path, number, row, place) for place in places] for number, row in rows[headed:]]
    if len(lengths) < LEAST:
        raise CompareError(f"{path} has {len(lengths)} lengths; give at least {LEAST}, one a line")
    names = tuple(head[place] if headed else f"column {place + 1}" for place in places)
    return LengthTrace(names, tuple(zip(*lengths, strict=True)))


def _rows(path: Path) -> Iterator[Row]:
    """The cells of each line that is not blank, with the number of the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CompareError(f"{path} cannot be read: {error}; give a CSV file with one length a line") from error
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    try:
        yield from ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise CompareError(f"{path}:{reader.line_num}: {error}; give a CSV file with one length a line") from error


def _places(path: Path, head: list[str], columns: Sequence[str]) -> list[int]:
    """The places of the columns in a line, from 0."""
    names = [name.lower() if _number(name) is None else "" for name in head]  # a number names no column
    if columns:
        return [_place(path, head, names, column.strip()) for column in columns]
    if COLUMN in names:
        return [names.index(COLUMN)]
    if len(head) > 1:
        raise CompareError(f"{path}:1: {len(head)} columns ({_shown(head)}); say which by --column, a name or a number")
    return [0]


def _place(path: Path, head: list[str], names: list[str], column: str) -> int:
    if column.lower() in names:
        return names.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= len(head):
        return int(column) - 1
    raise CompareError(f"{path}:1: no column {column!r}; there are {_shown(head)}, or numbers from 1 to {len(head)}")


def _shown(head: list[str]) -> str:
    return ", ".join(head[:8]) + (", ..." if len(head) > 8 else "")


def _length(path: Path, number: int, row: list[str], place: int) -> int:
    text = row[place].strip() if place < len(row) else ""
    length = _number(text)
    if length is None or not 1 <= length <= LONGEST or length != int(length):  # a NaN and an infinity are not between
        what = f"{text!r} is no length" if text else f"no cell in column {place + 1}"
        raise CompareError(f"{path}:{number}: {what}; each row holds a whole number from 1 on")
    return int(length)


def _number(text: str) -> float | None:
    """The number that a cell holds, be it an infinity or NaN; None for other text."""
    try:
        return float(text)
    except ValueError:
        return None
