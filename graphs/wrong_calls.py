"""What Python and NumPy say of a call whose arguments nobody has checked, as errors of ours."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from graphs.errors import ArgumentError, GraphError, OptionError, OutOfRangeError

PLAIN: tuple[type[Exception], ...] = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What they raise then. Anything else (no memory, a warning made an error) is no rule of a function."""
WRONG: tuple[type[Exception], ...] = (GraphError, *PLAIN)


def explained(error: Exception, name: str, function: Callable[..., Any]) -> GraphError:
    """One of `PLAIN` as an error of ours: in the same words, with the right call as the remedy."""
    kind: type[GraphError] = OptionError
    if isinstance(error, (TypeError, AttributeError)):
        kind = ArgumentError
    elif isinstance(error, IndexError):
        kind = OutOfRangeError
    rule = _CALL.sub("", str(error)).replace(";", ",") or type(error).__name__
    return kind(f"{rule}; call {name}{_parameters(function)}")


_CALL = re.compile(r"^[\w.<>]+\(\) ")  # the function, as Python names it in front of what is wrong with its arguments


def _parameters(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))
