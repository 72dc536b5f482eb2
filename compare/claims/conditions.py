"""Sentences on the conditions of a run: its tape, clock, load, threads and power, and the noise of the control."""

from __future__ import annotations

from collections.abc import Iterator
from math import expm1, log
from statistics import median, stdev

from compare import text
from compare.claims import base
from compare.claims.c6_speed import CONTROL
from compare.claims.evidence import Evidence, cells, steady
from compare.records.cells import Time
from compare.records.record import DYNAMIC, Environment, Records, Run, records_of

NOISY = 0.05
"""The variation of the control's blocks beyond which the other ratios of a run can hardly be trusted."""

BUSY = 1.5
"""The median load beyond which other programs ran beside the run."""


def summary(records: Records) -> str:
    """Return the conditions of a run in one word: quiet, busy, unsteady or not recorded.

    If the tape ran in Python, a sentence says so as well.
    """
    loads = _loads(_environments(records))
    cell = _control(records)
    vary = _variation(cell) if cell else None
    word = "quiet" if loads else "not recorded"
    if vary is not None and vary > NOISY:
        word = "unsteady"
    if loads and median(loads) > BUSY:
        word = "busy"
    slow = base.sentence(records) if base.in_python(records) else ""
    return f"Conditions: {word}. {slow}".rstrip()


def _environments(records: Records) -> list[Environment]:
    """Return the environments of the measurements; if there are none, those of the run's starts."""
    measured = [record.environment for record in records if record.environment and not isinstance(record, Run)]
    return measured or [record.environment for record in records if record.environment]


def _control(records: Records) -> Evidence | None:
    """Return the evidence of the control workload in our engines at its largest size; None if it was not measured."""
    ours = [cell for cell in cells(records, Time) if cell.workload == CONTROL and cell.base == DYNAMIC]
    return ours[-1] if ours else None


def sentences(records: Records) -> tuple[str, ...]:
    """Return the sentences to read before any number: on tape, load, threads and power, clock, and control."""
    own = [run.settings for run in records_of(records, Run) if "function" in run.settings]
    models = any(run.is_of_models for run in records_of(records, Run))
    suite = not own and not models  # runs of a user's function or of real models have no control
    alone = models or any(settings.get("framework") and not settings.get("engines") for settings in own)
    return (
        *([] if alone else [base.sentence(records)]),
        *_machine(_environments(records)),
        *_clock(records),
        *([control(records)] if suite else []),
    )


_CLOCKS = {
    "cpu": "of the processor that a worker had",
    "events": "of the GPU, by its events",
    "wall": "of the wall",
}


def _clock(records: Records) -> Iterator[str]:
    """Yield sentences on the clock of steady seconds and of break-even; first calls always use wall time."""
    times = records_of(records, Time)
    clocks = {record.clock for record in times}
    if clocks == {"wall"}:
        yield "All seconds are those of the wall."
    elif clocks:
        listed = text.join_words([words for clock, words in _CLOCKS.items() if clock in clocks])
        yield f"Steady seconds are those {listed}, first calls those of the wall."
    if "cpu" in clocks and any(row.processor for record in times for row in record.modes.values()):
        yield "After how many runs compiling has paid for itself is counted in seconds of the processor."


def control(records: Records) -> str:
    """Return a sentence on static ÷ dynamic of the control, and on the variation of its blocks."""
    cell = _control(records)
    if cell is None:
        return f"The control {CONTROL} was not measured, so the noise of the machine is not known."
    mode = cell.least(steady)
    ratio = cell.ratio(mode, cell.base, steady) if mode else None
    if ratio is None:
        return f"The control {CONTROL} was not measured in both engines, so the noise of the machine is not known."
    spread = f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.bounded else "(no interval)"
    vary = _variation(cell)
    blocks = f"; the times of its blocks differ by {vary:.1%}" if vary is not None else ""
    warning = f". That is more than {NOISY:.0%}, so smaller differences may be noise" if (vary or 0.0) > NOISY else ""
    return f"Control {cell.name}: static ÷ dynamic is {ratio.estimate:.3f} {spread}{blocks}{warning}."


def _variation(cell: Evidence) -> float | None:
    """Return the spread of the control's paired block ratios in a process, as a share; the median over processes."""
    mode = cell.least(steady)
    if mode is None:
        return None
    both = [process for process in cell.processes if cell.base in process and mode in process]
    pairs = [zip(steady(process[cell.base]), steady(process[mode]), strict=False) for process in both]
    logs = [[log(top / bottom) for top, bottom in pair] for pair in pairs]
    deviations = [stdev(of) for of in logs if len(of) > 1]
    return expm1(median(deviations)) if deviations else None


def _loads(environments: list[Environment]) -> list[float]:
    return [environment.load for environment in environments if environment.load is not None]


def _machine(environments: list[Environment]) -> Iterator[str]:
    """Yield sentences on GPU, load, threads and power, as far as the records have them."""
    if gpus := sorted({environment.gpu for environment in environments if environment.gpu}):
        yield f"Frameworks computed on {' and '.join(gpus)}."
    loads = _loads(environments)
    if loads:
        cores = next((last.logical_cores for last in reversed(environments) if last.logical_cores), None)
        of = f" on {cores} logical cores" if cores else ""
        busy = (
            " A run alone makes a load of 1, so other programs took part of the machine."
            if median(loads) > BUSY
            else ""
        )
        yield f"The load was {min(loads):.2f} to {max(loads):.2f}{of} (median {median(loads):.2f}).{busy}"
    if environments:
        pinned = {len(worker.affinity) for worker in environments if worker.affinity is not None}
        loaded = [pool for worker in environments if worker.blas for pool in worker.blas.loaded]
        blas = {pool["num_threads"] for pool in loaded if pool.get("num_threads")}
        affinity = _count_phrase(pinned, "core") or "an unknown number of cores"
        threads = _count_phrase(blas, "BLAS thread") or "an unknown number of BLAS threads"
        yield f"Each worker had {affinity} and {threads}; {_power(environments)}."


def _count_phrase(numbers: set[int] | set[str | int | None], noun: str) -> str:
    listed = sorted(int(number) for number in numbers if number is not None)
    return f"{' or '.join(map(str, listed))} {noun}{'' if listed == [1] else 's'}" if listed else ""


def _power(environments: list[Environment]) -> str:
    """Return the power state in words: the source of power, and the governor of the clock."""
    sources = sorted({worker.power for worker in environments if worker.power})
    governors = sorted({worker.governor for worker in environments if worker.governor})
    told = [f"power from {' and '.join(sources)}"] if sources else []
    told += [f"clock governed by {' and '.join(governors)}"] if governors else []
    return ", ".join(told) or "the system does not report its power state"
