"""A thin look at a cell: a few examples of its stream, and of the arms those that hold few graphs.

A quick run times and counts sizes beyond its own so. Which arm is fastest, or holds least, is hardly ever one that
keeps a graph for each length, and these take most of the time to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compare import engines
from compare.records.job import Job
from compare.workloads.base import Case, Workload


def case_of(job: Job, workload: Workload) -> Case:
    """The case of a job, its stream cut to `job.thin` examples, from the shortest to the longest, where that is set."""
    case = workload.case(str(job.size))
    if not job.thin:
        return case
    kept = sample(case.lengths, job.thin)
    return replace(case, examples=tuple(case.examples[i] for i in kept), lengths=tuple(case.lengths[i] for i in kept))


def arms_of(job: Job, workload: Workload) -> tuple[str, ...]:
    """The arms that a job names, or those of its workload; of a thin job without those that hold a graph each."""
    few = tuple(arm for arm in workload.arms if not engines.of_arm(arm).mode(arm).keeps_each)
    return job.arms or (few if job.thin and len(few) > 1 else workload.arms)


def sample(lengths: Sequence[int], most: int) -> list[int]:
    """At most `most` indices, in stream order, spread from the shortest example to the longest."""
    ranked = sorted(range(len(lengths)), key=lengths.__getitem__)
    places = np.linspace(0, len(ranked) - 1, min(most, len(ranked)))
    return sorted({ranked[round(place)] for place in places})
