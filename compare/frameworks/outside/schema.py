"""What a process answers that runs a workload in a framework."""

from __future__ import annotations

from typing import Literal

from compare.frameworks.own.schema import Made
from compare.instruments.time.schema import TimeArm
from compare.records.record import OfArms


class FrameworkArm(TimeArm):
    """An arm of a framework in one process: how far it is from float64, what it took, what it compiled.

    `whole` is false where its first epoch was ended at its limit: the last call of `stream` is then the one that was
    interrupted, and no call was timed in steady state. `peak` is what an epoch takes from malloc above what was there
    before it, `held` what is there after it that was not there before its first call; both null where the process
    does not count.
    """

    output_error: float | None = None
    gradient_error: float | None = None
    tolerance: float = 0.0
    whole: bool = True
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
