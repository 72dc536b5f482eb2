"""A workload in a framework, in one process: every first call, checked, then steady state or the bytes of an epoch.

What an arm gives is compared with the float64 reference of our engines before anything is timed in steady state, and
an arm that differs is not timed. A first epoch may take so many seconds and then ends where it is: what was reached by
then is the result.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from compare import workloads
from compare.engines import heap, of_arm
from compare.engines.arms import signature
from compare.engines.base import Framework
from compare.engines.limit import LimitError, within
from compare.engines.workload_step import FrameworkStep
from compare.instruments.parity.measure import TOLERANCES, expectations, tree_error
from compare.instruments.time.measure import steady_call
from compare.instruments.time.rounds import paired_rounds, turned
from compare.records.framework_cells import FrameworkArm, FrameworkCell
from compare.records.framework_steps import Made
from compare.records.job import Job
from compare.records.time import Call
from compare.workloads.base import Case

EAGER = 4
"""Times the limit is what the eager arm may take: without it there is no ratio."""
COLD = 0
"""The process that finds no compiled code."""
TOLERANCE = TOLERANCES["float32"]
LARGEST = 1e300  # JSON has no infinity

References = Mapping[int, Any]


def measure(job: Job) -> FrameworkCell:
    """The record of one process: the arms of a job, which begin with the eager one."""
    framework = of_arm(job.arms[0])
    framework.start(job.seed)
    framework.use(job.asked.get("device", "cpu"))
    size = str(job.size)
    expected = {one.example: one.reference for one in expectations(workloads.load(job.source).case(size))}
    case = framework.workload(job.source).case(size)
    framework.wait(framework.arrays(case.params))  # so that no arm pays for starting the framework
    gc.freeze()  # what is loaded now is not walked by each collection below
    rows, steps = {}, {}
    process = job.process or 0
    for arm in turned(job.arms, process):
        limit = float(job.asked["limit"]) * (1 if arm in job.arms[1:] else EAGER)
        rows[arm], step = first(framework, arm, case, expected, limit)
        if step is not None and rows[arm].status == "ok" and rows[arm].whole:
            steps[arm] = step
            if process == COLD:
                count_bytes(rows[arm], step)
    if steps and process != COLD:
        time_steady(rows, {arm: steps[arm] for arm in job.arms if arm in steps}, case, job)
    return FrameworkCell(
        **job.head,
        version=framework.version,
        cache="cold" if process == COLD else "warm",
        arms={arm: rows[arm] for arm in job.arms},
    )


def first(
    framework: Framework, arm: str, case: Case, expected: References, limit: float
) -> tuple[FrameworkArm, FrameworkStep | None]:
    """The first epoch of an arm from nothing, each call timed, and whether what it gives is right."""
    row = FrameworkArm("ok", None, tolerance=TOLERANCE, useful=sum(case.lengths))
    calls: list[Call] = []
    step, spent = None, time.perf_counter()
    try:
        with within(limit):
            step = FrameworkStep(framework, arm, case)
            row.build = time.perf_counter() - spent
            epoch(step, case, expected, calls, row)
    except LimitError:
        row.whole = False
        rest = time.perf_counter() - spent - row.build - math.fsum(call.seconds for call in calls)
        row.reason = f"{len(calls)} of {len(case.examples)} examples in the {limit:g} s that it may take"
        calls.append(Call(case.lengths[len(calls)], max(rest, 0.0), True, True))
    except Exception as error:  # noqa: BLE001  (whatever an arm raises is its result)
        row.status, row.reason = "unsupported" if framework.refuses(error) else "failed", framework.reason(error)
    if row.status == "ok":
        judge(row)
    row.first = calls[0].seconds if calls else 0.0
    row.stream = calls if case.varies else None
    if step is not None:
        observed = step.observed
        row.compilations = [Made(made.reason, made.seconds) for made in observed.compilations]
        row.breaks = dict(observed.breaks)
        row.compiles = len(row.compilations)
        row.compile_seconds = math.fsum(made.seconds or 0.0 for made in observed.compilations)
        row.computed = step.computed(case.lengths)
    return row, step


def epoch(step: FrameworkStep, case: Case, expected: References, calls: list[Call], row: FrameworkArm) -> None:
    """Every first call, in order, noted as it ends, with the largest errors of outputs and of gradients so far."""
    seen: set[Any] = set()
    for index, example in enumerate(step.examples):
        before, form = step.compiles, signature(case.examples[index])
        start = time.perf_counter()
        result = step(*example)
        seconds = time.perf_counter() - start
        calls.append(Call(case.lengths[index], seconds, form not in seen, step.compiles > before))
        seen.add(form)
        if index in expected:
            output, gradient = map(tree_error, step.framework.numpy(result), expected[index])
            row.output_error = max(output, row.output_error or 0.0)
            row.gradient_error = max(gradient, row.gradient_error or 0.0)


def judge(row: FrameworkArm) -> None:
    """Note whether the errors of an arm are within what is allowed."""
    if row.output_error is None or row.gradient_error is None:
        return  # it was ended before there was anything to compare
    output, gradient = row.output_error, row.gradient_error
    if max(output, gradient) > TOLERANCE:
        what, worst = ("the output", output) if output > TOLERANCE else ("a gradient", gradient)
        row.status, row.reason = "disagree", f"{what} is off by {worst:.3g}, allowed {TOLERANCE:g}"
    row.output_error, row.gradient_error = min(output, LARGEST), min(gradient, LARGEST)


def time_steady(rows: Mapping[str, FrameworkArm], steps: Mapping[str, FrameworkStep], case: Case, job: Job) -> None:
    """Time the arms that are right, in rounds."""
    calls = {arm: steady_call(step, case) for arm, step in steps.items()}
    rounds = paired_rounds(calls, job.budget, job.random())
    starts, steady, examples = rounds.starts(), rounds.steady(), len(case.examples)
    for arm in steps:
        row = rows[arm]
        row.steady = starts[arm] is not None
        row.calls_per_block = rounds.counts[arm] * examples
        row.warmup = [seconds / examples for seconds in rounds.warmup(arm)]
        row.blocks = [seconds / examples for seconds in steady[arm]]


def count_bytes(row: FrameworkArm, step: FrameworkStep) -> None:
    """Note what the largest step of an epoch takes, and what is held that was not there before the first."""
    peaks = [peak for example in step.examples if (peak := heap.peak(partial(step, *example))) is not None]
    if peaks:
        row.peak, row.held = max(peaks), max(0, heap.live() - step.live)
