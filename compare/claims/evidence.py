"""Evidence: the measurements of the arms of one cell that passed the parity gate, over the processes of a run.

Read `Evidence` and `cells` first. `of_ours` and `of_framework` select records by engine, and `arms` sums up each arm of
a framework on each workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from statistics import median
from typing import Any

from compare.engines import Engine
from compare.engines.framework import PADDED
from compare.records.cells import Compilations, CompiledArm, Memory, Parity, Time, admit_arms
from compare.records.record import DYNAMIC, Cell, Failure, OfArms, OfCell, Record, Records, group_by, records_of
from compare.stats import Interval, geometric_mean, ratio_interval, unpaired_ratio_interval

SIZES = ("small", "medium", "large")

Read = Callable[[Any], Sequence[float]]
"""A function that takes the row of an arm in one process and returns numbers, always in the same order."""


@dataclass(frozen=True)
class Evidence:
    """One workload at one size: for each worker process, the rows of the admitted arms.

    `base` is the arm that records its graph on every run; the other arms are compared with it. `cold` holds the
    processes that found no compiled code on the disk and timed no steady state; it is empty for engines that keep none.
    """

    workload: str
    size: str
    processes: tuple[Mapping[str, Any], ...]
    base: str = DYNAMIC
    cold: tuple[Mapping[str, Any], ...] = ()

    @property
    def start(self) -> Evidence:
        """The evidence measured from nothing: that of the cold processes, or of all if there are no cold ones."""
        return replace(self, processes=self.cold, cold=()) if self.cold else self

    @property
    def name(self) -> str:
        """The name of the cell, as `rnn_text (small)`."""
        return self.cell.title

    @property
    def cell(self) -> Cell:
        """The workload and its size."""
        return Cell(self.workload, self.size)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that some process measured, by name."""
        return tuple(sorted({arm for process in self.processes for arm in process}))

    @property
    def static_arms(self) -> tuple[str, ...]:
        """The arms that compile a graph: all but the base."""
        return tuple(arm for arm in self.arms if arm != self.base)

    def of(self, arm: str) -> list[Any]:
        """Return the rows of an arm, one for each process that measured it."""
        return [process[arm] for process in self.processes if arm in process]

    def mean(self, arm: str, read: Read) -> float | None:
        """Return the geometric mean of all numbers that `read` finds for an arm; None if there is no usable one."""
        usable = [values for measured in self.of(arm) if _usable(values := read(measured))]
        return geometric_mean(v for values in usable for v in values) if usable else None

    def ratio(self, top: str, bottom: str, read: Read, comparisons: int = 1) -> Interval | None:
        """Return the ratio `top / bottom` over paired blocks of both arms; None if they share no process.

        `comparisons` is the number of intervals on which one verdict rests; they are widened so that all hold at once.
        """
        pairs = [
            (tops, bottoms)
            for process in self.processes
            if top in process and bottom in process
            if _usable(tops := read(process[top])) and _usable(bottoms := read(process[bottom]))
            if len(tops) == len(bottoms)
        ]
        return ratio_interval(*map(list, zip(*pairs, strict=True)), comparisons=comparisons) if pairs else None

    def unpaired_ratio(self, top: str, bottom: str, read: Read) -> Interval | None:
        """Return `top / bottom` of arms that share no process, by means of processes; None if one has no numbers."""
        sides = [[list(values) for m in self.of(arm) if _usable(values := read(m))] for arm in (top, bottom)]
        return unpaired_ratio_interval(*sides) if all(sides) else None

    def means(self, read: Read) -> dict[str, float]:
        """Return the geometric mean of each arm that has usable numbers."""
        return {arm: mean for arm in self.arms if (mean := self.mean(arm, read)) is not None}

    def least(self, read: Read, among: Iterable[str] | None = None) -> str | None:
        """Return the arm with the smallest mean, among the static arms by default; None if none has numbers."""
        means, counted = self.means(read), set(self.static_arms if among is None else among)
        return min(counted & set(means), key=lambda arm: (means[arm], arm), default=None)


def cells(records: Records, kind: type[OfArms], *, wrong: bool = False) -> list[Evidence]:
    """Return the evidence of the records of one type (times or memory), ordered by workload and rising size.

    Cells that two engines measured have one entry for each base. With `wrong`, arms that disagree but were timed all
    the same are included.
    """
    right = right_arms(records)

    def usable(record: OfArms) -> dict[str, Any]:
        rows = record.arms.items()
        if wrong:
            return {arm: row for arm, row in rows if row.status in ("ok", "disagree") and getattr(row, "blocks", False)}
        return {arm: row for arm, row in rows if row.status == "ok" and (record.cell, arm) in right}

    groups = group_by(sorted(records_of(records, kind), key=canonical), lambda record: (record.cell, record.base))
    evidence = []
    for (cell, _), group in groups.items():
        cold, warm = (
            tuple(usable(r) for r in group if (isinstance(r, Time) and r.cache == "cold") is which)
            for which in (True, False)
        )
        evidence.append(Evidence(*cell, warm, group[0].base, cold))
    return evidence


def join_evidence(evidence: Sequence[Evidence]) -> Evidence:
    """Join the evidence of several engines on one function; the base is the framework's eager arm, if there is one."""
    first, *_ = sorted(evidence, key=lambda cell: cell.base == DYNAMIC)
    warm, cold = (
        [*chain.from_iterable(parts)] for parts in zip(*((c.processes, c.cold) for c in evidence), strict=True)
    )
    return replace(first, processes=tuple(warm), cold=tuple(cold))


def exclusion_sentences(records: Records, kind: type[OfArms]) -> tuple[str, ...]:
    """Return one sentence for each arm that was tried and does not count, with the reason."""
    right, sentences = right_arms(records), set[str]()
    for record in records_of(records, kind):
        for arm, measured in record.arms.items():
            name = f"{record.cell.title}, {arm}"
            if measured.status != "ok":
                sentences.add(f"{name}: {measured.status}, {measured.reason or 'no reason given'}")
            elif (record.cell, arm) not in right:
                sentences.add(f"{name}: left out, its outputs and gradients were not shown to agree")
    return tuple(sorted(sentences))


def unsteady(cells: Sequence[Evidence]) -> tuple[str, ...]:
    """Return one sentence for each arm that never became steady in some process; all its blocks count nevertheless."""
    return tuple(
        f"{cell.name}, {arm}: no steady state was reached in {count} of {len(cell.of(arm))} processes"
        for cell in cells
        for arm in (cell.base, *cell.static_arms)
        if (count := sum(not measured.steady for measured in cell.of(arm)))
    )


def steady(measured: Any) -> Sequence[float]:
    """Read the steady seconds of a call, or of an example of a stream: one number for each block."""
    return tuple(measured.blocks)


def first_run(measured: Any) -> Sequence[float]:
    """Read the seconds of one run from nothing: the build, plus the first call or the whole first epoch."""
    stream = getattr(measured, "stream", None)
    return (measured.build + (sum(call.seconds for call in stream) if stream else measured.first),)


def right_arms(records: Records) -> set[tuple[Cell, str]]:
    """Return the cells and arms that are ok in every record that checked them; only these count."""
    compared = [*records_of(records, Parity), *(record for record in records_of(records, Memory) if record.checked)]
    groups = group_by(compared, lambda record: record.cell).items()
    return {(cell, arm) for cell, group in groups for arm in admit_arms(group).arms}


def canonical(record: OfArms) -> tuple[Any, ...]:
    """Return a sort key by workload and rising size that does not depend on the order of lines in a file."""
    rank = SIZES.index(record.size) if record.size in SIZES else len(SIZES)
    return record.workload, rank, record.size, record.job.process or 0, repr(record)


def _usable(values: Sequence[float]) -> bool:
    return bool(values) and all(isfinite(v) and v > 0 for v in values)


def of_ours(records: Iterable[Record]) -> list[Record]:
    """Return the records of our own engines, and all failures, since the report lists them all."""
    return [record for record in records if record.arm is None or isinstance(record, Failure)]


def of_framework(records: Iterable[Record], framework: Engine) -> list[Record]:
    """Return the records of a framework. Its eager arm is the base, as `dynamic` is among our own arms."""
    arms = {*framework.arms}
    return [record for record in records if record.arm is not None and record.arm.removesuffix(PADDED) in arms]


@dataclass(frozen=True)
class ArmOfCell:
    """The measurements of a framework's arm on a workload.

    `cold` and `warm` are the seconds of the first call without and with compiled code of earlier processes, `steady`
    those of a call once warm. `ratio` is steady time ÷ that of the eager arm. `peak` is the bytes of a step and `held`
    the bytes between steps; None if they were not counted.
    """

    cell: Cell
    arm: str
    status: str
    reason: str
    cold: float | None
    warm: float | None
    steady: float | None
    ratio: Interval | None
    compiles: int
    peak: int | None
    held: int | None


def arms(framework: Engine, records: Records) -> Iterator[ArmOfCell]:
    """Yield each arm of a framework on each workload; the eager arm once, from the run beside the first other arm."""
    own = of_framework(records, framework)
    for cell, of_cell in group_by(records_of(own, OfCell), lambda record: record.cell).items():
        seen: set[str] = set()
        for group in group_by(of_cell, lambda record: record.arm).values():
            for arm in dict.fromkeys(arm for record in records_of(group, Time) for arm in record.arms):
                if arm not in seen:
                    seen.add(arm)
                    yield _arm(cell, arm, framework.arms[0], group)


def _arm(cell: Cell, arm: str, eager: str, records: Sequence[Record]) -> ArmOfCell:
    times = [record for record in records_of(records, Time) if arm in record.arms]
    rows = [record.arms[arm] for record in times]
    timed = Evidence(*cell, tuple(record.arms for record in times if record.cache == "warm"))
    bad = next((row for row in rows if row.status != "ok" or row.reason), rows[0])
    held = [record.arms[arm] for record in records_of(records, Memory) if arm in record.arms]
    counted = next((row for row in held if row.peak), None)
    return ArmOfCell(
        cell,
        arm,
        bad.status if bad.whole else "limit",
        bad.reason or "",
        cold=_first(times, arm, "cold"),
        warm=_first(times, arm, "warm"),
        steady=timed.mean(arm, steady),
        ratio=timed.ratio(arm, eager, steady) if arm != eager else None,
        compiles=max(row.compiles for row in rows),
        peak=counted.peak if counted else None,
        held=counted.held if counted else None,
    )


def _first(times: Sequence[Time], arm: str, cache: str) -> float | None:
    calls = [record.arms[arm].first for record in times if record.cache == cache and record.arms[arm].first]
    return median(calls) if calls else None


def compilation_report(records: Records, cell: Cell, arm: str) -> CompiledArm | None:
    """Return a framework's report on the compilations of an arm in a cell, from nothing; None if there is none."""
    said = (record.arms.get(arm) for record in records_of(records, Compilations) if record.cell == cell)
    return next((row for row in said if row is not None), None)
