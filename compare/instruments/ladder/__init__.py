"""The ladder: both engines rung by rung, each adding one thing, so that every difference has a cause.

From `tape`, the dynamic engine as it is, one rung leads to `pool`, and one to `replay`: the same kernels in a fixed
graph, without recording. From there each rung adds passes or the arena (`compare.instruments.ladder.rungs`). A
waterfall (`compare.instruments.ladder.waterfall`) is what the rungs of a cell say together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.instruments.base import Instrument
from compare.instruments.ladder.schema import Ladder
from compare.records.record import Cell, Kind
from compare.run.job import Job
from compare.run.settings import Settings


def jobs(settings: Settings, chosen: Sequence[Cell]) -> Iterator[tuple[Cell, Job]]:
    """The ladders of the cells that have one, in so many processes each."""
    return settings.limits.closer.ladders(chosen, settings)


LADDER = Instrument(
    (Kind(Ladder, "compare.instruments.ladder.measure:measure", typical={"small": 1.7, "": 3.5}),),
    jobs,
    ("compare.instruments.ladder.figure",),
    "C6",
)
