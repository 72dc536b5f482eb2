"""The regimes that claims about costs speak for, named before anything is measured: bytes of a step, ops, and kind.

A cell belongs to a regime by counts, which are exact: the peak of bytes that a step of the dynamic engine reaches, and
the ops on its tape. So the same cell is in the same regime in every run, and where the cells of one run are among those
of another, what counts show is the same in both. A claim is settled, supported or refuted, only where each regime of
size was measured; and no headline is the mean of steps of a few KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeVar, get_args

from compare import workloads
from compare.claims.base import Label
from compare.claims.evidence import admitted
from compare.errors import UnknownNameError
from compare.records.cells import Memory
from compare.records.record import Cell, Records, grouped, of
from compare.workloads.base import WorkloadKind

KIB, MIB = 2**10, 2**20
TINY = 64 * KIB
"""Steps of fewer bytes are all overhead: no headline is taken from them."""
T = TypeVar("T")

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
    right = admitted(records)
    counts: dict[Cell, StepCounts] = {}
    for record in of(records, Memory):
        row = record.arms.get(record.base)
        if row is not None and row.status == "ok" and (record.cell, record.base) in right:
            before = counts.get(record.cell, StepCounts(0, 0))
            counts[record.cell] = StepCounts(max(before.bytes, row.peak), max(before.ops, row.nodes))
    return counts


def by_size(items: Iterable[T], cell: Callable[[T], Cell], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """The items in each regime of size that has any, smallest first."""
    return _grouped(((item, where[cell(item)].bytes) for item in items if cell(item) in where), SIZES)


def by_depth(items: Iterable[T], cell: Callable[[T], Cell], where: Mapping[Cell, StepCounts]) -> dict[str, list[T]]:
    """The items in each regime of depth that has any."""
    return _grouped(((item, where[cell(item)].ops) for item in items if cell(item) in where), DEPTHS)


def by_kind(items: Iterable[T], cell: Callable[[T], Cell]) -> dict[str, list[T]]:
    """The items of each kind of workload that has any."""
    groups = grouped(items, lambda item: kind_of(cell(item).workload))
    return {kind: groups[kind] for kind in KINDS if kind in groups}


def kind_of(workload: str) -> WorkloadKind:
    """What a workload says that it is; "own" of one that is not known here, as in the records of a user's function."""
    try:
        return workloads.get(workload).kind
    except UnknownNameError:
        return "own"


def settled(label: Label, measured: Iterable[str]) -> tuple[Label, tuple[str, ...]]:
    """The label, if each regime of size is among those measured; else what is open, with the reason.

    That a claim depends is shown by two cells, wherever they are.
    """
    missing = [name for name in SIZES if name not in set(measured)]
    if not missing or label not in ("supported", "refuted"):
        return label, ()
    return "inconclusive", (f"what was measured says {label}, but nothing speaks for {' and '.join(missing)}",)


def _grouped(valued: Iterable[tuple[T, int]], named: Mapping[str, tuple[float, float]]) -> dict[str, list[T]]:
    held = list(valued)
    groups = {name: [item for item, n in held if low <= n < high] for name, (low, high) in named.items()}
    return {name: group for name, group in groups.items() if group}
