"""What a conversion of control flow tells the engine: what to call for a function, and why Python decides somewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from graphs.blocks import Block, Table, enter, innermost

Callee = Callable[[Any], Any]
Reason = Callable[[], str]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.callees: Table[Callee | None] = {}  # what a function of the user's becomes before it is called
        self.reasons: Table[Reason | None] = {}


_thread = _Thread()


class converts(Block):  # noqa: N801
    """Inside, the engine calls what `callee` makes of a function that it was given, in place of the function.

    `reason` says why the code that runs now is not converted, and what to do about it.
    """

    def __init__(self, callee: Callee, reason: Reason) -> None:
        self._callee, self._reason = callee, reason

    def __enter__(self) -> None:
        hold = self.hold()
        enter(_thread.callees, hold, self._callee)
        enter(_thread.reasons, hold, self._reason)


def callee(f: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a function that the engine was given."""
    convert = innermost(_thread.callees, None)
    return f if convert is None else convert(f)


def unconverted() -> str:
    """Why the code that runs now is not converted, and what to do about it; empty where nothing is converted."""
    reason = innermost(_thread.reasons, None)
    return "" if reason is None else reason()
