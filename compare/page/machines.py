"""One page of the runs of several machines: what each claim, regime and cell came to on each of them.

Nothing is pooled over machines: an interval is of one machine, and the page says where two of them differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compare.claims import CLAIMS, conditions
from compare.claims.base import OPEN, SMALLEST_EFFECT, Regime, Verdict
from compare.claims.evidence import Evidence, Read, cells, first_run, steady
from compare.errors import ResultsError
from compare.page import beside, sparkline, terms, verdicts
from compare.page.beside import RunColumn
from compare.page.blocks import Inline, Page, PicturedTable, Section, Table, section
from compare.page.changes import MACHINE
from compare.records.cells import Memory, Time
from compare.records.record import MODELS, OWN, Cell, Environment, OfArms, Records, Run, of
from compare.stats import Interval
from compare.words import text

TITLE = "graphduel: several machines"
_SUITES = {MODELS: "real models in PyTorch", OWN: "a function of one's own"}
_WORKLOADS = "our workloads"
_EXPLAINED = (
    "Each value is the arm divided by the base of its cell on one machine, with a 95% interval over the processes of "
    f"that machine. Machines are opposite where one shows more and another less, both beyond {SMALLEST_EFFECT:.0%}; "
    "open where the interval of one says neither."
)


@dataclass(frozen=True)
class RatioOfCells:
    """Something of which an arm of a cell has a ratio to the base of the cell."""

    title: str
    kind: type[OfArms]
    ratio: Callable[[Evidence, str], Interval | None]


def _paired(read: Read, cell: Evidence, arm: str) -> Interval | None:
    return cell.ratio(arm, cell.base, read)


def _first(cell: Evidence, arm: str) -> Interval | None:
    return cell.start.unpaired(arm, cell.base, first_run)


def _peak(measured: object) -> tuple[float, ...]:
    return (float(getattr(measured, "peak", 0)),)


def _counted(cell: Evidence, arm: str) -> Interval | None:
    """Bytes are counted and not sampled, so that their ratio has no width."""
    ratio = cell.unpaired(arm, cell.base, _peak)
    return Interval(ratio.estimate, ratio.estimate, ratio.estimate) if ratio else None


MEASURES = (
    RatioOfCells("A warm step", Time, partial(_paired, steady)),
    RatioOfCells("The first run, from nothing", Time, _first),
    RatioOfCells("Bytes at the peak of a step", Memory, _counted),
)


@dataclass(frozen=True)
class MachineRun:
    """A run of one machine: what the page calls it, its records, and what they tell of it."""

    name: str
    records: Records

    @property
    def start(self) -> Run | None:
        """The line of its last start."""
        return next(reversed(of(self.records, Run)), None)

    @property
    def environment(self) -> Environment:
        """That of its last start."""
        return (self.start.environment if self.start else None) or Environment()

    @property
    def machine(self) -> tuple[object, ...]:
        """What tells it from another machine: its parts, and the host where records name it."""
        hosts = sorted({record.host for record in self.records if record.host})
        return (*(getattr(self.environment, part) for part in MACHINE), *hosts)

    @property
    def suite(self) -> str:
        """What was measured, in words."""
        return _SUITES.get(str(self.start.settings.get("preset")) if self.start else "", _WORKLOADS)


def checked(runs: Mapping[str, Records]) -> list[MachineRun]:
    """The runs by their folders, which must have measured the same on machines that differ. Raises ResultsError."""
    machines = [MachineRun(name, records) for name, records in runs.items()]
    first, *others = machines
    for other in others:
        if other.suite != first.suite:
            raise ResultsError(
                f"{first.name} measured {first.suite} and {other.name} {other.suite}, which have no row in common; "
                "give runs of one suite"
            )
    if first.suite == _SUITES[OWN]:
        raise ResultsError(f"{first.name} measured {first.suite}; graphduel diff shows such runs beside each other")
    seen: dict[tuple[object, ...], MachineRun] = {}
    for run in machines:
        twin = seen.setdefault(run.machine, run)
        if twin is not run:
            raise ResultsError(
                f"{twin.name} and {run.name} are of the same machine, {run.environment.cpu or 'an unknown processor'}; "
                "give a run a machine, or see what changed on it with graphduel diff"
            )
    return machines


@dataclass(frozen=True)
class CellRow:
    """An arm of a cell, and its ratio to the base on each machine that measured it."""

    cell: Cell
    arm: str
    ratios: tuple[Interval | None, ...]

    @property
    def word(self) -> str:
        """Whether the machines say the same."""
        return agreement([ratio.side(SMALLEST_EFFECT) for ratio in self.ratios if ratio])


def agreement(sides: Sequence[str]) -> str:
    """Of the sides on which ratios lie, as `Interval.side` names them."""
    if len(sides) < 2:
        return "one machine"
    if {"above", "below"} <= set(sides):
        return "opposite"
    if "unclear" in sides:
        return "open"
    return "the same" if len(set(sides)) == 1 else "differ"


def rows(machines: Sequence[MachineRun], measure: RatioOfCells) -> list[CellRow]:
    """A row for each arm of each cell that some machine measured, in the order of the first that did."""
    by_machine = [
        {(cell.cell, arm): measure.ratio(cell, arm) for cell in cells(run.records, measure.kind) for arm in _arms(cell)}
        for run in machines
    ]
    places = dict.fromkeys(place for ratios in by_machine for place, ratio in ratios.items() if ratio)
    return [CellRow(*place, tuple(ratios.get(place) for ratios in by_machine)) for place in places]


def _arms(cell: Evidence) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*cell.static_arms, *cell.start.static_arms)))


def page(machines: Sequence[MachineRun]) -> Page:
    """Verdicts, regimes and cells with the machine as an axis, and what the machines are."""
    columns = columns_of(machines)
    tables = {measure: rows(machines, measure) for measure in MEASURES}
    held = (
        section("The answer", *_sentences(columns, tables[MEASURES[0]]), beside.table(columns)),
        section("Every regime", *_regimes(columns)),
        *(_measured(machines, measure, shown) for measure, shown in tables.items()),
        section("The machines", *_differing(machines), _table(machines), *_conditions(machines)),
    )
    kept = [part for part in held if part]
    subtitle = (
        f"{machines[0].suite[0].upper()}{machines[0].suite[1:]}, on {text.listed([run.name for run in machines])}."
    )
    return Page(TITLE, subtitle, tuple(part for part in (*kept, terms.section(kept)) if part))


def columns_of(machines: Sequence[MachineRun]) -> list[RunColumn]:
    """The verdicts on each run, judged anew."""
    return [beside.column(run.name, run.records) for run in machines]


def _sentences(columns: Sequence[RunColumn], warm: Sequence[CellRow]) -> Iterator[str]:
    yield beside.sentence(columns)
    counts = Counter(row.word for row in warm)
    shared = len(warm) - counts["one machine"]
    if shared:
        said = ", ".join(
            f"{counts[word]} {word}" for word in ("the same", "differ", "opposite", "open") if counts[word]
        )
        yield f"Of {text.counted(shared, 'arm')} of cells that several machines timed once warm: {said}."


def _regimes(columns: Sequence[RunColumn]) -> Iterator[Table | None]:
    """For each claim a row a regime: whether the machines say the same, and what each says."""
    for id in beside.judged_ids(columns):
        yield Table.of("ll" + "l" * len(columns), _regime_rows(columns, id), f"{id} {CLAIMS[id].title}")


def _regime_rows(columns: Sequence[RunColumn], id: str) -> Iterator[dict[str, str]]:
    judged = [column.verdicts[id] for column in columns]
    for name in dict.fromkeys(regime.name for verdict in judged for regime in verdict.finding.regimes):
        words = [regime.verdict for verdict in judged if (regime := _regime(verdict, name))]
        settled = {word for word in words if word not in OPEN}
        is_open = len(words) < 2 or bool(set(words) & set(OPEN))
        yield {
            "regime": name,
            "verdicts": "differ" if len(settled) > 1 else "open" if is_open else "the same",
            **{column.name: _cell(column.verdicts[id], name) for column in columns},
        }


def _regime(verdict: Verdict, name: str) -> Regime | None:
    return next((regime for regime in verdict.finding.regimes if regime.name == name), None)


def _cell(verdict: Verdict, name: str) -> str:
    effect = verdict.finding.effect
    unit = effect.unit if effect else "ratio"
    regime = _regime(verdict, name)
    return " ".join(filter(None, (verdicts.marked(regime), verdicts.value_of(regime, unit)))) if regime else ""


def _measured(machines: Sequence[MachineRun], measure: RatioOfCells, shown: Sequence[CellRow]) -> Section | None:
    if not shown:
        return None
    names = tuple(run.name for run in machines)
    headers = ("cell", "arm", *names, "machines", "machine by machine, no difference = 1×")
    table = Table(
        headers,
        tuple((row.cell.title, row.arm, *map(_ratio, row.ratios), row.word) for row in shown),
        "ll" + "r" * len(names) + "ll",
        f"{measure.title}: each arm divided by the base of its cell",
    )
    drawn = tuple(Inline(*_dots(names, row)) for row in shown)
    explained = _EXPLAINED if measure is MEASURES[0] else None
    return section(measure.title, explained, PicturedTable(table, drawn))


def _dots(names: Sequence[str], row: CellRow) -> tuple[str, str]:
    points = [sparkline.RunPoint(name, ratio) if ratio else None for name, ratio in zip(names, row.ratios, strict=True)]
    return sparkline.over_machines(f"{row.cell.title}, {row.arm}", points)


def _ratio(ratio: Interval | None) -> str:
    if ratio is None:
        return ""
    exact = ratio.low == ratio.high or not ratio.bounded
    return text.ratio(ratio.estimate) + ("" if exact else f" {text.interval(ratio.low, ratio.high)}")


def _table(machines: Sequence[MachineRun]) -> Table | None:
    return Table.of("l" * 9, map(_facts, machines))


def _facts(run: MachineRun) -> dict[str, str]:
    here = run.environment
    return {
        "run": run.name,
        "processor": here.cpu or "unknown",
        "GPU": here.gpu or "",
        "cores": str(here.cores or here.logical_cores or ""),
        "memory": text.size(here.memory) if here.memory else "",
        "system": " ".join(filter(None, (here.system, here.machine))),
        "Python, NumPy": ", ".join(filter(None, (here.python, here.numpy))),
        "commit": (here.commit or "unknown")[:12],
        "measured": f"{run.start.settings.get('preset', '')}, {run.start.at}" if run.start else "",
    }


def _differing(machines: Sequence[MachineRun]) -> Iterator[str]:
    """What differs and is no part of the machine: the code, and what it ran on."""
    for what in ("commit", "python", "numpy"):
        values = {str(getattr(run.environment, what)) for run in machines}
        if len(values) > 1:
            yield f"The {what} is not the same, from which differences may come: {text.listed(sorted(values))}."


def _conditions(machines: Sequence[MachineRun]) -> Iterator[Section]:
    for run in machines:
        yield Section(run.name, (" ".join(conditions.sentences(run.records)),))
