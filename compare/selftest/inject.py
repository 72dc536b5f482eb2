"""An engine as it is, slowed down by a known share, or leaking known bytes: the arms of the selftest.

An arm is called `ENGINE` or `ENGINE|CHANGE`, where a change is `again`, `+5%`, `leak array 65536` or
`leak object 65536`. A slowed step runs once more as often as its share says, every twentieth time for 5%, with all that
counts and checks around it, so that the true size needs no calibration: it is counted. A step whose work has parts is
slowed inside each call instead (`compare.selftest.subjects`). Every arm carries the same counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compare import engines
from compare.engines.step import BoundCall, Observed, Step
from compare.selftest.subjects import Divided
from compare.workloads.base import Case

AGAIN = "again"
WHOLE = 10_000
"""Shares are counted in ten-thousandths: whole numbers add up exactly."""


class Injected(Step):
    """A step that runs once more every so often, or does more in each call, and may keep bytes after every epoch.

    `parts` are those of one call of the engine as it is; each call of this step has so many `more`.
    """

    def __init__(
        self, step: Step, *, share: float = 0.0, leak: str = "", kept: int = 0, parts: int = 1, more: int = 0
    ) -> None:
        super().__init__(step.engine, step, step.examples)
        self.step = step
        self.share, self.leak, self.kept = round(share * WHOLE), leak, kept
        self.parts, self.more = parts, more
        self._turns = self._again = 0
        self._due = self.share  # at the twentieth call of 5%, and not after it
        self._keeps: list[Any] = []

    @property
    def calls(self) -> int:
        """The calls from outside, or the parts of work in them where these are counted."""
        return (self._turns - self._again) * self.parts

    @property
    def runs(self) -> int:
        """What was done for them."""
        return self._turns * (self.parts + self.more)

    def ready(self, *example: Any) -> BoundCall:
        """The call of the step, which is made twice where another run is due."""
        call = self.step.ready(*example)

        def run() -> Any:
            self._turns += 1
            self._due += self.share
            if self._due >= WHOLE + self.share:  # the run that is due counts as one too
                self._due -= WHOLE + self.share
                self._again += 1
                run()  # with all that is around the work, or a short step would be slowed by less
            if self.leak and self._turns % len(self.examples) == 0:
                self._keeps.append(np.ones(self.kept, np.uint8) if self.leak == "array" else bytearray(self.kept))
            return call.run()

        return replace(call, run=run)

    @property
    def observed(self) -> Observed:
        """What was compiled for the step."""
        return self.step.observed

    def computed(self, lengths: Sequence[int]) -> int:
        """As the step says."""
        return self.step.computed(lengths)

    def executables(self) -> list[Any]:
        """Those of the step."""
        return self.step.executables()

    def close(self) -> None:
        """Release what the step has compiled."""
        super().close()
        self.step.close()


def build(arm: str, data: Case, divided: Divided | None = None) -> Injected:
    """The step of an arm, slowed inside each call if its work is divided. Raises ValueError for an unknown change."""
    changes, engine = _changes(arm), arm.partition("|")[0]
    if divided is None or "share" not in changes:
        return Injected(engines.step(engine, data), **changes)
    more = round(changes["share"] * divided.parts)
    return Injected(engines.step(engine, divided.case(divided.parts + more)), parts=divided.parts, more=more)


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
