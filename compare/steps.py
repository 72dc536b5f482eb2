"""The messages of a worker at work: its pipe carries a line for each step, and then the answer.

Steps show where a worker was that ended without an answer. Each step is progress, at which the worker's time limit
starts anew (`compare.run.processes`). Several steps together may have a limit too. Other messages are for the user
before there is an answer: each first call of a mode, and the seconds of a call after it. In a process that is no
worker, messages go only to a function registered by `hearing`.
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
READY = "waits"
"""The step of a worker that has started and waits until it may begin."""
_STEP, _BOUND, _CALL, _TIMES = b'{"step":', b'{"bound":', b'{"call":', b'{"times":'
_pipe: int | None = None
_process = 0
_ears: list[Callable[[Told], object]] = []


def open_pipe() -> None:
    """Make this process a worker: messages go to a pipe, which is the old stdout, and its prints to stderr."""
    global _pipe, _process
    _pipe, _process = os.dup(1), os.getpid()
    os.dup2(2, 1)


@dataclass(frozen=True)
class SecondsBound:
    """A message: the limit in seconds from now on, regardless of progress; None ends the limit."""

    seconds: float | None


@dataclass(frozen=True)
class FirstCall:
    """A message: call `number` of the `calls` in a mode's first pass has ended; number 0 is the start of the pass."""

    mode: str
    number: int
    calls: int
    seconds: float = 0.0


@dataclass(frozen=True)
class CallTimes:
    """A message: the seconds of a call of each mode in one block, before anything is compared."""

    seconds: Mapping[str, float]


Told = str | SecondsBound | FirstCall | CallTimes
"""A message of a worker; a str is a step."""


def now(what: str) -> None:
    """Send the step that this process begins, in words that follow "while it", as `imported mine.py`.

    A copy of this process, forked by the user's code, ends here, as it is not the worker.
    """
    _tell(_STEP, what)


@contextmanager
def bound_seconds(seconds: float) -> Iterator[None]:
    """Limit the block to some seconds: the asking process ends this one after that time, also in native code."""
    _tell(_BOUND, seconds)
    try:
        yield
    finally:
        _tell(_BOUND, None)


def first_call(call: FirstCall) -> None:
    """Send the message of a first call."""
    _tell(_CALL, astuple(call))


def call_times(times: CallTimes) -> None:
    """Send the message of call times."""
    _tell(_TIMES, dict(times.seconds))


@contextmanager
def hearing(heard: Callable[[Told], object]) -> Iterator[None]:
    """Call `heard` for each message of this process inside the block, unless it is a worker."""
    _ears.append(heard)
    try:
        yield
    finally:
        _ears.remove(heard)


def is_asked() -> bool:
    """Whether this process is a worker: another process gets its messages, and ends it at its limits."""
    return _pipe is not None


def each(what: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items and send each as a step before it: `each("checked", ops)` sends `checked add`."""
    for item in items:
        now(f"{what} {getattr(item, 'name', item)}")
        yield item


def answer(line: bytes) -> None:
    """Send the answer. Raises OSError if the user's code has closed the pipe, or if this is no worker."""
    _write(line)


def parse_step(line: bytes) -> Told | None:
    """Return the message of a line; None for an answer, and for lines that other code has written to the pipe."""
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
        with suppress(OSError):  # the user's code may have closed the pipe: then there will be no answer either
            _write(line)
    elif _ears and (what_is_told := parse_step(line)) is not None:
        _ears[-1](what_is_told)


def _write(line: bytes) -> None:
    if _pipe is None:
        raise OSError("nobody has asked this process")
    while line:
        line = line[os.write(_pipe, line) :]
