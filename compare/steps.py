"""What a worker tells while it works: the pipe of its answer carries a line for each step, and then the answer.

Steps say where a worker was that ended without an answer, and each is progress, from which its limit counts anew
(`compare.run.processes`). Some steps together may have a limit as well. What is worth a line for the user before there
is an answer is told on the way: each first call of a mode, and what a call takes after it. In a process that nobody has
asked, nothing is told but to who is `hearing` in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import TypeVar

T = TypeVar("T")
BEGAN = "began"
"""The first step of every worker."""
_STEP, _BOUND, _CALL, _TIMES = b'{"step":', b'{"bound":', b'{"call":', b'{"times":'
_pipe: int | None = None
_process = 0
_ears: list[Callable[[Told], object]] = []


def open_pipe() -> None:
    """From now on this process tells what it does on a pipe of its own, and what it prints goes to stderr."""
    global _pipe, _process
    _pipe, _process = os.dup(1), os.getpid()
    os.dup2(2, 1)


@dataclass(frozen=True)
class SecondsBound:
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
class CallTimes:
    """The seconds of a call of each mode in one block, before anything is compared."""

    seconds: Mapping[str, float]


Told = str | SecondsBound | FirstCall | CallTimes
"""What a worker tells: a step, as a string, and the others."""


def now(what: str) -> None:
    """Tell what this process begins to do, in words that follow "while it": `imported mine.py`.

    A copy of this process ends here: the user's code has made it by a fork, and nobody has asked it.
    """
    _tell(_STEP, what)


@contextmanager
def bound_seconds(seconds: float) -> Iterator[None]:
    """Inside, who has asked ends this process once it has spent so many seconds, also in native code."""
    _tell(_BOUND, seconds)
    try:
        yield
    finally:
        _tell(_BOUND, None)


def first_call(call: FirstCall) -> None:
    """Tell of a first call."""
    _tell(_CALL, astuple(call))


def call_times(times: CallTimes) -> None:
    """Tell what a call takes."""
    _tell(_TIMES, dict(times.seconds))


@contextmanager
def hearing(heard: Callable[[Told], object]) -> Iterator[None]:
    """Inside, this process hears what it tells itself, unless another one has asked it."""
    _ears.append(heard)
    try:
        yield
    finally:
        _ears.remove(heard)


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


def parse_step(line: bytes) -> Told | None:
    """What a line tells; None for an answer, and for what others have written into the pipe."""
    if not line.startswith((_STEP, _BOUND, _CALL, _TIMES)):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match value:
        case {"step": str(step)}:
            return step
        case {"bound": None | int() | float() as seconds}:
            return SecondsBound(seconds)
        case {"call": [str(mode), int(number), int(calls), int() | float() as seconds]}:
            return FirstCall(mode, number, calls, seconds)
        case {"times": dict(times)} if all(isinstance(each, int | float) for each in times.values()):
            return CallTimes(times)
    return None


def _tell(head: bytes, what: str | float | tuple[str | float, ...] | Mapping[str, float] | None) -> None:
    line = head + json.dumps(what).encode() + b"}\n"
    if _pipe is not None:
        if os.getpid() != _process:
            os._exit(0)
        with suppress(OSError):  # the user's code may have closed it: then there will be no answer either
            _write(line)
    elif _ears and (what_is_told := parse_step(line)) is not None:
        _ears[-1](what_is_told)


def _write(line: bytes) -> None:
    if _pipe is None:
        raise OSError("nobody has asked this process")
    while line:
        line = line[os.write(_pipe, line) :]
