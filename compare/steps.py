"""What a worker tells while it works: the pipe of its answer carries a line for each step, and then the answer.

Steps say where a worker was that ended without an answer, and each is progress, from which its limit counts anew
(`compare.run.processes`). Some steps together may have a limit as well. What is worth a line for the user before there
is an answer is told on the way: each first call of a mode, and a ratio. In a process that nobody has asked, nothing is
told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import TypeVar

T = TypeVar("T")
BEGAN = "began"
"""The first step of every worker."""
_STEP, _BOUND, _CALL, _NEWS = b'{"step":', b'{"bound":', b'{"call":', b'{"news":'
_pipe: int | None = None
_process = 0


def opened() -> None:
    """From now on this process tells what it does on a pipe of its own, and what it prints goes to stderr."""
    global _pipe, _process
    _pipe, _process = os.dup(1), os.getpid()
    os.dup2(2, 1)


@dataclass(frozen=True)
class Bound:
    """The seconds that a worker may spend from now on, whatever it tells meanwhile; None where that ends."""

    seconds: float | None


@dataclass(frozen=True)
class FirstCall:
    """The call of that number has ended, of so many calls of a mode's first pass; number 0 is the start of the pass."""

    mode: str
    number: int
    calls: int
    seconds: float = 0.0


@dataclass(frozen=True)
class News:
    """A sentence for the user."""

    words: str


Told = str | Bound | FirstCall | News
"""What a worker tells: a step, as a string, and the others."""


def now(what: str) -> None:
    """Tell what this process begins to do, in words that follow "while it": `imported mine.py`.

    A copy of this process ends here: the user's code has made it by a fork, and nobody has asked it.
    """
    _tell(_STEP, what)


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Inside, who has asked ends this process once it has spent so many seconds, also in native code."""
    _tell(_BOUND, seconds)
    try:
        yield
    finally:
        _tell(_BOUND, None)


def first_call(call: FirstCall) -> None:
    """Tell of a first call."""
    _tell(_CALL, astuple(call))


def news(words: str) -> None:
    """Tell what a user wants to know before there is an answer."""
    _tell(_NEWS, words)


def is_asked() -> bool:
    """Whether another process hears what this one tells, and ends it at its limits."""
    return _pipe is not None


def each(what: str, items: Iterable[T]) -> Iterator[T]:
    """The items, each told before it is worked on: `each("checked", ops)` tells `checked add`."""
    for item in items:
        now(f"{what} {getattr(item, 'name', item)}")
        yield item


def answer(line: bytes) -> None:
    """Give the answer. Raises OSError where the user's code has closed the pipe."""
    _write(line)


def told(line: bytes) -> Told | None:
    """What a line tells; None for an answer, and for what others have written into the pipe."""
    if not line.startswith((_STEP, _BOUND, _CALL, _NEWS)):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match value:
        case {"step": str(step)}:
            return step
        case {"bound": None | int() | float() as seconds}:
            return Bound(seconds)
        case {"call": [str(mode), int(number), int(calls), int() | float() as seconds]}:
            return FirstCall(mode, number, calls, seconds)
        case {"news": str(words)}:
            return News(words)
    return None


def _tell(head: bytes, what: str | float | tuple[str | float, ...] | None) -> None:
    if _pipe is not None:
        if os.getpid() != _process:
            os._exit(0)
        with suppress(OSError):  # the user's code may have closed it: then there will be no answer either
            _write(head + json.dumps(what).encode() + b"}\n")


def _write(line: bytes) -> None:
    if _pipe is None:
        raise OSError("nobody has asked this process")
    while line:
        line = line[os.write(_pipe, line) :]
