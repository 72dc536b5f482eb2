"""The parts that several commands share: completion, options, the folder of a run, text on a terminal, and signals.

Completion gives the names that can follow on the command line. Nothing is run or measured for it.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from textwrap import fill
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.core import ParameterSource

from compare.errors import CompareError
from compare.text import echo

if TYPE_CHECKING:
    from compare.engines import Engine


def complete_names(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete workloads and claims, for `show`."""
    from compare import claims, workloads
    from compare.claims import verdict as own

    every = (*workloads.names(), *claims.CLAIMS, *own.OWN)
    return [name for name in every if name.lower().startswith(typed.lower())]


def complete_functions(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[Any]:
    """Complete Python files, and after a colon the functions in the file, which is read and not run."""
    from click.shell_completion import CompletionItem

    file, colon, _ = typed.rpartition(":")
    if not colon:
        return [CompletionItem(typed, type="file")]
    try:
        body = ast.parse(Path(file).read_text("utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    defined = (node.name for node in body if isinstance(node, ast.FunctionDef))
    return _starting(typed, (f"{file}:{function}" for function in defined if not function.startswith("_")))


def complete_claims(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete claims, for `run --claim`."""
    from compare.claims import CLAIMS

    return [id for id in CLAIMS if id.startswith(typed.upper())]


def complete_cells(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete workloads, and after a slash their sizes, for `--only`."""
    from compare import workloads

    workload, slash, _ = typed.partition("/")
    if slash and workload in workloads.names():
        return _starting(typed, (f"{workload}/{size}" for size in workloads.get(workload).sizes))
    return _starting(typed, workloads.names())


def complete_run_modes(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete the modes of the run in DIRECTORY, for `export --mode`; without a run, those of all workloads."""
    from compare import workloads
    from compare.records import results
    from compare.records.cells import Time
    from compare.records.record import records_of

    path = results.find_results(Path(ctx.params.get("directory") or ""))
    if path:
        with suppress(CompareError):
            return _starting(typed, {mode for record in records_of(results.read(path), Time) for mode in record.modes})
    return _starting(typed, {mode for name in workloads.names() for mode in workloads.get(name).modes})


def complete_modes(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete modes of our engines, or of the framework in `--framework` or in the file, after the last comma."""
    with suppress(CompareError):
        engine = _engine_of(ctx)
        named = (mode.name for mode in engine.modes if mode.name)
        return _complete_list(typed, (*named, *engine.aliases, *_bare_names(engine)))
    return []


def _bare_names(engine: Engine) -> list[str]:
    """Return the further modes that the installed framework lists, such as backends; the user's cache keeps them."""
    from compare.run.environment import cache_folder
    from graphs.files import write_file

    if engine.missing:
        return []
    key, kept = f"{engine.name} {engine.version}", dict[str, list[str]]()
    with suppress(OSError, ValueError, TypeError):
        kept = dict(json.loads((cache_folder() / OFFERS).read_text("utf-8")))
        if key in kept:
            return list(map(str, kept[key]))
    names = sorted(engine.words.offer().bare)
    with suppress(OSError):
        write_file(cache_folder() / OFFERS, json.dumps({**kept, key: names}).encode())
    return names


OFFERS = "offers.json"
"""The file of what frameworks list as modes, in the user's cache: to import one takes seconds."""


def complete_words(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete the word of `NAME=WORD` by those of the modes that have names, for `--mode`."""
    name, sign, _ = typed.partition("=")
    with suppress(CompareError):
        return _starting(typed, {f"{name}={mode.word}" for mode in _engine_of(ctx).modes if sign and mode.word})
    return []


def _engine_of(ctx: click.Context) -> Engine:
    """Return the engine of `--framework`, that which the file imports, or ours. Raises CompareError."""
    from compare import engines
    from compare.subjects import origin

    imported = None
    for function in filter(None, (ctx.params.get("function"), *ctx.args)):  # an option without a value ends the parsing
        with suppress(CompareError, OSError):
            imported = engines.of_imports(origin.source(function))
    return engines.find_engine(ctx.params.get("framework") or imported or engines.OWN)


def complete_frameworks(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete frameworks that have an adapter, after the last comma."""
    from compare import engines

    return _complete_list(typed, engines.frameworks())


def _complete_list(typed: str, names: Iterable[str]) -> list[str]:
    """Complete the last of several names with commas between them; names before it are not offered again."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(last, set(names) - set(before.split(",")))]


def _starting(typed: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(typed))


# Options --------------------------------------------------------------------------------------------------------------


Command = Callable[..., Any]
WIDTH = 100
"""The largest width of sentences, in columns of the terminal."""
FOLDER = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
JSON = click.option("--json", "path", type=FILE, help="Write the result to this file too.")
JSON_ALONE = click.option(
    "--json", "path", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the answer to this file as JSON; `-` is stdout, which then has nothing else.",
)  # fmt: skip


class Sections(click.Command):
    """A command whose help lists its options in sections; `sections` has the names of each one's parameters.

    An option that no section names stands in the last one, under "Other options".
    """

    sections: ClassVar[Mapping[str, Sequence[str]]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group of options that has any."""
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        records = {param.name: row for param in options if (row := param.get_help_record(ctx))}
        listed = {name for names in self.sections.values() for name in names}
        others = [name for name in records if name not in listed]
        for title, names in {**self.sections, "Other options": others}.items():
            if rows := [records[name] for name in names if name in records]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Seconds(click.FloatRange):
    """The click type of a finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds. Raises click.BadParameter for other values."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return number


def framework_names(value: str | Sequence[str]) -> list[str]:
    """Split names of frameworks at commas, without duplicates. Raises click.BadParameter for an unknown one."""
    from compare import engines as frameworks
    from compare.errors import UnknownNameError

    asked = value.split(",") if isinstance(value, str) else value
    chosen = list(dict.fromkeys(filter(None, (name.strip() for name in asked))))
    for name in chosen:
        try:
            frameworks.find_engine(name)
        except UnknownNameError as error:
            raise click.BadParameter(str(error)) from error
    return chosen


def split_words(value: str | Sequence[str]) -> list[str]:
    """Split modes at commas; those within a word stay."""
    from compare.engines import words

    return words.split(value) if isinstance(value, str) else list(value)


def interpreters(_ctx: click.Context, param: click.Parameter, written: Sequence[str]) -> dict[str, str]:
    """Return the interpreter of each `NAME=ENV`: a file, or that of a virtual environment. Raises BadParameter."""
    pythons = {}
    for each in written:
        name, _, place = each.partition("=")
        folder = Path(place)
        files = [folder / "bin" / "python", folder / "Scripts" / "python.exe"] if folder.is_dir() else [folder]
        python = next((file for file in files if file.is_file() and os.access(file, os.X_OK)), None)
        if not name or not place or python is None:
            raise click.BadParameter(
                f"{each!r} names no interpreter; write NAME=ENV, with the folder of a virtual environment or a python",
                param=param,
            )
        pythons[name] = str(python.absolute())
    return pythons


def claim_id(value: str) -> str:
    """Return the id of a claim, given in any case. Raises click.BadParameter for an unknown id."""
    from compare import claims
    from compare.errors import UnknownNameError

    try:
        return claims.get(value).id
    except UnknownNameError as error:
        raise click.BadParameter(str(error)) from error


def default(*names: str, help: str, **more: Any) -> Callable[[Command], Command]:
    """Make an option whose help shows its default."""
    return click.option(*names, help=help, show_default=True, **more)


ONLY = click.option(
    "--only", metavar="GLOB", shell_complete=complete_cells,
    help="Use only the cells whose workload or workload/size matches this glob.",
)  # fmt: skip
SEED = default("--seed", type=click.IntRange(0), default=0, help="Set the random order of the measurements.")
FAIL_IF = click.option(
    "--fail-if", multiple=True, metavar="RULE",
    help="Exit with 6 if this rule holds: 'static > 1.05', 'compile.compiles > 2'. Repeatable.",
)  # fmt: skip
RESUME = click.option("--resume", is_flag=True, help="Continue the run in --out, and keep what it has measured.")


def gradient(verb: str) -> Callable[[Command], Command]:
    """Make the option `--gradient/--no-gradient`; its help begins with `verb`, such as `Compare`."""
    words = f"{verb} gradients with respect to argument 0.  [default: if they exist]"
    return click.option("--gradient/--no-gradient", default=None, help=words)


def _of_model(ctx: click.Context, param: click.Parameter, written: str) -> str:
    """Return the place of a function; for an ONNX file, of its model. Raises InputsError if there is no such file."""
    return _in_a_file(ctx, param, f"{written}:model" if written.endswith(".onnx") else written)


def _in_a_file(ctx: click.Context, _param: click.Parameter, written: str) -> str:
    """Return a place `FILE.py:NAME` unchanged, or the one found for `package.module:NAME`.

    Raises InputsError, before a worker starts, if there is no such file.
    """
    if not ctx.resilient_parsing:
        from compare.subjects.origin import PlaceInFile

        place = PlaceInFile.of(written)
        if not Path(place.file).is_file():
            return f"{os.path.relpath(place.path)}:{place.name}"
    return written


def _in_a_file_or_the_same(ctx: click.Context, param: click.Parameter, written: str | None) -> str | None:
    """Return a place as `_in_a_file` does; a name without a file stays, for the file of the function."""
    return _in_a_file(ctx, param, written) if written and ":" in written else written


FUNCTION = click.argument("function", metavar="FILE.py:FUNCTION", shell_complete=complete_functions, callback=_of_model)
OVERWRITE = click.option("--overwrite", is_flag=True, help="Write over the results that are in the folder of --out.")
INPUTS = click.option(
    "--inputs",
    metavar="[FILE.py:]NAME",
    callback=_in_a_file_or_the_same,
    help="Read the calls here: a list of tuples of arguments, or a function that returns one.",
)
DIRECTORY = click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
DIRECTORIES = click.argument(
    "directories", metavar="DIRECTORY...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path),
)  # fmt: skip


def out(help: str, kind: click.Path = FOLDER) -> Callable[[Command], Command]:
    """Make the option `--out`, the folder or file for results."""
    return click.option("--out", type=kind, help=help)


def quick(default: str, help: str) -> Callable[[Command], Command]:
    """Make the option `--quick/--full`, which chooses a preset; the command gets it as `quick`."""
    words = f"{help}  [default: {default}]"
    return click.option("--quick/--full", "quick", default=default == "quick", help=words)


def say(text: str, *, first: str = "", rest: str = "  ", err: bool = False) -> None:
    """Print sentences, a line each, wrapped for the terminal; `first` begins each one, `rest` its further lines."""
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    for line in text.splitlines():
        echo(fill(line, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False), err=err)


# Runs that are stopped and gone on with -------------------------------------------------------------------------


def folder(out: Path | None, resume: bool, kind: str, name: str) -> Path:
    """Return the folder of a run, by default a new one in reports/. Raises UsageError for `resume` without `out`."""
    if resume and out is None:
        raise click.UsageError(f"--resume needs --out: the folder of the {kind} to continue")
    return out or Path("reports") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def resume_settings(
    ctx: click.Context, directory: Path, asked: Mapping[str, Any], options: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the settings asked for, with those of the run in a directory in their place.

    `options` has, for each setting, the parameters that choose it. Raises UsageError if the command line asks for
    another value than the run has.
    """
    from compare.records import journal

    began = journal.settings(directory)
    earlier = {name: began[name] for name in options if name in began}
    for name, value in earlier.items():
        is_asked = any(
            ctx.get_parameter_source(parameter) is ParameterSource.COMMANDLINE for parameter in options[name]
        )
        if is_asked and value != asked[name]:
            had, wanted = ("none" if setting is None else str(setting) for setting in (value, asked[name]))
            raise click.UsageError(
                f"the run in {directory} has {name} {had}, and {wanted} was asked for; "
                "leave that option out to continue the run, or choose another --out"
            )
    return {**asked, **earlier}


def write_json(path: Path | None, values: Mapping[str, Any]) -> None:
    """Write a result as JSON to the file of --json, or to stdout for `-`; does nothing without --json."""
    from compare.records.results import write_json

    if str(path) == "-":
        click.echo(json.dumps(values, allow_nan=False, indent=1))
    elif path:
        write_json(path, values)


def write_page(path: Path, page: Any) -> None:
    """Write a page to a file: as HTML if its name ends with .html, otherwise as Markdown."""
    from compare.report import printers
    from graphs.files import write_file

    printed = printers.to_html if path.suffix == ".html" else printers.to_markdown
    write_file(path, printed(page).encode())


INTERRUPTED, TERMINATED = 130, 143
"""The exit codes of an interrupted and of a terminated command: 128 and the number of the signal, as in a shell."""


class TerminationSignal(KeyboardInterrupt):
    """The process has received SIGTERM."""


@contextmanager
def by_signals() -> Iterator[None]:
    """A context in which SIGTERM raises TerminationSignal, a KeyboardInterrupt, as SIGINT raises one.

    Where SIGINT is ignored from the start, as in a background job of a shell, it stays ignored: the Ctrl-C of a
    terminal is not meant for such a job. SIGTERM ends it.

    If other code turns either into its own error, the signal's exception is raised instead: a C module that is being
    imported turns it into an ImportError, for which nobody's file is to blame.
    """
    came: list[KeyboardInterrupt] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(KeyboardInterrupt() if number == signal.SIGINT else TerminationSignal())
        raise came[-1]

    ours = [signal.SIGTERM, *([signal.SIGINT] if signal.getsignal(signal.SIGINT) is signal.default_int_handler else [])]
    before = {number: signal.signal(number, stop) for number in ours}
    try:
        yield
    except click.exceptions.Exit:  # the command has ended, by a signal or not
        raise
    except Exception as error:
        if came:
            raise came[-1] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a stopped command, also where another exception hides the SIGTERM as its cause."""
    return TERMINATED if any(isinstance(each, TerminationSignal) for each in (stop, stop.__cause__)) else INTERRUPTED


@contextmanager
def stoppable(ctx: click.Context, what: str, again: Sequence[str] = ()) -> Iterator[None]:
    """Exit the command if the block is stopped, after printing `what` is done and the command to continue (`again`)."""
    try:
        yield
    except KeyboardInterrupt as stop:
        echo(f"\nStopped; {what}." + (f" Continue with:\n  {shlex.join(again)}" if again else ""), err=True)
        ctx.exit(exit_code(stop))


# The errors that arise from records which are each valid, but do not fit together.
_UNFIT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def reading(*directories: Path | None) -> Iterator[None]:
    """Turn errors of reading or judging results in the block into ResultsError: their records do not fit together.

    Records that were not altered always fit, so it may also be a fault of graphduel: the error names the place in code.
    """
    from compare.errors import CompareError, ResultsError, describe_error

    try:
        yield
    except CompareError:
        raise
    except _UNFIT as error:
        named = ", ".join(map(str, directories))
        remedy = "take them as a run has left them, and report this if they are"
        raise ResultsError(f"{named}: the records do not fit together, {describe_error(error)}; {remedy}") from error


def of_results(command: Command) -> Command:
    """Decorate a command that reads the results in its argument `directory` or `directories`, with `reading`."""

    @functools.wraps(command)
    def read(*args: Any, **asked: Any) -> Any:
        with reading(*(asked.get("directories") or [asked["directory"]])):
            return command(*args, **asked)

    return read


def results_in(directory: Path) -> list[Any]:
    """Return the records of the run in a folder. Raises UsageError if it has no results file."""
    from compare.records import results

    path = results.find_results(directory)
    if path is None:
        raise click.UsageError(f"{directory} holds no {results.RESULTS}; make it with `graphduel run`")
    return results.read(path, lambda text: echo(text, err=True))
