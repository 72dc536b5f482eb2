"""Convert exceptions of Python and NumPy for a wrong call, whose arguments were not checked, to GraphErrors."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from graphs.dispatch import describe_operand
from graphs.errors import (
    ArgumentError,
    GraphError,
    MissingKeyError,
    OptionError,
    OutOfRangeError,
    add_context,
    is_internal,
)

PLAIN: tuple[type[Exception], ...] = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What they raise then. Anything else (no memory, a warning made an error) is no rule of a function."""
WRONG: tuple[type[Exception], ...] = (GraphError, *PLAIN)


def raise_named(error: Exception, name: str, operands: str, function: Callable[..., Any]) -> NoReturn:
    """Raise one of `WRONG` as a GraphError that names the function, its operands and the user's line.

    An error from user code that the function calls is raised unchanged.
    """
    if isinstance(error, GraphError):
        raise add_context(error, name, operands) from None
    if _is_of_the_user(error):
        raise error
    raise add_context(explain_wrong_call(error, name, function), name, operands) from error


def explain_wrong_call(error: Exception, name: str, function: Callable[..., Any]) -> GraphError:
    """Convert an exception in `PLAIN` to a GraphError: the same words, with the right call as the remedy."""
    kind = next(ours for theirs, ours in _KINDS.items() if isinstance(error, theirs))
    return kind(f"{_rule(error)}; call {name}{parameters(function)}")


def _rule(error: Exception) -> str:
    if isinstance(error, AttributeError) and error.name in _OF_TENSORS:
        return f"takes tensors, not {describe_operand(error.obj)}"
    words = error.args[0] if isinstance(error, KeyError) and error.args else error
    return _CALL.sub("", str(words)).replace(";", ",") or type(error).__name__


_KINDS: dict[type[Exception], type[GraphError]] = {
    TypeError: ArgumentError, AttributeError: ArgumentError, KeyError: MissingKeyError, LookupError: OutOfRangeError,
    Exception: OptionError,
}  # fmt: skip
_OF_TENSORS = ("dtype", "shape", "ndim", "_data", "detach", "item", "requires_grad")
_CALL = re.compile(r"^[\w.<>]+\(\) ")  # the function, as Python names it in front of what is wrong with its arguments


def parameters(function: Callable[..., Any]) -> str:
    """The parameters of a function as text, without types: `(input, min=None)`."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _is_of_the_user(error: Exception) -> bool:
    """Whether an error was raised by user code, or by the Python library as called from user code."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    rest = [file for file in files if not file.startswith(("<frozen", _LIBRARY)) or "site-packages" in file]
    rest = [file for file in rest if not file.endswith(".pyx")]  # compiled parts of NumPy
    return bool(rest) and not is_internal(rest[-1])


_LIBRARY = str(Path(inspect.__file__).parent)
