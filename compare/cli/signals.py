"""The end of a command from outside: Ctrl-C, or SIGTERM, which ends it in the same way.

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
"""The exit codes of an interrupted and of a terminated command: 128 and the number of the signal, as in a shell."""


class TerminationSignal(KeyboardInterrupt):
    """The process has received SIGTERM."""


@contextmanager
def by_signals() -> Iterator[None]:
    """A context in which SIGTERM raises TerminationSignal, a KeyboardInterrupt, as SIGINT raises one.

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
