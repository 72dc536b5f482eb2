"""What a worker tells while it works: the pipe of its answer carries a line for each step, and then the answer.

Steps say where a worker was that ended without an answer, and each is progress, from which its limit counts anew
(`compare.run.processes`). Some steps together may have a limit as well. In a process that nobody has asked, nothing is
told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
BEGAN = "began"
"""The first step of every worker."""
_STEP, _BOUND = b'{"step":', b'{"bound":'
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


def each(what: str, items: Iterable[T]) -> Iterator[T]:
    """The items, each told before it is worked on: `each("checked", ops)` tells `checked add`."""
    for item in items:
        now(f"{what} {getattr(item, 'name', item)}")
        yield item


def answer(line: bytes) -> None:
    """Give the answer. Raises OSError where the user's code has closed the pipe."""
    _write(line)


def told(line: bytes) -> str | Bound | None:
    """The step or the bound that a line tells; None for an answer, and for what others have written into the pipe."""
    if not line.startswith((_STEP, _BOUND)):
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
    return None


def _tell(head: bytes, what: str | float | None) -> None:
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
