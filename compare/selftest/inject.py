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


class Injected(Step):
    """A step of an engine that runs once more every so often, and may keep bytes at the end of every epoch."""

    def __init__(self, step: Step, share: float = 0.0, leak: str = "", kept: int = 0) -> None:
        super().__init__(step.function, step.params, step.examples)
        self.step, self.share, self.leak, self.kept = step, round(share * WHOLE), leak, kept
        self.calls = self.runs = self._due = 0
        self._keeps: list[Any] = []

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The loss and the gradients, computed twice where another run is due."""
        self.calls += 1
        self._due += self.share
        if self._due >= WHOLE:
            self._due -= WHOLE
            self._run(example)
        if self.leak and self.calls % len(self.examples) == 0:
            self._keeps.append(np.ones(self.kept, np.uint8) if self.leak == "array" else bytearray(self.kept))
        return self._run(example)

    def _run(self, example: tuple[Any, ...]) -> tuple[Any, Any]:
        self.runs += 1
        return self.step(*example)

    @property
    def compiles(self) -> int:
        """As of the engine's own step."""
        return self.step.compiles

    @property
    def compile_seconds(self) -> float:
        """As of the engine's own step."""
        return self.step.compile_seconds

    def executables(self) -> list[Any]:
        """As of the engine's own step."""
        return self.step.executables()

    def close(self) -> None:
        """Let go of what was compiled and kept."""
        self._keeps.clear()
        self.step.close()
        super().close()


def build(arm: str, data: Case) -> Injected:
    """The step of an arm. Raises ValueError for a change that there is not."""
    engine, _, change = arm.partition("|")
    step = arms.build(engine, data)
    match change.removeprefix(AGAIN).split():
        case []:
            return Injected(step)
        case ["leak", kind, size]:
            return Injected(step, leak=kind, kept=int(size))
        case [share] if share.startswith("+") and share.endswith("%"):
            return Injected(step, share=float(share[1:-1]) / 100)
    raise ValueError(f"no change is called {change!r}; write again, +5%, or leak array 65536")


def size_of(arm: str) -> float:
    """How much an arm was changed by: a share of its time, or bytes; 0 for an engine as it is."""
    change = arm.partition("|")[2].split()
    match change:
        case ["leak", _, size]:
            return float(size)
        case [share] if share.startswith("+"):
            return float(share[1:-1]) / 100
    return 0.0
