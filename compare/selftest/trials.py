"""The modes of the selftest: an engine unchanged, slowed down by a known share, or leaking known bytes.

A mode is named `ENGINE` or `ENGINE|CHANGE`, where a change is `again`, `+5%`, `leak array 65536` or `leak object
65536`. A slowed step repeats some calls, for 5% every twentieth of each example, with the counters and checks around
them. So its true size is counted, and needs no calibration. All modes have the same counters.

Functions that stand for a user's own, as `graphduel compare` measures them, take about 5 us, 1 ms and 100 ms a call.
The longer ones have a number of equal parts, and a slowed one has more parts in each call. Repeating one call in twenty
would not work: a block of 4 ms has 4 calls of 1 ms, so some blocks would be 25% slower, and the others not at all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict

import graphs
from compare import engines, workloads
from compare.engines.step import BoundCall, Observations, Step
from compare.instruments import memory, timing
from compare.records.checks import TrialMemory, TrialRow, TrialTime
from compare.records.job import Job
from compare.subjects.case import case_of
from compare.workloads import Case, Workload
from compare.workloads.base import Example

PARTS = 100
"""The number of parts of a longer function: each is 1% of its work."""
SIZES = {
    "5 us": {"side": 4, "parts": 1},
    "1 ms": {"side": 56, "parts": PARTS},
    "100 ms": {"side": 384, "parts": PARTS},
}
"""The side of the matrices and the number of parts, by the approximate time of a call."""
NAME = "own"
SOURCE = f"{__name__}:WORKLOAD"


def make(side: int, parts: int) -> Case:
    """Make the case of a function of `parts` layers on float32 matrices [side, side], without gradients."""

    def layers(x: Any, w: Any) -> Any:
        for _ in range(parts):
            x = graphs.tanh(x @ w)
        return x

    rng = np.random.default_rng(0)
    x, w = (rng.normal(0, side**-0.5, (side, side)).astype(np.float32) for _ in range(2))
    return case_of(layers, [(x, w)], False, None)


WORKLOAD = Workload(NAME, "A function of one's own", "Layers of equal work.", "open", "own", SIZES, make)


class DividedWork(NamedTuple):
    """Work of `parts` equal parts, and a function that makes the case with another number of parts."""

    parts: int
    case: Callable[[int], Case]


def divide_work(job: Job) -> DividedWork | None:
    """Return how the work of a job is divided; None if it has no parts."""
    size = SIZES.get(str(job.size), {}) if job.source == SOURCE else {}
    return DividedWork(size["parts"], partial(make, size["side"])) if size.get("parts", 1) > 1 else None


AGAIN = "again"
WHOLE = 10_000
"""The units of a share of 1: shares are counted in ten-thousandths, as whole numbers add up exactly."""


class InjectedStep(Step):
    """A step that repeats a `share` of its calls, or does more work in each call, and may leak bytes in every epoch.

    `parts` is the number of parts in one call of the unchanged engine; each call of this step has `more` in addition.
    """

    def __init__(
        self, step: Step, *, share: float = 0.0, leak: str = "", kept: int = 0, parts: int = 1, more: int = 0
    ) -> None:
        super().__init__(step.engine, step, step.examples)
        self.step = step
        self.share, self.leak, self.kept = round(share * WHOLE), leak, kept
        self.parts, self.more = parts, more
        self._turns = self._again = 0
        # For 5% the twentieth call of an example is repeated. Examples have counts of their own: where a short and a
        # long one alternate, every twentieth call is always the same one. And they take turns.
        places = max(1, len(self.examples))
        self._due = [self.share + place * (WHOLE + self.share) // places for place in range(places)]
        self._keeps: list[Any] = []

    @property
    def calls(self) -> int:
        """The number of calls from outside, times the parts of work in a call."""
        return (self._turns - self._again) * self.parts

    @property
    def runs(self) -> int:
        """The number of calls that were run, repetitions included, times the parts that were run in each."""
        return self._turns * (self.parts + self.more)

    def bind(self, index: int) -> BoundCall:
        """Return the bound call of an example by index, which runs twice whenever a repetition is due."""
        if index not in self._bound:
            self._bound[index] = self._repeating(self.examples[index], index)
        return self._bound[index]

    def ready(self, *example: Any) -> BoundCall:
        """Return the bound call of any example, counted as one of the first."""
        return self._repeating(example, 0)

    def _repeating(self, example: Example, place: int) -> BoundCall:
        call, due, full = self.step.ready(*example), self._due, WHOLE + self.share

        def run() -> Any:
            self._turns += 1
            due[place] += self.share  # a repeated run counts as a run too
            is_due = due[place] >= full
            due[place] -= is_due * full  # in every run, or a repetition would cost more than a run
            if is_due:
                self._again += 1
                run()  # with the code around the work, or a short step would be slowed by less
            if self.leak and self._turns % len(self.examples) == 0:
                self._keeps.append(np.ones(self.kept, np.uint8) if self.leak == "array" else bytearray(self.kept))
            return call.run()

        return replace(call, run=run)

    @property
    def observed(self) -> Observations:
        """The observations of the inner step, such as its compilations."""
        return self.step.observed

    def computed(self, lengths: Sequence[int]) -> int:
        """Return the elements that the inner step computes for inputs of these lengths."""
        return self.step.computed(lengths)

    def executables(self) -> list[Any]:
        """Return the executables of the inner step."""
        return self.step.executables()

    def close(self) -> None:
        """Release the compiled code of the step."""
        super().close()
        self.step.close()


def build(mode: str, data: Case, divided: DividedWork | None = None) -> InjectedStep:
    """Build the step of a mode, slowed inside each call if its work is divided. Raises ValueError for a bad change."""
    changes, engine = _changes(mode), mode.partition("|")[0]
    if divided is None or "share" not in changes:
        return InjectedStep(engines.step(engine, data), **changes)
    more = round(changes["share"] * divided.parts)
    return InjectedStep(engines.step(engine, divided.case(divided.parts + more)), parts=divided.parts, more=more)


def size_of(mode: str) -> float:
    """Return the size of a mode's change: a share of its time, or bytes; 0 for an unchanged engine."""
    changes = _changes(mode)
    return float(changes.get("share", changes.get("kept", 0)))


def _changes(mode: str) -> dict[str, Any]:
    change = mode.partition("|")[2]
    match change.removeprefix(AGAIN).split():
        case []:
            return {}
        case ["leak", kind, size]:
            return {"leak": kind, "kept": int(size)}
        case [share] if share.startswith("+") and share.endswith("%"):
            return {"share": float(share[1:-1]) / 100}
    raise ValueError(f"no change is called {change!r}; write again, +5%, or leak array 65536")


def measure_time(job: Job) -> TrialTime:
    """Measure the times of all modes of a job in one process; the record has the `calls` and `runs` of each mode."""
    steps: dict[str, InjectedStep] = {}

    def build_once(mode: str, case: Case) -> InjectedStep:
        return steps.setdefault(mode, build(mode, case, divide_work(job)))

    engines.find_engine(engines.OWN).start(job.seed, threads=job.threads)
    case = workloads.load(job.source).case(str(job.size))
    gc.freeze()  # as in a normal run
    rows = timing.measure_modes(job, case, build_once)
    modes = {
        mode: TrialRow(**asdict(row), calls=steps[mode].calls, runs=steps[mode].runs) for mode, row in rows.items()
    }
    return TrialTime(**job.head, modes=modes)


def measure_memory(job: Job) -> TrialMemory:
    """Measure the memory of the modes of a job; as in a run, each process has one mode."""
    case = workloads.load(job.source).case(str(job.size))
    return TrialMemory(**job.head, modes={mode: memory.measure_mode(mode, case, build) for mode in job.modes})
