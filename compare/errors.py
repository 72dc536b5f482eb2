"""The errors of the harness. Each carries the exit code the command ends with.

The calls by which code ends its own process: inside `stopped` they raise instead.

A process that ends so gives no answer, and with `os._exit(0)` it even says that all is well. What ends a process in
another way, such as a signal or a crash, is seen by the process that has started it (`compare.run.processes`).
"""

from __future__ import annotations

import functools
import inspect
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
"""The folders of packages, also in an environment that this one reaches by its path."""


class CompareError(Exception):
    """Base of the errors a user can act on; the message says what to do."""

    exit_code = 2


class UnknownNameError(CompareError, LookupError):
    """No workload, claim or size has that name; the message suggests the nearest."""


class ResultsError(CompareError, ValueError):
    """A results file is not ours, of another schema version, or of a run with other settings."""


class NothingMeasuredError(CompareError):
    """No cell matched, or none could be measured."""

    exit_code = 5


class UnsupportedError(CompareError):
    """An arm cannot run this workload, for a reason that is a result and not a fault."""


class InputsError(CompareError, ValueError):
    """A function of the user's, its inputs or its modes cannot be used as given."""


class NoGradientsError(InputsError):
    """What a function gives is nothing to differentiate: where no gradients are asked for, its value is compared."""


class FunctionError(CompareError):
    """A function of the user's, or its file, ended in an error of its own; the message says where."""

    exit_code = 1


class EffectsError(CompareError):
    """A function of the user's does more than give a result, and the engines do not do that alike."""

    exit_code = 1


class WorkerError(CompareError):
    """A worker process crashed, ran out of time, or answered nothing; `step` is what it did last."""

    exit_code = 1

    def __init__(self, message: str, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class OverrunError(WorkerError):
    """A worker took longer than it may, and was ended."""


def without_folders(text: str) -> str:
    """Words in which files of Python are named without their folders: a record is read on other machines."""
    return _FOLDERS.sub("", text)


def describe_error(error: BaseException, function: str = "") -> str:
    """`ValueError: what went wrong (model.py:12)`, the place without its folder.

    It is the last line that ran, of the file in `function`, a `FILE.py:FUNCTION`, if a line of that file ran, or else
    of the user's. Lines of the engines, of the harness and of libraries are none of these; an error that comes from
    nowhere else has the last of them, unless it is one of ours, whose words say all.
    """
    place = place_of(error, function)
    named = "" if isinstance(error, CompareError) else f"{type(error).__name__}: "
    return f"{named}{error}" + (f" ({place})" if place else "")


def place_of(error: BaseException, function: str = "") -> str:
    """The place of `describe_error`, `model.py:12`; empty where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not is_ours(frame.filename)]
    users = [frame for frame in outside if is_users(frame.filename)]
    others = [] if isinstance(error, CompareError) else outside or frames
    places = _lines_in_file(frames, function) or [
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in (users or others)[-1:]
    ]
    return places[-1] if places else ""


@contextmanager
def refuse_exit(function: str) -> Iterator[None]:
    """Inside, code that would end this process is stopped. Raises FunctionError that names the call and its line."""
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
    """Inside, what the user's own code raises is a FunctionError that names the last line of the user's that ran.

    So is a call by which it would end the process (`compare.errors`).
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
    """Whether a file is the engines' or the harness's, which measures what lies in `workloads` and `corpus`."""
    from graphs.errors import is_internal  # with NumPy, for which `--help` must not wait

    return is_internal(file) or (file.startswith(_HARNESS) and not _MEASURED & set(Path(file).parts))


def is_users(file: str) -> bool:
    """Whether a file is neither ours nor of Python or a library."""
    return not is_ours(file) and not is_library(file)


@functools.cache  # it is asked before each block that is timed, and the folders on a disk would be asked each time
def is_library(file: str) -> bool:
    """Whether a file is Python's or that of an installed package, and not of one that is asked about, or typed in."""
    path = Path(file).resolve()
    if not _asked.isdisjoint((path, *path.parents)):
        return False
    return file.startswith("<frozen") or str(path).startswith(_libraries()) or not _INSTALLED.isdisjoint(path.parts)


_asked = set[Path]()


def count_as_users(function: Any) -> None:
    """From now on the package of a function that is asked about is the user's, wherever it is installed."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    name = (getattr(function, "__module__", None) or "").partition(".")[0]
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
    """The lines that ran of the file in `FILE.py:FUNCTION`."""
    file = Path(function.rpartition(":")[0]).name
    return [f"{file}:{frame.lineno}" for frame in frames if Path(frame.filename).name == file]


CALLS = ("_exit", "abort", "execv", "execve")
"""Of `os`; those that replace the process by another program come down to the last two."""


class ProcessEnded(BaseException):
    """The process would have ended here. No Exception, since code that ends its process expects none."""


@contextmanager
def stop_exits() -> Iterator[None]:
    """Inside, these calls raise Ended. A copy of this process, made by a fork, ends as it will."""
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
