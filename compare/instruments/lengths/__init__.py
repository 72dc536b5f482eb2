"""Inputs of varying length under every strategy: padding, batching and compilation as factors of their own.

The names stand here, where they load no model and no data: those of `compare.instruments.lengths.models` and
`compare.instruments.lengths.distributions`. `job` is for a run and for `graphduel shapes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from compare.instruments.base import Instrument
from compare.instruments.lengths.schema import Lengths, LengthsProbe
from compare.records.record import Cell, Kind
from compare.run.job import Budget, Job
from compare.run.settings import Settings

MODELS = ("rnn_text", "encoder_text")
DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")


def jobs(settings: Settings, _chosen: Sequence[Cell]) -> Iterator[tuple[None, Job]]:
    """Each model with the lengths that it meets, in so many processes."""
    tables = settings.limits.tables
    for process in range(tables.processes):
        for model, lengths in tables.lengths or product(MODELS, DISTRIBUTIONS):
            yield None, job(model, lengths, settings, process)


def job(
    model: str,
    lengths: str,
    settings: Settings,
    process: int,
    examples: tuple[int, ...] = (),
    budget: Budget | None = None,
) -> Job:
    """One process of a model under every strategy, for a distribution of lengths or given ones of that name."""
    limits = settings.limits
    return Job(
        "lengths",
        model,
        limits.tables.size,
        process,
        lengths=lengths,
        examples=examples,
        seed=settings.seed,
        budget=budget or limits.tables.lengths_budget,
        memory=limits.memory,
    )


LENGTHS = Instrument(
    (
        Kind(Lengths, "compare.instruments.lengths.measure:measure", typical={"small": 2.2, "": 9.0}),
        Kind(LengthsProbe, "compare.instruments.lengths.probe:measure"),
    ),
    jobs,
    ("compare.instruments.lengths.figure",),
    "C4",
)
