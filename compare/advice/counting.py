"""What a worker does for the advice: count what programs do in an engine, and, of probes and workloads, time them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from compare import steps, workloads
from compare.advice import heldout, probes
from compare.engines import OWN, Engine, cases, named
from compare.engines.step import Step
from compare.errors import described
from compare.instruments.time.measure import steady_call
from compare.instruments.time.rounds import collected, time_block
from compare.own import origin
from compare.own.case import case_of, converting
from compare.own.question import Question, calls_in
from compare.own.workers import answered
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault
from compare.records.work import CountedProgram, CountedPrograms, Timed
from compare.workloads.base import Case
from graphs.errors import GraphError

EXAMPLES = 6
"""Of a stream, so that no program takes long; one where compiling is slow."""


def measure(job: Job) -> CountedPrograms | FunctionFault:
    """The counts of the programs of a job, each timed where `timed` says so.

    A program is a probe, a workload with its size, one drawn by `heldout`, one of the table `rows`, or the user's
    function. What is wrong with the user's file is an answer too.
    """
    asked = Question.from_dict(job.asked["question"])
    names, rows, timed = (job.asked[name] for name in ("programs", "rows", "timed"))
    return answered(asked.function, lambda: _measured(asked, names, rows, job if timed else None))


def _measured(asked: Question, names: Sequence[str], rows: str, timed: Job | None) -> CountedPrograms:
    engine = asked.started()
    programs: list[CountedProgram] = []
    for name in names:
        steps.now(f"counted {name}")
        if name != asked.function:
            programs += _probed(engine, asked.arms, name, rows, timed)
        elif engine.name == OWN:
            programs.append(own(*origin.called(asked.function, asked.inputs), asked.gradient, asked.arms))
        else:
            function, inputs = origin.called(asked.function, asked.inputs)
            calls = [engine.arrays(call) for call in calls_in(inputs, function)]
            each = [Case(function, call[0], (tuple(call[1:]),), (1,)) for call in calls]
            programs.append(counted(engine, asked.arms, name, each))
    return CountedPrograms(engine.version, programs)


def own(f: Callable[..., Any], inputs: Sequence[Any], gradient: bool | None, arms: Sequence[str]) -> CountedProgram:
    """A function for our engines and its calls: it is traced, and never run. Raises what tracing raises."""
    from compare.engines.graphduel.counting import output_of

    engine = named(OWN)
    try:
        case = converting(case_of(f, inputs, gradient, None, output_of))
    except GraphError as error:
        if not engine.refuses(error, arms[1]):
            raise
        return CountedProgram("", [], 0, refused=described(error))
    return counted(engine, arms, "", [case], run=False)


def _probed(engine: Engine, arms: Sequence[str], name: str, rows: str, job: Job | None) -> Iterator[CountedProgram]:
    """A program that is timed; a probe without gradients as well, where compiling is not slow.

    One that raises an error is refused: the others count.
    """
    whole = _named(engine, name, rows)
    some = 1 if engine.costly else EXAMPLES
    case = replace(whole, examples=whole.examples[:some], lengths=whole.lengths[:some])
    is_probe = name in probes.ALL
    plain = [replace(case, argnum=None)] if is_probe and not engine.costly else []
    run = is_probe or engine.name != OWN  # others are predicted as a user's function is
    for variant in (case, *plain):
        try:
            taken = (
                timed(engine, arms, variant, job.budget) if job else None
            )  # first: nothing of it has been traced yet
            program = counted(engine, arms, name, [variant], run=run)
            program.timed = taken
        except Exception as error:  # noqa: BLE001  (of a program of ours)
            program = CountedProgram(name, [], 1, refused=described(error))
        yield program


def _named(engine: Engine, name: str, rows: str) -> Case:
    """A program by its name."""
    if name in probes.ALL:
        probe: Case = engine.load(probes.__name__).ALL[name]()
        return probe
    if name in heldout.names():
        return heldout.cases()[name]()
    if rows and name in (table := origin.named(rows)):
        loss, params, inputs = table[name]()
        return Case(loss, params, (tuple(inputs),), (1,))
    workload, _, size = name.partition("/")
    return engine.workload(workloads.source(workload)).case(size)


def counted(
    engine: Engine, arms: Sequence[str], name: str, programs: Sequence[Case], *, run: bool = True
) -> CountedProgram:
    """The counts of the calls of some cases. Raises what an engine raises that is not a refusal of the second arm."""
    shapes = {cases.signature((case.params, *example)) for case in programs for example in case.examples}
    try:
        counts = [call for case in programs for call in engine.counts(arms, case, run=run)]
    except Exception as error:
        if not engine.refuses(error, arms[1]):
            raise
        return CountedProgram(name, [], len(shapes), refused=described(error))
    return CountedProgram(name, counts, len(shapes))


def timed(engine: Engine, arms: Sequence[str], case: Case, budget: Budget) -> Timed:
    """The least of some blocks of calls by this process's clock: what disturbs a machine only ever adds.

    A compiler that is slow is other processes, and the first calls are then timed by the wall's clock.
    """
    clock = time.perf_counter if engine.costly else time.process_time
    with nullcontext() if engine.costly else np.errstate(all="ignore"), collected():
        start = clock()
        eager = engine.step(arms[0], case)
        built = clock() - start  # what any step takes to build
        eager.epoch()
        start = clock()
        compiled = engine.step(arms[1], case)
        compiled.epoch()
        first = clock() - start - built
        compiled.epoch()
        taken = _least({"eager": eager, "compiled": compiled}, budget)
    each = {arm: seconds / len(case.examples) for arm, seconds in taken.items()}
    return Timed(each["eager"], each["compiled"], max(0.0, first - taken["compiled"]))


def _least(made: Mapping[str, Step], budget: Budget) -> dict[str, float]:
    """The seconds of an epoch of each arm: the least of blocks that take turns."""
    epochs = {arm: steady_call(step) for arm, step in made.items()}

    def block(arm: str, count: int) -> float:
        with made[arm].within():
            return time_block(epochs[arm], count, time.process_time_ns)

    counts = {arm: max(1, int(budget.block_seconds / max(block(arm, 1), 1e-8))) for arm in made}
    rounds = [{arm: block(arm, counts[arm]) for arm in made} for _ in range(budget.rounds)]
    return {arm: min(seconds[arm] for seconds in rounds) for arm in made}
