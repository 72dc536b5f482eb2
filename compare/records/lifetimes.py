"""Lifetimes of buffers as CSV: `id,lower,upper,size`, and the same with offsets."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compare.errors import InputsError
from compare.records.files import write_atomic

COLUMNS = ("id", "lower", "upper", "size")
LARGEST = 2**62
"""Offsets are 64-bit numbers, so all sizes together stay below this, and so does every step."""


class BufferRow(NamedTuple):
    """A buffer: what it is called, the half-open lifetime [lower, upper) and its bytes."""

    id: str
    lower: int
    upper: int
    size: int

    @property
    def buffer(self) -> tuple[int, int, int]:
        """As `static.memory.plan` takes it."""
        return self.lower, self.upper, self.size


def read(lines: Iterable[str], name: str) -> list[BufferRow]:
    """The buffers of a CSV file. Columns beside the four are left alone, and so are empty lines.

    Raises InputsError naming the file, the line and what is wrong there.
    """
    reader = csv.DictReader(lines, skipinitialspace=True)
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise InputsError(f"{name}:1: no column {', '.join(missing)}; the first line is {','.join(COLUMNS)}")
        return list(_checked(reader, name))
    except csv.Error as error:
        raise InputsError(f"{name}:{reader.line_num + 1}: {error}") from None


def write(rows: Sequence[BufferRow], offsets: Sequence[int], path: Path | None) -> None:
    """The rows with their offsets, to a file that is written whole or not at all, or to stdout."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*COLUMNS, "offset"))
    table.writerows((*row, offset) for row, offset in zip(rows, offsets, strict=True))
    if path is None:
        sys.stdout.write(text.getvalue())
        return
    try:
        write_atomic(path, text.getvalue().encode())
    except OSError as error:
        raise InputsError(f"cannot write to {path}: {error.strerror}; choose another --out") from error


def _checked(reader: csv.DictReader[str], name: str) -> Iterator[BufferRow]:
    total, seen = 0, dict[str, int]()
    for fields in reader:
        place = f"{name}:{reader.line_num}"
        row = _row(fields, place)
        if row.id in seen:
            raise InputsError(f"{place}: id {row.id!r} is that of line {seen[row.id]} too")
        seen[row.id] = reader.line_num
        total += row.size
        if total >= LARGEST:
            raise InputsError(f"{place}: the sizes add up to {total}, more than 64-bit offsets can hold")
        yield row


def _row(fields: Mapping[str, str | None], place: str) -> BufferRow:
    lower, upper, size = (_integer(fields[column], column, place) for column in COLUMNS[1:])
    if size < 0:
        raise InputsError(f"{place}: size is {size}; a size is 0 or more")
    if lower > upper:
        raise InputsError(f"{place}: lower is {lower} and upper is {upper}; a buffer lives in [lower, upper)")
    return BufferRow(str(fields["id"]), lower, upper, size)


def _integer(text: str | None, column: str, place: str) -> int:
    if text is None:
        raise InputsError(f"{place}: {column} is missing")
    try:
        number = int(text)
    except ValueError:
        raise InputsError(f"{place}: {column} is {text!r}, which is no whole number") from None
    if abs(number) >= LARGEST:
        raise InputsError(f"{place}: {column} is {number}, which does not fit into 64 bits")
    return number
