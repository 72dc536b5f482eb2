"""The selftest's jobs in a worker: the timing and the memory pass of a run, over arms with injected changes."""

from __future__ import annotations

import gc
from typing import Any

from compare import workloads
from compare.instruments.memory import measure as memory
from compare.instruments.time import measure as timing
from compare.records.results import Record
from compare.run.job import Job
from compare.selftest import inject
from compare.workloads.base import Case


def measure_time(job: Job) -> Record:
    """The time record of one process, and for each arm its `calls`, and the `runs` of its work that they made."""
    steps: dict[str, Any] = {}

    def build(arm: str, case: Case) -> Any:
        return steps.setdefault(arm, inject.build(arm, case))

    case = workloads.load(job.source).case(str(job.size))
    gc.freeze()  # as in a run
    record = timing.measure_arms(job, case, build)
    counted = {arm: {"calls": step.function.calls, "runs": step.function.runs} for arm, step in steps.items()}
    return {**record, "arms": {arm: {**row, **counted[arm]} for arm, row in record["arms"].items()}}


def measure_memory(job: Job) -> Record:
    """The memory record of one process; one arm per process, as in a run."""
    case = workloads.load(job.source).case(str(job.size))
    return {**job.head, "arms": {arm: memory.measure_arm(arm, case, inject.build) for arm in job.arms}}
