"""The jobs of a run about frameworks: workloads, process after process, then the checks of claims."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from compare import workloads
from compare.claims import CLAIMS
from compare.engines import Engine, heap, named
from compare.engines.framework import PADDED
from compare.instruments.time.measure import COLD
from compare.records.job import Job
from compare.records.parity import Parity
from compare.records.record import Cell, kind_of
from compare.suite.jobs import is_read
from compare.suite.settings import Settings

FOLDER = "compiled"
"""Where in the folder of a run frameworks keep compiled code until it has ended."""


def installed(names: Sequence[str]) -> list[Engine]:
    """Those of these frameworks that are installed."""
    return [framework for framework in map(named, names) if not framework.missing]


def cells(settings: Settings, chosen: Sequence[Cell]) -> list[Cell]:
    """The cells that are measured in frameworks: those of the run, but for what the preset leaves out and adds."""
    if not is_read(settings, kind_of(Parity)):
        return []
    if settings.only is not None:
        return list(chosen)
    outside = settings.limits.outside
    kept = [cell for cell in chosen if cell.workload not in outside.leaves_out]
    added = [Cell(name, size) for name in outside.adds for size in settings.limits.sizes]
    return [*kept, *(cell for cell in added if cell not in kept)]


def jobs(
    settings: Settings, chosen: Sequence[Cell], directory: Path, counter: Path
) -> tuple[list[Job], list[Job], list[Job]]:
    """Jobs that find no compiled code, and checks; the first processes that find some; the others, one after another.

    `counter` is a folder for the library that counts bytes.
    """
    found, outside = installed(settings.frameworks), settings.limits.outside
    shared = [
        (framework, cell, arms)
        for framework in found
        for cell in cells(settings, chosen)
        for arms in groups(framework, cell, usual=outside.usual)
    ]
    counting = heap.environment(counter) if settings.device == "cpu" else {}
    cold = [cell_job(settings, *one, COLD, directory, counting) for one in shared]
    if settings.only is None or settings.claim is not None:
        cold += check_jobs(settings, found, directory)
    first = [cell_job(settings, *one, COLD + 1, directory) for one in shared]
    others = [
        cell_job(settings, framework, cell, arms, process, directory)
        for process in range(COLD + 2, outside.processes)
        for framework, cell, arms in shared
        if len(arms) > 1  # one arm has no ratio, so no interval
    ]
    return cold, first, others


def groups(framework: Engine, cell: Cell, *, usual: bool) -> Iterator[tuple[str, ...]]:
    """The arms that share a process, the eager one first: all, or one that compiles where they disturb each other.

    Of the modes of the suite, with `usual` only those that are. The first arm that compiles also meets padded examples,
    where the workload can be padded.
    """
    policies = workloads.get(cell.workload).policies
    eager, *others = framework.arms
    modes = {arm: framework.mode(arm) for arm in others}
    asked = [
        arm
        for arm, mode in modes.items()
        if mode.suite and (mode.usual or not usual) and ("symbolic" in policies or not mode.relaxes)
    ]
    if "pad" in policies and asked:
        asked.append(asked[0] + PADDED)
    if framework.shares or not asked:
        yield eager, *asked
    else:
        yield from ((eager, arm) for arm in asked)


def cell_job(
    settings: Settings,
    framework: Engine,
    cell: Cell,
    arms: tuple[str, ...],
    process: int,
    directory: Path,
    counting: Mapping[str, str] = MappingProxyType({}),
) -> Job:
    """One process of arms on a workload, with variables for counting bytes."""
    outside = settings.limits.outside
    job = settings.job("time", cell, process, outside.budget)
    limit = outside.limit if process == COLD else outside.limit / 2  # what is compiled already is found
    variables = framework.environment(folder(directory, arms[-1], cell), settings.device)
    asked = {"limit": limit, "device": settings.device}
    return replace(job, arm=arms[-1], arms=arms, asked=asked, variables={**variables, **counting}, memory=0)


def check_jobs(settings: Settings, found: Sequence[Engine], directory: Path) -> Iterator[Job]:
    """The checks of claims, by the first arm of each framework that compiles."""
    for framework in found:
        for claim in CLAIMS.values():
            if claim.check and claim.outside and len(framework.arms) > 1 and is_read(settings, claim.check.name):
                arm = framework.arms[1]
                variables = framework.environment(folder(directory, arm, claim.id))
                yield Job(
                    claim.check.name, claim=claim.id, arm=arm, source=claim.outside, seed=settings.seed,
                    variables=variables,
                )  # fmt: skip


def folder(directory: Path, arm: str, what: object) -> Path:
    """Where the processes of an arm keep the compiled code of one cell or check."""
    return directory.absolute() / FOLDER / arm / str(what).replace("/", "-")


def without_code(directory: Path, job: Job) -> Job:
    """A job that starts cold with an empty cache, also where an earlier start was stopped in it."""
    if job.process == COLD and job.workload:
        shutil.rmtree(folder(directory, str(job.arm), Cell(job.workload, str(job.size))), ignore_errors=True)
    return job
