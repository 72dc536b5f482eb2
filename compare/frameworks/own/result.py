"""What comparing a function in a framework gave, mode by mode, and whether compiling is worth it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from statistics import median
from typing import Any

from compare.claims.base import SMALLEST_EFFECT
from compare.frameworks.own.asked import Asked
from compare.stats import Interval, geometric_mean, ratio_interval

SCHEMA = 1
"""The version of `Result.to_dict`; a field may be added without a new one."""


@dataclass(frozen=True)
class Mode:
    """One mode: seconds, bytes and counts. None where it was not timed, or nobody counts.

    call        seconds of a call once warm, the geometric mean
    ratio       that over eager's
    first       seconds of the first call with no compiled code at hand
    first_warm  the same where an earlier process has left its compiled code in the framework's cache
    epoch       seconds of the first pass over all calls, cold
    epoch_warm  the same with the cache
    peak        bytes from malloc that a pass reaches above what there was before it
    pays_from   the call from which on it has cost less in all than eager, cold
    """

    name: str
    status: str
    reason: str | None
    ulp: float | None
    call: float | None = None
    ratio: Interval | None = None
    first: float | None = None
    first_warm: float | None = None
    epoch: float | None = None
    epoch_warm: float | None = None
    peak: int | None = None
    compiles: int = 0
    reasons: Mapping[str, int] | None = None
    breaks: Mapping[str, int] | None = None
    pays_from: int | None = None
    pays_from_warm: int | None = None

    @property
    def side(self) -> str:
        """Whether it takes "below" eager's time, "above" it, a "tie", or is "unclear"."""
        return "unclear" if self.ratio is None else self.ratio.side(SMALLEST_EFFECT)


@dataclass(frozen=True)
class Result:
    """`gate` and `processes` are the records of `compare.frameworks.own.measure`."""

    asked: Asked
    gate: Mapping[str, Any]
    processes: Sequence[Mapping[str, Any]]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Every mode that was asked for, eager first."""
        eager = self._mode(self.asked.arms[0], None)
        return (eager, *(self._mode(arm, eager) for arm in self.asked.arms[1:]))

    @property
    def calls(self) -> int:
        """The calls of a pass."""
        return max((int(p["calls"]) for p in self.processes), default=0)

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a mode failed, 3 the times cannot be told apart, 4 a mode disagrees, 5 nothing was measured."""
        statuses = {mode.status for mode in self.modes}
        if "disagree" in statuses:
            return 4
        if all(mode.call is None for mode in self.modes):
            return 5
        if "failed" in statuses:
            return 1
        return 3 if any(mode.call and mode.ratio and mode.side == "unclear" for mode in self.modes) else 0

    def _mode(self, arm: str, eager: Mode | None) -> Mode:
        row = self.gate["arms"][arm]
        timed = [p["arms"][arm] for p in self.processes if arm in p["arms"]]
        ended = next((t for t in timed if t["status"] != "ok"), None) if row["status"] == "ok" else row
        found = Mode(arm, *((ended["status"], ended["reason"]) if ended else ("ok", None)), row["ulp"])
        if not timed:
            return found
        cold, *warm = timed
        made = Counter(c["reason"] for c in cold["compilations"])
        known = {
            **vars(found),
            "first": _first(cold),
            "first_warm": _median([_first(t) for t in warm]),
            "epoch": sum(cold["first"]),
            "epoch_warm": _median([sum(t["first"]) for t in warm]),
            "compiles": made.total(),
            "reasons": dict(made),
            "breaks": cold["breaks"],
            "peak": _median([t.get("peak") for t in timed]),
        }
        blocks = [t["blocks"] for t in timed if "blocks" in t]
        if not blocks:
            return Mode(**known)
        known["call"] = geometric_mean(seconds for process in blocks for seconds in process)
        if eager is not None and eager.call is not None:
            known["ratio"] = self._ratio(arm)
            for end in ("", "_warm"):
                known[f"pays_from{end}"] = _pays_from(known, eager, self.calls, end)
        return Mode(**known)

    def _ratio(self, arm: str) -> Interval:
        both = [
            (p["arms"][arm]["blocks"], p["arms"][self.asked.arms[0]]["blocks"])
            for p in self.processes
            if {"blocks"} <= p["arms"].get(arm, {}).keys() & p["arms"][self.asked.arms[0]].keys()
        ]
        tops, bottoms = zip(*both, strict=True)
        return ratio_interval(tops, bottoms)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "framework comparison",
            "asked": self.asked.to_dict(),
            "gate": dict(self.gate),
            "processes": [dict(p) for p in self.processes],
        }


def _first(row: Mapping[str, Any]) -> float | None:
    return row["first"][0] if row["first"] else None


def _median(values: Sequence[Any]) -> Any:
    there = [value for value in values if value is not None]
    return median(there) if there else None


def _pays_from(mode: Mapping[str, Any], eager: Mode, calls: int, end: str) -> int | None:
    """The first call after which the mode has cost less than eager; None if it never does, or nobody can tell."""
    ratio, epoch = mode["ratio"], mode[f"epoch{end}"]
    before = getattr(eager, f"epoch{end}")
    if ratio.side(SMALLEST_EFFECT) != "below" or epoch is None or before is None or eager.call is None:
        return None
    return calls + max(0, ceil((epoch - before) / (eager.call - mode["call"])))
