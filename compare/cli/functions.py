"""Commands on a function of the user's: `graphduel compare` measures it, `graphduel advise` predicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from compare.cli import options
from compare.cli.options import Seconds
from compare.cli.runs import baselines, changed_since
from compare.records.record import DEVICES
from compare.text import echo

if TYPE_CHECKING:
    from compare.gate.rules import Gate
    from compare.own import Result
    from compare.plans.comparison import ComparisonPlan


class CompareCommand(options.Sections):
    """The command `graphduel compare`, whose options are many."""

    sections: ClassVar = {
        "What is run": ("inputs", "gradient", "allow_effects"),
        "How it is run": ("framework", "engines", "modes", "mode", "pythons", "device", "threads"),
        "What is looked for": ("where", "remedies", "bisects"),
        "How long it is measured": ("processes", "seconds", "limit", "seed"),
        "What is kept": ("out", "overwrite", "resume", "path"),
        "As a gate": ("fail_if", "junit", "summary", "save_baseline", "baseline"),
    }


@click.command(cls=CompareCommand)
@options.FUNCTION
@options.INPUTS
@click.option(
    "--framework",
    metavar="NAME",
    shell_complete=options.complete_frameworks,
    help="Compare modes of this framework: torch, tensorflow, jax, autograd. By default the one that FILE imports.",
)
@click.option(
    "--engines",
    metavar="NAMES",
    help="Run a file of PyTorch's in these engines, unchanged: torch,graphduel or one of them.",
)
@click.option(
    "--modes",
    shell_complete=options.complete_modes,
    help="Compare these modes: dynamic,static[-exact|-symbolic|-bucket|-pad], or eager,compile and their like.",
)
@click.option(
    "--mode",
    multiple=True,
    metavar="NAME=WORD",
    shell_complete=options.complete_words,
    help="Compare this mode too, under this name: 'fast=compile(dynamic=True)'. Repeatable.",
)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="NAME=ENV",
    callback=options.interpreters,
    help="Run the mode of this name by another Python: an interpreter, or the folder of a virtual environment. "
    "Without a --mode of this name it compiles as usual. Repeatable.",
)
@options.default(
    "--limit", type=Seconds(1), default=300.0,
    help="End a process that makes no progress for so long, and a mode whose first pass takes longer.",
)  # fmt: skip
@options.default("--device", type=click.Choice(DEVICES), default="cpu", help="Run the framework on this device.")
@options.default(
    "--threads", metavar="N|auto|1,2", default="auto",
    help="Compute with so many threads; auto is a thread for each core, or as OMP_NUM_THREADS says.",
)  # fmt: skip
@options.gradient("Compare")
@click.option(
    "--where", is_flag=True, help="Try where to compile: the model, its repeated blocks, the optimizer. PyTorch only."
)
@click.option(
    "--remedies",
    is_flag=True,
    help="Try changes for what the compiler tells, each behind the gate, and rank them; and --where.",
)
@click.option(
    "--bisect",
    "bisects",
    is_flag=True,
    help="Find the graph that is slower compiled, or wrong, and the part of it; leave that in --out. PyTorch only.",
)
@click.option(
    "--allow-effects", is_flag=True, help="Measure a function that prints, draws random numbers or changes state."
)
@options.out("Write results, verdicts and a report into this new folder.")
@options.OVERWRITE
@click.option("--resume", is_flag=True, help="Go on with this comparison, which was stopped before.")
@options.default(
    "--processes",
    type=click.IntRange(0),
    default=5,
    help="Measure in this many fresh workers; 0 measures in a single one.",
)
@options.default("--seconds", type=Seconds(0.01), default=2.5, help="Measure this long in each process.")
@options.SEED
@options.FAIL_IF
@click.option("--junit", type=options.FILE, help="Write the checks here as JUnit XML.")
@click.option("--summary", type=options.FILE, help="Write a Markdown summary here.")
@options.JSON_ALONE
@baselines
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    *,
    function: str,
    out: Path | None,
    overwrite: bool,
    resume: bool,
    path: Path | None,
    **asked: Any,
) -> None:
    """Compare a function of yours in both engines, or in a framework.

    FUNCTION is plain Python over graphs ops. With --framework it is a loss or a training step in that framework.
    Gradients are taken with respect to its first argument; of PyTorch, in all that requires them. The command
    imports FILE.py, so put code that should not run under `if __name__ == "__main__":`. Without --inputs, the calls are
    `inputs` or `batches` in the same file.

    Modes of PyTorch are eager, compile, compile-dynamic, reduce-overhead, max-autotune, aot-eager, aot (AOTInductor,
    without gradients) and export (captured, and run op by op); of JAX eager and jit; of TensorFlow eager, function,
    function-relaxed and function-xla; as-written where a file compiles. A backend's name is a mode of PyTorch too.

    Any other mode is a word: a compiler and its keywords, as in --mode 'fast=compile(dynamic=True)', jit(remat=True)
    or function(autograph=False). `graphduel doctor torch` lists the keywords.

    Ctrl-C answers with what has been measured, and --resume goes on from there.

    Exit codes: 0 fine, 1 a mode failed or the file is at fault, 2 usage, 3 the times do not tell, 4 a mode disagrees,
    5 nothing was measured, or nothing but the first mode, 6 a rule of --fail-if holds, 130 stopped by Ctrl-C, 143 by
    SIGTERM.
    """
    from compare.own import workers
    from compare.own.result import empty

    overwrite = overwrite or resume
    if out is not None:
        empty(out, overwrite=overwrite)
    rules, junit, summary = (asked.pop(name) for name in ("fail_if", "junit", "summary"))
    kept = asked.pop("save_baseline"), asked.pop("baseline")
    if asked["bisects"] and out is None:
        raise click.UsageError("--bisect leaves a file that shows the graph: give --out FOLDER")
    plans = _plans(function, apart=out is not None, **asked)
    gate = _gate(rules, junit, summary, plans, kept[1]) if rules or junit or summary else None
    notice = partial(echo, err=True)
    with _failing(gate, function), workers.open_folder(plans, notice, resume=resume) as folder:
        result, stop = _measure(plans, folder)
        is_silent = str(path) == "-"
        echo(str(result), err=is_silent)
        if out is not None:
            echo(f"\nReport: {result.save(out, overwrite=overwrite)}", err=is_silent)
            workers.keep_traces(folder, out)
            workers.keep_graphs(result.records, out)
        options.write_json(path, result.to_dict())
        if stop:
            raise stop
        if any(kept):
            changed_since(result.records, *kept)
        code = result.exit_code if gate is None else _apply_gate(gate, result)
    ctx.exit(code)


def _measure(plans: Sequence[ComparisonPlan], folder: Path) -> tuple[Result, KeyboardInterrupt | None]:
    """Measure, and return the result and the stop that ended it early, if any.

    Raises ComparisonStopped if it was stopped before any process ended.
    """
    from compare.own import run
    from compare.own.result import ComparisonStopped
    from compare.run import progress

    try:
        return run.compare_plans(plans, progress.reporter, folder), None
    except ComparisonStopped as stop:
        if stop.result is None:
            echo("\nno process has ended, so that nothing was written", err=True)
            raise
        return stop.result, stop


def _gate(
    rules: Sequence[str],
    junit: Path | None,
    summary: Path | None,
    plans: Sequence[ComparisonPlan],
    baseline: Path | None,
) -> Gate:
    """Return the gate of the rules; the records of the baseline are read before anything is measured."""
    from compare.gate.rules import gate

    if baseline is None:
        return gate(rules, junit, summary, plans)
    with options.reading(baseline):
        return gate(rules, junit, summary, plans, options.results_in(baseline))


@contextmanager
def _failing(gate: Gate | None, function: str) -> Iterator[None]:
    """Write the files of the gate also if the comparison in the block raises CompareError, which is raised again."""
    from compare.errors import CompareError

    try:
        yield
    except CompareError as error:
        if gate is not None:
            gate.fail(function, str(error))
        raise


def _apply_gate(gate: Gate, result: Result) -> int:
    """Judge the rules of the gate, write its files, print the judgements, and return the exit code."""
    from compare.gate.rules import exit_code

    judgements = gate.judge(result)
    for judgement in judgements:
        echo(str(judgement))
    return exit_code(result.exit_code, judgements)


def _plans(
    function: str,
    *,
    framework: str | None,
    engines: str | None,
    modes: str | None,
    mode: Sequence[str],
    pythons: Mapping[str, str],
    inputs: str | None,
    threads: str,
    processes: int,
    where: bool,
    remedies: bool,
    **asked: Any,
) -> list[ComparisonPlan]:
    """Return the plan for each engine. Raises CompareError for unknown modes, before a worker is started."""
    from compare.engines import OWN, find_engine
    from compare.engines.words import split
    from compare.errors import InputsError
    from compare.plans.comparison import plans_of
    from compare.run.environment import AUTO, thread_numbers, too_many, usual_threads
    from compare.subjects.subject import in_pythons

    one_process = not processes or asked["device"] != "cpu"  # where threads are not what decides, and may disturb
    numbers = thread_numbers(1 if one_process and threads == AUTO else threads)
    if framework and engines:
        raise InputsError("--framework names one engine, and --engines all; leave one of them out")
    names = options.framework_names(engines) if engines else [_engine(function, framework)]
    listed = [*(split(modes) if modes else ()), *mode]
    if pythons and len(names) > 1:
        raise InputsError("--python runs a mode of one framework; leave --engines out")
    listed = in_pythons(find_engine(names[0]), listed, pythons)
    tries = "remedies" if remedies else "where" if where else ""
    able = [trials.tries if remedies else trials.places for trials in (find_engine(name).trials for name in names)]
    if tries and not any(able):
        of = "PyTorch, JAX or our engines" if remedies else "PyTorch"
        raise InputsError(f"--{tries} tries changes of a step in {of}, which {', '.join(names)} is not")
    if asked["bisects"] and not any(find_engine(name).ops.shows_graphs for name in names):
        raise InputsError(f"--bisect looks at graphs of PyTorch, which {', '.join(names)} is not")
    plans = plans_of(names, function, inputs or "", listed or None, processes=processes, tries=tries, **asked)
    words = ["--engines", ",".join(names)] if engines else ["--framework", *names] if names != [OWN] else []
    words += ["--modes", ",".join(listed or (mode for plan in plans for mode in plan.subject.given_modes))]
    words += ["--inputs", inputs] if inputs else []
    words += ["--threads", ",".join(map(str, numbers))] if numbers != (1,) or usual_threads() > 1 else []
    words += [f"--{tries}"] if tries else []
    words += ["--bisect"] if asked["bisects"] else []
    words += ["--allow-effects"] if asked["allow_effects"] else []
    warn(function)
    command = shlex.join(["graphduel", "compare", function, *words])
    for shared in filter(None, map(too_many, numbers)):
        echo(f"--threads: {shared}", err=True)
    return [plan.within(command=command, threads=number) for number in numbers for plan in plans]


def _engine(function: str, framework: str | None) -> str:
    """Return the engine that is asked for; else the framework that the file imports; else our own."""
    from compare import engines
    from compare.subjects import origin

    if framework:
        return engines.find_engine(framework).name
    text = origin.source(function)
    imported = engines.of_imports(text)
    if imported:
        title = engines.find_engine(imported).title
        echo(
            f"{function.rpartition(':')[0]} {engines.framework_of_imports(text)}: its step runs in {title} "
            f"(--framework {imported})",
            err=True,
        )
    return imported or engines.OWN


def warn(function: str) -> None:
    """Warn of packages beside the user's file that share a name with graphduel's: `import` does not find them."""
    from compare.subjects import origin

    for entry in origin.hidden_packages(Path(function.rpartition(":")[0])):
        echo(f"{entry} has the name of a package of graphduel, so `import` does not find it; rename it", err=True)


# `graphduel advise` ---------------------------------------------------------------------------------------------------


@click.command()
@click.argument("function", metavar="FILE.py:FUNCTION", shell_complete=options.complete_functions)
@options.INPUTS
@options.gradient("Predict")
@click.option(
    "--calibration",
    type=options.FILE,
    help="Read the prices of this machine from this file, not the cache; if there is none, measure and write them.",
)
@click.option("--calibrate", is_flag=True, help="Measure the prices of this machine anew, and keep them.")
@click.option(
    "--framework",
    metavar="NAME",
    shell_complete=options.complete_frameworks,
    help="Predict whether compiling pays in torch or jax.",
)
@click.option(
    "--mode",
    shell_complete=options.complete_modes,
    help="Predict this compiling mode of the framework; by default its first.",
)
@click.option(
    "--threads",
    metavar="N|auto",
    default="1",
    show_default=True,
    help="Predict for so many threads, with prices of their own; auto is a thread for each core.",
)
@options.JSON
def advise(
    function: str,
    *,
    calibration: Path | None,
    calibrate: bool,
    framework: str | None,
    mode: str | None,
    threads: str,
    path: Path | None,
    inputs: str | None,
    gradient: bool | None,
) -> None:
    """Predict which engine wins for a function of yours.

    The command also says by how much, and after how many calls compiling pays. The first time on a machine it measures
    prices, in half a minute, on made-up programs, and keeps them in the user's cache. Then it traces FUNCTION on shapes
    and adds up the costs. It never runs FUNCTION: where FUNCTION branches on values, it is converted, as `graphduel
    compare` does. If the static engine refuses FUNCTION, the advice says so.

    With --framework the command predicts whether compiling pays there. It measures the prices of that framework first,
    in minutes and once on a machine. Then it runs FUNCTION op by op, once for each call, and never compiles it.
    """
    from compare import engines
    from compare.advice import counting
    from compare.advice.prediction import predict
    from compare.run import progress
    from compare.run.environment import thread_numbers

    number, *others = thread_numbers(threads)
    if others:
        raise click.UsageError("--threads of advise is one number: give a command for each")
    engine = framework or engines.OWN
    if engine != engines.OWN and gradient is not None:
        raise click.UsageError("--gradient works with graphduel's engines, not with a --framework")
    if mode and not framework:
        raise click.UsageError("--mode needs a --framework")
    asked = counting.subject_of(engine, function, inputs or "", mode, gradient)
    prices = counting.find_prices(
        asked, calibration, progress.reporter(), partial(options.say, err=True), anew=calibrate, threads=number
    )
    if asked.engine == engines.OWN:
        warn(asked.function)
    with counting.workers(asked, 1, progress.reporter()) as workers:
        (program,) = workers.look([asked.function], timed=False)
    advice = predict(prices, program)
    echo(str(advice))
    options.write_json(path, advice.to_dict())
