"""How a command is ended from outside: by Ctrl-C, or by SIGTERM, which ends it in the same way.

Where SIGINT is ignored from the start, as in a background job of a shell, it stays ignored: the Ctrl-C of a terminal is
not meant for such a job. SIGTERM ends it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes, 128 and the number of the signal, as a shell has them."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come."""


@contextmanager
def by_sigterm() -> Iterator[None]:
    """Inside, SIGTERM raises Terminated, which is a KeyboardInterrupt."""
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_code(stop: KeyboardInterrupt) -> int:
    """What the command ends with."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _terminated(_: int, __: FrameType | None) -> None:
    raise Terminated
