"""What a class of the user's does when Python calls its methods by itself."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from static.convert.stage import conversion
from static.trace.symbol import Symbol

_MADE_AT_RUN_TIME = 512  # the flag of a class made by a class statement


class Missing:
    """Stands for what a class does not have."""


def held_by(kind: type, name: str) -> Any:
    """What a class or one of its bases holds under a name, as it stands there; Missing where none does."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return Missing


def is_of_a_class_statement(kind: type) -> bool:
    """Whether a class was made at run time: no other one has methods in Python."""
    return not issubclass(kind, Symbol) and kind.__flags__ & _MADE_AT_RUN_TIME != 0


def special(value: Any, name: str) -> FunctionType | None:
    """The method of the user's that Python calls by itself for an object, if its class has one."""
    kind = type(value)
    return users(held_by(kind, name)) if is_of_a_class_statement(kind) else None


def users(method: Any) -> FunctionType | None:
    """A function of the user's, else None."""
    method = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    return method if isinstance(method, FunctionType) and conversion.is_the_users(method) else None
