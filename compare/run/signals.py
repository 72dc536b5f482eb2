"""How a command is ended from outside: by Ctrl-C, or by SIGTERM, which ends it in the same way.

Where SIGINT is ignored from the start, as in a background job of a shell, it stays ignored: the Ctrl-C of a terminal is
not meant for such a job. SIGTERM ends it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes, 128 and the number of the signal, as a shell has them."""


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM has come."""


@contextmanager
def by_signals() -> Iterator[None]:
    """Inside, SIGTERM raises Terminated, which is a KeyboardInterrupt, as SIGINT does.

    What other code makes of either is raised as what it was: a module of C that is being imported makes an ImportError
    of it, for which nobody's file is to blame.
    """
    came: list[KeyboardInterrupt] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(KeyboardInterrupt() if number == signal.SIGINT else TerminationSignal())
        raise came[-1]

    ours = [signal.SIGTERM, *([signal.SIGINT] if signal.getsignal(signal.SIGINT) is signal.default_int_handler else [])]
    before = {number: signal.signal(number, stop) for number in ours}
    try:
        yield
    except click.exceptions.Exit:  # the command has come to its end, by a signal or not
        raise
    except Exception as error:
        if came:
            raise came[-1] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(stop: KeyboardInterrupt) -> int:
    """What the command ends with; one that was raised in another's place ends as that does."""
    return TERMINATED if any(isinstance(each, TerminationSignal) for each in (stop, stop.__cause__)) else INTERRUPTED
