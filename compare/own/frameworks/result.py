"""What comparing a function in a framework gave: the records of all processes, and what they come to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from compare.own.frameworks import show
from compare.own.frameworks.asked import Asked
from compare.own.frameworks.modes import Mode, best, calls_of, modes_of
from compare.own.result import empty
from compare.records import files
from compare.records.framework_steps import FrameworkGate, FrameworkTime

SCHEMA = 1
"""The version of `Result.to_dict`; a field may be added without a new one."""


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
        return modes_of(self.asked.arms, self.gate, self.processes)

    @cached_property
    def best(self) -> Mode | None:
        """The compiled mode to use; None where none is faster than eager, or none is known to be."""
        return best(self.modes)

    @property
    def calls(self) -> int:
        """The calls of a pass."""
        return calls_of(self.processes)

    @property
    def exit_code(self) -> int:
        """0 answered, 1 a mode failed, 3 the times do not answer, 4 a mode disagrees, 5 nothing was measured."""
        statuses = {mode.status for mode in self.modes}
        if "disagree" in statuses:
            return 4
        if all(mode.call is None for mode in self.modes):
            return 5
        if self.lost or "failed" in statuses:
            return 1
        return 3 if self.best is None and any(mode.answer == "unclear" for mode in self.modes) else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "framework comparison",
            "asked": self.asked.to_dict(),
            "best": self.best and self.best.name,
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
        return show.plain(self.asked, self.gate, self.processes, self.modes, self.best, self.lost)
