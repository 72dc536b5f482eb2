"""The selftest's jobs in a worker: the timing and the memory pass of a run, over arms with injected changes."""

from __future__ import annotations

import gc

from msgspec.structs import asdict

from compare import workloads
from compare.instruments import memory
from compare.instruments.time import measure as timing
from compare.records.checks import TrialArm, TrialMemory, TrialTime
from compare.records.job import Job
from compare.selftest import inject, subjects
from compare.workloads.base import Case


def measure_time(job: Job) -> TrialTime:
    """The time record of one process, and for each arm its `calls`, and the `runs` of its work that they made."""
    steps: dict[str, inject.Injected] = {}

    def build(arm: str, case: Case) -> inject.Injected:
        return steps.setdefault(arm, inject.build(arm, case, subjects.divided(job)))

    case = workloads.load(job.source).case(str(job.size))
    gc.freeze()  # as in a run
    rows = timing.measure_arms(job, case, build)
    arms = {arm: TrialArm(**asdict(row), calls=steps[arm].calls, runs=steps[arm].runs) for arm, row in rows.items()}
    return TrialTime(**job.head, arms=arms)


def measure_memory(job: Job) -> TrialMemory:
    """The memory record of one process; one arm per process, as in a run."""
    case = workloads.load(job.source).case(str(job.size))
    return TrialMemory(**job.head, arms={arm: memory.measure_arm(arm, case, inject.build) for arm in job.arms})
