"""What a worker does for the advice: count what programs do in an engine, and, of probes and workloads, time them.

Asking workers: which prices an engine has here, and what a function or many programs do in it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from compare import steps, workloads
from compare.advice import holdout, prices, probes
from compare.advice.prices import Prices, Row, Say, fit_prices
from compare.engines import OWN, Engine, cases, find_engine
from compare.engines.step import Step
from compare.errors import CompareError, InputsError, WorkerError, describe_error
from compare.instruments.time.measure import steady_call
from compare.instruments.time.rounds import time_block, without_collection
from compare.own import origin
from compare.own.case import calls_in, case_of, converting
from compare.own.question import Question, question_for
from compare.own.workers import answer_or_fault, check_answer
from compare.records.job import Budget, Job
from compare.records.own import CountedProgram, CountedPrograms, FunctionFault, TimedCall
from compare.records.record import error_of, kind_of
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.workloads.base import Case
from graphs.errors import GraphError

EXAMPLES = 6
"""Of a stream, so that no program takes long; one where compiling is slow."""


def measure(job: Job) -> CountedPrograms | FunctionFault:
    """The counts of the programs of a job, each timed where `timed` says so.

    A program is a probe, a workload with its size, one drawn by `holdout`, one of the table `rows`, or the user's
    function. What is wrong with the user's file is an answer too.
    """
    asked = Question.from_dict(job.asked["question"])
    names, rows, timed = (job.asked[name] for name in ("programs", "rows", "timed"))
    return answer_or_fault(asked.function, lambda: _measure_programs(asked, names, rows, job if timed else None))


def _measure_programs(asked: Question, names: Sequence[str], rows: str, timed: Job | None) -> CountedPrograms:
    engine = asked.started()
    programs: list[CountedProgram] = []
    for name in names:
        steps.now(f"counted {name}")
        if name != asked.function:
            programs += _probe_programs(engine, asked.arms, name, rows, timed)
        elif engine.name == OWN:
            programs.append(own(*origin.load_function(asked.function, asked.inputs), asked.gradient, asked.arms))
        else:
            function, inputs = origin.load_function(asked.function, asked.inputs)
            calls = [engine.arrays(call) for call in calls_in(inputs, function)]
            each = [Case(function, call[0], (tuple(call[1:]),), (1,)) for call in calls]
            programs.append(count_programs(engine, asked.arms, name, each))
    return CountedPrograms(engine.version, programs)


def own(f: Callable[..., Any], inputs: Sequence[Any], gradient: bool | None, arms: Sequence[str]) -> CountedProgram:
    """A function for our engines and its calls: it is traced, and never run. Raises what tracing raises."""
    from compare.engines.graphduel.counting import output_of

    engine = find_engine(OWN)
    try:
        case = converting(case_of(f, inputs, gradient, None, output_of))
    except GraphError as error:
        if not engine.errors.refuses(error, arms[1]):
            raise
        return CountedProgram("", [], 0, refused=describe_error(error))
    return count_programs(engine, arms, "", [case], run=False)


def _probe_programs(
    engine: Engine, arms: Sequence[str], name: str, rows: str, job: Job | None
) -> Iterator[CountedProgram]:
    """A program that is timed; a probe without gradients as well, where compiling is not slow.

    One that raises an error is refused: the others count.
    """
    whole = _find_program(engine, name, rows)
    some = 1 if engine.compiles_slowly else EXAMPLES
    case = replace(whole, examples=whole.examples[:some], lengths=whole.lengths[:some])
    is_probe = name in probes.ALL
    plain = [replace(case, argnum=None)] if is_probe and not engine.compiles_slowly else []
    run = is_probe or engine.name != OWN  # others are predicted as a user's function is
    for variant in (case, *plain):
        try:
            taken = (
                time_case(engine, arms, variant, job.budget) if job else None
            )  # first: nothing of it has been traced yet
            program = count_programs(engine, arms, name, [variant], run=run)
            program.timed = taken
        except Exception as error:  # noqa: BLE001  (of a program of ours)
            program = CountedProgram(name, [], 1, refused=describe_error(error))
        yield program


def _find_program(engine: Engine, name: str, rows: str) -> Case:
    """A program by its name."""
    if name in probes.ALL:
        probe: Case = engine.library.load(probes.__name__).ALL[name]()
        return probe
    if name in holdout.names():
        return holdout.cases()[name]()
    if rows and name in (table := origin.load_object(rows)):
        loss, params, inputs = table[name]()
        return Case(loss, params, (tuple(inputs),), (1,))
    workload, _, size = name.partition("/")
    return engine.library.workload(workloads.source(workload)).case(size)


def count_programs(
    engine: Engine, arms: Sequence[str], name: str, programs: Sequence[Case], *, run: bool = True
) -> CountedProgram:
    """The counts of the calls of some cases. Raises what an engine raises that is not a refusal of the second arm."""
    shapes = {cases.signature((case.params, *example)) for case in programs for example in case.examples}
    try:
        counts = [call for case in programs for call in engine.ops.counts(arms, case, run=run)]
    except Exception as error:
        if not engine.errors.refuses(error, arms[1]):
            raise
        return CountedProgram(name, [], len(shapes), refused=describe_error(error))
    return CountedProgram(name, counts, len(shapes))


def time_case(engine: Engine, arms: Sequence[str], case: Case, budget: Budget) -> TimedCall:
    """The least of some blocks of calls by this process's clock: what disturbs a machine only ever adds.

    A compiler that is slow is other processes, and the first calls are then timed by the wall's clock.
    """
    clock = time.perf_counter if engine.compiles_slowly else time.process_time
    with nullcontext() if engine.compiles_slowly else np.errstate(all="ignore"), without_collection():
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
    return TimedCall(each["eager"], each["compiled"], max(0.0, first - taken["compiled"]))


def _least(made: Mapping[str, Step], budget: Budget) -> dict[str, float]:
    """The seconds of an epoch of each arm: the least of blocks that take turns."""
    epochs = {arm: steady_call(step) for arm, step in made.items()}

    def block(arm: str, count: int) -> float:
        with made[arm].within():
            return time_block(epochs[arm], count, time.process_time_ns)

    counts = {arm: max(1, int(budget.block_seconds / max(block(arm, 1), 1e-8))) for arm in made}
    rounds = [{arm: block(arm, counts[arm]) for arm in made} for _ in range(budget.rounds)]
    return {arm: min(seconds[arm] for seconds in rounds) for arm in made}


TIMEOUT = 180.0
"""Seconds without progress: what compiles longer is left out."""
LEAST = 8
"""Programs that must have an answer: there are six prices to fit at least."""
BUDGET = Budget(rounds=12, block_seconds=0.01)
BRIEF = Budget(rounds=5, block_seconds=3e-3)
"""For a probe where there are many."""


@dataclass(frozen=True)
class Counters:
    """Fresh processes of an engine, with a cache in a folder."""

    asked: Question
    folder: Path
    reporter: Reporter
    rows: str = ""

    def look(self, names: Sequence[str], *, timed: bool, budget: Budget = BUDGET) -> list[CountedProgram]:
        """The counts of some programs, or of the user's function, from one process.

        Raises InputsError and FunctionError for what is wrong with a user's file, WorkerError where nothing came back.
        """
        job = Job(
            kind_of(CountedPrograms),
            size=names[0] if len(names) == 1 else f"{len(names)} programs",  # what the label says
            seed=self.asked.seed,
            arms=self.asked.arms,
            budget=budget,
            asked={"question": self.asked.to_dict(), "programs": list(names), "rows": self.rows, "timed": timed},
            variables=self.asked.adapter.environment(self.folder, self.asked.device),
        )
        self.reporter.start(job.label)
        answer = run_job(job, TIMEOUT, self.reporter.hear)
        self.reporter.finish(error_of(answer))
        counted: CountedPrograms = check_answer(answer, names[0])
        return counted.programs

    def each(self, names: Iterable[str]) -> Iterator[tuple[str, CountedProgram | str]]:
        """Each program timed in a process of its own, or why there is nothing of it."""
        for name in names:
            try:
                (program,) = self.look([name], timed=True)
            except CompareError as error:
                yield name, str(error)
            else:
                yield name, program


def question(engine: str, function: str, inputs: str, mode: str | None, gradient: bool | None = None) -> Question:
    """What is asked: the eager arm and one that compiles, that of a mode or the first. Raises InputsError."""
    asked = question_for(engine, function, inputs, (mode,) if mode else None, gradient=gradient)
    if len(asked.arms) < 2:
        raise InputsError(f"{asked.adapter.title} does not compile; there is nothing to predict")
    return replace(asked, arms=asked.arms[:2])


def find_prices(asked: Question, path: Path | None, reporter: Reporter, say: Say, *, anew: bool = False) -> Prices:
    """The prices of the two arms, kept or measured now. Raises as `prices.load_prices` and `calibrate`."""
    return prices.load_prices(asked.adapter, asked.arms[1], path, lambda: calibrate(asked, reporter), say, anew=anew)


def calibrate(asked: Question, reporter: Reporter) -> Prices:
    """The prices of the two arms that are asked about, measured now. Raises WorkerError where too few came through.

    A process each, where compiling is slow, and else one for all.
    """
    started = time.perf_counter()
    engine = asked.adapter
    names = tuple(probes.FEW if engine.compiles_slowly else probes.ALL)
    with workers(asked, len(names) if engine.compiles_slowly else 1, reporter) as ask:
        if engine.compiles_slowly:
            programs = [program for _, program in ask.each(names) if isinstance(program, CountedProgram)]
        else:
            programs = ask.look(names, timed=True, budget=BRIEF)
    rows = [row for program in programs if (row := row_of(program)) is not None]
    if len(rows) < LEAST:
        raise WorkerError(
            f"{len(rows)} of {len(names)} programs gave a result, {LEAST} are needed; try graphduel doctor"
        )
    eager, compiled = asked.arms
    return fit_prices((eager, compiled), prices.machine(engine), rows, time.perf_counter() - started)


def row_of(program: CountedProgram) -> Row | None:
    """A program of one call as a row of the fit; None where it was refused."""
    return Row(program.counts[0], program.timed) if program.timed and program.counts else None


@contextmanager
def workers(asked: Question, count: int, reporter: Reporter, rows: str = "") -> Iterator[Counters]:
    """Those who answer so many questions."""
    reporter.pace.total = count
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        yield Counters(asked, Path(folder), reporter, rows)
