"""The calls by which code ends its own process: inside `stopped` they raise instead.

A process that ends so gives no answer, and with `os._exit(0)` it even says that all is well. What ends a process in
another way, such as a signal or a crash, is seen by the process that has started it (`compare.run.processes`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

CALLS = ("_exit", "abort", "execv", "execve")
"""Of `os`; those that replace the process by another program come down to the last two."""


class Ended(BaseException):
    """The process would have ended here. No Exception, since code that ends its process expects none."""


@contextmanager
def stopped() -> Iterator[None]:
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
        raise Ended(f"os.{name}({', '.join(map(repr, args[:1]))})")

    return refuse
