"""What is wrong with a user's file or function, on its way from the worker that has met it to the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compare.errors import CompareError, FunctionError, InputsError, explained
from compare.records.own import FunctionFault
from compare.records.record import Record
from compare.records.runs import error_of

R = TypeVar("R", bound=Record)


def answered(function: str, find: Callable[[], R]) -> R | FunctionFault:
    """What a worker finds of the function, or what is wrong with it: that is an answer too."""
    try:
        with explained(function):
            return find()
    except CompareError as error:
        return FunctionFault(str(error), error.exit_code)


def checked(answer: Record, function: str) -> Any:
    """The answer of a worker about a user's function. Raises CompareError, with its exit code, where it is none."""
    if isinstance(answer, FunctionFault):
        raise (InputsError if answer.code == InputsError.exit_code else FunctionError)(answer.error)
    if error := error_of(answer):
        raise FunctionError(f"{function}: {error}")
    return answer
