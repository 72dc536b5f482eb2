"""The regimes that claims about costs speak for, named before anything is measured: bytes of a step, ops, and kind.

A cell belongs to a regime by counts, which are exact: the peak of bytes that a step of the dynamic engine reaches, and
the ops on its tape. So the same cell is in the same regime in every run, and where the cells of one run are among those
of another, what counts show is the same in both. A claim is settled, supported or refuted, only where each regime of
size was measured; and no headline is the mean of steps of a few KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol, TypeVar, get_args

from compare import workloads
from compare.claims.base import Effect, Label, Regime, Side, judge_ratio
from compare.claims.evidence import Evidence, Read, right_arms
from compare.errors import UnknownNameError
from compare.records.cells import Memory
from compare.records.record import Cell, Records, group_by, records_of
from compare.stats import Interval, geometric_mean_interval
from compare.workloads import models
from compare.workloads.base import WorkloadKind

KIB, MIB = 2**10, 2**20
TINY = 64 * KIB
"""Steps of fewer bytes are all overhead: no headline is taken from them."""
REAL: WorkloadKind = "real models"
"""The kind of what is no workload of ours, but a model that people train (`compare.workloads.models`)."""
MIN_WORKLOADS = 3
"""Fewer workloads than this say nothing about graphs in general."""


class OfOneCell(Protocol):
    """What was measured of one cell."""

    @property
    def cell(self) -> Cell: ...  # noqa: D102


T = TypeVar("T", bound=OfOneCell)

SIZES: Mapping[str, tuple[float, float]] = {
    "steps under 64 KiB": (0, TINY),
    "steps of 64 KiB to 1 MiB": (TINY, MIB),
    "steps of 1 MiB and more": (MIB, inf),
}
"""Bytes that a step reaches: at least the first number, and less than the second."""
REALISTIC = "steps of 1 MiB and more"
"""The regime that the headline of a claim is taken from."""
DEPTHS: Mapping[str, tuple[float, float]] = {"up to 100 ops": (1, 101), "more than 100 ops": (101, inf)}
"""Ops on the tape of a step."""
KINDS: tuple[WorkloadKind, ...] = tuple(kind for kind in get_args(WorkloadKind) if kind not in ("control", "own"))
"""The kinds of workload that are judged apart."""


@dataclass(frozen=True)
class StepCounts:
    """The bytes that a step of a cell reaches, and the ops on its tape, 0 where nobody counts them."""

    bytes: int
    ops: int


def places(records: Records) -> dict[Cell, StepCounts]:
    """Where each cell belongs whose bytes were counted, by the dynamic engine."""
    right = right_arms(records)
    counts: dict[Cell, StepCounts] = {}
    for record in records_of(records, Memory):
        row = record.arms.get(record.base)
        if row is not None and row.status == "ok" and (record.cell, record.base) in right:
            before = counts.get(record.cell, StepCounts(0, 0))
            counts[record.cell] = StepCounts(max(before.bytes, row.peak), max(before.ops, row.nodes))
    return counts


def by_size(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """The items in each regime of size that has any, smallest first."""
    return _values_in_regimes(SIZES, ((item, where[item.cell].bytes) for item in items if item.cell in where))


def by_depth(items: Iterable[T], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """The items in each regime of depth that has any."""
    return _values_in_regimes(DEPTHS, ((item, where[item.cell].ops) for item in items if item.cell in where))


def by_kind(items: Iterable[T]) -> dict[str, list[T]]:
    """The items of each kind of workload that has any."""
    groups = group_by(items, lambda item: kind_of(item.cell.workload))
    return {kind: groups[kind] for kind in KINDS if kind in groups}


def kind_of(workload: str) -> WorkloadKind:
    """What a workload says that it is; "own" of one that is not known here, as in the records of a user's function."""
    if models.is_model(workload):
        return REAL
    try:
        return workloads.get(workload).kind
    except UnknownNameError:
        return "own"


def settle_label(label: Label, measured: Iterable[str]) -> tuple[Label, tuple[str, ...]]:
    """The label, if each regime of size is among those measured; else what is open, with the reason.

    That a claim depends is shown by two cells, wherever they are.
    """
    missing = [name for name in SIZES if name not in set(measured)]
    if not missing or label not in ("supported", "refuted"):
        return label, ()
    return "inconclusive", (f"what was measured says {label}, but nothing speaks for {' and '.join(missing)}",)


def cost(
    cell: Evidence, phase: str, read: Read, comparisons: int, arm: str | None = None, side: Side = "above"
) -> Regime:
    """Static ÷ dynamic in a phase, by the static arm that is best there unless another is named; open without one.

    That is the strongest form of what is said for static. `comparisons` is how many such intervals hold at once.
    """
    arm = arm or cell.least(read)
    ratio = cell.ratio(arm, cell.base, read, comparisons) if arm else None
    return judge_ratio(f"{cell.name}: {phase}", ratio, arm or "", side)


class CellContest(NamedTuple):
    """A cell, and static ÷ dynamic there, with the static arm that is best."""

    evidence: Evidence
    regime: Regime

    @property
    def cell(self) -> Cell:
        """What was measured."""
        return self.evidence.cell

    @property
    def ratio(self) -> float:
        """Static ÷ dynamic."""
        return self.regime.value or 1.0


def too_few(contests: Iterable[CellContest], more: str = "") -> str:
    """That there are too few workloads to say anything of graphs in general; empty where there are enough."""
    enough = len({contest.cell.workload for contest in contests}) >= MIN_WORKLOADS
    return "" if enough else f"both engines were measured on fewer than {MIN_WORKLOADS} workloads{more}"


def overall_regime(
    name: str, contests: Sequence[CellContest], label: Callable[[Sequence[CellContest], Interval], Label]
) -> Regime:
    """The regime of several cells: the geometric mean over workloads, then sizes, and the label of all of them."""
    if not contests:
        return Regime(name, "inconclusive")
    mean = _mean(contests)
    return Regime(name, label(contests, mean), mean.estimate, mean if mean.bounded else None)


def headline(what: str, contests: Sequence[CellContest]) -> tuple[Effect | None, Interval | None]:
    """The one number for a claim, of the cells of realistic steps; none where there are none."""
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
