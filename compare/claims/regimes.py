"""The regimes of claims on costs, fixed before anything is measured: bytes of a step, number of ops, and kind.

Exact counts decide the regime of a cell: the peak bytes of a step of the dynamic engine, and the ops on its tape. So a
cell is in the same regime in every run. A claim is supported or refuted only if each regime of size was measured, and
no headline is taken from steps of a few KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol, TypeVar, get_args

from compare import workloads
from compare.claims.base import Effect, Label, Regime, Side, judge_ratio
from compare.claims.evidence import Evidence, Read, right_modes
from compare.errors import UnknownNameError
from compare.records.cells import Memory
from compare.records.record import Cell, Records, group_by, records_of
from compare.stats import Interval, geometric_mean_interval
from compare.workloads import models
from compare.workloads.base import WorkloadKind

KIB, MIB = 2**10, 2**20
TINY = 64 * KIB
"""The bytes below which a step is nearly all overhead; no headline is taken from such steps."""
REAL: WorkloadKind = "real models"
"""The kind of a model that people train (`compare.workloads.models`), as opposed to a workload of ours."""
MIN_WORKLOADS = 3
"""The fewest workloads from which something can be said about graphs in general."""


class OfOneCell(Protocol):
    """An object that was measured in one cell."""

    @property
    def cell(self) -> Cell: ...  # noqa: D102


T = TypeVar("T", bound=OfOneCell)

SIZES: Mapping[str, tuple[float, float]] = {
    "steps under 64 KiB": (0, TINY),
    "steps of 64 KiB to 1 MiB": (TINY, MIB),
    "steps of 1 MiB and more": (MIB, inf),
}
"""The regimes of size by the bytes that a step reaches: at least the first number, and less than the second."""
REALISTIC = "steps of 1 MiB and more"
"""The regime that the headline of a claim is taken from."""
DEPTHS: Mapping[str, tuple[float, float]] = {"up to 100 ops": (1, 101), "more than 100 ops": (101, inf)}
"""The regimes of depth by the ops on the tape of a step: at least the first number, and less than the second."""
KINDS: tuple[WorkloadKind, ...] = tuple(kind for kind in get_args(WorkloadKind) if kind not in ("control", "own"))
"""The kinds of workload that are judged separately."""


@dataclass(frozen=True)
class StepCounts:
    """The peak bytes of a step of a cell, and the ops on its tape; 0 ops if they were not counted."""

    bytes: int
    ops: int


def places(records: Records) -> dict[Cell, StepCounts]:
    """Return the counts of each cell whose bytes were counted in the base mode; they decide its regimes."""
    right = right_modes(records)
    counts: dict[Cell, StepCounts] = {}
    for record in records_of(records, Memory):
        row = record.modes.get(record.base)
        if row is not None and row.status == "ok" and (record.cell, record.base) in right:
            before = counts.get(record.cell, StepCounts(0, 0))
            counts[record.cell] = StepCounts(max(before.bytes, row.peak), max(before.ops, row.nodes))
    return counts


def by_size(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """Group items by the regime of size of their cells, smallest first; regimes without items are left out."""
    return _values_in_regimes(SIZES, ((item, where[item.cell].bytes) for item in items if item.cell in where))


def by_depth(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """Group items by the regime of depth of their cells; regimes without items are left out."""
    return _values_in_regimes(DEPTHS, ((item, where[item.cell].ops) for item in items if item.cell in where))


def by_kind(items: Iterable[T]) -> dict[str, list[T]]:
    """Group items by the kind of their workloads; kinds without items are left out."""
    groups = group_by(items, lambda item: kind_of(item.cell.workload))
    return {kind: groups[kind] for kind in KINDS if kind in groups}


def kind_of(workload: str) -> WorkloadKind:
    """Return the kind of a workload; "own" for an unknown name, as in the records of a user's function."""
    if models.is_model(workload):
        return REAL
    try:
        return workloads.get(workload).kind
    except UnknownNameError:
        return "own"


def settle_label(label: Label, measured: Iterable[str]) -> tuple[Label, tuple[str, ...]]:
    """Return the label and no reason if each regime of size was measured, else inconclusive with the reason.

    Labels other than supported and refuted stay: that a claim depends is shown by two cells of any size.
    """
    missing = [name for name in SIZES if name not in set(measured)]
    if not missing or label not in ("supported", "refuted"):
        return label, ()
    return "inconclusive", (f"what was measured says {label}, but nothing speaks for {' and '.join(missing)}",)


def cost(
    cell: Evidence, phase: str, read: Read, comparisons: int, mode: str | None = None, side: Side = "above"
) -> Regime:
    """Return the regime of static ÷ dynamic in a phase of a cell, inconclusive if there is no static mode.

    Without `mode`, the static mode that is best there stands for static. `comparisons` is the number of intervals that
    must hold at once.
    """
    mode = mode or cell.least(read)
    ratio = cell.ratio(mode, cell.base, read, comparisons) if mode else None
    return judge_ratio(f"{cell.name}: {phase}", ratio, mode or "", side)


class CellContest(NamedTuple):
    """A cell and its regime: static ÷ dynamic there, for the best static mode."""

    evidence: Evidence
    regime: Regime

    @property
    def cell(self) -> Cell:
        """The workload and its size."""
        return self.evidence.cell

    @property
    def ratio(self) -> float:
        """The ratio static ÷ dynamic; 1 if it is unknown."""
        return self.regime.value or 1.0


def too_few(contests: Iterable[CellContest], more: str = "") -> str:
    """Return a sentence if the contests have fewer than `MIN_WORKLOADS` workloads, else an empty string."""
    enough = len({contest.cell.workload for contest in contests}) >= MIN_WORKLOADS
    return "" if enough else f"both engines were measured on fewer than {MIN_WORKLOADS} workloads{more}"


def overall_regime(
    name: str, contests: Sequence[CellContest], label: Callable[[Sequence[CellContest], Interval], Label]
) -> Regime:
    """Return one regime for several cells: the geometric mean over workloads, then sizes, and a common label."""
    if not contests:
        return Regime(name, "inconclusive")
    mean = _mean(contests)
    return Regime(name, label(contests, mean), mean.estimate, mean if mean.bounded else None)


def headline(what: str, contests: Sequence[CellContest]) -> tuple[Effect | None, Interval | None]:
    """Return the one number that stands for a claim, from cells with realistic steps; (None, None) without cells."""
    if not contests:
        return None, None
    mean = _mean(contests)
    name = f"{what}, static ÷ dynamic, geometric mean over workloads, {REALISTIC}"
    return Effect(name, mean.estimate, "ratio"), mean


def _mean(contests: Sequence[CellContest]) -> Interval:
    groups = group_by(contests, lambda contest: contest.cell.workload).values()
    return geometric_mean_interval([[contest.ratio for contest in group] for group in groups])


def _values_in_regimes(named: Mapping[str, tuple[float, float]], valued: Iterable[tuple[T, int]]) -> dict[str, list[T]]:
    held = list(valued)
    groups = {name: [item for item, n in held if low <= n < high] for name, (low, high) in named.items()}
    return {name: group for name, group in groups.items() if group}
