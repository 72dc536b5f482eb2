"""A step in a framework, in one process: every first call, checked, then steady state or the bytes of an epoch.

What an arm gives is compared with its references before anything is timed in steady state, and an arm that differs is
not timed. A first epoch may take so many seconds and then ends where it is: what was reached by then is the result.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from compare import workloads
from compare.engines import heap, of_arm
from compare.engines.base import Engine, Step
from compare.engines.limit import LimitError, within
from compare.instruments.outside.subjects import Runnable, WorkloadSubject
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.clock import CLOCK, Clock
from compare.instruments.time.measure import steady_call
from compare.instruments.time.rounds import paired_rounds, turned
from compare.records.framework_cells import FrameworkArm, FrameworkCell, Made
from compare.records.job import Job
from compare.records.time import Call
from compare.steps import now

EAGER = 4
"""Times the limit is what the eager arm may take: without it there is no ratio."""
COLD = 0
"""The process that finds no compiled code."""
TOLERANCE = TOLERANCES["float32"]
LARGEST = 1e300  # JSON has no infinity

Within = Callable[[str, int], AbstractContextManager[Callable[[float], None]]]
"""The limit of an arm's first epoch of so many calls; what it gives is told the seconds of each call."""


def measure(job: Job) -> FrameworkCell:
    """The record of one process: the arms of a job over a workload, which begin with the eager one."""
    framework = of_arm(job.arms[0])
    framework.start(job.seed)
    framework.use(job.asked.get("device", "cpu"))
    size = str(job.size)
    case = framework.workload(job.source).case(size)
    framework.wait(framework.arrays(case.params))  # so that no arm pays for starting the framework
    subject = WorkloadSubject(framework, case, workloads.load(job.source).case(size))
    gc.freeze()  # what is loaded now is not walked by each collection below
    limits = {arm: float(job.asked["limit"]) * (1 if arm in job.arms[1:] else EAGER) for arm in job.arms}
    is_cold = job.process == COLD
    clock = CLOCK if framework.device == "cpu" else time.perf_counter_ns
    rows = arms_of(subject, job, lambda arm, _: _limit(limits[arm]), counts=is_cold, times=not is_cold, clock=clock)
    return FrameworkCell(
        **job.head, version=framework.version, cache="cold" if is_cold else "warm", arms=rows, eager=job.arms[0]
    )


@contextmanager
def _limit(seconds: float) -> Iterator[Callable[[float], None]]:
    with within(seconds):
        yield lambda _: None


def arms_of(
    subject: Runnable, job: Job, limited: Within, *, counts: bool, times: bool, clock: Clock
) -> dict[str, FrameworkArm]:
    """What the arms of a job come to: first calls, in an order that turns with the process, then bytes and rounds."""
    rows: dict[str, FrameworkArm] = {}
    steps: dict[str, Step] = {}
    for arm in turned(job.arms, job.process or 0):
        rows[arm], step = first(subject, arm, limited)
        if step is not None and rows[arm].status == "ok" and rows[arm].whole:
            steps[arm] = step
            if counts:
                count_bytes(rows[arm], step)
    if steps and times:
        time_steady(rows, {arm: steps[arm] for arm in job.arms if arm in steps}, job, clock)
    return {arm: rows[arm] for arm in job.arms}


def first(subject: Runnable, arm: str, limited: Within) -> tuple[FrameworkArm, Step | None]:
    """The first epoch of an arm from nothing, each call timed, and whether what it gives is right."""
    framework: Engine = subject.framework
    row = FrameworkArm("ok", None, tolerance=TOLERANCE, useful=sum(subject.lengths))
    calls: list[Call] = []
    step, spent = None, time.perf_counter()
    try:
        with subject.checked(arm), limited(arm, len(subject.lengths)) as add:
            step = subject.step(arm)
            row.build = time.perf_counter() - spent
            epoch(arm, step, subject, calls, row, add)
    except LimitError as error:
        row.whole = False
        rest = time.perf_counter() - spent - row.build - math.fsum(call.seconds for call in calls)
        row.reason = f"{len(calls)} of {len(subject.lengths)} calls: {error}"
        calls.append(Call(subject.lengths[len(calls)], max(rest, 0.0), True, True))
    except Exception as error:
        if subject.blames(arm):
            raise
        row.status, row.reason = "unsupported" if framework.refuses(error) else "failed", subject.reason(error)
    if row.status == "ok":
        judge(row)
    row.first = calls[0].seconds if calls else 0.0
    row.stream = calls if subject.varies else None
    if step is not None:
        observe(row, step, subject)
    return row, step


def epoch(
    arm: str, step: Step, subject: Runnable, calls: list[Call], row: FrameworkArm, add: Callable[[float], None]
) -> None:
    """Every first call, in order, noted as it ends, with the largest errors of outputs and of gradients so far."""
    seen: set[Any] = set()
    for index, example in enumerate(step.examples):
        before, form = step.compiles, subject.form(index)
        now(f"made call {index + 1} in {arm}")
        with subject.called(index):
            start = time.perf_counter()
            result = step(*example)
            seconds = time.perf_counter() - start
            arrays: Any = step.engine.numpy(result)
        calls.append(Call(subject.lengths[index], seconds, form not in seen, step.compiles > before))
        seen.add(form)
        add(seconds)
        references = subject.expected.get(index, ())  # made only now, so that eager's first call is one
        for reference in references:
            output, gradient = map(tree_error, arrays, reference)
            row.output_error = max(output, row.output_error or 0.0)
            row.gradient_error = max(gradient, row.gradient_error or 0.0)


def observe(row: FrameworkArm, step: Step, subject: Runnable) -> None:
    """Note what the framework tells of a step."""
    observed = step.observed
    row.compilations = [Made(made.reason, made.seconds) for made in observed.compilations]
    row.breaks, row.limits = dict(observed.breaks), list(observed.limits)
    row.compiles = len(row.compilations)
    row.compile_seconds = math.fsum(made.seconds or 0.0 for made in observed.compilations)
    row.computed = step.computed(subject.lengths)


def judge(row: FrameworkArm) -> None:
    """Note whether the errors of an arm are within what is allowed."""
    if row.output_error is None or row.gradient_error is None:
        return  # it was ended before there was anything to compare
    output, gradient = row.output_error, row.gradient_error
    if max(output, gradient) > TOLERANCE:
        what, worst = ("the output", output) if output > TOLERANCE else ("a gradient", gradient)
        row.status, row.reason = "disagree", f"{what} is off by {worst:.3g}, allowed {TOLERANCE:g}"
    row.output_error, row.gradient_error = min(output, LARGEST), min(gradient, LARGEST)


def time_steady(rows: Mapping[str, FrameworkArm], steps: Mapping[str, Step], job: Job, clock: Clock) -> None:
    """Time the arms that are right, in rounds."""
    calls = {arm: steady_call(step) for arm, step in steps.items()}
    rounds = paired_rounds(calls, job.budget, job.random(), clock)
    starts, steady = rounds.starts(), rounds.steady()
    for arm, step in steps.items():
        row, examples = rows[arm], len(step.examples)
        row.steady = starts[arm] is not None
        row.calls_per_block = rounds.counts[arm] * examples
        row.warmup = [seconds / examples for seconds in rounds.warmup(arm)]
        row.blocks = [seconds / examples for seconds in steady[arm]]


def count_bytes(row: FrameworkArm, step: Step) -> None:
    """Note what the largest step of an epoch takes, and what is held that was not there before the first."""
    peaks = [peak for example in step.examples if (peak := heap.peak(partial(step, *example))) is not None]
    if peaks:
        row.peak, row.held = max(peaks), max(0, heap.live() - step.live)
