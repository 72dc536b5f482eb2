"""What changed from one run to another, cell by cell: times with an interval, bytes as they were counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from compare import engines
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, Read, cells, first_run, steady
from compare.page.blocks import Table
from compare.page.markdown import table as tabled
from compare.records.cells import Memory, Time
from compare.records.machines import differences, fingerprint
from compare.records.record import Cell, Environment, OfArms, Records, Run, of
from compare.stats import Interval, geometric_mean, unpaired_ratio_interval
from compare.words import text

MACHINE = ("cpu", "machine", "gpu")
"""The parts of an environment that make two machines unlike: times of these are no change of the code."""
HEADERS = ("step", "mode", "what", "before", "after", "after ÷ before", "change")
Values = Sequence[Sequence[float]]
"""What each process of a run found."""
_WORDS = {"above": "more", "below": "less", "tie": "the same", "unclear": "unclear"}


@dataclass(frozen=True)
class Measure:
    """Something measured of an arm in a cell, and how a value of it is written.

    What is `relative` is divided by dynamic's in the same round, so that a slower hour of the machine leaves it alone.
    """

    name: str
    kind: type[OfArms]
    read: Read
    written: Callable[[float], str]
    relative: bool = False

    @property
    def title(self) -> str:
        """The name as a sentence begins with it."""
        return f"{self.name[0].upper()}{self.name[1:]}"

    def values(self, cell: Evidence, arm: str) -> Values:
        """What the processes of a cell found of an arm; nothing where one has no usable number."""
        if self.relative:
            pairs = [process for process in cell.processes if arm in process and cell.base in process]
            values = [_divided(self.read(pair[arm]), self.read(pair[cell.base])) for pair in pairs if arm != cell.base]
        else:
            values = [self.read(measured) for measured in cell.of(arm)]
        return values if all(process and min(process) > 0 for process in values) else []


def _divided(tops: Sequence[float], bottoms: Sequence[float]) -> Sequence[float]:
    return [top / bottom for top, bottom in zip(tops, bottoms, strict=True)] if len(tops) == len(bottoms) else []


def _bytes(name: str, measured: object) -> tuple[float, ...]:
    return (float(getattr(measured, name)),)


MEASURES = (
    Measure("a warm step", Time, steady, text.seconds),
    Measure("a warm step ÷ dynamic", Time, steady, text.ratio, relative=True),
    Measure("the first run", Time, first_run, text.seconds),
    Measure("bytes held", Memory, partial(_bytes, "held"), text.size),
    Measure("bytes at the peak", Memory, partial(_bytes, "peak"), text.size),
)


@dataclass(frozen=True)
class CellChange:
    """One measure of one arm in two runs: the second divided by the first, with its interval."""

    cell: Cell
    arm: str
    measure: Measure
    before: float
    after: float
    ratio: Interval

    @property
    def word(self) -> str:
        """`more` or `less` if the whole interval lies beyond 5%, `the same` if it lies within, else `unclear`."""
        return _WORDS[self.ratio.side(SMALLEST_EFFECT)]


def unlike(before: Records, after: Records) -> list[str]:
    """`cpu A and B` for each part of the machine that differs."""
    return differences(*({name: getattr(_environment(run), name) for name in MACHINE} for run in (before, after)))


def environments(before: Records, after: Records) -> list[str]:
    """`numpy 2.3.1 and 2.4.6` for each part of the environment that differs and decides how fast a job is."""
    return differences(*(fingerprint(_environment(run)) for run in (before, after)))


@dataclass(frozen=True)
class Compared:
    """What changed from one run to the next, and what to know of it, in sentences."""

    sentences: tuple[str, ...]
    changes: tuple[CellChange, ...]


def compared(before: Records, after: Records, *, unlike_machines: bool = False) -> Compared:
    """A change for each measure that both runs have of an arm in a cell; of unlike machines only bytes, unless told."""
    machines = unlike(before, after)
    alike = unlike_machines or not machines
    measures = [measure for measure in MEASURES if alike or measure.kind is Memory]
    changes = tuple(change for measure in measures for change in _of_measure(before, after, measure))
    return Compared(tuple(_sentences(before, after, changes, alike)), changes)


def _of_measure(before: Records, after: Records, measure: Measure) -> Iterator[CellChange]:
    first, second = ({cell.cell: cell for cell in cells(run, measure.kind)} for run in (before, after))
    for cell in first:
        if cell in second:
            yield from _of_cell(first[cell], second[cell], measure)


def table(changes: Sequence[CellChange]) -> Table:
    """A row for each change: where, before, after and their ratio."""
    rows = tuple(
        (
            change.cell.title,
            change.arm,
            change.measure.name,
            change.measure.written(change.before),
            change.measure.written(change.after),
            written(change.ratio),
            change.word,
        )
        for change in changes
    )
    return Table(HEADERS, rows, "lllrrrl")


def significant(changes: Sequence[CellChange]) -> list[CellChange]:
    """Those beyond 5%, the largest first."""
    beyond = [change for change in changes if change.word in ("more", "less")]
    return sorted(beyond, key=lambda change: -max(change.ratio.estimate, 1 / change.ratio.estimate))


def markdown(comparison: Compared) -> str:
    """All of it as a part of a page."""
    return "\n\n".join(["\n## What changed", *comparison.sentences, tabled(table(comparison.changes))]) + "\n"


def _sentences(before: Records, after: Records, changes: Sequence[CellChange], alike: bool) -> Iterator[str]:
    """How much changed, what differs around the runs, then for each measure how many values rose, fell or stayed."""
    functions = [_function(run) for run in (before, after)]
    if functions[0] != functions[1]:
        yield f"{' and '.join(functions)} are two functions: only results of one function can show what changed."
    elif changes:
        yield _headline(changes)
    else:
        yield "Nothing was measured in both."
    differ = environments(before, after)
    yield f"The environments differ: {'; '.join(differ)}." if differ else "The environments are alike."
    if not alike:
        yield "Two machines made these runs, so their times are not compared; --unlike-machines compares them."
    yield from tallies(changes)


def _headline(changes: Sequence[CellChange]) -> str:
    """How much changed: `2 of 9 values changed by more than 5%, and 1 is unclear`."""
    unclear = sum(change.word == "unclear" for change in changes)
    rest = f", and {unclear} {'is' if unclear == 1 else 'are'} unclear" if unclear else ""
    changed = len(significant(changes)) or "none"
    said = f"{changed} of {text.counted(len(changes), 'value')} changed by more than {SMALLEST_EFFECT:.0%}{rest}."
    return f"{said[0].upper()}{said[1:]}"


def _function(run: Records) -> str:
    """The function of the user's that a run has measured, and in which framework; of the workloads there is none."""
    for record in of(run, Run):
        if name := record.settings.get("function"):
            framework = record.settings.get("framework")
            return f"{name} in {engines.named(str(framework)).title}" if framework else str(name)
    return "the workloads"


def plain(comparison: Compared) -> dict[str, Any]:
    """The sentences and the changes, in plain JSON values; an interval is `[estimate, low, high]`."""
    rows = [
        {
            "cell": str(change.cell),
            "arm": change.arm,
            "what": change.measure.name,
            "before": change.before,
            "after": change.after,
            "ratio": [change.ratio.estimate, *(change.ratio.bounds() or (None, None))],
            "change": change.word,
        }
        for change in comparison.changes
    ]
    return {"sentences": list(comparison.sentences), "changes": rows}


def tallies(changes: Sequence[CellChange]) -> Iterator[str]:
    """For each measure, as a sentence, how many rows rose, fell or stayed, or cannot be told."""
    for measure in MEASURES:
        words = [change.word for change in changes if change.measure is measure]
        counts = ", ".join(f"{words.count(word)} {word}" for word in _WORDS.values() if word in words)
        if words:
            yield f"{measure.title}, in {text.counted(len(words), 'row')}: {counts}."


def _of_cell(before: Evidence, after: Evidence, measure: Measure) -> Iterator[CellChange]:
    for arm in before.arms:
        first, second = (measure.values(run, arm) for run in (before, after))
        if first and second:
            yield change(before.cell, arm, measure, first, second)


def change(cell: Cell, arm: str, measure: Measure, before: Values, after: Values) -> CellChange:
    """The change from one run's values to another's."""
    return CellChange(cell, arm, measure, mean_of(before), mean_of(after), ratio_of(after, before, measure))


def mean_of(processes: Values) -> float:
    """The geometric mean of what the processes found."""
    return geometric_mean(value for process in processes for value in process)


def ratio_of(after: Values, before: Values, measure: Measure) -> Interval:
    """`after ÷ before`: of times with Welch's interval, of bytes without any width."""
    ratio = unpaired_ratio_interval(after, before)
    if measure.kind is Memory:  # counted and not sampled: the same code holds the same bytes
        return Interval(ratio.estimate, ratio.estimate, ratio.estimate)
    return ratio


def written(ratio: Interval) -> str:
    """`1.05× [1.01, 1.09]`; without the interval where it has no width or is not known."""
    exact = ratio.low == ratio.high or not ratio.bounded
    return (
        text.ratio(ratio.estimate) if exact else f"{text.ratio(ratio.estimate)} {text.interval(ratio.low, ratio.high)}"
    )


def _environment(run: Records) -> Environment:
    header = next(reversed(of(run, Run)), None)
    return (header.environment if header else None) or Environment()
