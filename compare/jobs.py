"""The plan of a run: its settings, the cells they select, and the jobs of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, NamedTuple

from compare import workloads
from compare.errors import UnknownNameError
from compare.lengths import DISTRIBUTIONS, MODELS
from compare.measure.job import Budget, Job

CHECKS: Mapping[str, tuple[str, str]] = {
    "C1": ("program", "compare.corpus.measure:measure"),
    "C2": ("gradients", "compare.claims.gradients:measure"),
    "C3": ("fault", "compare.faults.measure:measure"),
    "C7": ("prototype", "compare.prototypes.measure:measure"),
    "C8": ("edit", "compare.edits.measure:measure"),
}
"""The claims with a check of their own, apart from any cell: the kind of its record, and the function that makes it."""


OWN = "own"
"""What the preset of a user's own function is called in the settings of its run."""

GIB = 2**30


@dataclass(frozen=True)
class Tables:
    """What is measured beside the workloads: strategies for lengths, and the crossover map, in so many processes.

    `lengths` are models with the distribution of the lengths that each meets, at `size` (`compare.lengths`); `grid` is
    that of the map (`compare.crossover`).
    """

    lengths: tuple[tuple[str, str], ...]
    size: str
    lengths_budget: Budget
    grid: str
    grid_budget: Budget
    processes: int


LEDGER_ARMS = ("dynamic", "static-exact")
"""The arms that a ledger is kept of: one graph each, over one example."""


@dataclass(frozen=True)
class Closer:
    """Cells of one size that are looked at closer: where none is named, all workloads but those it leaves out.

    Of each the ladder (`compare.ladder`) in so many processes; of those that are `apart` also time part by part
    (`compare.parts`) and the ledger (`compare.ledger`).
    """

    size: str
    ladder: tuple[str, ...]
    apart: tuple[str, ...]
    processes: int
    budget: Budget
    leaves_out: tuple[str, ...] = ("big_matmul",)  # a step takes so long that eight rungs of it would take hours

    def takes(self, names: tuple[str, ...], cell: Cell) -> bool:
        """Whether a cell is among those of these names."""
        named = cell.workload in names if names else cell.workload not in self.leaves_out
        return cell.size == self.size and named


@dataclass(frozen=True)
class Preset:
    """How much a run measures: sizes, worker processes per cell, how long each.

    A cell whose intervals stay wide gets more processes, up to `most`, while `more_seconds` last. `seconds` is what the
    rounds of all cells may take together, on top of what each cell must. `leaves_out` names workloads that are measured
    only when asked for. `timeout` ends a stuck worker, and `memory` is how many bytes one may take.
    """

    sizes: tuple[str, ...]
    processes: int
    most: int
    budget: Budget
    seconds: float
    more_seconds: float
    timeout: float
    tables: Tables
    closer: Closer
    leaves_out: tuple[str, ...] = ()
    memory: int = 8 * GIB


PRESETS: Mapping[str, Preset] = {
    "quick": Preset(
        ("small",), 4, 8, Budget(rounds=12, least=4, seconds=2.5), seconds=30, more_seconds=10, timeout=90,
        tables=Tables(
            (("rnn_text", "lines"),), "small", Budget(rounds=6, least=3, seconds=0.5),
            "coarse", Budget(rounds=4, least=3, seconds=0.02), processes=3,
        ),
        closer=Closer(
            "small", ("tiny_mlp", "elementwise_chain"), ("tiny_mlp", "elementwise_chain"), processes=3,
            budget=Budget(rounds=8, least=4, seconds=0.8),
        ),
        leaves_out=(
            "deep_chain", "conv_digits", "lstm_text", "encoder_text", "early_exit", "decode_text", "beam_text",
        ),
    ),
    "full": Preset(
        ("small", "medium", "large"), 6, 12, Budget(rounds=20, least=5, seconds=20), seconds=360, more_seconds=60,
        timeout=900,
        tables=Tables(
            tuple(product(MODELS, DISTRIBUTIONS)), "medium", Budget(rounds=10, least=4, seconds=4),
            "fine", Budget(rounds=8, least=3, seconds=0.3), processes=3,
        ),
        closer=Closer("medium", (), (), processes=3, budget=Budget(rounds=12, least=4, seconds=1.5)),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a user asked for. `only` is a glob on `workload` or `workload/size`.

    With `python_tape` claims are judged by a tape in Python too.
    """

    preset: str = "quick"
    seed: int = 0
    processes: int = PRESETS["quick"].processes
    only: str | None = None
    python_tape: bool = False

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
    """The cells the settings select. Raises UnknownNameError when there is none."""
    known = [Cell(name, size) for name in workloads.names() for size in settings.limits.sizes]
    found = [cell for cell in known if _selected(cell, settings)]
    if not found:
        hint = workloads.nearest(settings.only or "", (*workloads.names(), *map(str, known)))
        raise UnknownNameError(f"--only {settings.only!r} matches no cell of a {settings.preset} run; {hint}")
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
            yield cell, time_job(cell, settings, process, len(chosen))


def time_job(cell: Cell, settings: Settings, process: int, cells: int) -> Job:
    """One process of a cell, which takes its share of the seconds there are for so many cells."""
    limits = settings.limits
    share = min(limits.budget.seconds, limits.seconds / (cells * settings.processes))
    return _job("time", cell, settings, process, replace(limits.budget, seconds=share))


def table_jobs(settings: Settings) -> Iterator[Job]:
    """The strategies for lengths and the crossover map; none of them when only some cells are asked for."""
    if settings.only is not None:
        return
    tables, seed = settings.limits.tables, settings.seed
    for process in range(tables.processes):
        for model, lengths in tables.lengths:
            yield lengths_job(model, lengths, settings, process)
        yield Job("crossover", size=tables.grid, process=process, seed=seed, budget=tables.grid_budget)
    yield Job("crossover memory", size=tables.grid, seed=seed)


def closer_jobs(chosen: list[Cell], settings: Settings) -> Iterator[tuple[Cell, Job]]:
    """The ladders of the cells that have one, time part by part, and the ledgers."""
    closer = settings.limits.closer
    ladders = [cell for cell in chosen if closer.takes(closer.ladder, cell)]
    apart = [cell for cell in chosen if closer.takes(closer.apart, cell)]
    for process in range(closer.processes):
        for kind, cells in (("ladder", ladders), ("parts", apart)):
            for cell in cells:
                yield cell, _job(kind, cell, settings, process, closer.budget)
    for cell in apart:
        yield cell, replace(_job("ledger", cell, settings), arms=LEDGER_ARMS)


def lengths_job(
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


def memory_job(cell: Cell, settings: Settings) -> Job:
    """The memory pass of a cell; it is split into one process per arm where it is run."""
    return _job("memory", cell, settings)


def _selected(cell: Cell, settings: Settings) -> bool:
    only = settings.only
    if only is None:
        return cell.workload not in settings.limits.leaves_out
    return fnmatchcase(cell.workload, only) or fnmatchcase(str(cell), only)


def _job(kind: str, cell: Cell, settings: Settings, process: int | None = None, budget: Budget | None = None) -> Job:
    return Job(
        kind,
        cell.workload,
        cell.size,
        process,
        source=workloads.source(cell.workload),
        seed=settings.seed,
        budget=budget or settings.limits.budget,
        memory=settings.limits.memory,
    )
