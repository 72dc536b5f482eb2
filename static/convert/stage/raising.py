"""What the user's code raises where only the run knows whether that is reached: the run of the graph raises it.

`raise`, `assert` and `sys.exit` tell of the error before they raise it. A side of a branch that ends so computes
nothing else: the graph requires that its test does not hold, and goes on with the other side alone. What code of
libraries raises is no decision of the user's, and stays refused; so does what a `try` or a `with` around may catch.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn

from graphs.blocks import Block, Table, enter, innermost
from graphs.errors import user_line
from graphs.ops.effects import require_op
from graphs.ops.elementwise import logical_not
from static.convert.stage import unknown
from static.convert.stage.conversion import part
from static.convert.stage.unknown import is_symbol, parts, refuse
from static.trace.symbol import Symbol

_CAUGHT = (StopIteration, StopAsyncIteration, AttributeError, LookupError, TypeError)
"""What Python itself catches, where it loops, looks something up, or asks for a length."""


class RaisedError(NamedTuple):
    """An error that a statement of the user's has raised, its line, and why a graph cannot raise it (empty: it can)."""

    error: BaseException
    line: str
    why_not: str


class RaisedErrors:
    """What the user's statements have raised in this trace, and what there is around that may catch more."""

    def __init__(self) -> None:
        self.errors: list[RaisedError] = []
        self.caught: Table[bool] = {}

    def of(self, error: BaseException) -> RaisedError | None:
        """What is known of an error; None where no statement of the user's has raised it."""
        return next((raised for raised in self.errors if raised.error is error), None)


class catching(Block):  # noqa: N801
    """The body of a `try` with handlers, or of a `with`: what is raised in it may go no further."""

    def __enter__(self) -> None:
        enter(part(RaisedErrors).caught, self.hold(), True)


def raised(error: Any) -> Any:
    """The error of a `raise` statement, told of as the user's."""
    made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
    if isinstance(made, BaseException):
        part(RaisedErrors).errors.append(RaisedError(made, user_line(), _why_not(made)))
    return made


def fails(message: Any) -> NoReturn:
    """What `assert` does where its test does not hold."""
    raise raised(AssertionError() if message is None else AssertionError(message))


def exits(code: Any = None) -> NoReturn:
    """`sys.exit`."""
    raise raised(SystemExit(code))


def is_raised_by_the_graph(error: BaseException) -> bool:
    """Whether a statement of the user's has raised an error, and a graph can."""
    told = part(RaisedErrors).of(error)
    return told is not None and not told.why_not


def refuse_raised(error: BaseException) -> NoReturn:
    """Raise ControlFlowError for an error that the graph does not raise."""
    told = part(RaisedErrors).of(error)
    text = "" if _holds_unknown(error) else f" ({error})"
    why = f", and {told.why_not}" if told and told.why_not else ""
    refuse(
        f"{type(error).__name__} is raised where only the run knows whether it is reached{text}{why}; return a value "
        "that says so"
    )


def require(test: Symbol, value: bool, error: BaseException) -> None:
    """Let the run raise an error unless the test has this value."""
    told = part(RaisedErrors).of(error)
    attrs = {"label": f"{type(error).__name__}: {error}", "line": told.line if told else "", "error": error}
    require_op.apply((test if value else logical_not(test),), attrs)
    unknown.require(test, value)


def _why_not(error: BaseException) -> str:
    """Why a graph cannot raise an error; empty where it can."""
    if innermost(part(RaisedErrors).caught, False):
        return "a `try` or `with` around it may catch it"
    if isinstance(error, _CAUGHT):
        return "Python itself catches such an error where it loops or looks something up"
    if _holds_unknown(error):
        return "it holds a value that only the run knows"
    try:
        copy.copy(error)
    except Exception:  # noqa: BLE001  (whatever the class raises)
        return f"{type(error).__name__} cannot be made again from its `args`"
    return ""


def _holds_unknown(error: BaseException) -> bool:
    return any(map(is_symbol, parts([*error.args, *vars(error).values()])))
