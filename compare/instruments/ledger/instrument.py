"""The registration of this instrument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compare.instruments.base import Instrument
from compare.instruments.ledger.schema import Ledger
from compare.records.record import Cell, Kind
from compare.run.job import Job
from compare.run.settings import Settings

ARMS = ("dynamic", "static-exact")
"""The arms that a ledger is kept of: one graph each, over one example."""


def jobs(settings: Settings, chosen: Sequence[Cell]) -> Iterator[tuple[Cell, Job]]:
    """The ledgers of the cells that are taken apart."""
    closer = settings.limits.closer
    for cell in chosen:
        if closer.takes(closer.apart, cell):
            yield cell, replace(settings.job("ledger", cell), arms=ARMS)


LEDGER = Instrument(
    (Kind(Ledger, "compare.instruments.ledger.measure:measure", by_arm=True),),
    jobs,
    ("compare.instruments.ledger.figure",),
)
