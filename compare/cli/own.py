"""`graphduel compare`: compare a user's function in both engines, or in the modes of a framework."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import complete, options
from compare.cli.options import Seconds
from compare.cli.runs import baselines, changed_since
from compare.records.machines import DEVICES
from compare.words.text import echo

if TYPE_CHECKING:
    from compare.gate.rules import Gate
    from compare.own import Result
    from compare.own.question import Question


@click.command()
@options.FUNCTION
@options.INPUTS
@click.option(
    "--framework",
    metavar="NAME",
    shell_complete=complete.frameworks,
    help="Compare modes of this framework: torch, tensorflow, jax, autograd. By default the one that FILE imports.",
)
@click.option(
    "--engines",
    metavar="NAMES",
    help="Run a file of PyTorch's in these engines, unchanged: torch,graphduel or one of them.",
)
@click.option(
    "--modes",
    shell_complete=complete.modes,
    help="Compare these modes: dynamic,static[-exact|-symbolic|-bucket|-pad], or eager,compile and their like.",
)
@options.default(
    "--limit", type=Seconds(1), default=300.0,
    help="End a process that makes no progress for so long, and a mode whose first pass takes longer.",
)  # fmt: skip
@options.default("--device", type=click.Choice(DEVICES), default="cpu", help="Run the framework on this device.")
@options.gradient("Compare")
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
@click.option(
    "--fail-if", multiple=True, metavar="RULE", help="Exit with 6 if this rule holds: 'static > 1.05'. Repeatable."
)
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

    Modes of PyTorch are eager, compile, compile-dynamic, reduce-overhead, max-autotune, aot-eager and export; of JAX
    eager and jit; of TensorFlow eager, function, function-relaxed and function-xla; as-written where a file compiles.

    Ctrl-C answers with what has been measured, and --resume goes on from there.

    Exit codes: 0 fine, 1 a mode failed or the file is at fault, 2 usage, 3 the times do not tell, 4 a mode disagrees,
    5 nothing was measured, or nothing but the first mode, 6 a rule of --fail-if holds, 130 stopped by Ctrl-C, 143 by
    SIGTERM.
    """
    from compare.own import journal
    from compare.own.result import empty

    overwrite = overwrite or resume
    if out is not None:
        empty(out, overwrite=overwrite)
    rules, junit, summary = (asked.pop(name) for name in ("fail_if", "junit", "summary"))
    kept = asked.pop("save_baseline"), asked.pop("baseline")
    questions = _questions(function, apart=out is not None, **asked)
    gate = _gate(rules, junit, summary, questions) if rules or junit or summary else None
    notice = partial(echo, err=True)
    with _failing(gate, function), journal.open_folder(questions, notice, resume=resume) as folder:
        result, stop = _measure(questions, folder)
        is_silent = str(path) == "-"
        echo(str(result), err=is_silent)
        if out is not None:
            echo(f"\nReport: {result.save(out, overwrite=overwrite)}", err=is_silent)
        options.write_json(path, result.to_dict())
        if stop:
            raise stop
        if any(kept):
            changed_since(result.records, *kept)
        code = result.exit_code if gate is None else _apply_gate(gate, result)
    ctx.exit(code)


def _measure(questions: Sequence[Question], folder: Path) -> tuple[Result, KeyboardInterrupt | None]:
    """Measure, and return the result and the stop that ended it early, if any.

    Raises ComparisonStopped if it was stopped before any process ended.
    """
    from compare.own import comparison
    from compare.own.result import ComparisonStopped
    from compare.run import progress

    try:
        return comparison.compare_questions(questions, progress.reporter, folder), None
    except ComparisonStopped as stop:
        if stop.result is None:
            echo("\nno process has ended, so that nothing was written", err=True)
            raise
        return stop.result, stop


def _gate(*asked: Any) -> Gate:
    from compare.gate.rules import gate

    return gate(*asked)


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


def _questions(
    function: str, *, framework: str | None, engines: str | None, modes: str | None, inputs: str | None, **asked: Any
) -> list[Question]:
    """Return the question for each engine. Raises CompareError for unknown modes, before a worker is started."""
    from compare.engines import OWN
    from compare.errors import InputsError
    from compare.own import comparison

    if framework and engines:
        raise InputsError("--framework names one engine, and --engines all; leave one of them out")
    names = options.framework_names(engines) if engines else [_engine(function, framework)]
    listed = modes.replace(" ", "").split(",") if modes else None
    questions = comparison.questions(names, function, inputs or "", listed, **asked)
    words = ["--engines", ",".join(names)] if engines else ["--framework", *names] if names != [OWN] else []
    words += ["--modes", modes or ",".join(mode for question in questions for mode in question.given_modes)]
    words += ["--inputs", inputs] if inputs else []
    words += ["--allow-effects"] if asked["allow_effects"] else []
    warn(function)
    command = shlex.join(["graphduel", "compare", function, *words])
    return [replace(question, command=command) for question in questions]


def _engine(function: str, framework: str | None) -> str:
    """Return the engine that is asked for; else the framework that the file imports; else our own."""
    from compare import engines
    from compare.own import origin

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
    from compare.own import origin

    for entry in origin.hidden_packages(Path(function.rpartition(":")[0])):
        echo(f"{entry} has the name of a package of graphduel, so `import` does not find it; rename it", err=True)
