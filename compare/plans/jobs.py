"""The jobs of a run: the cells that the settings select, the measurements of each, and those beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product, starmap
from math import inf

from compare import engines, text, workloads
from compare.claims import CLAIMS
from compare.errors import UnknownNameError
from compare.plans.settings import Beyond, Settings
from compare.records.cells import Ladder, Ledger, Memory, Parity, Parts, Threads, Time
from compare.records.job import KINDS, Budget, Job
from compare.records.record import LENGTH_DISTRIBUTIONS, LENGTH_MODELS, Cell, Record
from compare.workloads import models

INSTALL = "pip install 'graphduel[models]'"
"""The command that installs the packages of real models."""
GATED: frozenset[type[Record]] = frozenset((Time, Memory, Ladder, Threads, Parts, Ledger))
"""The kinds of record that are measured only of cells that pass the gate."""


def is_read(settings: Settings, kind: str) -> bool:
    """Return whether a run measures this kind of record; a run about one claim measures only the kinds it reads."""
    if settings.claim is None:
        return True
    reads = CLAIMS[settings.claim].reads
    return KINDS[kind].type in reads or (KINDS[kind].type is Parity and not GATED.isdisjoint(reads))


def cells(settings: Settings) -> list[Cell]:
    """Return the cells that the settings select. Raises UnknownNameError when there is none."""
    named = installed_models() if settings.limits.models else workloads.names()
    every = [Cell(name, size) for name in named for size in settings.limits.sizes]
    selected = [cell for cell in every if _is_selected(cell, settings)]
    if not selected:
        for name in models.MODELS if settings.limits.models else ():
            if models.missing(name) and _is_selected(Cell(name, models.SIZE), settings):
                raise UnknownNameError(
                    f"{name} is a model of {models.missing(name)}, which is not installed; {INSTALL}"
                )
        hint = workloads.nearest(settings.only or "", (*named, *map(str, every)))
        raise UnknownNameError(f"--only {settings.only!r} matches no cell of a {settings.preset} run; {hint}")
    return selected


def installed_models() -> tuple[str, ...]:
    """Return the real models whose packages are installed."""
    return tuple(name for name in models.MODELS if not models.missing(name))


def missing_packages() -> str:
    """Return a line about the models whose package is missing; "" where there are none."""
    lacking = Counter(package for name in models.MODELS if (package := models.missing(name)))
    many = text.count_noun(sum(lacking.values()), "model")
    return f"left out: {many} of {text.join_words(list(lacking))}; {INSTALL}" if lacking else ""


def check_jobs(settings: Settings, mode: str | None = None) -> list[Job]:
    """Return the checks of claims, in our engines or in a mode of a framework's.

    If only some cells are asked for, only the checks for a requested claim are returned.
    """
    if settings.limits.models or (settings.only is not None and settings.claim is None):
        return []
    checks = ((claim.id, claim.check) for claim in CLAIMS.values())
    return [
        Job(kind.name, claim=id, mode=mode, source=kind.measure, seed=settings.seed)
        for id, kind in checks
        if kind and (kind.everywhere or mode is None) and is_read(settings, kind.name)
    ]


def time_jobs(chosen: list[Cell], settings: Settings) -> list[Job]:
    """Return the time jobs of all cells, process by process: a slow hour meets all, an early end leaves some."""
    pairs = product(range(settings.processes), chosen)
    return [time_job(cell, settings, process, len(chosen)) for process, cell in pairs]


def time_job(cell: Cell, settings: Settings, process: int, cells: int) -> Job:
    """Return one process of a cell, with its share of the seconds for so many cells."""
    limits = settings.limits
    share = min(limits.budget.seconds, limits.seconds / (cells * settings.processes))
    return settings.job("time", cell, process, replace(limits.budget, seconds=share))


def table_jobs(settings: Settings) -> list[Job]:
    """Return the jobs of measurements beside the cells, process by process; [] when only some cells are asked for."""
    if settings.only is not None:
        return []
    return _by_process([*crossover_jobs(settings), *lengths_jobs(settings)])


def crossover_jobs(settings: Settings) -> Iterator[Job]:
    """Yield the jobs of the crossover map: its times in each process, and its bytes once."""
    tables, seed = settings.limits.tables, settings.seed
    for process in range(tables.processes):
        yield Job("crossover", size=tables.grid, process=process, seed=seed, budget=tables.grid_budget)
    yield Job("crossover memory", size=tables.grid, seed=seed)


def lengths_jobs(settings: Settings) -> Iterator[Job]:
    """Yield the jobs of each model with its lengths, in each process."""
    tables = settings.limits.tables
    for process in range(tables.processes):
        for model, lengths in tables.lengths or product(LENGTH_MODELS, LENGTH_DISTRIBUTIONS):
            yield lengths_job(model, lengths, settings, process)


def lengths_job(
    model: str,
    lengths: str,
    settings: Settings,
    process: int,
    examples: tuple[int, ...] = (),
    budget: Budget | None = None,
) -> Job:
    """Return one process of a model under every strategy, for a distribution of lengths or given `examples`."""
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


def closer_jobs(chosen: list[Cell], settings: Settings) -> list[Job]:
    """Return the jobs that analyse cells after time and memory, process by process: ladders, parts and ledgers."""
    closer = settings.limits.closer
    climbs = list(product(range(closer.processes), closer.of(closer.ladder, chosen)))
    apart = closer.of(closer.apart, chosen)
    parts = product(range(closer.apart_processes), apart)
    return _by_process(
        [
            *(settings.job("ladder", cell, process, closer.budget) for process, cell in climbs),
            *(settings.job("threads", cell, process, closer.budget) for process, cell in climbs),
            *(settings.job("parts", cell, process, closer.apart_budget) for process, cell in parts),
            *(replace(settings.job("ledger", cell), modes=engines.ours()) for cell in apart),
        ]
    )


def beyond_parity(settings: Settings) -> list[Job]:
    """Return the gate jobs of timed cells of further sizes."""
    beyond = _beyond(settings)
    return [settings.job("parity", cell, sample=beyond.examples) for cell in beyond.timed]


def beyond_times(settings: Settings) -> list[Job]:
    """Return the time jobs of cells of further sizes, process by process."""
    beyond = _beyond(settings)
    timed = product(range(settings.processes), beyond.timed)
    return [settings.job("time", cell, at, beyond.budget, beyond.examples) for at, cell in timed]


def beyond_counts(settings: Settings) -> list[Job]:
    """Return the memory jobs of further sizes, each cell checked and counted in one process."""
    beyond = _beyond(settings)
    left = {*settings.limits.leaves_out, *beyond.leaves_out}
    named = [name for name in workloads.WORKLOADS if name in workloads.names() and name not in left]
    cells = dict.fromkeys((*starmap(Cell, product(named, beyond.sizes)), *beyond.timed))
    return [settings.job("memory", cell, sample=beyond.examples) for cell in cells]


def _beyond(settings: Settings) -> Beyond:
    """Return the settings for further sizes; empty where only some cells are asked for."""
    beyond = settings.limits.beyond
    if beyond is None or settings.only is not None:
        return Beyond()
    return replace(beyond, timed=tuple(cell for cell in beyond.timed if cell.workload in workloads.names()))


def _is_selected(cell: Cell, settings: Settings) -> bool:
    only = settings.only
    if only is None:
        return cell.workload not in settings.limits.leaves_out
    return fnmatchcase(cell.workload, only) or fnmatchcase(str(cell), only)


def _by_process(jobs: list[Job]) -> list[Job]:
    """Return the jobs process by process, and last those that are done once."""
    return sorted(jobs, key=lambda job: inf if job.process is None else job.process)
