"""What a wrong call of PyTorch's functions says: the function, its operands, the rule, the user's line, the remedy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphs.dispatch import described
from graphs.torch.words import translated
from graphs.wrong_calls import WRONG, raise_named

Function = Callable[..., Any]


def guarded(function: Function) -> Function:
    """A function whose every error is a GraphError that names it, its operands and the user's line.

    PyTorch's functions call each other without the guard: the one that the user has called is named.
    """
    has_words = getattr(function, "with_words", None) is function
    inner: Function = function.__wrapped__ if has_words else function  # type: ignore[attr-defined]

    @functools.wraps(inner)
    def called(*args: Any, **options: Any) -> Any:
        try:
            if options and has_words:
                options = translated(options)
            return inner(*args, **options)
        except WRONG as error:
            raise_named(error, called.__name__, _operands(args, options), inner)

    return called


def guard(space: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the functions of these names in a module's globals; ops say what is wrong themselves."""
    for name in names:
        if inspect.isfunction(function := space[name]):
            space[name] = guarded(function)
            space[name].__module__ = space["__name__"]


def _operands(args: Sequence[Any], options: Mapping[str, Any]) -> str:
    return ", ".join(described(value) for value in (*args, *options.values()) if _holds_tensors(value))


def _holds_tensors(value: Any) -> bool:
    return hasattr(value, "dtype") or (isinstance(value, (list, tuple)) and any(map(_holds_tensors, value)))
