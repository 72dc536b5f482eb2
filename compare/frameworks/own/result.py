"""What comparing a function in a framework gave, mode by mode, and whether compiling is worth it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import ceil, fsum
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import to_builtins

from compare.claims.base import SMALLEST_EFFECT
from compare.frameworks.own import show
from compare.frameworks.own.asked import Asked
from compare.frameworks.own.schema import FrameworkGate, FrameworkTime
from compare.own.result import empty
from compare.records import files
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


@dataclass(frozen=True, repr=False)
class Result:
    """What comparing a function gave: the gate, the times of each process, and what went wrong in others."""

    asked: Asked
    gate: FrameworkGate
    processes: tuple[FrameworkTime, ...] = ()
    lost: tuple[str, ...] = ()

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Every mode that was asked for, eager first."""
        eager = self._mode(self.asked.arms[0], None)
        return (eager, *(self._mode(arm, eager) for arm in self.asked.arms[1:]))

    @property
    def calls(self) -> int:
        """The calls of a pass."""
        return max((process.calls for process in self.processes), default=0)

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a mode failed, 3 the times cannot be told apart, 4 a mode disagrees, 5 nothing was measured."""
        statuses = {mode.status for mode in self.modes}
        if "disagree" in statuses:
            return 4
        if all(mode.call is None for mode in self.modes):
            return 5
        if self.lost or "failed" in statuses:
            return 1
        return 3 if any(mode.call and mode.ratio and mode.side == "unclear" for mode in self.modes) else 0

    def _mode(self, arm: str, eager: Mode | None) -> Mode:
        row, timed = self.gate.modes[arm], [p.modes[arm] for p in self.processes if arm in p.modes]
        ended = row if row.status != "ok" else next((mode for mode in timed if mode.status != "ok"), row)
        found = Mode(arm, ended.status, ended.reason, row.ulp)
        if not timed:
            return found
        cold, *warm = timed
        made = Counter(one.reason for one in cold.compilations)
        peaks = [mode.peak for mode in timed if mode.peak is not None]
        found = replace(
            found,
            first=cold.first[0] if cold.first else None,
            first_warm=median(mode.first[0] for mode in warm if mode.first) if warm else None,
            epoch=fsum(cold.first),
            epoch_warm=median(fsum(mode.first) for mode in warm) if warm else None,
            compiles=made.total(),
            reasons=dict(made),
            breaks=cold.breaks,
            peak=round(median(peaks)) if peaks else None,
        )
        blocks = [mode.blocks for mode in timed if mode.blocks]
        if not blocks:
            return found
        found = replace(found, call=geometric_mean(seconds for process in blocks for seconds in process))
        if eager is None or eager.call is None:
            return found
        found = replace(found, ratio=self._ratio(arm))
        cold_pays, warm_pays = (_pays_from(found, eager, self.calls, end) for end in ("", "_warm"))
        return replace(found, pays_from=cold_pays, pays_from_warm=warm_pays)

    def _ratio(self, arm: str) -> Interval:
        beside = [p.modes for p in self.processes if {arm, self.asked.arms[0]} <= p.modes.keys()]
        pairs = [(modes[arm].blocks, modes[self.asked.arms[0]].blocks) for modes in beside]
        tops, bottoms = zip(*(pair for pair in pairs if all(pair)), strict=True)
        return ratio_interval(tops, bottoms)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "framework comparison",
            "asked": self.asked.to_dict(),
            "modes": [{**asdict(mode), "ratio": mode.ratio and mode.ratio.bounds()} for mode in self.modes],
            "records": to_builtins([self.gate, *self.processes]),
            "lost": list(self.lost),
        }

    def save(self, directory: Path) -> Path:
        """Write comparison.json and answer.txt into an empty folder; the path of the answer. Raises CompareError."""
        folder = empty(directory)
        document = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        files.write_atomic(folder / "comparison.json", f"{document}\n".encode())
        return files.write_atomic(folder / "answer.txt", f"{self}\n".encode())

    def __repr__(self) -> str:
        return show.plain(self)


def _pays_from(mode: Mode, eager: Mode, calls: int, end: str) -> int | None:
    """The call from which on the mode has cost less than eager; None if it never does, or nobody can tell."""
    spent, base = getattr(mode, f"epoch{end}"), getattr(eager, f"epoch{end}")
    gain = (eager.call or 0.0) - (mode.call or 0.0)
    if mode.side != "below" or gain <= 0 or spent is None or base is None:
        return None
    return calls + max(0, ceil((spent - base) / gain))
