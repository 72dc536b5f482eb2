"""Compare several runs: the verdict on each claim in every run, and each measure of a mode in every run.

`graphduel diff` uses this for two runs, `graphduel trend` for many runs over time, `graphduel report` for several
machines. Runs are never pooled: an interval comes from one run, or from the ratio of two. Read `JudgedRun`, `Measure`
and `Series` first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from compare import engines, text
from compare.claims import CLAIMS, Verdict, conditions, frameworks, judge
from compare.claims.base import OPEN, SMALLEST_EFFECT, agreement
from compare.claims.evidence import Evidence, Read, cells, first_run, of_framework, of_ours, steady
from compare.claims.threads import threads_asked
from compare.claims.verdict import MeasuredFunction
from compare.errors import ResultsError
from compare.records.cells import Compilations, Memory, Parity, Time
from compare.records.own import CallParts
from compare.records.record import (
    MODELS,
    OWN,
    Cell,
    Environment,
    OfModes,
    Records,
    Run,
    fingerprint,
    machine_differences,
    records_of,
)
from compare.stats import Interval, geometric_mean, unpaired_ratio_interval
from compare.workloads.models import FRAMEWORK

MACHINE = ("cpu", "machine", "gpu")
"""The fields of an environment that tell machines apart; times of two machines do not show a change of the code."""
SUITES = {MODELS: "real models in PyTorch", OWN: "a function of one's own"}
WORKLOADS = "our workloads"
CHANGES = {"above": "more", "below": "less", "tie": "the same", "unclear": "unclear"}
"""The word for a change, by the side of 1 on which its ratio after ÷ before lies."""

Values = Sequence[Sequence[float]]
"""The numbers of a mode for each process of a run; empty if a process has no usable number."""
T = TypeVar("T")


@dataclass(frozen=True)
class JudgedRun:
    """A run with its name, its records, and its verdicts by the rules of this version, the same rules for all runs."""

    name: str
    records: Records

    @property
    def starts(self) -> list[Run]:
        """The records of the starts of the run, in order; a resumed run has several."""
        return records_of(self.records, Run)

    @property
    def began(self) -> str:
        """The time of the first start; empty where no record has it."""
        return self.starts[0].at if self.starts else ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the last start."""
        return self.starts[-1].settings if self.starts else {}

    @property
    def environment(self) -> Environment:
        """The environment of the last start."""
        return (self.starts[-1].environment if self.starts else None) or Environment()

    @property
    def machine(self) -> tuple[Any, ...]:
        """The fields of the environment that tell the machine of this run from others, as in `MACHINE`."""
        return tuple(getattr(self.environment, part) for part in MACHINE)

    @property
    def suite(self) -> str:
        """The measured suite in words: our workloads, real models, or a function of the user's."""
        return SUITES.get(str(self.settings.get("preset")), WORKLOADS)

    @property
    def function(self) -> str:
        """The user's function with its framework, as `f in JAX`; `the workloads` for a run of a suite."""
        name, framework = self.settings.get("function"), self.settings.get("framework")
        titled = f"{name} in {engines.find_engine(str(framework)).title}" if framework else str(name)
        return titled if name else "the workloads"

    @property
    def measured(self) -> str:
        """Sentences on how the run was measured: its preset, start and processor, and the conditions."""
        head = "no record of its settings"
        if self.starts:
            head = f"{self.settings.get('preset', 'unknown')} run, {self.starts[-1].at}"
        machine = f"on {self.environment.cpu or 'an unknown processor'}."
        return " ".join((f"{head}, {machine}", *conditions.sentences(self.records)))

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts by claim id: on our engines, or for a run of real models on the framework that ran them."""
        if any(run.is_of_models for run in self.starts):
            judged = frameworks.of_models(of_framework(self.records, engines.find_engine(FRAMEWORK)))
        else:
            judged = judge(of_ours(self.records))
        return {verdict.claim.id: verdict for verdict in judged}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values. The run of a user's function has no verdicts here, as no claim is about it."""
        shown = {} if "function" in self.settings else self.verdicts
        verdicts = {id: verdict.to_dict() for id, verdict in shown.items()}
        return {"run": self.name, "measured": self.measured, "verdicts": verdicts}


# Verdicts of several runs -----------------------------------------------------------------------------------------


def shared_claims(runs: Sequence[JudgedRun]) -> list[str]:
    """Return the ids of the claims on which every run has a verdict."""
    return [id for id in CLAIMS if all(id in run.verdicts for run in runs)]


def labels_of(runs: Sequence[JudgedRun], id: str) -> list[str]:
    """Return the label of the verdict on a claim in each run."""
    return [run.verdicts[id].finding.verdict for run in runs]


def differing(runs: Sequence[JudgedRun]) -> list[str]:
    """Return the ids of the claims whose settled verdicts differ among the runs."""
    return [id for id in shared_claims(runs) if agreement(labels_of(runs, id)) == "differ"]


def is_settled(runs: Sequence[JudgedRun]) -> bool:
    """Whether some run settles some claim; runs of a user's function never do."""
    return any(label not in OPEN for id in shared_claims(runs) for label in labels_of(runs, id))


def verdict_sentence(runs: Sequence[JudgedRun]) -> str:
    """Return a sentence on whether the verdicts of the runs agree."""
    apart = differing(runs)
    return f"The verdicts on {', '.join(apart)} differ." if apart else "No two verdicts differ where both are settled."


# Measures of several runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A kind of number that a mode has in a cell, such as seconds of a warm step, and how it is written.

    A `relative` measure is divided by the number of the base mode in the same round, so that a slow hour of the machine
    does not change it.
    """

    name: str
    kind: type[OfModes]
    read: Read
    written: Callable[[float], str]
    relative: bool = False

    @property
    def title(self) -> str:
        """The name with a capital first letter."""
        return text.begin_sentence(self.name)

    def values(self, cell: Evidence, mode: str) -> Values:
        """Return the numbers of a mode in each process of a cell; empty if a process has none above 0."""
        if self.relative:
            pairs = [process for process in cell.processes if mode in process and cell.base in process]
            both = [(self.read(pair[mode]), self.read(pair[cell.base])) for pair in pairs if mode != cell.base]
            values: list[Sequence[float]] = [
                [top / bottom for top, bottom in zip(tops, bottoms, strict=True)] if len(tops) == len(bottoms) else []
                for tops, bottoms in both
            ]
        else:
            values = [self.read(measured) for measured in cell.of(mode)]
        return values if all(process and min(process) > 0 for process in values) else []

    def ratio(self, after: Values, before: Values) -> Interval:
        """Return `after ÷ before` of two runs: times have Welch's interval, bytes an interval without width."""
        return self._exact(unpaired_ratio_interval(after, before))

    def to_base(self, cell: Evidence, mode: str) -> Interval | None:
        """Return mode ÷ base in a cell of one run; None for the base, a relative measure, or without numbers."""
        if mode == cell.base or self.relative:
            return None
        if self.read is steady:
            return cell.ratio(mode, cell.base, steady)
        ratio = cell.start.unpaired_ratio(mode, cell.base, self.read)
        return self._exact(ratio) if ratio else None

    def _exact(self, ratio: Interval) -> Interval:
        """Return the ratio without width if it is of bytes: they are counted, so the same code holds the same bytes."""
        return Interval(*[ratio.estimate] * 3) if self.kind is Memory else ratio


def _bytes(name: str, measured: object) -> tuple[float, ...]:
    return (float(getattr(measured, name)),)


MEASURES = (
    Measure("a warm step", Time, steady, text.seconds),
    Measure("a warm step ÷ dynamic", Time, steady, text.ratio, relative=True),
    Measure("the first run", Time, first_run, text.seconds),
    Measure("bytes held", Memory, partial(_bytes, "held"), text.size),
    Measure("bytes at the peak", Memory, partial(_bytes, "peak"), text.size),
)


def values_by_run(
    runs: Iterable[JudgedRun], measure: Measure, of_mode: Callable[[Evidence, str], T | None]
) -> dict[tuple[Cell, str], list[T | None]]:
    """Return for each cell and mode the result of `of_mode` in each run; None in a run without one."""
    values_of_runs = [
        {(cell.cell, cell.name_of(mode)): value for cell in cells(run.records, measure.kind)
         for mode in dict.fromkeys((*cell.modes, *cell.start.modes)) if (value := of_mode(cell, mode))}
        for run in runs
    ]  # fmt: skip
    places = dict.fromkeys(place for values in values_of_runs for place in values)
    return {place: [values.get(place) for values in values_of_runs] for place in places}


@dataclass(frozen=True)
class CellChange:
    """One measure of one mode in two runs, with the ratio after ÷ before and its interval."""

    cell: Cell
    mode: str
    measure: Measure
    before: float
    after: float
    ratio: Interval

    @property
    def word(self) -> str:
        """The word `more` or `less` if the whole interval lies beyond 5%, `the same` if within, else `unclear`."""
        return CHANGES[self.ratio.side(SMALLEST_EFFECT)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the ratio is `[estimate, low, high]`."""
        return {
            "cell": str(self.cell),
            "arm": self.mode,
            "what": self.measure.name,
            "before": self.before,
            "after": self.after,
            "ratio": [self.ratio.estimate, *(self.ratio.bounds() or (None, None))],
            "change": self.word,
        }


@dataclass(frozen=True)
class Series:
    """One measure of one mode of a cell over several runs; `values` has None for a run without numbers."""

    cell: Cell
    mode: str
    measure: Measure
    values: Sequence[Values | None]

    @property
    def means(self) -> list[float]:
        """The geometric means of the runs that have numbers, in order."""
        return [_mean(values) for values in self.values if values]

    def change(self, before: int, after: int) -> CellChange | None:
        """Return the change from the run at one index to another; None if one of them has no numbers."""
        first, second = self.values[before], self.values[after]
        if not first or not second:
            return None
        ratio = self.measure.ratio(second, first)
        return CellChange(self.cell, self.mode, self.measure, _mean(first), _mean(second), ratio)

    def ratios_to_first(self, runs: Sequence[JudgedRun]) -> list[Interval | None]:
        """Return each run ÷ the first run on its machine, as machines differ more than most changes of code do."""
        first: dict[tuple[Any, ...], Values] = {}
        for run, values in zip(runs, self.values, strict=True):
            if values:
                first.setdefault(run.machine, values)
        return [
            self.measure.ratio(values, first[run.machine]) if values else None
            for run, values in zip(runs, self.values, strict=True)
        ]

    def last_change(self, runs: Sequence[JudgedRun]) -> CellChange | None:
        """Return the change to the last run from the run before it on the same machine; None if there is none."""
        places = [i for i, values in enumerate(self.values) if values and runs[i].machine == runs[-1].machine]
        return self.change(*places[-2:]) if len(places) > 1 and self.values[-1] else None


def _mean(processes: Values) -> float:
    return geometric_mean(value for process in processes for value in process)


def series(runs: Sequence[JudgedRun], measures: Iterable[Measure] = MEASURES) -> list[Series]:
    """Return the series of each measure of each mode of each cell, ordered by measure."""
    return [
        Series(cell, mode, measure, values)
        for measure in measures
        for (cell, mode), values in values_by_run(runs, measure, measure.values).items()
    ]


def over_time(runs: Sequence[JudgedRun]) -> list[Series]:
    """Return the series that have numbers of at least two runs on one machine."""

    def most(row: Series) -> int:
        return max(Counter(run.machine for run, had in zip(runs, row.values, strict=True) if had).values())

    return [row for row in series(runs) if most(row) > 1]


@dataclass(frozen=True)
class Comparison:
    """The changes from one run to another, and sentences that sum them up."""

    sentences: tuple[str, ...]
    changes: tuple[CellChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain JSON values."""
        return {"sentences": list(self.sentences), "changes": [change.to_dict() for change in self.changes]}


def compare_runs(before: JudgedRun, after: JudgedRun, *, unlike_machines: bool = False) -> Comparison:
    """Compare two runs by every measure of a mode in a cell that both have.

    Runs of unlike machines are compared by bytes only, unless `unlike_machines` is true.
    """
    alike = unlike_machines or before.machine == after.machine
    measures = [measure for measure in MEASURES if alike or measure.kind is Memory]
    changes = [change for row in series((before, after), measures) if (change := row.change(0, 1))]
    return Comparison(tuple(_sentences(before, after, changes, alike)), tuple(changes))


def significant(changes: Iterable[CellChange]) -> list[CellChange]:
    """Return the changes whose whole interval lies beyond 5%, the largest first."""
    beyond = [change for change in changes if change.word in ("more", "less")]
    return sorted(beyond, key=lambda change: -max(change.ratio.estimate, 1 / change.ratio.estimate))


def tallies(changes: Sequence[CellChange]) -> Iterator[str]:
    """Yield a sentence for each measure that counts the changes by their word: more, less, the same, unclear."""
    for measure in MEASURES:
        words = [change.word for change in changes if change.measure is measure]
        counts = ", ".join(f"{words.count(word)} {word}" for word in CHANGES.values() if word in words)
        if words:
            yield f"{measure.title}, in {text.count_noun(len(words), 'row')}: {counts}."


def _sentences(before: JudgedRun, after: JudgedRun, changes: Sequence[CellChange], alike: bool) -> Iterator[str]:
    """Yield a headline on the changes, a sentence on differing environments, and a tally for each measure."""
    functions = [before.function, after.function]
    if functions[0] != functions[1]:
        yield f"{' and '.join(functions)} are two functions: only results of one function can show what changed."
    else:
        yield _headline(changes) if changes else "Nothing was measured in both."
    if before.settings.get("function") and functions[0] == functions[1]:
        yield from _function_changes(before, after)
    differ = machine_differences(fingerprint(before.environment), fingerprint(after.environment))
    yield f"The environments differ: {'; '.join(differ)}." if differ else "The environments are alike."
    if not alike:
        yield "Two machines made these runs, so their times are not compared; --unlike-machines compares them."
    elif threads_asked(before.records) != threads_asked(after.records):
        yield "Times are compared where both runs had as many threads."
    yield from tallies(changes)


def _function_changes(before: JudgedRun, after: JudgedRun) -> Iterator[str]:
    """Yield what changed on a user's function: versions, the answer, and counts and agreement of each mode."""
    runs = (before, after)
    versions = [str(run.settings.get("version") or "") for run in runs]
    if versions[0] != versions[1]:
        title = engines.find_engine(str(before.settings.get("framework") or engines.OWN)).title
        yield f"{title} is {versions[1]} after {versions[0]}."
    judged = [MeasuredFunction(run.function, (), tuple(run.records)) for run in runs]
    winners = [
        [(number, won.outcome, {*won.leaders}) for number, each in function.by_threads.items()
         for won in [each.verdict.steady]]
        for function in judged
    ]  # fmt: skip
    said = [function.sentences[0] for function in judged]
    yield "The answer is the same." if winners[0] == winners[1] else f"The answer was: {said[0]} Now: {said[1]}"
    told = [_counts(run.records) for run in runs]
    for mode in [mode for mode in told[0] if mode in told[1]]:
        earlier, later = told[0][mode], told[1][mode]
        differ = [f"{later[what]} instead of {earlier[what]}" for what in later if later[what] != earlier.get(what)]
        if differ:
            yield f"{mode}: {'; '.join(differ)}."


def _counts(records: Records) -> dict[str, dict[str, str]]:
    """Return in words what each mode compiled: graphs, breaks, the share of ops, guards of a call, and if it agrees."""
    counts: dict[str, dict[str, str]] = {}
    for told in records_of(records, Compilations):
        for mode, row in told.modes.items():
            counts.setdefault(mode, {}).update(
                compilations=text.count_noun(len(row.made), "compilation"),
                breaks=text.count_noun(sum(row.breaks.values()), "graph break"),
                share="" if row.share is None else f"{row.share:.0%} of the ops compiled",
            )
    for warm in records_of(records, CallParts):
        for mode, parts in warm.modes.items():
            if parts.status == "ok":
                counts.setdefault(mode, {})["guards"] = text.count_noun(parts.guards, "guard")
    for gate in records_of(records, Parity):
        for mode, checked in gate.modes.items():
            counts.setdefault(mode, {})["gate"] = "agrees" if checked.status == "ok" else checked.status
    return counts


def _headline(changes: Sequence[CellChange]) -> str:
    """Return the headline on all changes, as `2 of 9 values changed by more than 5%, and 1 is unclear`."""
    unclear = sum(change.word == "unclear" for change in changes)
    rest = f", and {unclear} {'is' if unclear == 1 else 'are'} unclear" if unclear else ""
    changed = len(significant(changes)) or "None"
    return f"{changed} of {text.count_noun(len(changes), 'value')} changed by more than {SMALLEST_EFFECT:.0%}{rest}."


# Several machines -------------------------------------------------------------------------------------------------


def unlike(runs: Sequence[JudgedRun]) -> None:
    """Check that runs measured the same suite on different machines. Raises ResultsError if they did not."""
    first, *others = runs
    for other in others:
        if other.suite != first.suite:
            raise ResultsError(
                f"{first.name} measured {first.suite} and {other.name} {other.suite}, which have no row in common; "
                "give runs of one suite"
            )
    seen: dict[tuple[Any, ...], JudgedRun] = {}
    for run in runs:
        hosts = sorted({record.host for record in run.records if record.host})
        twin = seen.setdefault((*run.machine, *hosts), run)
        if twin is not run:
            raise ResultsError(
                f"{twin.name} and {run.name} are of the same machine, {run.environment.cpu or 'an unknown processor'}; "
                "give a run a machine, or see what changed on it with graphduel diff"
            )


def side_agreement(ratios: Iterable[Interval | None]) -> str:
    """Compare the sides of 1 on which the ratios of several machines lie.

    Returns `the same`, `differ`, `opposite`, `open` if one is unclear, or `one machine` if there are fewer than two.
    """
    sides = [ratio.side(SMALLEST_EFFECT) for ratio in ratios if ratio]
    if len(sides) < 2:
        return "one machine"
    if {"above", "below"} <= set(sides):
        return "opposite"
    if "unclear" in sides:
        return "open"
    return "the same" if len(set(sides)) == 1 else "differ"
