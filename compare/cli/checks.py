"""Commands on the harness itself: `graphduel selftest` measures how far it can be trusted, `doctor` what works."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from compare import text
from compare.cli import options
from compare.text import echo

QUICK = 20
CHOSEN = {"comparisons": ["comparisons", "quick"], "own": [], "leaks": [], "seed": ["seed"], "threads": ["threads"]}
"""The parameters of a selftest that choose each setting."""
WHOLE = ("found", "of", "target")
"""The columns of the rates table that are never wrapped; the others fold on a narrow terminal."""
EXIT = {"met": 0, "missed": 1, "too noisy": 3}


@click.command()
@click.option(
    "--comparisons", type=click.IntRange(1), help="Compare an engine with itself this many times; 200, or 20 quick."
)
@click.option(
    "--quick", is_flag=True, help="Make few comparisons, in a minute or two; the rates then have wide intervals."
)
@options.default("--threads", type=click.IntRange(1), default=1, help="Measure speed on so many threads.")
@options.JSON
@options.out("Write records into this folder; by default a new one in reports/.")
@options.RESUME
@options.SEED
@click.pass_context
def selftest(
    ctx: click.Context,
    *,
    comparisons: int | None,
    quick: bool,
    path: Path | None,
    out: Path | None,
    resume: bool,
    seed: int,
    threads: int,
) -> None:
    """Measure how often the harness finds a known slowdown or leak."""
    from compare.errors import InputsError
    from compare.records import results
    from compare.run import executors, progress
    from compare.selftest import Trials, coverage_table, rates_table, run
    from compare.text import show_table

    if threads > 1 and (none := _native()).startswith(NONE):
        raise InputsError(f"--threads {threads}: only native code computes on several threads, and there is {none}")
    directory = options.folder(out, resume, "selftest", "selftest")
    wanted = comparisons or (QUICK if quick else Trials.comparisons)
    asked = {"comparisons": wanted, "own": max(1, wanted // 5), "leaks": max(2, wanted // 4), "seed": seed}
    asked |= {"threads": threads}
    trials = Trials(**(options.resume_settings(ctx, directory, asked, CHOSEN) if resume else asked))
    reporter = progress.reporter()
    opened = executors.open_executor(partial(ThreadPoolExecutor, trials.side_by_side))
    again = ["graphduel", "selftest", "--out", str(directory), "--resume"]
    with options.stoppable(ctx, f"every finished job is in {directory}", again), opened as executor:
        rates = run(directory, trials, reporter, resume=resume, executor=executor)
    options.write_json(path, results.to_json(rates))
    for table in (rates_table(rates), coverage_table(rates)):
        if table:
            show_table(table.headers, table.rows, whole=WHOLE)
            echo()
    for failure in rates.failures:
        echo(f"failed: {failure}", err=True)
    if not rates.whole:
        echo(f"Few comparisons: these rates have wide intervals. --comparisons {Trials.comparisons} gives narrow ones.")
    echo(f"Targets: {rates.outcome}, in {rates.seconds:.0f} s.")
    echo(f"\nRecords and rates: {directory}")
    ctx.exit(EXIT[rates.outcome])


# The doctor ----------------------------------------------------------------------------------------------------------


PARTS = ("graphs", "static", "dynamic", "compare.claims", "compare.report", "compare.suite.stages")
LIBRARIES = ("numpy", "optree", "networkx", "matplotlib", "msgspec", "rich", "jinja2", "psutil", "threadpoolctl")
FINE, NONE = "fine", "none here"
START_SECONDS = 60.0

Rows = list[tuple[str, str]]


def examine() -> tuple[Rows, Rows]:
    """Return rows for each part, with "fine" or its error, and rows for a worker's environment and native code."""
    parts = [(name, _imports(name)) for name in (*PARTS, *LIBRARIES)]
    state, environment = _worker()
    if "tape" in environment:
        environment["tape"] = _tape(environment["tape"] == "compiled")
    if environment.get("memory"):
        environment["memory"] = text.size(environment["memory"])
    rows = [(name, _text(v)) for name, v in environment.items()]
    return [*parts, ("worker process", state)], [*rows, ("native code", _native())]


def modes_offered(framework: str) -> Rows:
    """Return the modes of an engine, and what its installed framework offers for words; this imports the framework.

    Raises UnknownNameError for no engine, and InputsError where it is not installed.
    """
    from compare.engines import find_engine
    from compare.errors import InputsError

    engine = find_engine(framework)
    if engine.missing:
        raise InputsError(engine.missing)
    offer = engine.words.offer()
    modes = [f"{mode.name or 'eager'} = {mode.word}" if mode.word else mode.name or "eager" for mode in engine.modes]
    bare = [("names that are modes", ", ".join(sorted(offer.bare)))] if offer.bare else []
    return [
        (engine.title, engine.version),
        ("modes", ", ".join(modes)),
        *bare,
        *((f"{compiler}()", ", ".join(names) or "no keywords") for compiler, names in offer.keywords.items()),
        *((f"in {keyword}", ", ".join(sorted(names))) for keyword, names in offer.inside.items()),
    ]


def places() -> Rows:
    """Return the folder of each package and the file of the compiled tape; workers import the same ones."""
    from compare.run.environment import package_files
    from compare.run.start import PACKAGES

    return [(name, str(Path(file).parent) if name in PACKAGES else file) for name, file in package_files().items()]


def _imports(name: str) -> str:
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001  (finding broken parts is the purpose)
        return f"{type(error).__name__}: {error}"
    return FINE


def _worker() -> tuple[str, dict[str, Any]]:
    from msgspec import to_builtins

    from compare.errors import WorkerError
    from compare.records.job import Job
    from compare.records.record import error_of
    from compare.run import processes

    try:
        answer = processes.ask(Job("environment"), START_SECONDS)
    except WorkerError as error:
        return str(error), {}
    return error_of(answer) or FINE, to_builtins(answer.environment) if answer.environment else {}


def _tape(compiled: bool) -> str:
    """Return which tape runs; for the tape in Python, which is slower but not broken, how to get the compiled one."""
    if compiled:
        return "its loops are compiled"
    from dynamic import tapes

    why = tapes.remedy() or "GRAPHDUEL_TAPE says so; unset it for the compiled ones"
    return f"its loops run in Python: {why}"


def _native() -> str:
    """Return for which processor graphs can be compiled to machine code, or why they cannot.

    If they cannot, nothing is broken: the native backend is optional.
    """
    from graphs.errors import GraphError
    from static.call import backend

    try:
        backend.choose_backend("native")
    except GraphError as error:
        return f"{NONE}: {error}"
    from static.native.target import host

    return f"for {host().cpu}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "unknown" if value is None else str(value)
