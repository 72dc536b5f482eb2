"""The times of a cell in one process: build, every first call, warm-up and steady state, each apart.

The first calls of a mode, from nothing, are each timed, and their results are compared with the expected ones. A first
epoch has a limit in seconds and ends there; its calls by then are the result. Results are judged later: finding the
expected ones takes many calls, and a user who waits for a compiler should wait for that alone.

For an engine whose compilations cost much, the same process is the gate too, and counts bytes, so that nothing is
compiled twice; these findings are records of their own. For other engines the gate and the bytes have their own jobs.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal, TypeVar

import numpy as np
import optree

from compare import engines, workloads
from compare.engines import Engine
from compare.engines.mode import user_name
from compare.engines.process import LimitError, Neighbours, limit_seconds, resident
from compare.engines.reach import module_of
from compare.engines.step import ALIKE, Observations, Step, Turns
from compare.errors import UnsupportedError, count_as_users
from compare.instruments import ledger, parity, parts
from compare.instruments.bench import Bench, Build, steady_call
from compare.instruments.judge import CallJudgement, judge_calls
from compare.instruments.parity import expectations, parity_mode
from compare.instruments.rounds import (
    CLOCK,
    NAME,
    Clock,
    ClockName,
    Rounds,
    calibrate,
    clock_name,
    paired_rounds,
    processor_seconds,
    rotate,
    without_collection,
)
from compare.instruments.standard import Result, Standard
from compare.records.cells import (
    Call,
    CompilationRow,
    Compilations,
    CompiledRow,
    Memory,
    MemoryRow,
    Parity,
    ParityRow,
    Time,
    TimeRow,
)
from compare.records.job import Budget, Job
from compare.records.own import CompileTrace, CompileTraceRow
from compare.records.record import Record, Status
from compare.records.results import to_json
from compare.steps import CallTimes, FirstCall, call_times, first_call, now
from compare.workloads import models
from compare.workloads.base import Case

Limited = Callable[[str], AbstractContextManager[None]]
"""A function from a mode to the context that limits its first epoch."""


def no_limit(_mode: str) -> AbstractContextManager[None]:
    """Return a context without a limit."""
    return nullcontext()


@dataclass
class FirstEpoch:
    """The record of a mode's first epoch.

    `results` are the results of calls to compare, until they are `judged`; then it is `compared`.

    It is `whole` unless it was ended at its limit; then the last of `calls` is the interrupted one. `peak` is the most
    bytes that a step takes from malloc beyond those before it; `held` is the bytes that exist after the epoch and not
    before it, without `results`; both are None where the process does not count. `grown` are the resident bytes beyond
    those that `began`. `outside` is the number of ops of its longest call that run outside of compiled code, if told.
    `processor` is its seconds of processor, with building. `observed` is the engine's report at the epoch's end, which
    may count all steps of a process together.
    """

    status: Status = "ok"
    reason: str | None = None
    step: Step | None = None
    build: float = 0.0
    calls: list[Call] = field(default_factory=list)
    results: dict[int, Result] = field(default_factory=dict)
    judged: CallJudgement = field(default_factory=CallJudgement)
    compared: bool = False
    whole: bool = True
    processor: float = 0.0
    peak: int | None = None
    held: int | None = None
    grown: int = 0
    outside: int | None = None
    observed: Observations = field(default_factory=Observations)
    began: int = field(default_factory=resident)

    @property
    def seconds(self) -> float:
        """Return the seconds of the build and of all calls."""
        return self.build + math.fsum(call.seconds for call in self.calls)

    @property
    def right(self) -> Step | None:
        """Return the step, if it is right and ready to be timed."""
        return self.step if self.status == "ok" and self.whole else None

    def timed(self, bench: Bench) -> Step | None:
        """Return the step, if it is to be timed; a wrong one of a function is timed too."""
        wrong = bench.kind == "function" and self.status == "disagree" and self.whole
        return self.step if wrong else self.right

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A context whose processor seconds count for this epoch."""
        before = processor_seconds()
        yield
        self.processor += processor_seconds() - before

    def judge(self, bench: Bench, mode: str) -> None:
        """Note whether the errors are within the limits, and how far off the mode is at most."""
        if not self.results or self.status != "ok" or self.step is None:
            return  # it ended before there was a result to compare
        expected = bench.references.expected
        results = bench.references.results_of(mode, self.results)
        differences = {index: expected[index].less(result) for index, result in results}
        self.results, self.compared = {}, True
        nearby = partial(bench.references.is_right_nearby, self.step, mode)
        row = self.judged = judge_calls(differences, expected, bench.references.moves, nearby)
        if row.fault:
            self.status, self.reason = "disagree", row.fault
        elif row.warning:
            self.reason = f"{self.reason}; {row.warning}" if self.reason else row.warning

    def count_held(self) -> None:
        """Note the bytes that exist since the step was built, before another mode adds to them."""
        if step := self.right:
            self.grown = max(0, resident() - self.began)
            results: Any = tuple(self.results.values())
            kept = sum(int(np.asarray(leaf).nbytes) for leaf in optree.tree_leaves(results))
            self.held = max(0, step.engine.devices.counter.live() - step.live - kept)

    def count(self, bench: Bench, mode: str) -> None:
        """Note the peak of the largest step, and how many ops of the longest run outside of compiled code.

        A mode that repeated eager's draws is compiled anew as its user has it, which also puts that code on the disk.
        """
        if (step := self.right) is None:
            return
        if bench.repeats(mode):
            now(f"compiled {user_name(bench.engine, mode)} again, with random numbers of its own")
            bench.engine.compiler.forget()
        self.peak = max((peak for peak in bench.peaks(step) if peak is not None), default=None)
        longest = max(range(len(step.examples)), key=bench.lengths.__getitem__)
        with bench.state.fresh():
            self.outside = bench.engine.ops.outside(step.bind(longest))

    def ended(self, bench: Bench) -> Status:
        """Return the status for rows; the bench decides how an epoch counts that was ended at its limit."""
        return self.status if self.whole else bench.cut

    def times(self, bench: Bench, clock: ClockName = NAME) -> TimeRow:
        """Return the row of times, without steady state, which `clock` is to read later."""
        made = self.observed.compilations
        return TimeRow(
            self.ended(bench),
            self.reason,
            build=self.build,
            first=self.calls[0].seconds if self.calls else 0.0,
            stream=self.calls if bench.varies else None,
            compiles=len(made),
            compile_seconds=math.fsum(compilation.seconds or 0.0 for compilation in made),
            useful=sum(bench.lengths),
            computed=self.step.computed(bench.lengths) if self.step else 0,
            whole=self.whole,
            processor=self.processor if clock == "cpu" else None,
        )

    def parity(self, bench: Bench) -> ParityRow:
        """Return the row of the errors against the expected results."""
        row = parity_mode(self.judged)
        row.status, row.reason = self.ended(bench), self.reason
        return row

    def compiled(self, bench: Bench, ops: int | None) -> CompiledRow:
        """Return the row of the engine's compilations; `ops` is the number of ops of an eager call."""
        observed = self.observed
        made = [CompilationRow(made.reason, made.seconds, dict(made.phases)) for made in observed.compilations]
        share = max(0.0, 1 - self.outside / ops) if ops and self.outside is not None else None
        return CompiledRow(self.ended(bench), self.reason, made, dict(observed.breaks), list(observed.limits), share)

    def memory(self, bench: Bench) -> MemoryRow:
        """Return the row of the bytes that it takes and holds."""
        return MemoryRow(self.ended(bench), self.reason, self.peak or 0, self.held or 0, self.grown)


def first_epoch(bench: Bench, mode: str, limited: Limited) -> FirstEpoch:
    """Return the first epoch of a mode, judged at once. Raises what `first_calls` raises."""
    epoch = first_calls(bench, mode, limited)
    epoch.judge(bench, mode)
    return epoch


def first_calls(bench: Bench, mode: str, limited: Limited) -> FirstEpoch:
    """Return the first epoch of a mode, not judged yet.

    Raises the step's error where that is the fault of the subject and not of the mode.
    """
    epoch, started = FirstEpoch(), time.perf_counter()
    try:
        with bench.checked(mode), limited(mode):
            first_call(FirstCall(mode, 0, len(bench.lengths)))
            with epoch.counted():
                epoch.step = bench.step(mode)
                epoch.build = time.perf_counter() - started
            call_each(epoch, epoch.step, bench, mode)
    except LimitError as error:
        epoch.whole = False
        rest = time.perf_counter() - started - epoch.seconds
        epoch.reason = f"{len(epoch.calls)} of {len(bench.lengths)} calls: {error}"
        epoch.calls.append(Call(bench.lengths[len(epoch.calls)], max(rest, 0.0), True, True))
    except Exception as error:
        if bench.blames(mode):
            raise
        refused = isinstance(error, UnsupportedError) or bench.engine.errors.refuses(error, mode)
        epoch.status, epoch.reason = "unsupported" if refused else "failed", bench.reason(error)
    if epoch.step:
        epoch.observed = epoch.step.observed
    bench.references.keep(mode, epoch.results)
    return epoch


def call_each(epoch: FirstEpoch, step: Step, bench: Bench, mode: str) -> None:
    """Make every first call in order, and note each as it ends.

    `new` marks a shape or structure that is new to the mode, `compiled` a call that compiled.
    """
    seen: set[Any] = set()
    for index in range(len(step.examples)):
        before, form, call = step.compiles, bench.form(index), step.bind(index)
        now(f"made call {index + 1} in {user_name(bench.engine, mode)}")
        with bench.state.called(index), call.within(), without_collection():
            with epoch.counted():
                start = time.perf_counter()
                returned = call.run()
                seconds = time.perf_counter() - start
            first_call(FirstCall(mode, index + 1, len(step.examples), seconds))
            if bench.references.compares(index):
                epoch.results[index] = bench.taken(call.result(returned))
        epoch.calls.append(Call(bench.lengths[index], seconds, form not in seen, step.compiles > before))
        seen.add(form)


COLD = 0
"""The number of the process that finds no compiled code, where code is kept on the disk."""
WARM = 1
"""The number of the first process that finds code; it also reads the lines of the base."""
BASE = 4
"""The factor of the base's time limit: without the base there is no ratio."""
GLANCE, WAIT = 0.03, 1.0
"""The seconds of a block in a glance, and the length from which on a block is not read once more."""

T = TypeVar("T")


def measure(job: Job) -> Time:
    """Return the findings of one process on a workload: every mode built, called first, and timed in steady state."""
    engine = start_engine(job)
    if models.is_model(job.workload):
        return answer(job, model_of(job, engine), _limits(job))
    case = parity.case_of(job, engine.library.workload(job.source))
    engine.wait(engine.arrays(case.params))  # so that no mode pays for starting the engine
    if engine.is_reference:
        gc.freeze()  # keeps the harness's objects out of each collection below
        cache = job.asked.get("cache")
        clock = clock_name(engine.device, has_events=engine.has_events, threads=job.threads)
        rows = measure_modes(job, case, steady=cache != "cold")
        return Time(**job.head, modes=rows, cache=cache, clock=clock)
    expected = expectations(workloads.load(job.source).case(str(job.size)))
    bench = Bench(engine, case, expected={each.example: Standard(each.exact) for each in expected})
    gc.freeze()
    return answer(job, bench, _limits(job))


def start_engine(job: Job) -> Engine:
    """Start the engine of a job in this process. Raises InputsError where its device is missing."""
    engine = engines.of_mode(job.modes[0])
    doubles = None if models.is_model(job.workload) else False
    engine.start(job.seed, doubles=doubles, device=job.asked.get("device", "cpu"), threads=job.threads)
    return engine


def model_of(job: Job, engine: Engine) -> Bench:
    """Return the bench of a real model; only the process that finds no compiled code compares results."""
    now(f"imported {job.workload}")
    (holder, function), checks = models.holder_of(job.source), job.process == COLD
    count_as_users(module_of(function))
    engine.arrays(list(engine.state.reached(function)))  # moves modules to the device of the inputs
    inputs = holder.batches() if hasattr(holder, "batches") else holder.inputs
    calls = [engine.arrays(call) for call in inputs]
    bench = Bench.of_function(
        engine, engine.mode_names[0], str(job.workload), function, calls, 0, checks=checks, kind="model"
    )
    gc.freeze()
    return bench


def _limits(job: Job) -> Limited:
    """Return the limits in seconds of a mode's first epoch; the base has more, as without it there is no ratio."""
    limit = float(job.asked["limit"])
    return lambda mode: limit_seconds(limit if mode in job.modes[1:] else limit * BASE)


def measure_modes(job: Job, case: Case, build: Build = engines.step, *, steady: bool = True) -> dict[str, TimeRow]:
    """Return the times of a job's modes over a given case; `build` makes the step of a mode."""
    bench = Bench(engines.find_engine(engines.OWN), case, build)
    epochs = first_epochs(job, bench, no_limit)
    clock = clock_name("cpu", has_events=False, threads=job.threads)
    rows = {mode: epochs[mode].times(bench, clock) for mode in job.modes}
    if steady:
        time_steady(rows, epochs, job, clock_of(clock, bench.engine), bench)
    return rows


def answer(job: Job, bench: Bench, limited: Limited, names: Mapping[str, str] | None = None) -> Time:
    """Return the times of a process that is the gate as well, with the other records beside them.

    The process that finds no compiled code counts bytes, and times no steady state; a process without a number does
    both. Nor does one time steady state in which several modes have several threads: the threads of one mode spin
    beside those of another, and slow it down. `names` maps modes to their names in records. First calls come before all
    code that judges them.
    """
    engine = bench.engine
    is_cold = job.process in (COLD, None)
    apart = job.process is not None and job.threads > 1
    times_steady = job.process != COLD and not (apart and len(job.modes) > 1)
    clock = clock_name(engine.device, has_events=engine.has_events, threads=job.threads)
    names = {mode: (names or {}).get(mode, mode) for mode in (engine.mode_names[0], *job.modes)}
    with limited(engine.mode_names[0]):
        bench.prepare()
    epochs = {}
    for mode in rotate(job.modes, job.process or 0):
        epochs[mode] = first_calls(bench, mode, limited)
        if is_cold:
            epochs[mode].count_held()
    glances = is_cold and not apart and bench.kind == "function"
    seconds = glance(epochs, bench, clock_of(clock, engine)) if glances else {}
    for mode, epoch in epochs.items():
        epoch.judge(bench, mode)
        if is_cold:
            epoch.count(bench, mode)
    rows = {mode: epochs[mode].times(bench, clock) for mode in job.modes}
    for mode, blocks in seconds.items():
        rows[mode].blocks, rows[mode].calls_per_block = blocks, len(bench.lengths)
    if times_steady:
        time_steady(rows, epochs, job, clock_of(clock, engine), bench)

    def each(read: Callable[[FirstEpoch], T]) -> dict[str, T]:
        return {names[mode]: read(epochs[mode]) for mode in job.modes}

    cache: Literal["cold", "warm"] | None = None if job.process is None else "cold" if is_cold else "warm"
    base = names[engine.mode_names[0]]
    record = Time(
        **{**job.head, "process": job.process or 0},
        modes={names[mode]: row for mode, row in rows.items()},
        cache=cache,
        clock=clock,
        eager=base,
    )
    record.beside = list(map(to_json, _beside(job, bench, base, is_cold, epochs, each)))
    record.beside += map(to_json, _looks(job, bench, names, epochs))
    return record


def _looks(job: Job, bench: Bench, names: Mapping[str, str], epochs: Mapping[str, FirstEpoch]) -> Iterator[Record]:
    """Yield the records of looks that follow all figures, in one process: lines of eager, parts of compiled calls."""
    right = {mode: epoch for mode, epoch in epochs.items() if epoch.right} if job.process in (WARM, None) else {}
    if (eager := right.pop(bench.engine.mode_names[0], None)) and eager.step:
        yield from ledger.of_bench(job, bench, names[bench.engine.mode_names[0]], eager.step)
    yield from parts.of_bench(job, bench, names, {mode: epoch.seconds for mode, epoch in right.items()})


def glance(epochs: Mapping[str, FirstEpoch], bench: Bench, clock: Clock) -> dict[str, list[float]]:
    """Return the seconds of a call of each mode by one block, and report them; empty for a mode alone.

    Nothing is compared yet, and a call begins with the state that the last one left: the user gets an early figure.
    """
    steps = {mode: step for mode, epoch in epochs.items() if (step := epoch.right)}
    if bench.engine.mode_names[0] not in steps or len(steps) < 2:
        return {}
    try:
        with bench.state.fresh():
            blocks = {mode: _block(step, bench.checked(mode), clock) for mode, step in steps.items()}
    except Exception:  # noqa: BLE001  (a schedule has come to its end, for one: the first epoch has run)
        return {}
    seconds = {mode: block / len(bench.lengths) for mode, block in blocks.items()}
    call_times(CallTimes(seconds))
    return {mode: [block] for mode, block in seconds.items()}


def _block(step: Step, checked: AbstractContextManager[None], clock: Clock) -> float:
    """Return the seconds of an epoch in a long enough block; in a second block where the first compiled or is short."""
    with checked, step.within():
        call, compiles = steady_call(step), step.compiles
        (*_, (_, seconds)) = calibrate(call, GLANCE, clock)
        if step.compiles > compiles or seconds < WAIT:
            (*_, (_, seconds)) = calibrate(call, GLANCE, clock)
    return seconds


def clock_of(name: ClockName, engine: Engine) -> Clock:
    """Return the clock of that name; an engine has that of its device."""
    if name == "events":
        return engine.devices.clock()
    return CLOCK if name == NAME else time.perf_counter_ns


def _beside(
    job: Job,
    bench: Bench,
    base: str,
    is_cold: bool,
    epochs: Mapping[str, FirstEpoch],
    each: Callable[..., dict[str, Any]],
) -> Iterator[Record]:
    place = {**job.head, "eager": base}
    place.pop("process", None)
    parity = each(lambda epoch: epoch.parity(bench) if epoch.compared or epoch.ended(bench) != "ok" else None)
    compared = {mode: row for mode, row in parity.items() if row is not None}
    if compared:
        agree = all(row.status in ("ok", "unsupported") for row in compared.values())
        yield Parity(**place, agree=agree, modes=compared, same_graph=None, kernel_calls={})
    if not is_cold:
        return
    eager = epochs.get(bench.engine.mode_names[0])
    ops = eager.outside if eager else None
    told = each(lambda epoch: epoch.compiled(bench, None if epoch is eager else ops))
    yield Compilations(**place, version=bench.engine.version, modes=told, **bench.references.notes)
    if events := bench.engine.process.traced():
        yield CompileTrace(**place, modes={[*told][-1]: CompileTraceRow("ok", None, [*events])})
    memory = each(lambda epoch: epoch.memory(bench))
    if any(row.peak for row in memory.values()):
        yield Memory(**place, modes=memory, counted=bench.engine.devices.counter.name)


def first_epochs(job: Job, bench: Bench, limited: Limited) -> dict[str, FirstEpoch]:
    """Return the first epoch of each mode; the order rotates with the process."""
    return {mode: first_epoch(bench, mode, limited) for mode in rotate(job.modes, job.process or 0)}


def time_steady(
    rows: Mapping[str, TimeRow], epochs: Mapping[str, FirstEpoch], job: Job, clock: Clock, bench: Bench
) -> None:
    """Time the modes that are right, in rounds whose blocks begin with the same state."""
    steps = {mode: step for mode in job.modes if (step := epochs[mode].timed(bench))}
    if not steps:
        return
    neighbours = Neighbours()
    rounds = steady_rounds(steps, job.budget, job.random(), clock, bench.state.turns(steps))
    share = neighbours.share()
    for mode, (is_steady, seconds) in rounds.settled().items():
        row, examples = rows[mode], len(steps[mode].examples)
        row.steady = is_steady
        row.calls_per_block = rounds.counts[mode] * examples
        row.warmup = [each / examples for each in rounds.warmup(mode)]
        row.blocks = [each / examples for each in seconds]
        if clock is CLOCK and NAME == "cpu":
            wall, busy = rounds.on_the_wall(mode)
            row.wall, row.waits = wall / examples, max(0.0, 1 - busy / wall)
        elif job.threads > 1:
            row.busy, row.neighbours = rounds.processor(mode) / examples, share


def steady_rounds(
    steps: Mapping[str, Step], budget: Budget, rng: Random, clock: Clock = CLOCK, turns: Turns = ALIKE
) -> Rounds:
    """Return rounds of steps in steady state."""
    calls = {mode: steady_call(step) for mode, step in steps.items()}
    within = {mode: step.within for mode, step in steps.items()}
    return paired_rounds(calls, budget, rng, clock, within=within, turns=turns)
