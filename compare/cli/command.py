"""The command `graphduel`. A command imports its modules when it runs, so that `--help` is quick.

Exit codes: 0 fine, 1 a failed gate or cell, 2 usage, 3 inconclusive or too noisy, 4 outputs or gradients
disagree, 5 nothing was measured, 6 a rule of --fail-if holds, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from errno import ENOENT, EPIPE
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.checks import selftest
from compare.cli.functions import advise, compare
from compare.cli.graph import graph, plan
from compare.cli.runs import baselines, changed_since, diff, export, schema, trend
from compare.cli.shapes import shapes
from compare.errors import CompareError
from compare.records.record import DEVICES, MODELS, options_of
from compare.text import echo, wrap

if TYPE_CHECKING:
    from compare.claims.base import Verdict
    from compare.records.own import SharedVerdict
    from compare.records.record import Record

CHOSEN = {
    name: [name]
    for name in (
        "seed",
        "processes",
        "only",
        "claim",
        "python_tape",
        "frameworks",
        "device",
        "modes",
        "against",
        "threads",
    )
} | {"preset": ["quick", "suite"]}
"""The parameters of a run that choose each setting."""


SUITES = ("workloads", MODELS)
"""The suites that a run may measure."""
SHOWN = ("compare", "advise", "graph", "diff", "run", "report", "doctor", "lab")
"""The commands that help lists, in the order in which a user needs them; `lab` lists the others."""


class Group(click.Group):
    """A click group that prints errors a user can act on, and exits with their exit codes."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names in SHOWN; the other commands can be called by name too."""
        return list(SHOWN)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; CompareError, OSError and stops by signals become a message and an exit code."""
        try:
            with options.by_signals():
                return super().invoke(ctx)
        except CompareError as error:
            echo(wrap(f"Error: {error}"), err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt as stop:
            echo("\nStopped.", err=True)
            ctx.exit(options.exit_code(stop))
        except OSError as error:
            if error.errno == EPIPE:  # the reader has closed the pipe, which click handles itself
                raise
            echo(f"Error: {_describe_os_error(error)}", err=True)
            ctx.exit(CompareError.exit_code)


def _describe_os_error(error: OSError) -> str:
    """Return the message of an OSError with its file; without a file, with a remedy for a missing TMPDIR."""
    what = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {what}"
    return f"{what}; let TMPDIR be a folder that can be written to" if error.errno == ENOENT else what


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="graphduel")
def graphduel() -> None:
    """Measure static and dynamic computation graphs, and judge the claims about them."""


CELLS = options.quick("quick", "Measure a few cells of each regime, or every size.")
PYTHON_TAPE = click.option("--python-tape", is_flag=True, help="Settle C5, C6 and C7 even if the tape runs in Python.")
CLAIM = click.option(
    "--claim", metavar="ID", type=options.claim_id, shell_complete=options.complete_claims,
    help="Measure only what this claim reads, its own checks too, and judge it alone.",
)  # fmt: skip
FRAMEWORKS = click.option(
    "--frameworks", type=options.framework_names, default=(), metavar="NAMES",
    shell_complete=options.complete_frameworks, help="Measure these frameworks as well: torch,tensorflow,jax,autograd.",
)  # fmt: skip
DEVICE = options.default(
    "--device", type=click.Choice(DEVICES), default="cpu", help="Run the workloads of frameworks on this device."
)


@graphduel.command()
@CELLS
@options.ONLY
@CLAIM
@options.out("Write the run into this folder; by default a new one in reports/.")
@options.RESUME
@options.OVERWRITE
@click.option(
    "--processes", type=click.IntRange(1), help="Start this many worker processes for each cell; 4 quick, 6 full."
)
@options.SEED
@PYTHON_TAPE
@FRAMEWORKS
@DEVICE
@options.default(
    "--threads", type=click.IntRange(1), default=1,
    help="Time warm steps on so many threads: each mode in processes of its own, by the wall.",
)  # fmt: skip
@click.option(
    "--suite",
    type=click.Choice(SUITES),
    default=SUITES[0],
    show_default=True,
    help="Measure our workloads, or real models in PyTorch.",
)
@click.option(
    "--modes",
    type=options.split_words,
    default=(),
    metavar="NAMES",
    help="With --suite models, measure these modes, or words of modes, beside eager; by default compile.",
)
@click.option(
    "--against",
    metavar="DIR",
    help="With --suite models, a run of the workloads in PyTorch, with whose verdicts the page compares.",
)
@options.default(
    "--executor", type=click.Choice(["local", "dask"]), default="local",
    help="Run jobs here one by one, or on the hosts of a dask cluster.",
)  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS", help="Use the dask cluster at this address, tcp://HOST:PORT.")
@baselines
@click.pass_context
def run(
    ctx: click.Context, /, *, quick: bool, suite: str, out: Path | None, resume: bool, overwrite: bool, **asked: Any
) -> None:
    """Measure the workloads and write results, verdicts and a report."""
    from compare.claims import base
    from compare.plans.settings import PRESETS, REAL, Settings
    from compare.run import executors, progress
    from compare.suite.stages import run as measure
    from dynamic import tapes

    kept = asked.pop("save_baseline"), asked.pop("baseline")
    _check_options(suite, asked)
    del asked["executor"]  # which the scheduler tells
    scheduler = asked.pop("scheduler")
    preset = suite if suite == MODELS else "quick" if quick else "full"
    directory = options.folder(out, resume, "run", preset)
    if resume and overwrite:
        raise click.UsageError(
            "--resume goes on with the run in --out and --overwrite begins it anew; give one of them"
        )
    processes = asked["processes"] or (REAL.frameworks if suite == MODELS else PRESETS[preset]).processes
    settings = Settings(preset, **{**asked, "processes": processes})
    earlier = options.reading(directory) if resume else nullcontext()
    if resume:
        with options.reading(directory):
            settings = Settings(**options.resume_settings(ctx, directory, settings.to_dict(), CHOSEN))
    reporter = progress.reporter()
    if not tapes.is_compiled():
        reporter.notice(base.notice_before_run(python_tape=settings.python_tape))
    make: Any = partial(executors.Cluster, scheduler, reporter.notice) if scheduler else executors.Serial
    opened = executors.open_executor(make)
    kept_jobs = f"every finished job is in {directory}"
    words = ["graphduel", "run", *options_of(settings.to_dict()), "--out", str(directory), "--resume"]
    tape = ["--python-tape"] if settings.python_tape else []
    there = ["--executor", "dask", "--scheduler", scheduler] if scheduler else []
    again = [*words, "--processes", str(settings.processes), "--seed", str(settings.seed), *tape, *there]
    with earlier, options.stoppable(ctx, kept_jobs, again), opened as pool:
        outcome = measure(
            directory, settings, reporter, resume=resume, overwrite=overwrite, executor=pool, at_once=pool.at_once
        )
    _announce(directory, outcome.records, outcome.verdicts)
    _list_problems("disagree", outcome.disagreements)
    _list_problems("failed", outcome.failures)
    _list_problems("missing, though no verdict needs it", outcome.overruns)
    if not outcome.measured:
        echo("Nothing was measured.", err=True)
    changed_since(outcome.records, *kept)
    ctx.exit(outcome.exit_code)


def _check_options(suite: str, asked: dict[str, Any]) -> None:
    """Raise UsageError for options of a run that contradict each other; real models get their framework."""
    if (asked["executor"] == "dask") != (asked["scheduler"] is not None):
        raise click.UsageError("--executor dask and --scheduler ADDRESS go together")
    if suite == MODELS:
        from compare.workloads.models import FRAMEWORK

        if others := [name for name in asked["frameworks"] if name != FRAMEWORK]:
            raise click.UsageError(
                f"--suite models has models of {FRAMEWORK} alone, and none of {', '.join(others)}; "
                "leave --frameworks out"
            )
        asked["frameworks"] = [FRAMEWORK]
    elif asked["modes"] or asked["against"]:
        raise click.UsageError("--modes and --against are about real models; add --suite models")
    if asked["device"] != "cpu" and not asked["frameworks"]:
        raise click.UsageError("--device cuda needs --frameworks; graphduel's engines run on the CPU")


@graphduel.command()
@options.DIRECTORIES
@PYTHON_TAPE
@options.out("Write the page of several runs into this folder.")
@options.of_results
def report(directories: tuple[Path, ...], *, python_tape: bool, out: Path | None) -> None:
    """Judge the results in DIRECTORY again and write its report again.

    Of several directories, each the run of another machine, write one page that has the machine as an axis. Of runs on
    functions of users, and of files verdict.json of any runs, write the medians by model, device and version.
    """
    from compare.suite.stages import finish

    if len(directories) > 1 or directories[0].is_file():
        _report_several(directories, out)
        return
    if out is not None:
        raise click.UsageError("--out is for the page of several runs; one run's report stands beside its results")
    (directory,) = directories
    records = options.results_in(directory)
    _announce(directory, records, finish(directory, records, python_tape=python_tape))


def _report_several(paths: tuple[Path, ...], out: Path | None) -> None:
    """Write the page of several runs: of machines if they measured a suite, else of verdicts."""
    from compare.records import results
    from compare.records.record import Run, records_of
    from compare.report import runs as pages

    if out is None:
        raise click.UsageError("several runs make a page of their own; say where with --out FOLDER")
    records = {path: options.results_in(path) for path in paths if path.is_dir()}
    own = [path for path, held in records.items() if any(run.is_own for run in records_of(held, Run))]
    if len(records) == len(paths) and not own:
        _report_machines(paths, out)
        return
    shared = [pages.shared_verdict(records[path]) if path in records else results.read_shared(path) for path in paths]
    if None in shared:
        raise click.UsageError(f"{paths[shared.index(None)]} measured the workloads, which have no {results.SHARED}")
    _report_verdicts([verdict for verdict in shared if verdict], out)


def _report_verdicts(shared: Sequence[SharedVerdict], out: Path) -> None:
    from compare.report import figures
    from compare.report import runs as pages

    page = pages.many(shared, partial(figures.draw_one, directory=out / "plots"))
    options.say(str(page.sections[0].blocks[0]))
    for name in ("report.html", "report.md"):
        options.write_page(out / name, page)
    echo(f"\nReport: {out / 'report.html'}")


def _report_machines(directories: tuple[Path, ...], out: Path) -> None:
    from compare.claims import changes
    from compare.report import runs as pages
    from compare.text import show_table

    names = [directory.resolve().name for directory in directories]
    names = names if len(set(names)) == len(names) else list(map(str, directories))
    runs = [changes.JudgedRun(name, options.results_in(path)) for name, path in zip(names, directories, strict=True)]
    changes.unlike(runs)
    table = pages.verdict_table(runs)
    show_table(table.headers, table.rows)
    echo(f"\n{changes.verdict_sentence(runs)}")
    page = pages.machines(runs)
    for name in ("report.html", "report.md"):
        options.write_page(out / name, page)
    echo(f"\nReport: {out / 'report.html'}")


@graphduel.command()
@CELLS
@options.ONLY
@click.pass_context
def check(ctx: click.Context, *, quick: bool, only: str | None) -> None:
    """Compare outputs, gradients and graphs of all modes; time nothing."""
    from compare.plans.settings import Settings
    from compare.records.cells import Parity
    from compare.records.record import Failure, records_of
    from compare.report import assemble
    from compare.run import progress
    from compare.suite.stages import check as gate
    from compare.text import show_table

    records = gate(Settings("quick" if quick else "full", only=only), progress.reporter())
    parity = records_of(records, Parity)
    if table := assemble.parity_table(parity):
        show_table(table.headers, table.rows)
    different = [str(record.cell) for record in parity if record.same_graph is False]
    _list_problems("no isomorphic graphs", different)
    _list_problems("failed", [f"{failure.job}: {failure.error}" for failure in records_of(records, Failure)])
    statuses = {row.status for record in parity for row in record.modes.values()}
    broken = different or "failed" in statuses or len(parity) < len(records)
    ctx.exit(4 if "disagree" in statuses else int(bool(broken)))


for command in (diff, advise, compare, export, graph, plan, schema, selftest, shapes, trend):
    graphduel.add_command(command)


@graphduel.group()
def lab() -> None:
    """Further commands, each of which works without `lab` as well."""


@graphduel.command("list")
def list_() -> None:
    """List the workloads and the claims."""
    from compare import claims, workloads
    from compare.text import show_table

    every = map(workloads.get, workloads.names())
    rows = [(w.name, w.expect, ", ".join(w.policies), ", ".join(w.sizes), w.shows) for w in every]
    show_table(("workload", "should win", "policies", "sizes", "what it shows"), rows)
    echo()
    show_table(("claim", "what people say"), [(c.id, c.statement) for c in claims.CLAIMS.values()])


@graphduel.command()
@click.argument("name", shell_complete=options.complete_names)
def show(name: str) -> None:
    """Show everything about a workload or a claim.

    Of a FILE.py:FUNCTION it names the commands that take it.
    """
    from compare import claims, workloads
    from compare.claims import verdict as own
    from compare.errors import UnknownNameError
    from compare.subjects import origin

    every = {**claims.CLAIMS, **own.OWN}
    if name.upper() in every:
        _paragraphs(_claim(every[name.upper()]))
    elif name in workloads.names():
        workload = workloads.get(name)
        sizes = [
            ("Size", f"{size}: {', '.join(f'{name} {value:,}' for name, value in sides.items())}")
            for size, sides in workload.sizes.items()
        ]
        _paragraphs(
            [
                (workload.name, workload.title),
                ("Shows", workload.shows),
                ("Should win", workload.expect),
                ("Modes", ", ".join(workload.modes)),
                *sizes,
            ]
        )
    elif ".py:" in name:
        origin.PlaceInFile.of(name)
        _paragraphs([(word, f"graphduel {word} {name}") for word in ("compare", "graph", "plan", "advise")])
    else:
        hint = workloads.nearest(name, (*workloads.names(), *every))
        raise UnknownNameError(f"no workload or claim is named {name!r}; {hint}")


@graphduel.command()
@click.argument("framework", required=False, shell_complete=options.complete_frameworks)
@click.pass_context
def doctor(ctx: click.Context, *, framework: str | None) -> None:
    """Show the environment, and check that every part works.

    With FRAMEWORK, show its modes, and what the installed one offers to define others: the keywords of its compilers,
    and its modes, backends and settings.
    """
    from compare.cli import checks as clinic
    from compare.text import show_table

    if framework:
        _paragraphs(clinic.modes_offered(framework))
        return
    parts, environment = clinic.examine()
    show_table(("part", "state"), parts)
    echo()
    show_table(("package", "comes from"), clinic.places())
    echo()
    show_table(("environment of a worker", ""), environment)
    ctx.exit(int(any(state != clinic.FINE for _, state in parts)))


for name, command in sorted(graphduel.commands.items()):
    if name not in SHOWN:
        lab.add_command(command)


def _announce(directory: Path, records: list[Record], verdicts: list[Verdict]) -> None:
    from compare.claims import conditions
    from compare.claims.base import OPEN
    from compare.records.record import Run, records_of
    from compare.report.verdicts import narrow_table, verdict_table

    echo(conditions.summary(records) + "\n")
    settings = [run.settings for run in records_of(records, Run)]
    if any(asked.get("only") for asked in settings):  # a few cells settle few claims, so their times come first
        narrow_table(records)
        if not any(asked.get("claim") for asked in settings):
            verdicts, every = [v for v in verdicts if v.finding.verdict not in OPEN], len(verdicts)
            if len(verdicts) < every:
                echo(f"\nToo little was measured for {every - len(verdicts)} of {every} claims.")
    if verdicts:
        verdict_table(verdicts)
    echo("\n" + "\n".join(conditions.sentences(records)))
    echo(f"\nReport: {directory / 'report.html'}")


def _list_problems(what: str, problems: Any) -> None:
    for problem in problems:
        echo(f"{what}: {problem}", err=True)


def _claim(claim: Any) -> list[tuple[str, str]]:
    return [
        (claim.id, claim.title),
        ("The claim", claim.statement),
        ("Its opposite", claim.opposite),
        ("Measured", claim.measured),
        ("The rule", claim.rule),
        *(("Literature", str(source)) for source in claim.literature),
        *(("Not tested", gap) for gap in claim.not_tested),
    ]


def _paragraphs(pairs: list[tuple[str, str]]) -> None:
    width = max(len(head) for head, _ in pairs)
    for head, text in pairs:
        options.say(text, first=f"{head:{width}}  ", rest=" " * (width + 2))


def main() -> None:
    """Run the command."""
    graphduel(prog_name="graphduel")
