"""The ledger of one arm of a cell, in a process of its own, held against what others count."""

from __future__ import annotations

from compare import engines, workloads
from compare.engines import cases
from compare.errors import described
from compare.instruments.memory import nbytes_of, numpy_memory, resident_growth, warm_peak
from compare.instruments.watch import ARMS, graph, tape
from compare.instruments.watch.attribution import counts
from compare.instruments.watch.readings import Timeline, thinned
from compare.records.breakdowns import Ledger, LedgerArm
from compare.records.job import Job
from compare.workloads.base import Case

COUNTED_WITHIN, RESIDENT_WITHIN = 0.01, 0.10
RESIDENT_FROM = 64 << 20
"""Below this many bytes the pages that Python and its libraries take for themselves are too much of the growth."""


def measure(job: Job) -> Ledger:
    """The ledger record of the arms of a job, over the example of the median length; give one arm per process."""
    case = cases.alone(workloads.load(job.source).case(str(job.size)))
    return Ledger(**job.head, arms={arm: measure_arm(arm, case) for arm in job.arms if arm in ARMS})


def measure_arm(arm: str, case: Case) -> LedgerArm:
    """The timeline of an arm, its peak beside those of tracemalloc and the system, and the counts of the static one."""
    try:
        growth = resident_growth(arm, case)
        counted, is_compiled = counted_peak(arm, case)
        timeline = graph.timeline(case) if is_compiled else tape.timeline(case)
        switched = counts(case) if is_compiled else []
    except Exception as error:  # noqa: BLE001  (whatever an arm raises is what its row says)
        return LedgerArm("unsupported" if engines.refuses(arm, error) else "failed", described(error))
    peak = timeline.peak
    return LedgerArm(
        "ok",
        None,
        parameters=nbytes_of(case.params),
        objects=dict(timeline.objects),
        moments=thinned(timeline.moments),
        peak=peak.total,
        counted_peak=counted,
        resident_growth=growth,
        notes=disagreements(timeline, counted, growth),
        counts=switched,
    )


def counted_peak(arm: str, case: Case) -> tuple[int, bool]:
    """The most bytes of NumPy data in a warm step that nobody watches, with what is held between steps; if compiled."""
    with numpy_memory():
        step = engines.step(arm, case)
        return warm_peak(step)[1], bool(step.executables())


def disagreements(timeline: Timeline, counted: int, growth: int) -> list[str]:
    """Where the ledger's peak is not that of tracemalloc, or of the process; nothing where all agree."""
    peak, notes = timeline.peak.total, []
    if abs(peak - counted) > COUNTED_WITHIN * counted:
        notes.append(f"the ledger's peak is {peak:,} bytes, tracemalloc's {counted:,}: {_off(peak, counted)}")
    if peak > RESIDENT_FROM and abs(growth - peak) > RESIDENT_WITHIN * peak:
        notes.append(f"the process grew by {growth:,} bytes, the ledger's peak is {peak:,}: {_off(growth, peak)}")
    return notes


def _off(actual: int, expected: int) -> str:
    return f"{actual / expected - 1:+.1%}" if expected else "of nothing"
