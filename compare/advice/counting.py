"""Counting the work of programs for the advice, in workers and from the process that asks them.

The first part runs in a worker (`measure`): it counts the work of programs in an engine, and times probes and
workloads. The second part asks workers (`Counters`), and finds or measures prices (`find_prices`, `calibrate`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from compare import steps, workloads
from compare.advice import prediction
from compare.advice import programs as corpus
from compare.advice.prediction import Prices, Row, Say, fit_prices
from compare.engines import OWN, Engine, cases, find_engine
from compare.errors import CompareError, InputsError, WorkerError, describe_error
from compare.instruments.bench import steady_call
from compare.instruments.rounds import time_block, without_collection
from compare.own.workers import answer_or_fault, check_answer
from compare.records.job import Budget, Job
from compare.records.own import CountedProgram, CountedPrograms, FunctionFault, TimedCall
from compare.records.record import error_of, kind_of
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.subjects import origin
from compare.subjects.case import calls_in, case_of, converting
from compare.subjects.subject import Situation, Subject
from compare.workloads.base import Case
from graphs.errors import GraphError

EXAMPLES = 6
"""The number of examples of a stream that are used, to keep programs short; 1 where compiling is slow."""


def measure(job: Job) -> CountedPrograms | FunctionFault:
    """Count the work of the programs of a job, and time each if the job says `timed`.

    A program is named as a probe, a workload with its size, an entry of the table `rows`, or the user's function. An
    error in the user's file is returned as FunctionFault.
    """
    asked = Subject.from_dict(job.asked["subject"])
    return answer_or_fault(asked.function, lambda: _measure_programs(asked, job))


def _measure_programs(asked: Subject, job: Job) -> CountedPrograms:
    engine = asked.started(Situation(threads=job.threads))
    names, rows = job.asked["programs"], job.asked["rows"]
    programs: list[CountedProgram] = []
    for name in names:
        steps.now(f"counted {name}")
        if name != asked.function:
            programs += _probe_programs(engine, asked.modes, name, rows, job)
        elif engine.name == OWN:
            programs.append(own(*origin.load_function(asked.function, asked.inputs), asked.gradient, asked.modes))
        else:
            function, inputs = origin.load_function(asked.function, asked.inputs)
            calls = [engine.arrays(call) for call in calls_in(inputs, function)]
            each = [Case(function, call[0], (tuple(call[1:]),), (1,)) for call in calls]
            programs.append(count_programs(engine, asked.modes, name, each))
    return CountedPrograms(engine.version, programs)


def own(f: Callable[..., Any], inputs: Sequence[Any], gradient: bool | None, modes: Sequence[str]) -> CountedProgram:
    """Count the work of a function for our engines, which is traced and not run. Raises the errors of tracing."""
    from compare.engines.graphduel.counting import output_of

    engine = find_engine(OWN)
    try:
        case = converting(case_of(f, inputs, gradient, None, output_of))
    except GraphError as error:
        if not engine.errors.refuses(error, modes[1]):
            raise
        return CountedProgram("", [], 0, refused=describe_error(error))
    return count_programs(engine, modes, "", [case], run=False)


def _probe_programs(engine: Engine, modes: Sequence[str], name: str, rows: str, job: Job) -> Iterator[CountedProgram]:
    """Yield a program with its counts and times; a probe also without gradients, unless compiling is slow.

    A program that raises an error is yielded as refused, so that the others still count.
    """
    whole = _find_program(engine, name, rows)
    some = 1 if engine.compiles_slowly else EXAMPLES
    case = replace(whole, examples=whole.examples[:some], lengths=whole.lengths[:some])
    is_probe = name in corpus.ALL
    plain = [replace(case, argnum=None)] if is_probe and not engine.compiles_slowly else []
    run = is_probe or engine.name != OWN  # other programs are only traced, like a user's function
    for variant in (case, *plain):
        try:
            which = job.asked["timed"]  # timed first, while nothing of it has been traced
            taken = time_case(engine, modes, variant, job.budget, which) if which else None
            program = count_programs(engine, modes, name, [variant], run=run)
            program.timed = taken
        except Exception as error:  # noqa: BLE001  (one failed program must not end the others)
            program = CountedProgram(name, [], 1, refused=describe_error(error))
        yield program


def _find_program(engine: Engine, name: str, rows: str) -> Case:
    """Return the case of a program by its name."""
    if name in corpus.ALL:
        probe: Case = engine.library.load(corpus.__name__).ALL[name]()
        return probe
    if rows and name in (table := origin.load_object(rows)):
        loss, params, inputs = table[name]()
        return Case(loss, params, (tuple(inputs),), (1,))
    workload, _, size = name.partition("/")
    return engine.library.workload(workloads.source(workload)).case(size)


def count_programs(
    engine: Engine, modes: Sequence[str], name: str, programs: Sequence[Case], *, run: bool = True
) -> CountedProgram:
    """Count the work of all calls of some cases. Raises errors of the engine, except refusals by the second mode."""
    shapes = {cases.signature((case.params, *example)) for case in programs for example in case.examples}
    try:
        counts = [call for case in programs for call in engine.ops.counts(modes, case, run=run)]
    except Exception as error:
        if not engine.errors.refuses(error, modes[1]):
            raise
        return CountedProgram(name, [], len(shapes), refused=describe_error(error))
    return CountedProgram(name, counts, len(shapes))


EAGER, COMPILED = "eager", "compiled"
BOTH = (EAGER, COMPILED)


def time_case(
    engine: Engine, modes: Sequence[str], case: Case, budget: Budget, which: Sequence[str] = BOTH
) -> TimedCall:
    """Time a case in both modes, or in one: the smallest of some blocks, as disturbances only ever add time.

    Seconds are processor seconds of this process, on several threads those of the wall. Slow compilers run in other
    processes, so first calls are then in wall seconds. A mode that is not timed has 0 seconds.
    """
    clock = time.process_time_ns if engine.threads == 1 else time.perf_counter_ns
    first_clock = time.perf_counter_ns if engine.compiles_slowly else clock
    with nullcontext() if engine.compiles_slowly else np.errstate(all="ignore"), without_collection():
        start = first_clock()
        made = {EAGER: engine.step(modes[0], case)}
        built, first = first_clock() - start, 0  # the time to build a step in any mode
        if EAGER in which:
            made[EAGER].epoch()
        if COMPILED in which:
            start = first_clock()
            made[COMPILED] = engine.step(modes[1], case)
            made[COMPILED].epoch()
            first = first_clock() - start - built
            made[COMPILED].epoch()
        # The seconds of an epoch of each mode are the smallest of blocks that take turns.
        epochs = {mode: steady_call(made[mode]) for mode in which}

        def block(mode: str, count: int) -> float:
            with made[mode].within():
                return time_block(epochs[mode], count, clock)

        counts = {mode: max(1, int(budget.block_seconds / max(block(mode, 1), 1e-8))) for mode in which}
        rounds = [{mode: block(mode, counts[mode]) for mode in which} for _ in range(budget.rounds)]
        taken = {mode: min(seconds[mode] for seconds in rounds) for mode in which}
    each = {mode: seconds / len(case.examples) for mode, seconds in taken.items()}
    compile = max(0.0, first / 1e9 - taken.get(COMPILED, 0.0))
    return TimedCall(each.get(EAGER, 0.0), each.get(COMPILED, 0.0), compile)


TIMEOUT = 180.0
"""The time limit of a program in seconds without progress; programs that compile longer are left out."""
LEAST = 8
"""The fewest programs with an answer from which prices are fitted, as there are at least six prices."""
BUDGET = Budget(rounds=12, block_seconds=0.01)
BRIEF = Budget(rounds=5, block_seconds=3e-3)
"""The budget of one probe where there are many."""


@dataclass(frozen=True)
class Counters:
    """Asks fresh worker processes of an engine, whose caches lie in `folder`, to count programs.

    They compute with so many `threads`. Where these are several, each mode is timed in a process of its own.
    """

    asked: Subject
    folder: Path
    reporter: Reporter
    rows: str = ""
    threads: int = 1

    def look(self, names: Sequence[str], *, timed: bool, budget: Budget = BUDGET) -> list[CountedProgram]:
        """Return the counts of some programs, or of the user's function, from one worker process.

        Raises InputsError or FunctionError for an error in the user's file, and WorkerError if the worker did not
        answer.
        """
        groups = [BOTH] if self.threads == 1 else [(mode,) for mode in BOTH]
        first, *others = [self._ask(names, each, budget) for each in (groups if timed else [()])]
        for programs in others:
            for program, other in zip(first, programs, strict=True):
                # Add the times of the same program with another mode; none count where a mode has failed.
                program.refused = program.refused or other.refused
                both = (program.timed, other.timed)
                times = [[each.eager, each.compiled, each.compile] for each in both if each]
                program.timed = None if program.refused else TimedCall(*map(sum, zip(*times, strict=True)))
        return first

    def _ask(self, names: Sequence[str], timed: Sequence[str], budget: Budget) -> list[CountedProgram]:
        """Return the counts of some programs from a process, which times the modes `timed`."""
        job = Job(
            kind_of(CountedPrograms),
            size=names[0] if len(names) == 1 else f"{len(names)} programs",  # shown in the label of the job
            modes=self.asked.modes,
            budget=budget,
            asked={"subject": self.asked.to_dict(), "programs": list(names), "rows": self.rows, "timed": list(timed)},
            variables=self.asked.adapter.variables(self.asked.modes[1], self.folder, threads=self.threads),
            python=self.asked.adapter.traits(self.asked.modes[1]).python,
            threads=self.threads,
        )
        self.reporter.start(job.label)
        answer = run_job(job, TIMEOUT, self.reporter.hear)
        self.reporter.finish(error_of(answer))
        counted: CountedPrograms = check_answer(answer, names[0])
        return counted.programs

    def each(self, names: Iterable[str]) -> Iterator[tuple[str, CountedProgram | str]]:
        """Yield each name with its program, timed in a process of its own, or with the error message."""
        for name in names:
            try:
                (program,) = self.look([name], timed=True)
            except CompareError as error:
                yield name, str(error)
            else:
                yield name, program


def subject_of(engine: str, function: str, inputs: str, mode: str | None, gradient: bool | None = None) -> Subject:
    """Make the subject of advice: the eager mode and a compiling mode, of `mode` or the first. Raises InputsError."""
    asked = Subject.of_file(function, inputs, engine, (mode,) if mode else None, gradient=gradient)
    if len(asked.modes) < 2:
        raise InputsError(f"{asked.adapter.title} does not compile; there is nothing to predict")
    return replace(asked, modes=asked.modes[:2])


def find_prices(
    asked: Subject, path: Path | None, reporter: Reporter, say: Say, *, anew: bool = False, threads: int = 1
) -> Prices:
    """Return the prices of the two modes, loaded or measured. Raises as `prices.load_prices` and `calibrate`."""
    measure = partial(calibrate, asked, reporter, threads)
    return prediction.load_prices(asked.adapter, asked.modes[1], path, measure, say, anew=anew, threads=threads)


def calibrate(asked: Subject, reporter: Reporter, threads: int = 1) -> Prices:
    """Measure the prices of the two modes on so many threads.

    Each program has a process of its own if compiling is slow; otherwise one process measures all. Raises WorkerError
    if fewer than LEAST programs gave a result.
    """
    started = time.perf_counter()
    engine = asked.adapter
    names = tuple(corpus.FEW if engine.compiles_slowly else corpus.ALL)
    with workers(asked, len(names) if engine.compiles_slowly else 1, reporter, threads=threads) as ask:
        if engine.compiles_slowly:
            programs = [program for _, program in ask.each(names) if isinstance(program, CountedProgram)]
        else:
            programs = ask.look(names, timed=True, budget=BRIEF)
    rows = [row for program in programs if (row := row_of(program)) is not None]
    if len(rows) < LEAST:
        raise WorkerError(
            f"{len(rows)} of {len(names)} programs gave a result, {LEAST} are needed; try graphduel doctor"
        )
    eager, compiled = asked.modes
    return fit_prices((eager, compiled), prediction.machine(engine, threads), rows, time.perf_counter() - started)


def row_of(program: CountedProgram) -> Row | None:
    """Return a program of one call as a row for the fit; None if it was refused."""
    return Row(program.counts[0], program.timed) if program.timed and program.counts else None


@contextmanager
def workers(asked: Subject, count: int, reporter: Reporter, rows: str = "", threads: int = 1) -> Iterator[Counters]:
    """Make a `Counters` for `count` programs, with a temporary folder that exists inside the block."""
    reporter.pace.total = count if threads == 1 else count * len(BOTH)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        yield Counters(asked, Path(folder), reporter, rows, threads)
