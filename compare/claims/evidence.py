"""Evidence: the measurements of the modes of one cell that passed the parity gate, over the processes of a run.

Read `Evidence` and `cells` first. `of_ours` and `of_framework` select records by engine, and `modes` sums up each mode
of a framework on each workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from statistics import median
from typing import Any

from compare.engines import Engine
from compare.engines.mode import PADDED
from compare.records.cells import Compilations, CompiledRow, Memory, Parity, Time, admit_modes
from compare.records.record import DYNAMIC, Cell, Failure, OfCell, OfModes, Record, Records, group_by, records_of
from compare.stats import Interval, geometric_mean, ratio_interval, typical, unpaired_ratio_interval

SIZES = ("small", "medium", "large")

Read = Callable[[Any], Sequence[float]]
"""A function that takes the row of a mode in one process and returns numbers, always in the same order."""


@dataclass(frozen=True)
class Evidence:
    """One workload at one size: for each worker process, the rows of the admitted modes.

    `base` is the mode that records its graph on every run; the other modes are compared with it. `cold` holds the
    processes that found no compiled code on the disk and timed no steady state; it is empty for engines that keep none.

    On several `threads` each mode has processes of its own. Those with one number, next to each other in time, are one
    of `processes`, and their blocks are not paired.
    """

    workload: str
    size: str
    processes: tuple[Mapping[str, Any], ...]
    base: str = DYNAMIC
    cold: tuple[Mapping[str, Any], ...] = ()
    threads: int = 1

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
    def modes(self) -> tuple[str, ...]:
        """The modes that some process measured, by name."""
        return tuple(sorted({mode for process in self.processes for mode in process}))

    @property
    def static_modes(self) -> tuple[str, ...]:
        """The modes that compile a graph: all but the base."""
        return tuple(mode for mode in self.modes if mode != self.base)

    def name_of(self, mode: str) -> str:
        """Return the name of a mode, with the threads if these are several: times on others cannot be compared."""
        return mode if self.threads == 1 else f"{mode} on {self.threads} threads"

    def of(self, mode: str) -> list[Any]:
        """Return the rows of a mode, one for each process that measured it."""
        return [process[mode] for process in self.processes if mode in process]

    def mean(self, mode: str, read: Read) -> float | None:
        """Return the geometric mean of all numbers that `read` finds for a mode; None if there is no usable one."""
        usable = [values for measured in self.of(mode) if _usable(values := read(measured))]
        return geometric_mean(v for values in usable for v in values) if usable else None

    def ratio(self, top: str, bottom: str, read: Read, comparisons: int = 1) -> Interval | None:
        """Return the ratio `top / bottom` over paired blocks of both modes; None if they share no process.

        On several threads processes are paired, each by its mean. `comparisons` is the number of intervals on which one
        verdict rests; they are widened so that all hold at once.
        """
        pairs = [
            (tops, bottoms)
            for process in self.processes
            if top in process and bottom in process
            if _usable(tops := read(process[top])) and _usable(bottoms := read(process[bottom]))
            if self.threads > 1 or len(tops) == len(bottoms)
        ]
        if self.threads > 1:
            pairs = [((typical(tops),), (typical(bottoms),)) for tops, bottoms in pairs]
        return ratio_interval(*map(list, zip(*pairs, strict=True)), comparisons=comparisons) if pairs else None

    def unpaired_ratio(self, top: str, bottom: str, read: Read) -> Interval | None:
        """Return `top / bottom` of modes that share no process, by means of processes; None if one has no numbers."""
        sides = [[list(values) for m in self.of(mode) if _usable(values := read(m))] for mode in (top, bottom)]
        return unpaired_ratio_interval(*sides) if all(sides) else None

    def means(self, read: Read) -> dict[str, float]:
        """Return the geometric mean of each mode that has usable numbers."""
        return {mode: mean for mode in self.modes if (mean := self.mean(mode, read)) is not None}

    def least(self, read: Read, among: Iterable[str] | None = None) -> str | None:
        """Return the mode with the smallest mean, among the static modes by default; None if none has numbers."""
        means, counted = self.means(read), set(self.static_modes if among is None else among)
        return min(counted & set(means), key=lambda mode: (means[mode], mode), default=None)


def cells(records: Records, kind: type[OfModes], *, wrong: bool = False) -> list[Evidence]:
    """Return the evidence of the records of one type (times or memory), ordered by workload and rising size.

    Cells that two engines measured have one entry for each base. With `wrong`, modes that disagree but were timed all
    the same are included.
    """
    right = right_modes(records)

    def usable(record: OfModes) -> dict[str, Any]:
        rows = record.modes.items()
        if wrong:
            return {
                mode: row for mode, row in rows if row.status in ("ok", "disagree") and getattr(row, "blocks", False)
            }
        return {mode: row for mode, row in rows if row.status == "ok" and (record.cell, mode) in right}

    ordered = sorted(records_of(records, kind), key=canonical)
    groups = group_by(ordered, lambda record: (record.cell, record.base, record.threads))
    evidence = []
    for (cell, base, threads), group in groups.items():
        cold, warm = (
            [(r, usable(r)) for r in group if (isinstance(r, Time) and r.cache == "cold") is which]
            for which in (True, False)
        )
        apart = [*_side_by_side(warm)] if threads > 1 else [rows for _, rows in warm]
        evidence.append(Evidence(*cell, tuple(apart), base, tuple(rows for _, rows in cold), threads))
    return evidence


def _side_by_side(told: Iterable[tuple[OfModes, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield for each number the rows of its processes, each of which has another mode."""
    for of_number in group_by(told, lambda pair: pair[0].job.process).values():
        yield {mode: row for _, rows in of_number for mode, row in rows.items()}


def join_evidence(evidence: Sequence[Evidence]) -> Evidence:
    """Join the evidence of several engines on one function; the base is the framework's eager mode, if there is one."""
    first, *_ = sorted(evidence, key=lambda cell: cell.base == DYNAMIC)
    warm, cold = (
        [*chain.from_iterable(parts)] for parts in zip(*((c.processes, c.cold) for c in evidence), strict=True)
    )
    return replace(first, processes=tuple(warm), cold=tuple(cold))


def exclusion_sentences(records: Records, kind: type[OfModes]) -> tuple[str, ...]:
    """Return one sentence for each mode that was tried and does not count, with the reason."""
    right, sentences = right_modes(records), set[str]()
    for record in records_of(records, kind):
        for mode, measured in record.modes.items():
            name = f"{record.cell.title}, {mode}"
            if measured.status != "ok":
                sentences.add(f"{name}: {measured.status}, {measured.reason or 'no reason given'}")
            elif (record.cell, mode) not in right:
                sentences.add(f"{name}: left out, its outputs and gradients were not shown to agree")
    return tuple(sorted(sentences))


def unsteady(cells: Sequence[Evidence]) -> tuple[str, ...]:
    """Return one sentence for each mode that never became steady in some process; all its blocks count nevertheless."""
    return tuple(
        f"{cell.name}, {mode}: no steady state was reached in {count} of {len(cell.of(mode))} processes"
        for cell in cells
        for mode in (cell.base, *cell.static_modes)
        if (count := sum(not measured.steady for measured in cell.of(mode)))
    )


BUSY = 0.1
"""The share of the cores that other processes may have had where several threads are timed by the wall."""


def is_disturbed(measured: Any) -> bool:
    """Return whether other processes had so much of the cores that wall seconds say nothing."""
    return (getattr(measured, "neighbours", None) or 0.0) > BUSY


def steady(measured: Any) -> Sequence[float]:
    """Read the steady seconds of a call, or of an example of a stream: one for each block, and none if disturbed."""
    return () if is_disturbed(measured) else tuple(measured.blocks)


def first_run(measured: Any) -> Sequence[float]:
    """Read the seconds of one run from nothing: the build, plus the first call or the whole first epoch."""
    stream = getattr(measured, "stream", None)
    return (measured.build + (sum(call.seconds for call in stream) if stream else measured.first),)


def right_modes(records: Records) -> set[tuple[Cell, str]]:
    """Return the cells and modes that are ok in every record that checked them; only these count."""
    compared = [*records_of(records, Parity), *(record for record in records_of(records, Memory) if record.checked)]
    groups = group_by(compared, lambda record: record.cell).items()
    return {(cell, mode) for cell, group in groups for mode in admit_modes(group).modes}


def canonical(record: OfModes) -> tuple[Any, ...]:
    """Return a sort key by workload and rising size that does not depend on the order of lines in a file."""
    rank = SIZES.index(record.size) if record.size in SIZES else len(SIZES)
    return record.workload, rank, record.size, record.job.process or 0, repr(record)


def _usable(values: Sequence[float]) -> bool:
    return bool(values) and all(isfinite(v) and v > 0 for v in values)


def of_ours(records: Iterable[Record]) -> list[Record]:
    """Return the records of our own engines, and all failures, since the report lists them all."""
    return [record for record in records if record.mode is None or isinstance(record, Failure)]


def of_framework(records: Iterable[Record], framework: Engine) -> list[Record]:
    """Return the records of a framework. Its eager mode is the base, as `dynamic` is among our own modes."""
    return [record for record in records if record.mode and framework.words.has(record.mode.removesuffix(PADDED))]


@dataclass(frozen=True)
class ModeOfCell:
    """The measurements of a framework's mode on a workload.

    `cold` and `warm` are the seconds of the first call without and with compiled code of earlier processes, `steady`
    those of a call once warm. `ratio` is steady time ÷ that of the eager mode. `peak` is the bytes of a step and `held`
    the bytes between steps; None if they were not counted.
    """

    cell: Cell
    mode: str
    status: str
    reason: str
    cold: float | None
    warm: float | None
    steady: float | None
    ratio: Interval | None
    compiles: int
    peak: int | None
    held: int | None


def modes(framework: Engine, records: Records) -> Iterator[ModeOfCell]:
    """Yield each mode of a framework on each workload; eager once, from the run beside the first other mode."""
    own = of_framework(records, framework)
    for cell, of_cell in group_by(records_of(own, OfCell), lambda record: record.cell).items():
        seen: set[str] = set()
        for group in group_by(of_cell, lambda record: record.mode).values():
            for mode in dict.fromkeys(mode for record in records_of(group, Time) for mode in record.modes):
                if mode not in seen:
                    seen.add(mode)
                    yield _mode(cell, mode, framework.mode_names[0], group)


def _mode(cell: Cell, mode: str, eager: str, records: Sequence[Record]) -> ModeOfCell:
    times = [record for record in records_of(records, Time) if mode in record.modes]
    rows = [record.modes[mode] for record in times]
    warm = tuple(record.modes for record in times if record.cache == "warm")
    timed = Evidence(*cell, warm, threads=max(record.threads for record in times))
    bad = next((row for row in rows if row.status != "ok" or row.reason), rows[0])
    held = [record.modes[mode] for record in records_of(records, Memory) if mode in record.modes]
    counted = next((row for row in held if row.peak), None)
    return ModeOfCell(
        cell,
        mode,
        bad.status if bad.whole else "limit",
        bad.reason or "",
        cold=_first(times, mode, "cold"),
        warm=_first(times, mode, "warm"),
        steady=timed.mean(mode, steady),
        ratio=timed.ratio(mode, eager, steady) if mode != eager else None,
        compiles=max(row.compiles for row in rows),
        peak=counted.peak if counted else None,
        held=counted.held if counted else None,
    )


def _first(times: Sequence[Time], mode: str, cache: str) -> float | None:
    calls = [record.modes[mode].first for record in times if record.cache == cache and record.modes[mode].first]
    return median(calls) if calls else None


def compilation_report(records: Records, cell: Cell, mode: str) -> CompiledRow | None:
    """Return a framework's report on the compilations of a mode in a cell, from nothing; None if there is none."""
    said = (record.modes.get(mode) for record in records_of(records, Compilations) if record.cell == cell)
    return next((row for row in said if row is not None), None)
