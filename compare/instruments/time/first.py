"""The first calls of an arm, from nothing: each is timed, and what it gives is compared with what it must give.

A first epoch may take so many seconds and then ends where it is: what was reached by then is the result. What its calls
gave is judged later: what it must give takes many calls, and who waits for a compiler waits for that alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import optree

from compare.engines.limit import LimitError
from compare.engines.step import BoundCall, Observed, Step
from compare.errors import UnsupportedError
from compare.instruments.judge import Judged, Result, judged
from compare.instruments.parity import parity_arm
from compare.instruments.runnables import Runnable
from compare.instruments.time.rounds import NAME, ClockName, collected, spent
from compare.records.cells import Call, CompiledArm, Made, MemoryArm, ParityArm, TimeArm
from compare.records.record import Status
from compare.steps import FirstCall, first_call, now

Limited = Callable[[str], AbstractContextManager[None]]
"""The limit of an arm's first epoch."""


def unlimited(_arm: str) -> AbstractContextManager[None]:
    """No limit."""
    return nullcontext()


@dataclass
class FirstEpoch:
    """What the first epoch of an arm came to.

    `results` are what the calls gave that are compared, until they are `judged`; then it is `compared`.

    It is `whole` unless it was ended at its limit; then the last of `calls` is the one that was interrupted. `peak` is
    what a step takes from malloc above what was there before it, `held` what is there after the epoch, but for
    `results`, that was not there before; both null where the process does not count. `outside` are the ops of its
    longest call that run outside of compiled code, where that is told. `processor` are its seconds of processor,
    building included. `observed` is what the engine told as the epoch ended: it may count all steps of a process
    together.
    """

    status: Status = "ok"
    reason: str | None = None
    step: Step | None = None
    build: float = 0.0
    calls: list[Call] = field(default_factory=list)
    results: dict[int, Result] = field(default_factory=dict)
    judged: Judged = field(default_factory=Judged)
    compared: bool = False
    whole: bool = True
    processor: float = 0.0
    peak: int | None = None
    held: int | None = None
    outside: int | None = None
    observed: Observed = field(default_factory=Observed)

    @property
    def right(self) -> Step | None:
        """The step, if it is right and ready to be timed."""
        return self.step if self.status == "ok" and self.whole else None

    def timed(self, runnable: Runnable) -> Step | None:
        """The step, if it is to be timed: also one that is wrong, where that is asked for."""
        wrong = runnable.times_wrong and self.status == "disagree" and self.whole
        return self.step if wrong else self.right

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Inside, the processor works for this epoch."""
        before = spent()
        yield
        self.processor += spent() - before

    def judge(self, runnable: Runnable, arm: str) -> None:
        """Note whether the errors are within what is allowed, and how far off the arm is at most."""
        if not self.results or self.status != "ok" or self.step is None:
            return  # it was ended before there was anything to compare
        expected = runnable.expected
        differences = {index: expected[index].less(result) for index, result in runnable.results_of(arm, self.results)}
        self.results, self.compared = {}, True
        nearby = partial(runnable.is_right_nearby, self.step, arm)
        row = self.judged = judged(differences, expected, runnable.moves, nearby)
        if row.fault:
            self.status, self.reason = "disagree", row.fault
        elif row.warning:
            self.reason = f"{self.reason}; {row.warning}" if self.reason else row.warning

    def count_held(self) -> None:
        """Note the bytes that are there since its step was built, before another arm adds to them."""
        if step := self.right:
            results: Any = tuple(self.results.values())
            kept = sum(int(np.asarray(leaf).nbytes) for leaf in optree.tree_leaves(results))
            self.held = max(0, step.engine.devices.counter.live() - step.live - kept)

    def count(self, runnable: Runnable, arm: str) -> None:
        """Note what the largest step takes, and how many ops of the longest run outside of compiled code.

        An arm that drew what eager draws is compiled as its user has it, which also puts that code on the disk.
        """
        if (step := self.right) is None:
            return
        if runnable.repeats(arm):
            runnable.engine.compiler.forget()
        calls = map(step.bind, range(len(step.examples)))
        self.peak = max((peak for call in calls if (peak := _peak(step, call)) is not None), default=None)
        longest = max(range(len(step.examples)), key=runnable.lengths.__getitem__)
        with runnable.fresh():
            self.outside = runnable.engine.ops.outside(step.bind(longest))

    def ended(self, runnable: Runnable) -> Status:
        """What rows say of it: how one that was ended at its limit counts, the runnable says."""
        return self.status if self.whole else runnable.cut

    def times(self, runnable: Runnable, clock: ClockName = NAME) -> TimeArm:
        """Its times; of steady state, which that clock is to read, there are none yet."""
        made = self.observed.compilations
        return TimeArm(
            self.ended(runnable),
            self.reason,
            build=self.build,
            first=self.calls[0].seconds if self.calls else 0.0,
            stream=self.calls if runnable.varies else None,
            compiles=len(made),
            compile_seconds=math.fsum(compilation.seconds or 0.0 for compilation in made),
            useful=sum(runnable.lengths),
            computed=self.step.computed(runnable.lengths) if self.step else 0,
            whole=self.whole,
            processor=self.processor if clock == "cpu" else None,
        )

    def parity(self, runnable: Runnable) -> ParityArm:
        """How far it is from what it must give."""
        row = parity_arm(self.judged)
        row.status, row.reason = self.ended(runnable), self.reason
        return row

    def compiled(self, runnable: Runnable, ops: int | None) -> CompiledArm:
        """What the engine tells of its compilations; an eager call has so many `ops`."""
        observed = self.observed
        made = [Made(compilation.reason, compilation.seconds) for compilation in observed.compilations]
        share = max(0.0, 1 - self.outside / ops) if ops and self.outside is not None else None
        return CompiledArm(self.ended(runnable), self.reason, made, dict(observed.breaks), list(observed.limits), share)

    def memory(self, runnable: Runnable) -> MemoryArm:
        """What it takes and holds."""
        return MemoryArm(self.ended(runnable), self.reason, peak=self.peak or 0, held=self.held or 0)


def _peak(step: Step, call: BoundCall) -> int | None:
    """What a call takes; where it was compiled once more, as for random numbers of its own, what the next one does."""
    before, peak = step.compiles, step.engine.devices.counter.peak(call)
    return peak if step.compiles == before else step.engine.devices.counter.peak(call)


def first_epoch(runnable: Runnable, arm: str, limited: Limited) -> FirstEpoch:
    """The first epoch of an arm, judged at once. Raises as `first_calls`."""
    epoch = first_calls(runnable, arm, limited)
    epoch.judge(runnable, arm)
    return epoch


def first_calls(runnable: Runnable, arm: str, limited: Limited) -> FirstEpoch:
    """The first epoch of an arm, which nobody has judged yet.

    Raises what the step raises where that is of what is run, and not of the arm.
    """
    epoch, started = FirstEpoch(), time.perf_counter()
    try:
        with runnable.checked(arm), limited(arm):
            first_call(FirstCall(arm, 0, len(runnable.lengths)))
            with epoch.counted():
                epoch.step = runnable.step(arm)
                epoch.build = time.perf_counter() - started
            call_each(epoch, epoch.step, runnable, arm)
    except LimitError as error:
        epoch.whole = False
        rest = time.perf_counter() - started - epoch.build - math.fsum(call.seconds for call in epoch.calls)
        epoch.reason = f"{len(epoch.calls)} of {len(runnable.lengths)} calls: {error}"
        epoch.calls.append(Call(runnable.lengths[len(epoch.calls)], max(rest, 0.0), True, True))
    except Exception as error:
        if runnable.blames(arm):
            raise
        refused = isinstance(error, UnsupportedError) or runnable.engine.errors.refuses(error, arm)
        epoch.status, epoch.reason = "unsupported" if refused else "failed", runnable.reason(error)
    if epoch.step:
        epoch.observed = epoch.step.observed
    runnable.keep(arm, epoch.results)
    return epoch


def call_each(epoch: FirstEpoch, step: Step, runnable: Runnable, arm: str) -> None:
    """Make every first call, in order, noted as it ends.

    `new` marks a shape or structure that is new to the arm, `compiled` a call that compiled.
    """
    seen: set[Any] = set()
    for index in range(len(step.examples)):
        before, form, call = step.compiles, runnable.form(index), step.bind(index)
        now(f"made call {index + 1} in {arm}")
        with runnable.called(index), call.within(), collected():
            with epoch.counted():
                start = time.perf_counter()
                returned = call.run()
                seconds = time.perf_counter() - start
            first_call(FirstCall(arm, index + 1, len(step.examples), seconds))
            if runnable.compares(index):
                epoch.results[index] = runnable.taken(call.result(returned))
        epoch.calls.append(Call(runnable.lengths[index], seconds, form not in seen, step.compiles > before))
        seen.add(form)
