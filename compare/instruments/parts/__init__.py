"""Time part by part: where the seconds of a step go in each engine, by taking away one thing at a time.

Nothing is hooked into what is measured: each part is the difference of two programs that differ in it alone
(`compare.instruments.parts.programs`), timed side by side. What no difference explains is a part of its own,
`unexplained`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.instruments.base import Instrument
from compare.instruments.parts.schema import Parts
from compare.records.record import Cell, Kind
from compare.run.job import Job
from compare.run.settings import Settings


def jobs(settings: Settings, chosen: Sequence[Cell]) -> Iterator[tuple[Cell, Job]]:
    """Time part by part, of the cells that are taken apart."""
    return settings.limits.closer.parts(chosen, settings)


PARTS = Instrument(
    (Kind(Parts, "compare.instruments.parts.measure:measure", typical={"": 2.5}),),
    jobs,
    ("compare.instruments.parts.figure",),
    "C6",
)
