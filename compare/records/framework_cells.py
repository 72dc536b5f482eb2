"""What a process answers that runs a workload in a framework."""

from __future__ import annotations

from typing import Literal

from compare.records.framework_steps import Made
from compare.records.record import OfArms
from compare.records.time import TimeArm


class FrameworkArm(TimeArm):
    """An arm of a framework in one process: how far it is from float64, what it took, what it compiled.

    `peak` is what a step takes from malloc above what was there before it, `held` what is there after an epoch that was
    not there before the first call; both null where the process does not count.
    """

    output_error: float | None = None
    gradient_error: float | None = None
    tolerance: float = 0.0
    compilations: list[Made] = []
    breaks: dict[str, int] = {}
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
