"""Where one engine overtakes the other: chains of ops over a grid of tensor size and depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.instruments.base import Instrument
from compare.instruments.crossover.schema import Crossover, CrossoverMemory
from compare.records.record import Cell, Kind
from compare.run.job import Job
from compare.run.settings import Settings


def jobs(settings: Settings, _chosen: Sequence[Cell]) -> Iterator[tuple[None, Job]]:
    """The map of times in each process, and that of bytes once."""
    tables, seed = settings.limits.tables, settings.seed
    for process in range(tables.processes):
        yield None, Job("crossover", size=tables.grid, process=process, seed=seed, budget=tables.grid_budget)
    yield None, Job("crossover memory", size=tables.grid, seed=seed)


CROSSOVER = Instrument(
    (
        Kind(Crossover, "compare.instruments.crossover.measure:measure", typical={"coarse": 2.5, "": 18.0}),
        Kind(CrossoverMemory, "compare.instruments.crossover.measure:measure_memory"),
    ),
    jobs,
    ("compare.instruments.crossover.figure",),
    "C6",
)
