"""Values that only the run knows, and variables that only some paths set."""

from __future__ import annotations

from typing import Any, NoReturn, TypeGuard

import numpy as np

from graphs import promotion
from graphs.errors import ControlFlowError, ShapeError, located
from graphs.ops.elementwise import logical_not, not_equal
from graphs.ops.movement import reshape
from static.convert.stage.facts import known_value
from static.trace.symbol import Symbol
from static.trace.tracing import current


def refuse(message: str) -> NoReturn:
    """Raise ControlFlowError at the user's line, so that no `except` of the user's hides it."""
    error = ControlFlowError(located(message))
    builder = current()
    if builder is not None:
        builder.refuse(error)
    raise error


class Unset:
    """Stands in a variable that is not set."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> NoReturn:
        """Raise what Python raises."""
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value")


class Partly:
    """Stands in a variable that some paths set, and which was taken only the run knows: `test` tells it then."""

    def __init__(self, name: str, value: Any, test: Any = False) -> None:
        self.name, self.value, self.test = name, value, test

    def is_set(self) -> bool:
        """Whether it is set where this is traced."""
        return is_symbol(self.test) and known_value(self.test) is True

    def read(self) -> Any:
        """The value where a test around has asked for the path that sets it; else refuse."""
        if self.is_set():
            return self.value
        refuse(f"{self.name!r} is not set on every path, and only the run knows which is taken; set it before")


class Differing:
    """Stands in a variable that differs between paths as no value of a graph can."""

    def __init__(self, why: str) -> None:
        self.why = why

    def read(self) -> NoReturn:
        """Refuse to read it."""
        refuse(self.why)


Stand = Unset | Partly | Differing


def read(value: Any) -> Any:
    """The value of a variable. Raises UnboundLocalError, or ControlFlowError where only the run knows if it is set."""
    return value.read() if isinstance(value, Stand) else value


def plain(value: Any) -> Any:
    """The value that a variable has where it is set."""
    return value.value if isinstance(value, Partly) else value


def settled(value: Any) -> Any:
    """The value of a variable where the path that is traced tells it: that it is set, or which bool it is."""
    test = value.test if isinstance(value, Partly) else value
    outcome = known_value(test) if is_symbol(test) and test.weak else None
    if outcome is None or test is value:
        return value if outcome is None else outcome
    return value.value if outcome else Unset(value.name)


def unset(name: str) -> Unset:
    """What a variable holds before it is set."""
    return Unset(name)


def returned(value: Any) -> Any:
    """What a function returns: None where it ends without a return."""
    return None if isinstance(value, Unset) else read(value)


def is_symbol(value: Any) -> TypeGuard[Symbol]:
    """Whether only the run knows a value."""
    return isinstance(value, Symbol)


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, or stands for one."""
    return promotion.is_scalar(value) or (isinstance(value, Symbol) and value.weak)


def is_tensor(value: Any) -> bool:
    """Whether a value is an array, a symbol, or a tensor of the dynamic engine."""
    return isinstance(value, (Symbol, np.ndarray, np.generic)) or hasattr(type(value), "captured_array")


def weak(symbol: Symbol) -> Symbol:
    """The symbol as a Python number, which takes the dtype of what it stands beside."""
    return Symbol(symbol.builder, symbol.node, weak=True)


def truth(value: Symbol) -> Symbol:
    """The one bool that Python's `if` makes of a value. Raises ShapeError for several elements."""
    if any(size != 1 for size in value.shape):
        raise ShapeError(located(f"if: the truth of {value.node.spec} is ambiguous; use any() or all()"))
    scalar = reshape(value, ()) if value.shape else value
    return weak(scalar if scalar.dtype == np.bool_ else not_equal(scalar, 0))


def negated(value: Any) -> Any:
    """`not value`."""
    return weak(logical_not(truth(value))) if is_symbol(value) else not value


def described(value: Any) -> str:
    """A value in a message."""
    if is_tensor(value) and not is_number(value):
        return f"a tensor {np.dtype(value.dtype).name}{list(value.shape)}"
    if is_symbol(value):
        return f"a number ({value.dtype.name})"
    if isinstance(value, Unset):
        return "not set"
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
