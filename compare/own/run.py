"""The run of one question about a user's function, in fresh processes or in this one."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compare import engines, text
from compare.errors import FunctionError, InputsError, refuse_exit
from compare.own import measure, plan
from compare.own.journal import Answers
from compare.own.plan import ComparisonPlan
from compare.own.question import LIMIT, REPEATS, SECONDS, Question, question_for
from compare.own.result import ComparisonStopped, Result, merge_records
from compare.own.workers import Workers
from compare.page.show import ALONE, HERE, WORKERS
from compare.records.cells import Compilations, Glimpse, Time
from compare.records.job import Job
from compare.records.own import FunctionLook
from compare.records.record import OWN, Bare, Failure, Record, Records, Setting, records_of
from compare.run.executors import Pool, Serial
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.runner import Runner, start_record
from graphs import tree


def run_question(question: Question, reporter: Reporter, folder: Path | None = None) -> Result:
    """Return the result of fresh processes: the first look at the function, those with an empty cache, and the others.

    In a framework a mode has a first process of its own. If all of these are ended at their limit, the base gets a
    process alone. With 0 `processes` one process measures all. Answers of an earlier start come from the journal in
    the folder, where new ones are kept.

    Raises CompareError, with its exit code, for a fault of the user's file, function or calls, and ComparisonStopped.
    """
    where = WORKERS if question.processes else HERE if question.adapter.is_reference else ALONE
    with _workers(question, reporter, folder) as (question, workers):
        answers = workers.journal.records
        try:
            question = _next_question(question, workers)
            environment = run_job(Job("environment"), question.limit)
        except KeyboardInterrupt as stop:
            raise ComparisonStopped(_so_far(question, answers, where)) from stop
    return result(question, answers, where, environment)


def _next_question(question: Question, workers: Runner) -> Question:
    """Run all jobs of the question; return it with the modes that the first look added."""
    ahead = [] if question.adapter.is_reference else ComparisonPlan(question).times(question.modes)
    workers.reporter.pace.expect([*ComparisonPlan(question).first(), *ahead])
    workers.reporter.pace.alike = True
    question = plan.look(question, workers)
    if question.processes:
        plan.follow(ComparisonPlan(question, plan.source_of(workers.journal.records)), workers, len(ahead))
    return question


def _so_far(question: Question, answers: Records, where: str) -> Result | None:
    """Return the result of the finished processes; None where there is no answer."""
    question = question.with_written(answers)
    there = next((record.environment for record in answers if record.environment), None)
    if there is None:
        return None
    done = {record.label for record in answers if not isinstance(record, Glimpse)}
    titles = [job.title for job in ComparisonPlan(question).whole(answers)]
    missing = [title for title in titles if title not in done]
    of_all = f"after {len(titles) - len(missing)} of {text.count_noun(len(titles), 'process')}"
    said = f"{_where(answers)}{of_all}; {_missing(titles, missing)}"
    return result(question, answers, where, Bare(environment=there), stopped=said)


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
    question: Question,
    function: Any,
    inputs: Any,
    dims: Any = None,
    processes: int | None = 0,
    reporter: Reporter | None = None,
) -> Result:
    """Return the result of a function in this process; workers measure it where they can find it.

    Workers measure unless `processes` is 0; if that is a number, they must be able to.
    Raises InputsError where workers are asked for and cannot find the function or get its inputs.
    """
    with (
        question.adapter.process.visit(question.seed),
        _workers(question, reporter or Reporter()) as (question, workers),
    ):
        subject = measure.subject_of(question, function, inputs, dims)
        source = ""
        if processes != 0 and subject.case is not None:
            with suppress(*([] if processes else [InputsError])):
                source = measure.write_subject(Path(question.folder), subject, dims)
        question = replace(question, processes=(processes or REPEATS) if source else 0)
        where = WORKERS if source else HERE if question.adapter.is_reference else ALONE
        here = replace(workers, pool=Pool(Serial(raises=True), measure.Here(subject, workers.journal)))
        answers = workers.journal.records
        try:
            with measure.restore_arguments(subject):
                question = plan.look(question, replace(here, reporter=Reporter()))
            plan.follow(ComparisonPlan(question, source), workers if source else here)
            environment = run_job(Job("environment"), question.limit) if source else measure.here()
        except KeyboardInterrupt as stop:
            said = _where(answers) + f"after {text.count_noun(len({record.job for record in answers}), 'look')}"
            question = question.with_written(answers)
            raise ComparisonStopped(
                result(question, answers, where, measure.here(), said) if answers else None
            ) from stop
    return result(question, answers, where, environment)


@contextmanager
def _workers(question: Question, reporter: Reporter, folder: Path | None = None) -> Iterator[tuple[Question, Runner]]:
    """A context with the question and its folder, and the runner of its jobs in fresh processes."""
    with tempfile.TemporaryDirectory(prefix="graphduel-") if folder is None else nullcontext(folder) as place, reporter:
        own = Path(place) / question.engine
        question, answers = replace(question, folder=str(own)), Answers.of(own, reporter.notice)
        pool = Pool(Serial(raises=True), Workers(question, reporter, answers))
        yield question, Runner(answers, reporter, pool, question.limit, strict=True)


def result(question: Question, answers: Records, where: str, environment: Record, stopped: str = "") -> Result:
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
        raise FunctionError(f"{question.function}: {lost[0].error}")
    repeats = question.processes or (REPEATS if question.adapter.is_reference else 1)
    if stopped:
        repeats = len({time.process for time in times if time.cache != "cold"}) or 1
    settings: dict[str, Setting] = {
        "preset": OWN,
        "seed": question.seed,
        "only": None,
        "where": where,
        "function": question.name,
        "inputs": max(
            *(len(row.stream or (0,)) for time in times for row in time.modes.values()),
            *(row.calls for glimpse in glimpses for row in glimpse.modes.values()),
            *(0, 0),
        ),
        "gradient": question.argnum is not None,
        **(looks[0].settings if looks else {}),
        "trains": any(record.trains for record in told),
        "framework": None if question.engine == engines.OWN else question.engine,
        "version": question.adapter.version,
        "device": question.device,
        "processes": repeats,
        "command": question.command or None,
        **({"stopped": stopped} if stopped else {}),
    }
    return Result(question.name, question.labels, (start_record(settings, environment), *merge_records(answers)))


# In Python ------------------------------------------------------------------------------------------------------------


def compare(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    modes: Sequence[str] | None = None,
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
    options = {"seed": seed, "seconds": seconds, "limit": limit, "gradient": gradient, "title": title}
    options |= {"allow_effects": allow_effects, "apart": apart, "command": command or ""}
    with refuse_exit(title):
        return here(question_for(engine, "", "", modes, **options), f, inputs, dims, processes, reporter)
