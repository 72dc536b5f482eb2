"""The stage of a run in which frameworks are measured, after our own engines: its jobs and their order."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from compare.engines import Engine, find_engine, process, words
from compare.instruments.timing import COLD
from compare.plans.jobs import check_jobs, is_read, missing_packages
from compare.plans.settings import Settings
from compare.records.cells import Admission, Parity, Time, admit_modes
from compare.records.job import Job
from compare.records.record import Cell, Device, OfCell, Record, kind_of, records_of
from compare.run.executors import groups
from compare.run.runner import JobStage, Runner, Wanted
from compare.subjects.subject import Subject
from compare.workloads.models import FRAMEWORK, is_model

FOLDER = "compiled"
"""The folder in a run's folder where frameworks keep compiled code until the run has ended."""
Jobs = tuple[list[Job], list[Job], list[Job]]
"""Three lists of jobs: cold ones and checks; the first processes that find compiled code; the other processes."""
AT_ONCE: Mapping[Device, int] = MappingProxyType({"cpu": 2, "cuda": 6})
"""The number of jobs without steady times that run at once, if there are as many cores: on the CPU memory bandwidth
limits it, on a GPU what its memory holds of modules and of what each process keeps there."""


def measure(runner: Runner, settings: Settings, chosen: Sequence[Cell]) -> None:
    """Run the jobs about frameworks; one that is not installed is left out, with a notice on how to install it.

    Jobs that time no steady state run two at once where there are two cores: compilers take most of their time. Real
    models are measured a few at a time, with notices on each after its batch. Raises InputsError where the device is
    missing.
    """
    directory = runner.journal.path.parent
    for name in settings.frameworks:
        if missing := find_engine(name).missing:
            runner.reporter.notice(f"left out: {missing}")
        elif settings.device != "cpu":
            runner.asked(_device_job(settings, find_engine(name), directory))
    if settings.limits.models and settings.only is None and (words := missing_packages()):
        runner.reporter.notice(words)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as counter:
        planned = {some: jobs(settings, some, directory, Path(counter)) for some in _batches(settings, chosen)}
        runner.reporter.pace.expect(job for batch in planned.values() for part in batch for job in part)
        for some, batch in planned.items():
            runner.run(_stages(runner, batch, directory, AT_ONCE[settings.device], again=not settings.limits.models))
            for cell in some if settings.limits.models else ():
                for words in model_lines(runner.journal.records, cell):
                    runner.reporter.notice(words)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)


def _batches(settings: Settings, chosen: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Return the cells in the batches in which they are measured: one of all, or small ones of real models."""
    each = max(len(settings.modes), 1)  # a cold job for each mode
    size = max(AT_ONCE[settings.device] // each, 1) if settings.limits.models else max(len(chosen), 1)
    return [tuple(chosen[start : start + size]) for start in range(0, len(chosen), size)]


def _stages(runner: Runner, planned: Jobs, directory: Path, at_once: int, *, again: bool) -> Iterator[JobStage]:
    """Yield the jobs in their order, those without steady times `at_once`.

    A mode that completed no first epoch is tried in other processes only with `again`.
    """
    cold, first, others = planned

    def wanted_jobs(asked: Iterable[Job]) -> Iterator[Wanted | None]:
        return (_wanted_job(runner, job, directory) for job in asked)

    yield JobStage(wanted_jobs(cold), at_once)
    yield JobStage(wanted_jobs(first))
    late = [job for job in others if has_no_epoch(runner.journal.records, job)]
    if again:
        yield JobStage(wanted_jobs(late), at_once)
    else:
        for job in late:
            runner.reporter.skip(job)
    yield JobStage(wanted_jobs(job for job in others if job not in late))


def model_lines(records: Sequence[Record], cell: Cell) -> Iterator[str]:
    """Yield a line for each mode of a model: its seconds when warm and at first, or why they are not known."""
    from compare.claims.frameworks import model_costs
    from compare.report import models as shown

    of_cell = [record for record in records_of(records, OfCell) if record.cell == cell]
    yield from map(shown.line, model_costs(of_cell, find_engine(FRAMEWORK)))


def cells(settings: Settings, chosen: Sequence[Cell]) -> list[Cell]:
    """Return the cells to measure in frameworks: those of the run, without and with some by the preset."""
    if not is_read(settings, kind_of(Parity)):
        return []
    if settings.only is not None:
        return list(chosen)
    limits = settings.limits.frameworks
    kept = [cell for cell in chosen if cell.workload not in limits.leaves_out]
    added = [Cell(name, size) for name in limits.adds for size in settings.limits.sizes]
    return [*kept, *(cell for cell in added if cell not in kept)]


def jobs(settings: Settings, chosen: Sequence[Cell], directory: Path, counter: Path) -> Jobs:
    """Return the jobs: cold ones and checks; the first processes that find compiled code; the other processes.

    `counter` is a folder for the library that counts bytes.
    """
    limits, models = settings.limits.frameworks, settings.limits.models
    frameworks = [framework for framework in map(find_engine, settings.frameworks) if not framework.missing]
    processes = settings.processes if models else limits.processes
    shared = [
        (subject, modes)
        for framework in frameworks
        for cell in cells(settings, chosen)
        for subject in (subject_of(settings, framework, cell),)
        for modes in groups(kind_of(Time), subject.modes)
    ]
    counting = process.heap_environment(counter) if settings.device == "cpu" else {}
    cold = [time_job(settings, *share, COLD, directory, counting) for share in shared]
    cold += [job for framework in frameworks for job in _check_jobs(settings, framework, directory)]
    first = [time_job(settings, *share, COLD + 1, directory) for share in shared]
    others = [
        time_job(settings, subject, modes, process, directory)
        for process in range(COLD + 2, processes)
        for subject, modes in shared
        if len(modes) > 1  # one mode has no ratio, so no interval
    ]
    return cold, first, others


def subject_of(settings: Settings, framework: Engine, cell: Cell) -> Subject:
    """Return the subject of a cell in a framework: a real model, or a workload in the modes of the preset."""
    if is_model(cell.workload):
        return Subject.of_model(cell, framework, settings.modes)
    return Subject.of_workload(cell, framework, usual=settings.limits.frameworks.usual)


def time_job(
    settings: Settings,
    subject: Subject,
    modes: tuple[str, ...],
    process: int,
    directory: Path,
    counting: Mapping[str, str] = MappingProxyType({}),
) -> Job:
    """Return the job of one process with modes of a subject; `counting` are variables for counting bytes."""
    limits, mode = settings.limits.frameworks, modes[-1]
    limit = limits.limit if process == COLD else limits.limit / 2  # compiled code is on the disk
    cell = Cell(subject.name, subject.size)
    place = folder(directory, mode, cell)
    variables = subject.adapter.variables(mode, place, settings.device, settings.threads, counting)
    options = {"mode": mode, "seed": settings.seed, "budget": limits.budget, "variables": variables}
    options |= {"threads": settings.threads, "python": subject.adapter.traits(mode).python}
    return subject.job("time", process, modes, asked={"limit": limit, "device": settings.device}, **options)


def _device_job(settings: Settings, framework: Engine, directory: Path) -> Job:
    """Return the job that asks a framework whether the run's device is there."""
    variables = framework.environment(directory.absolute() / FOLDER, settings.device)
    asked = {"device": settings.device}
    return Job("environment", modes=framework.mode_names[:1], asked=asked, variables=variables)


def _check_jobs(settings: Settings, framework: Engine, directory: Path) -> Iterator[Job]:
    """Yield the checks of claims, for the first mode of a framework that compiles."""
    for mode in framework.mode_names[1:2]:
        for job in check_jobs(settings, mode):
            yield replace(job, variables=framework.environment(folder(directory, mode, job.claim)))


def folder(directory: Path, mode: str, what: object) -> Path:
    """Return the folder where the processes of a mode keep the compiled code of one cell or check."""
    return directory.absolute() / FOLDER / words.folder(mode) / str(what).replace("/", "-")


def _wanted_job(runner: Runner, job: Job, directory: Path) -> Wanted | None:
    """Return a job to run; None if it is done, or the cold process has shown that its mode cannot be timed."""
    if runner.journal.has(job):
        return None
    if job.claim is None and job.process != COLD and not worthwhile(runner.journal.records, job):
        if not is_model(job.workload) or job.process != COLD + 1:
            return None
        job = replace(job, modes=job.modes[:1])  # a model's eager mode is timed in the next process all the same
    return without_code(directory, job), {}


def without_code(directory: Path, job: Job) -> Job:
    """Return a job; for a cold one the cache is emptied, as an earlier start may have been stopped in it."""
    if job.process == COLD and job.workload:
        shutil.rmtree(folder(directory, str(job.mode), job.cell), ignore_errors=True)
    return job


def worthwhile(records: Iterable[Record], job: Job) -> bool:
    """Return whether earlier processes admit one of a job's modes, besides the eager one if there are others."""
    return not _compiled_modes(job).isdisjoint(_admission(records, job).modes)


def has_no_epoch(records: Iterable[Record], job: Job) -> bool:
    """Return whether a process that found compiled code completed no first epoch: the next will not either."""
    return _compiled_modes(job) <= _admission(records, job).ended


def _compiled_modes(job: Job) -> frozenset[str]:
    """Return the modes of a job, without the eager one if there are others."""
    return frozenset(job.modes[1:] or job.modes)


def _admission(records: Iterable[Record], job: Job) -> Admission:
    """Return the admission of a job's modes by the times of earlier processes."""
    return admit_modes(
        [record for record in records_of(records, Time) if (record.cell, record.mode) == (job.cell, job.mode)]
    )
