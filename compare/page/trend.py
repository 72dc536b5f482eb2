"""Many runs over time as a page: for each measure of each cell a row, and in it a dot for each run.

Every value is divided by that of the first run on the same machine, since two machines differ by more than most changes
of code do. The last run is compared with the one before it on its machine by the rules of `graphduel diff`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.claims.evidence import cells
from compare.page import beside, changes, sparkline, terms
from compare.page.blocks import Inline, Page, PicturedTable, Section, Table, section
from compare.page.changes import CellChange, Measure, Values
from compare.records.record import Cell, Environment, Records, Run, of
from compare.words import text

HEADERS = ("cell", "arm", "first", "last", "last ÷ the run before", "change", "over the runs, first = 1×")
_ALIGN = "llrrrll"

ByCell = Mapping[tuple[Cell, str], Values]
"""What the processes of a run found of one measure, by cell and arm."""


@dataclass(frozen=True)
class TrendRun:
    """A run: what it is called, its records, when it was made, with which commit and on which machine."""

    name: str
    records: Records
    at: str
    environment: Environment

    @classmethod
    def of(cls, name: str, records: Records) -> TrendRun:
        """The run of these records; without a record of its start its time is empty."""
        start = next(iter(of(records, Run)), None)
        return cls(name, records, start.at if start else "", (start and start.environment) or Environment())

    @property
    def machine(self) -> tuple[object, ...]:
        """What tells it from another machine."""
        return tuple(getattr(self.environment, name) for name in changes.MACHINE)


@dataclass(frozen=True)
class Series:
    """One measure of one arm in a cell: a ratio to the machine's first run for each run that has it, and what changed.

    `change` is None where no earlier run on the machine of the last one has it, or the last one has it not.
    """

    cell: Cell
    arm: str
    measure: Measure
    values: tuple[float | None, ...]
    points: tuple[sparkline.RunPoint | None, ...]
    change: CellChange | None


def ordered(runs: Mapping[str, Records]) -> list[TrendRun]:
    """The runs by the time at which they began."""
    return sorted((TrendRun.of(name, records) for name, records in runs.items()), key=lambda run: run.at)


def series(runs: Sequence[TrendRun]) -> list[Series]:
    """All that two runs or more on one machine have, measure by measure."""
    return [row for measure in changes.MEASURES for row in _of_measure(runs, measure)]


def page(runs: Sequence[TrendRun], rows: Sequence[Series]) -> Page:
    """The runs, their verdicts, and a section for each measure: what changed in the last run first."""
    title = f"{text.counted(len(runs), 'run')} over time"
    span = f"From {runs[0].at or 'an unknown time'} to {runs[-1].at or 'an unknown time'}."
    measured = (_measure(measure, [row for row in rows if row.measure is measure]) for measure in changes.MEASURES)
    held = (_last(rows), section("The runs", _table(runs)), _verdicts(runs), *measured)
    kept = [part for part in held if part]
    return Page(title, span, tuple(part for part in (*kept, terms.section(kept)) if part))


def last_changes(rows: Sequence[Series]) -> list[CellChange]:
    """What the last run is compared with, in every series that has it."""
    return [row.change for row in rows if row.change]


def _of_measure(runs: Sequence[TrendRun], measure: Measure) -> Iterator[Series]:
    by_run = [_by_cell(run, measure) for run in runs]
    for cell, arm in dict.fromkeys(key for values in by_run for key in values):
        have = [values.get((cell, arm)) for values in by_run]
        first = _firsts(runs, have)
        points = tuple(
            sparkline.RunPoint(run.name, changes.ratio_of(values, base, measure)) if values and base else None
            for run, values, base in zip(runs, have, first, strict=True)
        )
        means = tuple(changes.mean_of(values) if values else None for values in have)
        machines = Counter(run.machine for run, values in zip(runs, have, strict=True) if values)
        if max(machines.values()) > 1:
            yield Series(cell, arm, measure, means, points, _change(runs, have, cell, arm, measure))


def _by_cell(run: TrendRun, measure: Measure) -> ByCell:
    measured = ((cell, arm) for cell in cells(run.records, measure.kind) for arm in cell.arms)
    return {(cell.cell, arm): values for cell, arm in measured if (values := measure.values(cell, arm))}


def _firsts(runs: Sequence[TrendRun], have: Sequence[Values | None]) -> list[Values | None]:
    """For each run the values of the first run on its machine that has any."""
    first: dict[tuple[object, ...], Values] = {}
    for run, values in zip(runs, have, strict=True):
        if values:
            first.setdefault(run.machine, values)
    return [first.get(run.machine) for run in runs]


def _change(
    runs: Sequence[TrendRun],
    have: Sequence[Values | None],
    cell: Cell,
    arm: str,
    measure: Measure,
) -> CellChange | None:
    """The last run against the one before it on its machine."""
    here = [values for run, values in zip(runs, have, strict=True) if values and run.machine == runs[-1].machine]
    if not have[-1] or len(here) < 2:
        return None
    return changes.change(cell, arm, measure, here[-2], here[-1])


def _last(rows: Sequence[Series]) -> Section | None:
    """What the last run changed."""
    last = last_changes(rows)
    shown = changes.significant(last)
    number = f"{len(shown):,}" if shown else "none"
    said = f"The last run changed {number} of {text.counted(len(rows), 'value')} by more than 5%, with 95% confidence."
    return section("What the last run changed", said, *changes.tallies(last), changes.table(shown) if shown else None)


def _table(runs: Sequence[TrendRun]) -> Table | None:
    return Table.of(
        "lllll",
        (
            {
                "run": run.name,
                "began": run.at or "unknown",
                "commit": run.environment.commit or "unknown",
                "machine": run.environment.cpu or "unknown",
                "measured": next((str(start.settings.get("preset", "")) for start in of(run.records, Run)), ""),
            }
            for run in runs
        ),
    )


def _verdicts(runs: Sequence[TrendRun]) -> Section | None:
    columns = [beside.column(run.name, run.records) for run in runs]
    if not beside.judged(columns):
        return None
    return section("The verdicts", beside.sentence(columns), beside.table(columns))


def _measure(measure: Measure, series: Sequence[Series]) -> Section | None:
    """The rows of a measure, the largest change over all runs first."""
    rows = sorted(series, key=lambda row: -max((point.far for point in row.points if point), default=0.0))
    drawn = PicturedTable(
        Table(HEADERS, tuple(map(_row, rows)), _ALIGN, f"{measure.title}, {text.counted(len(rows), 'row')}"),
        tuple(Inline(*sparkline.over_runs(f"{row.cell.title}, {row.arm}", row.points)) for row in rows),
    )
    return section(measure.title, drawn if rows else None)


def _row(row: Series) -> tuple[str, ...]:
    values = [value for value in row.values if value is not None]
    ends = (row.measure.written(values[0]), row.measure.written(values[-1]))
    changed = (changes.written(row.change.ratio), row.change.word) if row.change else ("", "")
    return (row.cell.title, row.arm, *ends, *changed)
