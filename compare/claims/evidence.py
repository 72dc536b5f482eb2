"""The cells of a results file: one workload at one size, with only the arms that passed the parity gate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from compare.claims.base import Record, Records
from compare.stats import Interval, geometric_mean, ratio_interval

DYNAMIC = "dynamic"
SIZES = ("small", "medium", "large")

Read = Callable[[Record], Sequence[float]]
"""Takes numbers out of what one arm measured in one process, always in the same order."""


@dataclass(frozen=True)
class Cell:
    """One workload at one size: for each worker process, what each admitted arm measured there."""

    workload: str
    size: str
    processes: tuple[Mapping[str, Record], ...]

    @property
    def name(self) -> str:
        """`rnn_text (small)`."""
        return f"{self.workload} ({self.size})"

    @property
    def static_arms(self) -> tuple[str, ...]:
        """The static arms that some process measured, by name."""
        return tuple(sorted({arm for process in self.processes for arm in process} - {DYNAMIC}))

    def of(self, arm: str) -> list[Record]:
        """What an arm measured, one entry for each process that has it."""
        return [process[arm] for process in self.processes if arm in process]

    def mean(self, arm: str, read: Read) -> float | None:
        """The geometric mean of all that `read` finds for an arm; None where nothing is usable."""
        found = [values for measured in self.of(arm) if _usable(values := read(measured))]
        return geometric_mean(v for values in found for v in values) if found else None

    def ratio(self, top: str, bottom: str, read: Read, comparisons: int = 1) -> Interval | None:
        """`top / bottom` over the blocks that both arms have, paired; None where there are none.

        `comparisons` is how many such intervals one verdict rests on, for all of them to hold at once.
        """
        pairs = [
            (tops, bottoms)
            for process in self.processes
            if top in process and bottom in process
            if _usable(tops := read(process[top])) and _usable(bottoms := read(process[bottom]))
            if len(tops) == len(bottoms)
        ]
        return ratio_interval(*map(list, zip(*pairs, strict=True)), comparisons=comparisons) if pairs else None

    def least(self, read: Read) -> str | None:
        """The static arm with the smallest mean: the best that static has to offer here."""
        means = {arm: mean for arm in self.static_arms if (mean := self.mean(arm, read)) is not None}
        return min(means, key=lambda arm: (means[arm], arm)) if means else None


def cells(records: Records, kind: str) -> list[Cell]:
    """The cells of the records of one kind ("time" or "memory"), by workload and rising size."""
    admitted = _admitted(records)
    groups: dict[tuple[str, str], list[Mapping[str, Record]]] = {}
    for record in sorted((r for r in records if r.get("kind") == kind), key=_canonical):
        place = record["workload"], record["size"]
        arms = {arm: m for arm, m in _measured(record) if (*place, arm) in admitted}
        groups.setdefault(place, []).append(arms)
    return [Cell(workload, size, tuple(arms)) for (workload, size), arms in groups.items()]


def left_out(records: Records, kind: str) -> tuple[str, ...]:
    """One sentence for each arm that was tried and does not count, with the reason."""
    admitted, found = _admitted(records), set[str]()
    for record in (r for r in records if r.get("kind") == kind):
        for arm, measured in record["arms"].items():
            name = f"{record['workload']} ({record['size']}), {arm}"
            if measured["status"] != "ok":
                found.add(f"{name}: {measured['status']}, {measured.get('reason') or 'no reason given'}")
            elif (record["workload"], record["size"], arm) not in admitted:
                found.add(f"{name}: left out, its outputs and gradients were not shown to agree")
    return tuple(sorted(found))


def unsteady(cells: Sequence[Cell]) -> tuple[str, ...]:
    """One sentence for each arm that some process never saw steady: all its blocks count, warm or not."""
    return tuple(
        f"{cell.name}, {arm}: no steady state was reached in {count} of {len(cell.of(arm))} processes"
        for cell in cells
        for arm in (DYNAMIC, *cell.static_arms)
        if (count := sum(measured.get("steady") is False for measured in cell.of(arm)))
    )


def steady(measured: Record) -> Sequence[float]:
    """Seconds a call, or an example of a stream, in steady state: one number a block."""
    return tuple(measured.get("blocks") or ())


def first_run(measured: Record) -> Sequence[float]:
    """Seconds to be done once, from nothing: build and first call, or build and the whole first epoch."""
    stream = measured.get("stream")
    calls = sum(call["seconds"] for call in stream) if stream else measured.get("first") or 0.0
    return ((measured.get("build") or 0.0) + calls,)


def _admitted(records: Records) -> set[tuple[str, str, str]]:
    """The (workload, size, arm) for which every parity record says ok."""
    verdicts: dict[tuple[str, str, str], bool] = {}
    for record in (r for r in records if r.get("kind") == "parity"):
        for arm, checked in record["arms"].items():
            place = (record["workload"], record["size"], arm)
            verdicts[place] = verdicts.get(place, True) and checked["status"] == "ok"
    return {place for place, ok in verdicts.items() if ok}


def _measured(record: Record) -> Iterator[tuple[str, Record]]:
    return ((arm, m) for arm, m in record["arms"].items() if m["status"] == "ok")


def _canonical(record: Record) -> tuple[Any, ...]:
    """A total order that does not depend on when a line was written."""
    rank = SIZES.index(record["size"]) if record["size"] in SIZES else len(SIZES)
    text = json.dumps(record, sort_keys=True, default=str)
    return record["workload"], rank, record["size"], record.get("process", 0), text


def _usable(values: Sequence[float]) -> bool:
    return bool(values) and all(isfinite(v) and v > 0 for v in values)
