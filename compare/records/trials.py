"""What the selftest measures of each comparison, and what it publishes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.cells import MemoryArm, TimeArm
from compare.records.record import OfArms, Record, Setting

Outcome = Literal["met", "missed", "too noisy"]


class TrialArm(TimeArm):
    """An engine, as it is or slowed down: the calls that were made, or the parts of work in them, and those done."""

    calls: int = 0
    runs: int = 0


class TrialTime(OfArms, tag="selftest time"):
    """The times of a comparison of an engine with itself, in one worker process."""

    comparison: int
    process: int
    arms: dict[str, TrialArm]


class TrialMemory(OfArms, tag="selftest memory"):
    """The memory of one arm of a comparison of an engine with itself, which may leak."""

    comparison: int
    process: int
    arms: dict[str, MemoryArm]


class Rate(Struct, rename={"detected": "found"}, kw_only=True):
    """How many of the `comparisons` with a size injected detected it; `met` is null where there is no target."""

    injected: float
    comparisons: int
    detected: int
    rate: float
    interval: list[float]
    met: bool | None


class SpeedRate(Rate, kw_only=True):
    """Of a slowdown by a share, whose size by the calls made is `counted`.

    `slower` and `faster` say how many intervals of the ratio lie wholly above and below 1, `sides` where they lie by
    the smallest effect of interest. `estimate` and `half_width` are medians. `subject` is the size of a function of a
    user's own, and empty for the workloads.
    """

    counted: float
    slower: int
    faster: int
    interval_holds_truth: int
    estimate: float
    half_width: float
    sides: dict[str, int]
    subject: str = ""


class LeakRate(Rate, kw_only=True):
    """Of a leak of bytes with each epoch: `kept` is the median that was measured."""

    kept: float


class Coverage(Struct, kw_only=True):
    """Of the intervals that so many processes give, how many hold the true ratio; `half_width` is their median.

    `met` is null where there are too few of them to tell.
    """

    processes: int
    comparisons: int
    held: int
    rate: float
    interval: list[float]
    half_width: float
    met: bool | None


class Selftest(Record, tag="selftest", kw_only=True):
    """What `graphduel selftest --json` writes, as the one value of its file. `whole` is false of few comparisons.

    `at` is the end; `seconds` are those of the last of its `starts`, and `environment` is that of the first.
    """

    at: str
    seconds: float
    starts: int = 1
    settings: dict[str, Setting]
    whole: bool
    outcome: Outcome
    speed: list[SpeedRate]
    leaks: list[LeakRate]
    coverage: list[Coverage] = []
    failures: list[str]
