"""The plan of a run: its settings, the cells they select, and the jobs of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from compare import workloads
from compare.errors import NothingMeasuredError
from compare.measure.job import Budget, Job

CHECKS: Mapping[str, tuple[str, str]] = {
    "C1": ("program", "compare.corpus.measure:measure"),
    "C2": ("gradients", "compare.claims.gradients:measure"),
    "C3": ("fault", "compare.faults.measure:measure"),
    "C8": ("edit", "compare.edits.measure:measure"),
}
"""The claims with a check of their own, apart from any cell: the kind of its record, and the function that makes it."""


OWN = "own"
"""What the preset of a user's own function is called in the settings of its run."""


@dataclass(frozen=True)
class Preset:
    """How much a run measures: sizes, processes, how long each; `timeout` ends a stuck worker."""

    sizes: tuple[str, ...]
    processes: int
    budget: Budget
    timeout: float


PRESETS: Mapping[str, Preset] = {
    "quick": Preset(("small",), 3, Budget(rounds=12, least=4, seconds=2.5), timeout=90),
    "full": Preset(("small", "medium", "large"), 6, Budget(rounds=20, least=5, seconds=20), timeout=900),
}


@dataclass(frozen=True)
class Settings:
    """What a user asked for. `only` is a glob on `workload` or `workload/size`."""

    preset: str = "quick"
    seed: int = 0
    processes: int = PRESETS["quick"].processes
    only: str | None = None

    @property
    def limits(self) -> Preset:
        """The preset by its name."""
        return PRESETS[self.preset]

    def to_dict(self) -> dict[str, Any]:
        """As a run's first line records them."""
        return asdict(self)


class Cell(NamedTuple):
    """One workload at one size."""

    workload: str
    size: str

    def __str__(self) -> str:
        return f"{self.workload}/{self.size}"


def cells(settings: Settings) -> list[Cell]:
    """The cells the settings select. Raises NothingMeasuredError when there is none."""
    known = [Cell(name, size) for name in workloads.names() for size in settings.limits.sizes]
    found = [cell for cell in known if _selected(cell, settings.only)]
    if not found:
        hint = workloads.nearest(settings.only or "", (*workloads.names(), *map(str, known)))
        raise NothingMeasuredError(f"--only {settings.only!r} matches no cell of a {settings.preset} run; {hint}")
    return found


def check_jobs(settings: Settings) -> list[Job]:
    """The checks of claims; none of them when only some cells are asked for."""
    if settings.only is not None:
        return []
    return [Job(kind, claim=claim, source=source, seed=settings.seed) for claim, (kind, source) in CHECKS.items()]


def parity_job(cell: Cell, settings: Settings) -> Job:
    """The gate of a cell."""
    return _job("parity", cell, settings)


def time_jobs(chosen: list[Cell], settings: Settings) -> Iterator[tuple[Cell, Job]]:
    """Every cell, process after process: a slow hour meets all cells, an early end leaves some of each."""
    for process in range(settings.processes):
        for cell in chosen:
            yield cell, _job("time", cell, settings, process)


def memory_job(cell: Cell, settings: Settings) -> Job:
    """The memory pass of a cell; it is split into one process per arm where it is run."""
    return _job("memory", cell, settings)


def _selected(cell: Cell, only: str | None) -> bool:
    return only is None or fnmatchcase(cell.workload, only) or fnmatchcase(str(cell), only)


def _job(kind: str, cell: Cell, settings: Settings, process: int | None = None) -> Job:
    return Job(
        kind,
        cell.workload,
        cell.size,
        process,
        source=workloads.source(cell.workload),
        seed=settings.seed,
        budget=settings.limits.budget,
    )
