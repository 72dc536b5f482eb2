"""What a process answers that runs a step in a framework, and what a framework tells of its compilations."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Arm, OfArms, Seconds
from compare.records.time import TimeArm


class Made(Struct):
    """One compilation: why there was one, and its seconds where the framework says them."""

    reason: str
    seconds: Seconds | None


class FrameworkArm(TimeArm):
    """An arm of a framework in one process: how far it is from what it must give, what it took, what it compiled.

    `breaks` are graph breaks by reason, and `limits` says what runs eager since it was compiled too often. `peak` is
    what a step takes from malloc above what was there before it, `held` what is there after an epoch that was not there
    before the first call; both null where the process does not count.
    """

    output_error: float | None = None
    gradient_error: float | None = None
    tolerance: float = 0.0
    compilations: list[Made] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []
    peak: int | None = None
    held: int | None = None


class FrameworkCell(OfArms, tag="framework cell"):
    """A workload in a framework: its eager arm and those that are compared with it, in one process.

    A `cold` process finds no compiled code of earlier ones; it counts bytes, and times no steady state.
    """

    process: int
    version: str
    cache: Literal["cold", "warm"]
    arms: dict[str, FrameworkArm]


class FrameworkStep(OfArms, tag="framework step"):
    """A function of the user's in a framework, in one process. It is `random` where another seed gives another result.

    `undoubled` is why it does not run in float64, where it does not: then eager alone says what is right.
    """

    version: str
    arms: dict[str, FrameworkArm]
    process: int | None = None
    random: bool = False
    undoubled: str | None = None


class CompiledArm(Arm):
    """What a framework tells of an arm: as in FrameworkArm."""

    made: list[Made] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []


class Compilations(OfArms, tag="compilations"):
    """What a framework tells of the modes of a user's function, from nothing; the rest is as in FrameworkStep."""

    version: str
    arms: dict[str, CompiledArm]
    random: bool = False
    undoubled: str | None = None
