"""What an instrument is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compare.records.record import Cell, Kind
from compare.run.job import Job
from compare.run.settings import Settings

Jobs = Callable[[Settings, Sequence[Cell]], Iterator[tuple[Cell | None, Job]]]
"""The jobs of a run, each with the cell whose gate it waits behind, or None where it belongs to no cell."""


def no_jobs(_settings: Settings, _chosen: Sequence[Cell]) -> Iterator[tuple[Cell | None, Job]]:
    """None of its own: where `compare.run.jobs` asks for its records, as it does for parity, time and memory."""
    return iter(())


@dataclass(frozen=True)
class Instrument:
    """What serves several claims: the kinds of its records, its jobs in a run, and the modules of its figures.

    `claim` is the claim beside which the page shows them, or `parity`; figures of none stand after the claims.
    """

    kinds: tuple[Kind, ...]
    jobs: Jobs = no_jobs
    figures: tuple[str, ...] = ()
    claim: str = ""
