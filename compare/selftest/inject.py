"""An engine as it is, slowed down by a known share, or leaking known bytes: the arms of the selftest.

An arm is called `ENGINE` or `ENGINE|CHANGE`, where a change is `again`, `+5%`, `leak array 65536` or
`leak object 65536`. A slowed step runs the same work once more as often as its share says, every twentieth time for 5%,
so the true size needs no calibration: it is counted, inside what is run. Every arm carries the same counters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compare.engines import arms
from compare.engines.arms import Step
from compare.workloads.base import Case

AGAIN = "again"
WHOLE = 10_000
"""Shares are counted in ten-thousandths: whole numbers add up exactly."""


class Injected:
    """What a step calls, once more every so often, keeping bytes at the end of every epoch of so many calls."""

    def __init__(self, function: Any, epoch: int = 1, share: float = 0.0, leak: str = "", kept: int = 0) -> None:
        self.function, self.epoch = function, epoch
        self.share, self.leak, self.kept = round(share * WHOLE), leak, kept
        self.calls = self.runs = self._due = 0
        self._keeps: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        """What the function gives, computed twice where another run is due."""
        self.calls += 1
        self._due += self.share
        if self._due >= WHOLE:
            self._due -= WHOLE
            self._run(args)
        if self.leak and self.calls % self.epoch == 0:
            self._keeps.append(np.ones(self.kept, np.uint8) if self.leak == "array" else bytearray(self.kept))
        return self._run(args)

    def _run(self, args: tuple[Any, ...]) -> Any:
        self.runs += 1
        return self.function(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)  # what an engine says of its function is so still


def build(arm: str, data: Case) -> Step:
    """The step of an arm. Raises ValueError for a change that there is not."""
    changes = _changes(arm)
    step = arms.build(arm.partition("|")[0], data)
    step.function = Injected(step.function, len(step.examples), **changes)
    return step


def size_of(arm: str) -> float:
    """How much an arm was changed by: a share of its time, or bytes; 0 for an engine as it is."""
    changes = _changes(arm)
    return float(changes.get("share", changes.get("kept", 0)))


def _changes(arm: str) -> dict[str, Any]:
    change = arm.partition("|")[2]
    match change.removeprefix(AGAIN).split():
        case []:
            return {}
        case ["leak", kind, size]:
            return {"leak": kind, "kept": int(size)}
        case [share] if share.startswith("+") and share.endswith("%"):
            return {"share": float(share[1:-1]) / 100}
    raise ValueError(f"no change is called {change!r}; write again, +5%, or leak array 65536")
