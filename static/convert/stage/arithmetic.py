"""Python's operators: those that a class of the user's defines are converted, lists that they make are new."""

from __future__ import annotations

import inspect
import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from static.convert.stage import conversion
from static.convert.stage.builtins import shown
from static.convert.stage.calls import call
from static.convert.stage.effects import check_read, check_write
from static.convert.stage.overwriting import changed_in_place
from static.convert.stage.places import journal_container, made
from static.convert.stage.unknown import is_symbol, refuse

Operator = Callable[[Any, Any], Any]
_OPERATORS: dict[str, tuple[Operator, Operator, str]] = {
    "Add": (operator.add, operator.iadd, "add"),
    "Sub": (operator.sub, operator.isub, "sub"),
    "Mult": (operator.mul, operator.imul, "mul"),
    "Div": (operator.truediv, operator.itruediv, "truediv"),
    "FloorDiv": (operator.floordiv, operator.ifloordiv, "floordiv"),
    "Mod": (operator.mod, operator.imod, "mod"),
    "Pow": (operator.pow, operator.ipow, "pow"),
    "MatMult": (operator.matmul, operator.imatmul, "matmul"),
    "BitAnd": (operator.and_, operator.iand, "and"),
    "BitOr": (operator.or_, operator.ior, "or"),
    "BitXor": (operator.xor, operator.ixor, "xor"),
    "LShift": (operator.lshift, operator.ilshift, "lshift"),
    "RShift": (operator.rshift, operator.irshift, "rshift"),
}


def by_method(name: str, value: Any, other: Any) -> Any:
    """What a method of the user's class gives for an operator; NotImplemented where there is none."""
    method = inspect.getattr_static(type(value), f"__{name}__", None)
    return call(method)(value, other) if _is_the_users(method) else NotImplemented


def arithmetic(name: str, left: Any, right: Any) -> Any:
    """`one + other`, and the like."""
    _check_sequences(name, left, right)
    plain, _, method = _OPERATORS[name]
    returned = by_method(method, left, right)
    if returned is NotImplemented and type(right) is not type(left):
        returned = by_method(f"r{method}", right, left)
    return made(plain(left, right)) if returned is NotImplemented else returned


def augmented(name: str, value: Any, other: Any) -> Any:
    """`value += other`, and the like: a list changes, and so does a tensor under all its names."""
    _check_sequences(name, value, other)
    _, in_place, method = _OPERATORS[name]
    returned = by_method(f"i{method}", value, other)
    if returned is not NotImplemented:
        return returned
    if _is_the_users(inspect.getattr_static(type(value), f"__{method}__", None)):
        return arithmetic(name, value, other)
    journal_container(value)
    if hasattr(type(value), f"__i{method}__"):
        check_write(value)
    result = in_place(value, other)
    is_new = is_symbol(value) and not value.weak and result is not value
    return changed_in_place(value, result) if is_new else result


def _check_sequences(name: str, left: Any, right: Any) -> None:
    """Raise ControlFlowError for a length that only the run knows, and for a text that shows a value."""
    if isinstance(left, (str, bytes)) and name == "Mod":
        shown(right)
        check_read(right)
    for sequence, number in ((left, right), (right, left)):
        if isinstance(sequence, (list, tuple, str, bytes, bytearray, deque)) and is_symbol(number) and number.weak:
            refuse(
                f"a {type(sequence).__name__} is repeated so often as only the run knows, or meets a number that only "
                "the run knows; make it a tensor"
            )


def _is_the_users(method: Any) -> bool:
    return isinstance(method, FunctionType) and conversion.is_the_users(method)
