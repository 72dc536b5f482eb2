"""The errors of the harness, each with the exit code of the command.

`describe_error` and `place_of` say where an error arose. Inside `stop_exits`, calls by which code ends its own process
raise an exception instead.

A process that ends itself gives no answer, and with `os._exit(0)` even reports success. A signal or a crash is noticed
by the process that started it (`compare.run.processes`).
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

_FOLDERS = re.compile(r"""(?:[A-Za-z]:)?[\\/](?:[^"'\\/:\n]+[\\/])*(?=[\w.-]+\.py\b)""")
_HARNESS = f"{Path(__file__).resolve().parent}{os.sep}"
_MEASURED = {"workloads", "corpus"}
_INSTALLED = {"site-packages", "dist-packages"}
"""The names of folders with installed packages, also of another environment on the path."""


class CompareError(Exception):
    """Base of the errors a user can act on; the message says what to do."""

    exit_code = 2


class UnknownNameError(CompareError, LookupError):
    """No workload, claim or size has that name; the message suggests the nearest."""


class ResultsError(CompareError, ValueError):
    """A results file is not from graphduel, has another schema version, or is of a run with other settings."""


class NothingMeasuredError(CompareError):
    """No cell matched, or none could be measured."""

    exit_code = 5


class UnsupportedError(CompareError):
    """A mode cannot run this workload, for a reason that is a result and not a fault."""


class InputsError(CompareError, ValueError):
    """The user's function, its inputs or its modes cannot be used as given."""


class NoGradientsError(InputsError):
    """The result of a function cannot be differentiated; unless gradients are asked for, its value is compared."""


class FunctionError(CompareError):
    """The user's function, or its file, raised an error of its own; the message says where."""

    exit_code = 1


class EffectsError(CompareError):
    """The user's function has effects besides its result, which the engines do not repeat alike."""

    exit_code = 1


class WorkerError(CompareError):
    """A worker process crashed, ran out of time, or gave no answer; `step` names its last step."""

    exit_code = 1

    def __init__(self, message: str, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class OverrunError(WorkerError):
    """A worker was ended because it reached its time limit."""


def without_folders(text: str) -> str:
    """Remove the folders of Python files from a text, since records are read on other machines."""
    return _FOLDERS.sub("", text)


def describe_error(error: BaseException, function: str = "") -> str:
    """Return an error in one line, as `ValueError: message (model.py:12)`, with the place of `place_of`.

    The place is the last line that ran in the file of `function`, a `FILE.py:FUNCTION`, or else in another file of the
    user's. If no line of the user's ran, it is the last line outside of graphduel, or the last line of all. A
    CompareError, and an error of graphs that says a line itself, has no such place, as its message says all.
    """
    place = place_of(error, function)
    named = "" if isinstance(error, CompareError) else f"{type(error).__name__}: "
    return f"{named}{error}" + (f" ({place})" if place else "")


def place_of(error: BaseException, function: str = "") -> str:
    """Return the place of an error as in `describe_error`, such as `model.py:12`; "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not is_ours(frame.filename)]
    users = [frame for frame in outside if is_users(frame.filename)]
    says_all = isinstance(error, CompareError) or getattr(error, "placed", False)
    others = [] if says_all else outside or frames
    places = _lines_in_file(frames, function) or [
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in (users or others)[-1:]
    ]
    return places[-1] if places else ""


@contextmanager
def refuse_exit(function: str) -> Iterator[None]:
    """Stop code in the block that would end this process. Raises FunctionError, which names the call and its line."""
    try:
        with stop_exits():
            yield
    except (SystemExit, ProcessEnded) as error:
        call = f"sys.exit({error.code!r})" if isinstance(error, SystemExit) else str(error)
        place = place_of(error, function)
        raise FunctionError(
            f"{function}: {place and f'{place}: '}{call} ends the process, so that there is no answer; return a "
            "result, or raise an error"
        ) from error


@contextmanager
def explain_user_error(function: str) -> Iterator[None]:
    """Turn errors of the user's code in the block into FunctionError, which names the last line of the user's that ran.

    A call that would end the process becomes a FunctionError too, as in `refuse_exit`.
    """
    try:
        with refuse_exit(function):
            yield
    except CompareError:
        raise
    except Exception as error:
        places = _lines_in_file(traceback.extract_tb(error.__traceback__), function)
        line = f"{places[-1]}: " if places and f"({places[-1]})" not in str(error) else ""
        raise FunctionError(f"{function}: {line}{type(error).__name__}: {error}") from error


def is_ours(file: str) -> bool:
    """Whether a file belongs to the engines or the harness, except in `workloads` and `corpus`, which are measured."""
    from graphs.errors import is_internal  # imported here, since it loads NumPy, which `--help` does not need

    return is_internal(file) or (file.startswith(_HARNESS) and not _MEASURED & set(Path(file).parts))


def is_users(file: str) -> bool:
    """Whether a file belongs to the user: neither to graphduel, nor to Python or a library."""
    return not is_ours(file) and not is_library(file)


_GENERATED = ("<frozen", "<eval_with_key>")
"""How the names of files begin that are none: of Python's own modules, and of the code of PyTorch's graphs."""


@functools.cache  # it is called before each timed block, and each call would read folders on the disk
def is_library(file: str) -> bool:
    """Whether a file belongs to Python or an installed package, except a package that the user asks about."""
    path = Path(file).resolve()
    if not _asked.isdisjoint((path, *path.parents)):
        return False
    return file.startswith(_GENERATED) or str(path).startswith(_libraries()) or not _INSTALLED.isdisjoint(path.parts)


_asked = set[Path]()


def count_as_users(name: str) -> None:
    """Count the package of a module as the user's from now on, even if it is installed."""
    name = name.partition(".")[0]
    module = sys.modules.get(name)
    if module is None or name in sys.stdlib_module_names:
        return
    file = getattr(module, "__file__", None)
    _asked.update(Path(place).resolve() for place in getattr(module, "__path__", [file] if file else []))
    is_library.cache_clear()


@functools.cache
def _libraries() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({str(Path(sysconfig.get_path(name)).resolve()) + os.sep for name in names})


def _lines_in_file(frames: traceback.StackSummary, function: str) -> list[str]:
    """Return the lines that ran in the file of `FILE.py:FUNCTION`, as `FILE.py:LINE`."""
    file = Path(function.rpartition(":")[0]).name
    return [f"{file}:{frame.lineno}" for frame in frames if Path(frame.filename).name == file]


CALLS = ("_exit", "abort", "execv", "execve")
"""The functions of `os` that end the process; all functions that replace it by a program call the last two."""


class ProcessEnded(BaseException):
    """Raised where the process would have ended. It is no Exception, so that `except Exception` does not catch it."""


@contextmanager
def stop_exits() -> Iterator[None]:
    """Make the functions in `CALLS` raise ProcessEnded inside the block; a forked copy of this process still ends."""
    before = {name: getattr(os, name) for name in CALLS if hasattr(os, name)}
    for name, end in before.items():
        setattr(os, name, _raising(name, end))
    try:
        yield
    finally:
        for name, end in before.items():
            setattr(os, name, end)


def _raising(name: str, end: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    process = os.getpid()

    def refuse(*args: Any) -> NoReturn:
        if os.getpid() != process:
            end(*args)
        raise ProcessEnded(f"os.{name}({', '.join(map(repr, args[:1]))})")

    return refuse
