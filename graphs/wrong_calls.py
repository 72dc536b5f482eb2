"""Errors that explain what went wrong in a call: wrong arguments, and results that are NaN or infinite.

Arguments are not checked before a call: an exception that Python or NumPy raises for them is converted to a GraphError.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from graphs import dispatch
from graphs.errors import (
    AnomalyError,
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
    # Whether an error was raised by user code, or by the Python library as called from user code.
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    rest = [file for file in files if not file.startswith(("<frozen", _LIBRARY)) or "site-packages" in file]
    rest = [file for file in rest if not file.endswith(".pyx")]  # compiled parts of NumPy
    if bool(rest) and not is_internal(rest[-1]):
        raise error
    raise add_context(explain_wrong_call(error, name, function), name, operands) from error


def explain_wrong_call(error: Exception, name: str, function: Callable[..., Any]) -> GraphError:
    """Convert an exception in `PLAIN` to a GraphError: the same words, with the right call as the remedy."""
    kind = next(ours for theirs, ours in _KINDS.items() if isinstance(error, theirs))
    return kind(f"{_rule(error)}; call {name}{parameters(function)}")


def _rule(error: Exception) -> str:
    if isinstance(error, AttributeError) and error.name in _OF_TENSORS:
        return f"takes tensors, not {dispatch.describe_operand(error.obj)}"
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


_LIBRARY = str(Path(inspect.__file__).parent)


# NaN and infinity -----------------------------------------------------------------------------------------------------


def anomaly(
    op: dispatch.Operation, inputs: Sequence[Any], out: Any, *, infinite: bool, where: str = "", line: str = ""
) -> GraphError | None:
    """Return the error for an op whose result holds NaN, or infinity that no input holds; None without either.

    Infinity that an input holds already, as in a mask of -inf, is no anomaly; with `infinite=False` no infinity is.
    `where` is appended to the rule in the message, and `line` is the user's line.
    """
    values, operands = _floats(out), _floats(inputs)
    if all(np.isfinite(value).all() for value in values):
        return None
    if any(np.isnan(value).any() for value in values):
        rule = "passes NaN on" if any(np.isnan(value).any() for value in operands) else "makes NaN"
    elif infinite and all(np.isfinite(value).all() for value in operands):
        rule = "makes infinity"
    else:
        return None
    return dispatch.explain_error(op, inputs, AnomalyError(f"{rule}{where}; {_ranges(inputs)}"), line)


def _ranges(inputs: Sequence[Any]) -> str:
    """Describe the range of values of each floating point input, for an error message."""
    held = [f"input {i} {_describe_values(values)}" for i, operand in enumerate(inputs) if (values := _floats(operand))]
    return ", ".join(held) or "it has no floating point input"


def _describe_values(values: list[Any]) -> str:
    flat = np.concatenate([np.ravel(value).astype(np.float64) for value in values])
    if np.isnan(flat).any():
        return "holds NaN"
    return f"lies in [{flat.min():.3g}, {flat.max():.3g}]" if flat.size else "is empty"


def _floats(value: Any) -> list[Any]:
    """The floating point arrays in a value. Tuples and lists, as control-flow ops compute, are searched."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _floats(part)]
    array = np.asarray(value)
    return [array] if array.dtype.kind == "f" else []
