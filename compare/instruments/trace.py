"""A trace of lengths from a CSV file, and a sample of it that keeps its spread and is small enough to be timed.

To size the sample, one length after another is compiled and run once, the shortest first.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import exp, log
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np

from compare.errors import CompareError, NothingMeasuredError
from compare.instruments.lengths import STRATEGIES
from compare.instruments.rounds import time_call
from compare.records.cells import LengthsProbe
from compare.records.job import Job
from compare.records.record import Failure, Record
from compare.workloads.lengths import stream

COLUMN = "length"
LEAST = 2
LONGEST = 1 << 31
_DELIMITERS = ",;\t|"

Row = tuple[int, list[str]]


@dataclass(frozen=True)
class LengthTrace:
    """The sizes of each call in file order, as one tuple for each axis."""

    axes: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return the sizes of the first axis."""
        return self.columns[0]


def read(path: Path, columns: Sequence[str] = ()) -> LengthTrace:
    """Read the lengths in columns of a CSV file; a column is named, or numbered from 1.

    Without `columns` the column `length` is read, or the only one. The delimiter is the one that is most frequent in
    the first line: comma, semicolon, tab or bar. A first line without a number in these columns is a heading. Blank
    lines are skipped.

    Raises CompareError, with file, line and remedy, for a file that cannot be read, for a column that is missing or
    must be chosen, for a cell that is no whole number from 1 on, and for fewer than two rows.
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
    """Yield the line number and the cells of each line that is not blank."""
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
    """Return the indices of the columns in a line, from 0."""
    names = [name.lower() if _number(name) is None else "" for name in head]  # a number is no name of a column
    if columns:
        return [_place(path, head, names, column.strip()) for column in columns]
    if COLUMN in names:
        return [names.index(COLUMN)]
    if len(head) > 1:
        raise CompareError(
            f"{path}:1: {len(head)} columns ({_shorten_list(head)}); say which by --column, a name or a number"
        )
    return [0]


def _place(path: Path, head: list[str], names: list[str], column: str) -> int:
    if column.lower() in names:
        return names.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= len(head):
        return int(column) - 1
    raise CompareError(
        f"{path}:1: no column {column!r}; there are {_shorten_list(head)}, or numbers from 1 to {len(head)}"
    )


def _shorten_list(head: list[str]) -> str:
    return ", ".join(head[:8]) + (", ..." if len(head) > 8 else "")


def _length(path: Path, number: int, row: list[str], place: int) -> int:
    text = row[place].strip() if place < len(row) else ""
    length = _number(text)
    if length is None or not 1 <= length <= LONGEST or length != int(length):  # NaN and infinity fail the comparison
        what = f"{text!r} is no length" if text else f"no cell in column {place + 1}"
        raise CompareError(f"{path}:{number}: {what}; each row holds a whole number from 1 on")
    return int(length)


def _number(text: str) -> float | None:
    """Return the number in a cell, which may be infinite or NaN; None for other text."""
    try:
        return float(text)
    except ValueError:
        return None


LEAST_SIZES = 6
"""The least number of different lengths in a sample, where the trace has as many."""


@dataclass(frozen=True)
class TraceSample:
    """The sampled lengths in timing order, of a trace of `total`; lengths above `cap` were left out."""

    lengths: tuple[int, ...]
    total: int
    cap: int | None
    left_out: int

    @property
    def sizes(self) -> int:
        """Return the number of different lengths."""
        return len(set(self.lengths))

    @property
    def hits(self) -> float:
        """Return the share of calls whose length came before."""
        return 1 - self.sizes / len(self.lengths)


def draw_sample(lengths: Sequence[int], count: int, sizes: int, seed: int, cap: int | None = None) -> TraceSample:
    """Draw at most `count` lengths from a trace, of at most `sizes` different values.

    Lengths recur as often as in the trace, as far as LEAST_SIZES values allow. The trace is cut into equal parts by its
    quantiles, and each part gives the length nearest to its mean, equally often: the sample has about the mean of the
    trace. With `cap` no length is above it. Equal arguments give equal samples.
    """
    kept = sorted(length for length in lengths if cap is None or length <= cap)
    new = len(set(kept)) / len(kept)
    values = max(LEAST_SIZES, min(sizes, round(count * new)))
    turns = max(1, min(count, round(values / new)) // values)
    drawn = quantiles(kept, turns * values, values)
    Random(seed).shuffle(drawn)
    return TraceSample(tuple(drawn), len(lengths), cap, len(lengths) - len(kept))


def quantiles(ranked: Sequence[int], count: int, values: int) -> list[int]:
    """Return `count` lengths from ranked ones: of equal parts in turn, the length nearest to the part's mean."""
    ends = [round(part * len(ranked) / values) for part in range(values + 1)]
    parts = [ranked[start:end] for start, end in pairwise(ends) if start < end]
    middles = [_nearest(part, fmean(part)) for part in parts]
    return [middles[i % len(middles)] for i in range(count)]


def _nearest(lengths: Sequence[int], wanted: float) -> int:
    return min(lengths, key=lambda length: abs(length - wanted))


KEPT = (1, 0.99, 0.95, 0.9, 0.75, 0.5)
"""The shares of a trace, its shortest lengths, of which the largest that fits is taken."""
REPEATS = 4
"""The number of sampled lengths per different one; more where lengths of the trace recur more often."""
STEPS = 3
EPOCHS = 10
"""The epochs of a strategy beside its rounds: one from nothing, steady calls, calibration, and the reference."""


@dataclass(frozen=True)
class Paces:
    """By rising length: the seconds to compile a graph of that length, and of one step of the slower engine."""

    lengths: tuple[int, ...]
    compile: tuple[float, ...]
    step: tuple[float, ...]

    def compiling(self, length: int) -> float:
        """Return the seconds to compile for a length."""
        return _interpolate_seconds(self.lengths, self.compile, length)

    def stepping(self, length: int) -> float:
        """Return the seconds of a step for a length."""
        return _interpolate_seconds(self.lengths, self.step, length)

    def seconds(self, lengths: Sequence[int], rounds: int) -> float:
        """Return about how many seconds all strategies take for these lengths and rounds, compiling and stepping."""
        layouts = [STRATEGIES[name].layout(lengths, 1) for name in STRATEGIES]
        compiled = sum(
            self.compiling(int(str(size)) or min(lengths)) for layout in layouts for size in set(layout.shapes)
        )
        steps = sum(self.stepping(size) for layout in layouts for size in layout.sizes)
        return compiled + steps * (EPOCHS + rounds)


def measure(job: Job) -> LengthsProbe:
    """Return the record of the worker: the paces of the job's lengths, the shortest first, while time lasts."""
    from compare.instruments.lengths import SIZES

    started, size = time.perf_counter(), SIZES[str(job.size)]
    points: list[tuple[int, float, float]] = []
    for length in sorted(set(job.examples)):
        spent = time.perf_counter() - started
        if points and spent + sum(points[-1][1:]) * (length / points[-1][0]) ** 2 > job.budget.seconds:
            break
        inputs = stream(str(job.workload), (length, length), size.width, 1, job.seed)
        modes = [STRATEGIES[name].build(inputs) for name in ("dynamic", "static, exact")]
        first = [time_call(partial(mode, 0))[0] for mode in modes]
        steps = [min(time_call(partial(mode, 1))[0] for _ in range(STEPS)) for mode in modes]
        pace = max(0.0, first[1] - steps[1]), max(steps)
        points.append((length, *pace))
    return LengthsProbe(points)


def paces(record: Record) -> Paces:
    """Return the paces in a probe's record. Raises NothingMeasuredError where it measured no length."""
    if not isinstance(record, LengthsProbe) or not record.points:
        error = record.error if isinstance(record, Failure) else "no time"
        raise NothingMeasuredError(f"no length could be probed: {error}; see `graphduel doctor`")
    return Paces(*zip(*record.points, strict=True))


def fit_sample(lengths: Sequence[int], paces: Paces, rounds: int, limit: float, count: int, seed: int) -> TraceSample:
    """Return the largest sample of a trace for which all strategies take at most `limit` seconds.

    First the number of lengths shrinks, to a quarter of `count` at last; then the longest lengths are left out. If
    nothing fits, the smallest of these samples is returned.
    """
    ranked, fitting = sorted(lengths), None
    for share in KEPT:
        cap = None if share == 1 else ranked[int(share * (len(ranked) - 1))]
        for part in (1.0, 0.5, 0.25):
            fitting = draw_sample(
                lengths, round(part * count), max(LEAST_SIZES, round(part * count / REPEATS)), seed, cap
            )
            if paces.seconds(fitting.lengths, rounds) <= limit:
                return fitting
    assert fitting is not None  # noqa: S101  (there is a share)
    return fitting


def _interpolate_seconds(lengths: Sequence[int], seconds: Sequence[float], length: int) -> float:
    """Return the seconds of a length: a power law between measured ones, at least quadratic beyond the longest."""
    if length >= lengths[-1]:
        return seconds[-1] * max(1.0, (length / lengths[-1]) ** 2)
    return exp(np.interp(log(length), np.log(lengths), np.log(np.maximum(seconds, 1e-9))))
