"""The quantities that a rule of `--fail-if` may ask of a mode: seconds, bytes, compilations, breaks and coverage.

Times have a 95% interval over the processes. Bytes and counts are exact: the same code gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from compare import text
from compare.claims.c5_memory import bytes_held
from compare.claims.changes import JudgedRun
from compare.claims.contests import ratio_of
from compare.claims.evidence import Evidence, Read, cells, first_run, join_evidence, steady
from compare.claims.threads import threads_asked
from compare.records.cells import Compilations, CompiledRow, Memory, Parity, Time
from compare.records.record import OfModes, Records, records_of
from compare.stats import Interval, ratio_interval, unpaired_ratio_interval

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}

Values = Sequence[Sequence[float]]
"""The numbers of a mode for each process."""


@dataclass(frozen=True)
class Quantity:
    """A number that a mode has in the records of one function.

    values   the numbers of a mode for each process, empty if there are none
    written  how one of them is written
    units    the units in which a rule may write it, each with its factor. Without a unit a rule compares the mode with
             another one, unless the quantity is `absolute`: then it has no unit, and is compared as it is
    paired   the ratio of two modes of one run by their paired blocks; None for an exact quantity
    once     whether one process alone measures it in a framework, so that its number stands without an interval
    """

    values: Callable[[Records, str], Values]
    written: Callable[[float], str]
    units: Mapping[str, float] = field(default_factory=dict)
    paired: Callable[[Records, str, str], Interval | None] | None = None
    once: bool = False

    @property
    def absolute(self) -> bool:
        """Whether it is a count or a share, which no other mode scales."""
        return not self.units

    def of(self, records: Records, mode: str) -> Interval | None:
        """Return the quantity of a mode; None where it was not measured.

        An interval without width is exact, or measured once, as first calls from nothing are in a framework.
        """
        values = self.values(records, mode)
        if not values:
            return None
        if self.paired and not (self.once and len(values) == 1):
            return ratio_interval(values, [[1.0] * len(process) for process in values])
        return _exact(values[0][0])

    def ratio(self, records: Records, top: str, bottom: str) -> Interval | None:
        """Return `top / bottom` of two modes of one run; None where one was not measured."""
        if self.paired:
            return self.paired(records, top, bottom)
        return _divide(self.of(records, top), self.of(records, bottom))

    def change(self, after: Records, before: Records, mode: str) -> Interval | None:
        """Return `after / before` of a mode in two runs; None where one has not measured it.

        Times of two machines, or on other numbers of threads, are not compared.
        """
        if not self.paired:
            return _divide(self.of(after, mode), self.of(before, mode))
        sides = [self.values(records, mode) for records in (after, before)]
        if not all(sides) or JudgedRun("", after).machine != JudgedRun("", before).machine:
            return None
        if threads_asked(after) != threads_asked(before):
            return None
        if self.once and max(map(len, sides)) == 1:
            return _divide(*(self.of(records, mode) for records in (after, before)))
        return unpaired_ratio_interval(*sides)


def _exact(value: float) -> Interval:
    return Interval(value, value, value)


def _divide(top: Interval | None, bottom: Interval | None) -> Interval | None:
    """Return the ratio of two exact numbers; None if one is missing, or if only the lower one is 0."""
    if top is None or bottom is None or (not bottom.estimate and top.estimate):
        return None
    return _exact(top.estimate / bottom.estimate if bottom.estimate else 1.0)


def _evidence(records: Records, kind: type[OfModes], read: Read) -> Evidence | None:
    measured = cells(records, kind)
    if not measured:
        return None
    joined = join_evidence(measured)
    return joined.start if read is first_run else joined


def _value_reader(kind: type[OfModes], read: Read) -> Callable[[Records, str], Values]:
    """Make the function that reads the numbers of a mode in each process that measured them."""

    def values(records: Records, mode: str) -> Values:
        cell = _evidence(records, kind, read)
        numbers = [read(row) for row in cell.of(mode)] if cell else []
        return [process for process in numbers if process and min(process) > 0]

    return values


def _ratio_reader(kind: type[OfModes], read: Read) -> Callable[[Records, str, str], Interval | None]:
    """Make the function that compares two modes of one run."""

    def ratio(records: Records, top: str, bottom: str) -> Interval | None:
        cell = _evidence(records, kind, read)
        measured = ratio_of(cell, top, bottom, read) if cell else None
        if measured and cell and read is first_run and len(cell.of(top)) == 1:
            return _exact(measured.estimate)  # in a framework one process alone starts from nothing
        return measured

    return ratio


def _compile_counts(records: Records, mode: str) -> Values:
    """Return the compilations of a mode from nothing: the most of any process."""
    cell = _evidence(records, Time, first_run)
    counts = [row.compiles for row in cell.of(mode)] if cell else []
    return [(float(max(counts)),)] if counts else []


def _report_reader(read: Callable[[CompiledRow], float | None], whole: float) -> Callable[[Records, str], Values]:
    """Make the function that reads the engine's report on a mode's compilations.

    Our engines make no report, since they capture a step as a whole or refuse it: the number is then `whole`.
    """

    def values(records: Records, mode: str) -> Values:
        reports = records_of(records, Compilations)
        rows = [record.modes[mode] for record in reports if mode in record.modes]
        numbers = [number for row in rows if (number := read(row)) is not None]
        gates = [record.modes[mode] for record in records_of(records, Parity) if mode in record.modes]
        if not reports and any(row.status == "ok" for row in gates):
            numbers = [whole]
        return [(numbers[0],)] if numbers else []

    return values


QUANTITIES: Mapping[str, Quantity] = {
    "call": Quantity(_value_reader(Time, steady), text.seconds, SECONDS, _ratio_reader(Time, steady)),
    "first_run": Quantity(
        _value_reader(Time, first_run), text.seconds, SECONDS, _ratio_reader(Time, first_run), once=True
    ),
    "memory": Quantity(_value_reader(Memory, bytes_held), text.size, BYTES),
    "compiles": Quantity(_compile_counts, text.number),
    "breaks": Quantity(_report_reader(lambda row: float(sum(row.breaks.values())), 0.0), text.number),
    "coverage": Quantity(_report_reader(lambda row: row.share, 1.0), text.number),
}
"""The quantities by their names in rules. `call` is a warm call, and `first_run` one run over the inputs from nothing.
`coverage` is the share of the forward pass's ops that ran compiled, from 0 to 1."""
