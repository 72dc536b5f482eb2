"""A thin look at a cell: a few examples of its stream, and those modes that hold few graphs.

A quick run uses it for times and counts of sizes beyond its own. The fastest mode, or the one that holds least, hardly
ever keeps a graph for each length, and such modes take most of the time to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compare import engines
from compare.records.job import Job
from compare.workloads.base import Case, Workload


def case_of(job: Job, workload: Workload) -> Case:
    """Return the case of a job; with `job.thin`, its stream is cut to so many examples, short to long."""
    case = workload.case(str(job.size))
    if not job.thin:
        return case
    kept = sample(case.lengths, job.thin)
    return replace(case, examples=tuple(case.examples[i] for i in kept), lengths=tuple(case.lengths[i] for i in kept))


def modes_of(job: Job, workload: Workload) -> tuple[str, ...]:
    """Return the modes of a job, or of its workload; a thin job leaves out modes with a graph per shape."""
    few = tuple(mode for mode in workload.modes if not engines.of_mode(mode).traits(mode).keeps_each)
    return job.modes or (few if job.thin and len(few) > 1 else workload.modes)


def sample(lengths: Sequence[int], most: int) -> list[int]:
    """Return at most `most` indices, in stream order, spread from the shortest example to the longest."""
    ranked = sorted(range(len(lengths)), key=lengths.__getitem__)
    places = np.linspace(0, len(ranked) - 1, min(most, len(ranked)))
    return sorted({ranked[round(place)] for place in places})
