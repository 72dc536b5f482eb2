"""The run of a comparison: one subject after the other, in fresh processes or in this one, and their joint result."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from compare import engines, text
from compare.engines.graphduel.standin import as_named
from compare.errors import CompareError, FunctionError, InputsError, refuse_exit
from compare.instruments.standard import TOLERANCES
from compare.own import measure
from compare.own.result import ComparisonStopped, Result
from compare.own.workers import Answers, Workers
from compare.plans.comparison import ComparisonPlan, follow, look, source_of
from compare.records.cells import Compilations, Glimpse, Parity, ParityRow, Time
from compare.records.job import Job
from compare.records.own import FunctionLook, merge_records
from compare.records.record import OWN, Bare, Failure, Record, Records, Run, Setting, group_by, records_of
from compare.report.show import ALONE, HERE, WORKERS
from compare.run.environment import thread_numbers, usual_threads
from compare.run.executors import Pool, Serial
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import Runner, start_record
from compare.subjects.case import open_case
from compare.subjects.subject import LIMIT, REPEATS, SECONDS, SIZE, Asked, Situation, Subject
from graphs import tree


def run_plan(plan: ComparisonPlan, reporter: Reporter, folder: Path | None = None) -> Result:
    """Return the result of fresh processes: the first look at the function, those with an empty cache, and the others.

    In a framework a mode has a first process of its own. If all of these are ended at their limit, the base gets a
    process alone. With 0 `processes` one process measures all. Answers of an earlier start come from the journal in
    the folder, where new ones are kept.

    Raises CompareError, with its exit code, for a fault of the user's file, function or calls, and ComparisonStopped.
    """
    where = WORKERS if plan.situation.processes else HERE if plan.subject.adapter.is_reference else ALONE
    earlier = reporter.pace.learning(f"{plan.subject.engine} {plan.subject.function}")
    with earlier, _workers(plan, reporter, folder) as (plan, workers):
        answers = workers.journal.records
        try:
            plan = _run_jobs(plan, workers)
            environment = _environment(answers) or run_job(Job("environment"), plan.situation.limit)
        except KeyboardInterrupt as stop:
            raise ComparisonStopped(_so_far(plan, answers, where)) from stop
    return result(plan, answers, where, environment)


def _run_jobs(plan: ComparisonPlan, workers: Runner) -> ComparisonPlan:
    """Run all jobs of the plan; return it with the modes that the first look added."""
    ahead = [] if plan.subject.adapter.is_reference else plan.times(plan.subject.modes)
    workers.reporter.pace.expect([*plan.first(), *ahead])
    workers.reporter.pace.alike = True
    plan = look(plan, workers)
    if plan.situation.processes:
        follow(replace(plan, source=source_of(workers.journal.records)), workers, len(ahead))
    return plan


def _so_far(plan: ComparisonPlan, answers: Records, where: str) -> Result | None:
    """Return the result of the finished processes; None where there is no answer."""
    plan = plan.widened(answers)
    there = _environment(answers)
    if there is None:
        return None
    done = {record.label for record in answers if not isinstance(record, Glimpse)}
    titles = [job.title for job in plan.whole(answers)]
    missing = [title for title in titles if title not in done]
    of_all = f"after {len(titles) - len(missing)} of {text.count_noun(len(titles), 'process')}"
    said = f"{_where(answers)}{of_all}; {_missing(titles, missing)}"
    return result(plan, answers, where, there, stopped=said)


def _environment(answers: Records) -> Bare | None:
    """Return the environment of the first worker that has answered; None if there is none."""
    return next((Bare(environment=each.environment, host=each.host) for each in answers if each.environment), None)


def _where(answers: Records) -> str:
    """Return `in the first calls of compile, ` where these were stopped, else ""."""
    stopped = records_of(answers, Glimpse)
    return f"in {stopped[-1].label}, " if stopped else ""


def _missing(labels: Sequence[str], missing: Sequence[str]) -> str:
    """Return `missing: times of compile in 4 of 5 processes`, or that nothing is missing."""
    of_all, left = (Counter(label.partition(", process ")[0] for label in each) for each in (labels, missing))
    many = {
        name: f" in {count} of {of_all[name]} processes" if of_all[name] > 1 else "" for name, count in left.items()
    }
    return (
        f"missing: {text.join_words([name + words for name, words in many.items()])}" if left else "nothing is missing"
    )


def here(
    plan: ComparisonPlan,
    function: Any,
    inputs: Any,
    dims: Any = None,
    processes: int | None = 0,
    reporter: Reporter | None = None,
    workers_threads: int = 0,
) -> Result:
    """Return the result of a function in this process; workers measure it where they can find it.

    Workers measure unless `processes` is 0; if that is a number, they must be able to. They have `workers_threads`, if
    that is not 0, and else the threads of the plan.
    Raises InputsError where workers are asked for and cannot find the function or get its inputs.
    """
    with (
        plan.subject.adapter.process.visit(plan.situation.seed, plan.situation.threads),
        _workers(plan, reporter or Reporter()) as (plan, workers),
    ):
        case, engine, source = open_case(plan.subject, function, inputs, dims), plan.subject.adapter, ""
        if processes != 0 and engine.is_reference:
            with suppress(*([] if processes else [InputsError])):
                source = measure.write_case(plan, case, dims)
        plan = plan.within(processes=(processes or REPEATS) if source else 0)
        if source and workers_threads:
            plan = plan.within(threads=workers_threads)
        where = WORKERS if source else HERE if engine.is_reference else ALONE
        here = replace(workers, pool=Pool(Serial(raises=True), measure.Here(plan, case, workers.journal)))
        answers = workers.journal.records
        try:
            with measure.restore_arguments(engine, case):
                plan = look(plan, replace(here, reporter=Reporter()))
            follow(replace(plan, source=source), workers if source else here)
            environment = _environment(answers) or measure.here()
        except KeyboardInterrupt as stop:
            said = _where(answers) + f"after {text.count_noun(len({record.job for record in answers}), 'look')}"
            plan = plan.widened(answers)
            raise ComparisonStopped(result(plan, answers, where, measure.here(), said) if answers else None) from stop
    return result(plan, answers, where, environment)


@contextmanager
def _workers(
    plan: ComparisonPlan, reporter: Reporter, folder: Path | None = None
) -> Iterator[tuple[ComparisonPlan, Runner]]:
    """A context with the plan and its folder, and the runner of its jobs in fresh processes."""
    with tempfile.TemporaryDirectory(prefix="graphduel-") if folder is None else nullcontext(folder) as place, reporter:
        own = Path(place) / plan.situation.place(plan.subject.engine)
        plan, answers = plan.within(folder=str(own)), Answers.of(own, reporter.notice)
        execute = Workers(plan, reporter, answers)
        pool = Pool(Serial(raises=True), execute, ahead=execute.ahead)
        with closing(execute.waiting):
            yield plan, Runner(answers, reporter, pool, plan.situation.limit, strict=True)


def result(plan: ComparisonPlan, answers: Records, where: str, environment: Record, stopped: str = "") -> Result:
    """Return the result of the processes' records, in the form of a run on a user's function.

    `stopped` says how far a stopped comparison came.

    Raises FunctionError where no process has an answer.
    """
    looks, lost, told = (
        records_of(answers, FunctionLook),
        records_of(answers, Failure),
        records_of(answers, Compilations),
    )
    times, glimpses = records_of(answers, Time), records_of(answers, Glimpse)
    if lost and not (looks or times or glimpses):
        raise FunctionError(f"{plan.subject.function}: {lost[0].error}")
    trials = plan.subject.trials(answers, plan.situation.tries)
    repeats = plan.situation.processes or (REPEATS if plan.subject.adapter.is_reference else 1)
    if stopped:
        repeats = len({time.process for time in times if time.cache != "cold"}) or 1
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": plan.situation.seed,
        "only": None,
        "where": where,
        "function": plan.subject.name,
        "inputs": max(
            *(len(row.stream or (0,)) for time in times for row in time.modes.values()),
            *(row.calls for glimpse in glimpses for row in glimpse.modes.values()),
            *(0, 0),
        ),
        "gradient": plan.subject.argnum is not None,
        **(looks[0].settings if looks else {}),
        "trains": any(record.trains for record in told),
        **({"trials": [f"{trial.name}: {trial.change}" for trial in trials]} if trials else {}),
        "framework": None if plan.subject.engine == engines.OWN else plan.subject.engine,
        "version": plan.subject.adapter.version,
        "device": plan.situation.device,
        **({"threads": plan.situation.threads} if plan.situation.threads > 1 else {}),
        **({"compiling": said} if (said := plan.subject.adapter.said_of_compiling) else {}),
        "processes": repeats,
        "command": plan.situation.command or None,
        **({"words": plan.subject.words} if plan.subject.words else {}),
        **({"pythons": pythons} if (pythons := _pythons(plan.subject, answers)) else {}),
        **({"stopped": stopped} if stopped else {}),
    }
    return Result(
        plan.subject.name, plan.subject.labels, (start_record(settings, environment), *merge_records(answers))
    )


def _pythons(subject: Subject, answers: Records) -> list[str]:
    """Return what each mode in another Python ran in, as `old: PyTorch 2.12.0, Python 3.11.7`."""
    elsewhere = [subject.label(mode) for mode in subject.modes if subject.adapter.traits(mode).python]
    versions = {mode: record.version for record in records_of(answers, Compilations) for mode in record.modes}
    pythons = {
        mode: there.python.removeprefix("CPython ")
        for record in records_of(answers, Time)
        for mode in record.modes
        if (there := record.environment) and there.python
    }
    ran = [mode for mode in elsewhere if mode in versions]
    return [f"{mode}: {subject.adapter.title} {versions[mode]}, Python {pythons.get(mode, '')}" for mode in ran]


# Several numbers of threads, and several engines ----------------------------------------------------------------------


def compare_plans(plans: Sequence[ComparisonPlan], reporter: Callable[[], Reporter], folder: Path) -> Result:
    """Return the result of all plans: that of the first number of threads, with the records of the others added.

    Raises as `_compare_engines` does.
    """
    groups = group_by(plans, lambda plan: plan.situation.threads)
    return join_threads(partial(_compare_engines, group, reporter, folder) for group in groups.values())


def join_threads(measures: Iterable[Callable[[], Result]]) -> Result:
    """Measure for one number of threads after the other, and join the results. Raises ComparisonStopped."""
    done: list[Result] = []
    for measure_one in measures:
        try:
            done.append(measure_one())
        except ComparisonStopped as stop:
            if not done:
                raise
            stopped = {"stopped": _settings(stop.result)["stopped"] if stop.result else "in the next number of threads"}
            so_far = [*done, *([stop.result] if stop.result else [])]
            raise ComparisonStopped(_with_threads(so_far, **stopped)) from stop.__cause__
    return _with_threads(done)


def _with_threads(results: Sequence[Result], **more: Setting) -> Result:
    """Return the first result, with the records of the others, which are on other numbers of threads."""
    first, *others = results
    if not others:
        return first
    numbers: list[str] = [str(_settings(each).get("threads", 1)) for each in results]
    start, *records = first.records
    settings: dict[str, Setting] = {**_settings(first), "threads": numbers, **more}
    joined = (
        structs.replace(start, settings=settings),
        *records,
        *(record for each in others for record in each.records[1:]),
    )
    modes = dict.fromkeys(mode for each in results for mode in each.modes)
    return Result(first.name, tuple(modes), joined)


def _compare_engines(plans: Sequence[ComparisonPlan], reporter: Callable[[], Reporter], folder: Path) -> Result:
    """Return the result of plans on one number of threads: the first engine's, with the records of the others added.

    Processes whose answers are in the folder do not run again, as `journal.open_folder` says. If an engine cannot run
    the file at all, its modes are refused with the reason. Raises CompareError where the first engine cannot, and
    ComparisonStopped.
    """
    first, *others = plans
    if not others:
        return _alone(first, reporter(), folder)
    numbers = folder / first.situation.place("numbers")
    numbers.mkdir(exist_ok=True)
    leading = run_plan(first.within(numbers=str(numbers)), reporter(), folder)
    records = list(leading.records[1:])
    for plan in others:
        try:
            records += _beside(plan.within(numbers=str(numbers)), reporter(), folder)
        except ComparisonStopped as stop:
            so_far = stop.result.records[1:] if stop.result else ()
            settings = {"stopped": _settings(stop.result)["stopped"] if stop.result else "in the second engine"}
            raise ComparisonStopped(_join_results(plans, leading, [*records, *so_far], **settings)) from stop.__cause__
    return _join_results(plans, leading, records)


def _join_results(
    plans: Sequence[ComparisonPlan], leading: Result, records: Sequence[Record], **more: Setting
) -> Result:
    settings: dict[str, Setting] = {**_settings(leading), "engines": [plan.subject.engine for plan in plans], **more}
    if words := [word for plan in plans for word in plan.subject.words]:
        settings["words"] = words
    modes = (*leading.modes, *(mode for plan in plans[1:] for mode in plan.subject.labels))
    start = structs.replace(records_of(leading.records, Run)[0], settings=settings)
    return Result(leading.name, modes, (start, *records))


def _alone(plan: ComparisonPlan, reporter: Reporter, folder: Path) -> Result:
    try:
        return run_plan(plan, reporter, folder)
    except CompareError as error:
        error.args = (as_named(str(error)),) if plan.subject.stands_in else error.args
        raise


def _settings(result: Result) -> dict[str, Setting]:
    return records_of(result.records, Run)[0].settings


def _beside(plan: ComparisonPlan, reporter: Reporter, folder: Path) -> list[Record]:
    try:
        return list(run_plan(plan, reporter, folder).records[1:])
    except CompareError as error:
        return [refusal_record(plan.subject, as_named(str(error)))]


def refusal_record(subject: Subject, reason: str) -> Parity:
    """Return the record of an engine of which no mode can run the file."""
    rows = {mode: ParityRow("unsupported", reason, None, None, TOLERANCES["float32"]) for mode in subject.labels}
    return Parity(workload=subject.name, size=SIZE, agree=True, modes=rows, same_graph=None, kernel_calls={})


def _check_variables(subject: Subject) -> None:
    """Raise InputsError for a mode with environment variables: they come too late for what is imported here."""
    for mode in subject.modes:
        if python := subject.adapter.traits(mode).python:
            raise InputsError(
                f"{subject.label(mode)}: {python} runs in a process of its own; save the function in a file, and run "
                "graphduel compare FILE.py:FUNCTION"
            )
        if variables := subject.adapter.traits(mode).environment:
            raise InputsError(
                f"{subject.label(mode)}: {subject.adapter.title} reads {text.join_words(list(variables))} when it is "
                "imported, which it is here already; save the function in a file, and run "
                "graphduel compare FILE.py:FUNCTION"
            )


# In Python ------------------------------------------------------------------------------------------------------------


def compare(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    modes: Asked = None,
    *,
    framework: str | None = None,
    gradient: bool | None = None,
    dims: Sequence[Any] | None = None,
    processes: int | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
    name: str | None = None,
    command: str | None = None,
    allow_effects: bool = False,
    apart: bool = False,
    limit: float = LIMIT,
    threads: int | str | Sequence[int] | None = None,
    reporter: Reporter | None = None,
) -> Result:
    """Measure `f`, a plain function over graphs ops, in each mode, by default dynamic and static; return the `Result`.

    With `framework`, "torch", "tensorflow", "jax" or "autograd", f is a loss written in it, whose gradients in argument
    0 are taken: arrays in containers, or a module of PyTorch. None takes the framework whose arrays are in the inputs,
    if there is one. `modes` are then its own, by default eager and the first that compiles.
    f runs in this process: `graphduel compare --framework` uses fresh ones, which tell cold caches from warm ones, and
    has intervals.

    `inputs` is the stream of calls, a tuple of arguments each. With `gradient` a step is the value of `f` and its
    gradients in argument 0; None asks for them where f returns one float and argument 0 holds float arrays only.
    `modes` are "dynamic", "static" (that is "static-exact"), "static-symbolic", "static-bucket", "static-pad",
    "static-native" (machine code) and "static-converted". Where Python decides on values in f, the static modes convert
    its control flow, as `static.jit(f, convert=True)` does, and the result says so.
    `dims` names the axes that vary, per argument as `static.jit` takes them; None finds them in the inputs.

    `processes` fresh workers measure, for at most about `seconds` of steady state each; 0 measures in this process.
    None takes workers where f can be imported by name and the inputs can be sent, and this process otherwise. A worker
    is ended that makes no progress in `limit` seconds, and so is a mode of a framework whose first pass takes longer.

    Steps compute with `threads`: a number, "auto" for as many as this process may have, or several numbers, such as
    `[1, 2]`, for an answer for each. None is "auto" where workers measure, and one thread in this process. On several
    threads each mode has processes of its own, where workers measure, and the clock is the wall. In this process JAX
    and TensorFlow keep the threads that they began with.

    A step is then read line by line: the time, the bytes and the tensors kept for backward of each line of source. With
    `apart` it is also taken apart, for the report: the ladder of passes, the parts of time, live bytes over the step.

    First f is run once or twice to find its side effects: prints, random draws, changed globals or arguments. Raises
    EffectsError with their lines, unless `allow_effects` is set; then the result tells them.

    A mode that refuses f, or whose outputs or gradients disagree, is not timed: the result says why. What f raises
    by itself is raised. Raises InputsError for inputs or modes that cannot be used.
    """
    engine = framework or engines.of_values(tree.leaves(inputs)) or engines.OWN
    if processes is not None and processes < 0:
        raise InputsError(f"processes is 0 for this process or a number of workers, not {processes}")
    title = str(name or getattr(f, "__name__", type(f).__name__))
    situation = Situation(seed, seconds, limit, apart=apart, command=command or "")
    numbers = thread_numbers(1 if threads is None else threads)
    usual = usual_threads() if threads is None else 0
    with refuse_exit(title):
        subject = Subject.of_function(title, engine, modes, gradient=gradient, allow_effects=allow_effects)
        _check_variables(subject)
        if numbers != (1,) and not subject.adapter.rethreads:
            raise InputsError(
                f"threads={threads!r}: {subject.adapter.title} has the threads that it began with here; save "
                "the function in a file, and run graphduel compare FILE.py:FUNCTION --threads "
                + ",".join(map(str, numbers))
            )
        plans = [ComparisonPlan(subject, replace(situation, threads=number)) for number in numbers]
        return join_threads(partial(here, plan, f, inputs, dims, processes, reporter, usual) for plan in plans)
